"""`cads trace`: what was asked and answered in a campaign, and what became of every name.

Reads a run's files and prints; asks nothing of anybody.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cads_agents.cli.terminal import OUT, say
from cads_agents.cli.traced import (
    Place,
    Traced,
    arm_of,
    of_campaign,
    places_of,
    rows_of,
    traced_of,
)
from cads_agents.cli.traced_text import (
    LEGEND,
    as_json,
    attempts_view,
    exchange_text,
    heading,
    round_text,
)
from cads_env.errors import RunError
from cads_env.report.llm.attempts import attempts_of
from cads_env.run.rows import Key, planned_keys
from cads_env.run.traces import trace_path

_MOST_TABLES = 8
"""Campaigns whose rounds are shown when none is named."""
_WIDEST = 110


def trace(
    folder: Annotated[Path, typer.Argument(help="Folder of a run or a grid, e.g. runs/0001.")],
    arm: Annotated[str | None, typer.Option(help="Arm, or the last part of its name.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the campaign.")] = None,
    registry: Annotated[str | None, typer.Option(help="Registry of the campaign.")] = None,
    setting: Annotated[str | None, typer.Option(help="Setting of a grid.")] = None,
    round_: Annotated[
        int | None, typer.Option("--round", help="Round, counting from 0: its exchanges, whole.")
    ] = None,
    attempt: Annotated[int | None, typer.Option(help="Attempt, counting from 1.")] = None,
    json_: Annotated[
        bool, typer.Option("--json", help="One line of JSON an exchange, of every round.")
    ] = False,
) -> None:
    """Show prompts, answers and what became of each name; without --round, a table of the rounds.

    What a model wrote is shown as it is, with control characters written out.
    """
    found = [
        (place, key)
        for place in places_of(folder, setting)
        for key in _keys(place, arm, seed, registry)
    ]
    if not found:
        msg = (
            f"{folder} has no traces of such a campaign. Traces are kept of agents that ask a "
            "model or another world outside; leave out --arm, --seed and --registry to see which "
            "campaigns have one."
        )
        raise RunError(msg)
    if json_:
        for place, key in found:
            for traced in _chosen(place, key, round_, attempt):
                typer.echo(as_json(place, key, traced))
    elif round_ is not None:
        _show_round(found, round_, attempt)
    else:
        _show_campaigns(found)


def _keys(place: Place, arm: str | None, seed: int | None, registry: str | None) -> list[Key]:
    """The campaigns of a run that have a trace and are meant."""
    named = None if arm is None else arm_of(place, arm)
    return [
        key
        for key in planned_keys(place.run.manifest["config"])
        if named in (None, key.arm)
        and seed in (None, key.seed)
        and registry in (None, key.registry)
        and trace_path(place.folder, key).is_file()
    ]


def _chosen(place: Place, key: Key, round: int | None, attempt: int | None) -> list[Traced]:
    return [
        traced
        for traced in traced_of(place, key)
        if round in (None, traced.round) and attempt in (None, traced.attempt)
    ]


def _show_round(found: list[tuple[Place, Key]], round: int, attempt: int | None) -> None:
    shown = 0
    for place, key in found:
        chosen = _chosen(place, key, round, attempt)
        if not chosen:
            continue
        shown += 1
        say(heading(place, key))
        for traced in chosen:
            for line in exchange_text(traced):
                say(line)
        rows = {row["round"]: row for row in rows_of(place, key)}
        say(f"{round_text(rows.get(round))}\n")
    if not shown:
        what = f"round {round}" if attempt is None else f"round {round}, attempt {attempt}"
        msg = (
            f"Nothing was asked in {what}. Rounds count from 0 and attempts from 1; leave out "
            "--round to see which there were."
        )
        raise RunError(msg)


def _show_campaigns(found: list[tuple[Place, Key]]) -> None:
    if len(found) > _MOST_TABLES:
        for place, key in found:
            say(heading(place, key))
        say(f"{len(found):,} campaigns have traces. Name one with --arm and --seed.")
        return
    # Wider than other tables: cut columns would be lost figures.
    wide = Console(width=max(_WIDEST, OUT.width))
    tables = {place.setting: attempts_of(place.run) for place, _ in found}
    for place, key in found:
        table = of_campaign(tables[place.setting], key)
        wide.print(attempts_view(table, heading(place, key)))
    say(LEGEND)
    say("Add --round to see prompts, answers and what became of each name.")

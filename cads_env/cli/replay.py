"""`cads replay`: does a run give the same bytes again, with nothing asked of any server?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from cads_env.cli.arguments import parse_pairs
from cads_env.cli.terminal import NOT_AGREED, OUT
from cads_env.errors import RunError
from cads_env.panel import load_panel
from cads_env.report.wording import counted, visible
from cads_env.run.grid import is_grid, read_settings
from cads_env.run.manifest import MANIFEST_FILE
from cads_env.run.replay import Replayed
from cads_env.run.replay import replay as replay_run

SHOWN: Final = 20
"""Mismatches that are printed of one run."""


def replay(
    folder: Annotated[Path, typer.Argument(help="Folder of a run or of a grid.")],
    arm: Annotated[
        list[str] | None,
        typer.Option(help="Arm whose agent --agent names, in the same order; repeat."),
    ] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option(help="Agent of --arm, for one that was handed over in Python; repeat."),
    ] = None,
    registry: Annotated[
        list[str] | None,
        typer.Option(help="Registry or panel that was played on, where its name does not tell it."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-O", help="Option of the source, with --registry."),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 1,
) -> None:
    """Play every campaign again from its trace and compare every row with the files.

    Nothing is asked of a server. Ends with 3 where a row is another one.
    """
    agents = _agents(arm or [], agent or [])
    options = parse_pairs(option or [], "--option")
    panel = load_panel(registry, **options) if registry else None
    found = [
        replay_run(place, agents=agents, registry=panel, jobs=jobs) for place in _folders(folder)
    ]
    for one in found:
        _show(one)
    if not all(one.byte_identical for one in found):
        raise typer.Exit(NOT_AGREED)


def _agents(arms: list[str], agents: list[str]) -> Mapping[str, str]:
    if len(arms) != len(agents):
        msg = (
            f"--arm was given {len(arms)} times and --agent {len(agents)} times; expected one "
            "agent for each arm."
        )
        raise RunError(msg)
    return dict(zip(arms, agents, strict=True))


def _folders(folder: Path) -> list[Path]:
    """The run itself, or the runs of a grid that have begun."""
    if not is_grid(folder):
        return [folder]
    places = [folder / setting.name for setting in read_settings(folder)]
    begun = [place for place in places if (place / MANIFEST_FILE).exists()]
    if not begun:
        msg = f"No setting of {folder} has begun; there is nothing to replay."
        raise RunError(msg)
    return begun


def _show(found: Replayed) -> None:
    count = counted(found.campaigns, "campaign")
    left = found.planned - found.campaigns
    open_ = f"; {left:,} of {found.planned:,} not played yet" if left else ""
    if found.byte_identical:
        _say(f"{found.folder}: {count}, byte-identical{open_}")
    else:
        off = found.mismatches
        _say(f"{found.folder}: {count}, {len(off):,} of them not as in the files{open_}")
        for mismatch in off[:SHOWN]:
            _say(f"  {visible(str(mismatch), 1_000)}")
        if len(off) > SHOWN:
            _say(f"  and {len(off) - SHOWN:,} more")
    for note in found.notes:
        _say(f"NOTE: {visible(note, 1_000)}")


def _say(text: str) -> None:
    OUT.print(text, markup=False, highlight=False, soft_wrap=True)

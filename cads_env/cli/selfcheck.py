"""`cads selfcheck`: whether a protocol's scores rise with skill and with nothing else."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from cads_env.cli.arguments import parse_pairs
from cads_env.cli.progress import CampaignProgress
from cads_env.cli.terminal import ERR, INTERRUPTED, NOT_AGREED, OUT
from cads_env.panel import load_panel
from cads_env.protocol import load_protocol
from cads_env.report.instrument import selfcheck_table, write_selfcheck
from cads_env.run.evaluate import DEFAULT_PANEL, DEFAULT_PROTOCOL
from cads_env.run.executors import Executor, cpu_count
from cads_env.selfcheck import SelfCheck
from cads_env.selfcheck import selfcheck as check
from cads_env.selfcheck.badge import record


def selfcheck(
    protocol: Annotated[str, typer.Option(help="Preset or YAML file.")] = DEFAULT_PROTOCOL,
    panel: Annotated[str, typer.Option(help="Panel or registry by name or path.")] = DEFAULT_PANEL,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-O", help="Option of the panel's source."),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Protocol field, e.g. rounds=24.")
    ] = None,
    budget: Annotated[int, typer.Option(min=1, help="Times as many rounds.")] = 1,
    agent: Annotated[
        list[str] | None,
        typer.Option(
            help="Agent under shuffled names; repeat for several; default every installed one "
            "that needs no options."
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=2, help="Campaigns of every scene; few leave it undecided.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Processes; default all cores. Results do not depend on it.")
    ] = None,
    executor: Annotated[str, typer.Option(help="processes or ray.")] = "processes",
    address: Annotated[
        str | None, typer.Option(help="Ray cluster: auto, HOST:PORT or local.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for JSON, page, figures and badge.")
    ] = None,
    record_: Annotated[
        bool,
        typer.Option("--record", help="Keep the outcome, so that reports of runs show its badge."),
    ] = False,
    record_in: Annotated[Path | None, typer.Option(help="Keep it in this folder instead.")] = None,
    rows: Annotated[bool, typer.Option("--rows", help="Show every row with its interval.")] = False,
) -> None:
    """Check a protocol before anybody is ranked under it; ends with 3 unless it passes.

    Seven checks: rankings from random to perfect, perfect rankings that start late, an agent that
    learns, every agent under shuffled names, an agent that proposes nulls, a memorised list, and
    what feedback and names are worth over a grid of registries.
    """
    rules = load_protocol(protocol, **parse_pairs(set_ or [], "--set"))
    if budget != 1:
        rules = rules.with_budget(budget)
    where = Executor(
        kind=executor,  # type: ignore[arg-type]
        jobs=jobs if jobs is not None else cpu_count() if executor == "processes" else 1,
        address=address,
    )
    registries = load_panel(panel, **parse_pairs(option or [], "--option"))
    try:
        with contextlib.ExitStack() as stack:
            outcome = check(
                rules,
                registries,
                agents=agent,
                executor=where,
                seeds=seeds,
                progress=_Bar(stack),
            )
    except KeyboardInterrupt:
        ERR.print("cads: interrupted; nothing was written.", markup=False, highlight=False)
        raise typer.Exit(INTERRUPTED) from None
    OUT.print(selfcheck_table(outcome, rows=rows))
    _keep(outcome, out, record_, record_in)
    if not outcome.passed:
        raise typer.Exit(NOT_AGREED)


class _Bar:
    """Shows how far it is, once the number of campaigns is known."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self._bar: CampaignProgress | None = None

    def __call__(self, done: int, total: int) -> None:
        if self._bar is None:
            self._bar = self._stack.enter_context(CampaignProgress(total))
        self._bar(done, total, "seeds")


def _keep(outcome: SelfCheck, out: Path | None, kept: bool, folder: Path | None) -> None:
    written = list(write_selfcheck(outcome, out)) if out is not None else []
    if kept or folder is not None:
        written.append(record(outcome, folder))
    for path in written:
        OUT.print(f"Written: {path}", markup=False, highlight=False, soft_wrap=True)

"""`cads run`: what it takes, and how it ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGINT, default_int_handler
from signal import signal as set_handler
from types import FrameType
from typing import Annotated, Any

import typer

from cads_env.cli.arguments import parse_audit, parse_pairs, parse_seeds
from cads_env.cli.before import check_before_reads, warn_of_reach
from cads_env.cli.dry_run import show_plan
from cads_env.cli.job import Job, job_of
from cads_env.cli.progress import CampaignProgress
from cads_env.cli.run_file import Asked, split_commas
from cads_env.cli.terminal import ERR, FAILED_CAMPAIGNS, INTERRUPTED, OUT, STOPPED
from cads_env.errors import RunError
from cads_env.registry import RELABEL_MODES
from cads_env.report.terminal import run_table
from cads_env.run.evaluate import DEFAULT_PANEL, DEFAULT_PROTOCOL, evaluate
from cads_env.run.evaluate_grid import evaluate_grid
from cads_env.run.grid import Grid
from cads_env.run.result import RunResult
from cads_env.run.settings import protocol_of


def run(
    agents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="AGENT|FILE",
            help="Names, agent files or a run file, as with --agent.",
            show_default=False,
        ),
    ] = None,
    panel: Annotated[
        str | None, typer.Option(help=f"Panel by name; default {DEFAULT_PANEL}.")
    ] = None,
    registry: Annotated[
        list[str] | None, typer.Option(help="Registry by name or path; repeat for several.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-O", help="Option of the source, e.g. direction=lower."),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help=f"Preset or YAML file; default {DEFAULT_PROTOCOL}.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Protocol field, e.g. rounds=24.")
    ] = None,
    budget: Annotated[int | None, typer.Option(min=1, help="Times as many rounds.")] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Campaigns, e.g. 0-19 or 0,2,5-9; default 0-19.")
    ] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option(
            help="Name, name:option=value, agent.yaml, module:Class or file.py; repeat for several."
        ),
    ] = None,
    agent_option: Annotated[
        list[str] | None,
        typer.Option(
            "--agent-option",
            "-A",
            help="Option of every agent that has it, e.g. guided=candidates.",
        ),
    ] = None,
    prompt: Annotated[
        list[str] | None,
        typer.Option(
            help="Prompt by name or file; each makes an arm of every agent that takes "
            "prompts. Repeat for several."
        ),
    ] = None,
    feedback: Annotated[
        list[str] | None,
        typer.Option(
            help="full, none or permuted, of proposer and re-selection; proposer=permuted of the "
            "proposer alone. Several make a grid: one run each."
        ),
    ] = None,
    identifiers: Annotated[
        list[str] | None,
        typer.Option(help=f"{', '.join(RELABEL_MODES)}; default named. Several make a grid."),
    ] = None,
    q: Annotated[float | None, typer.Option(help="FDR level of the certificate.")] = None,
    epsilon_bar: Annotated[
        float | None, typer.Option(help="Declared bound on contamination.")
    ] = None,
    audit: Annotated[
        str | None,
        typer.Option(
            metavar="[FIELD=VALUE,...]",
            help="Judge by the protocol's controls, e.g. tau=1,Delta=2,delta=0.01,looks=per_read; "
            "needs --set audit_controls=N. Alone: the defaults.",
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Processes; results do not depend on it. Default 1.")
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            help="Campaigns at once in this process, for agents that wait for a server; "
            "results do not depend on it. Default 1."
        ),
    ] = None,
    executor: Annotated[
        str, typer.Option(help="processes, or ray for a Ray cluster; the results are the same.")
    ] = "processes",
    address: Annotated[
        str | None,
        typer.Option(help="Ray cluster: auto, HOST:PORT, or local for a new one on this machine."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the files; default runs/0001, counting up. An interrupted run in it "
            "goes on."
        ),
    ] = None,
    keep_reads: Annotated[bool, typer.Option(help="Store reads however many.")] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Play failed campaigns of --out again.")
    ] = False,
    max_cost: Annotated[
        float | None, typer.Option(help="Stop when requests have cost this much.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="Stop after so many tokens in and out.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Ask nothing: show messages, requests, tokens and time."),
    ] = False,
    tokens_per_second: Annotated[
        float | None, typer.Option(help="Tokens that the server writes a second, for --dry-run.")
    ] = None,
) -> None:
    """Run agents and their twins; print the table and write the files.

    The same command with the same --out goes on with a run that was interrupted.
    """
    if retry_failed and out is None:
        msg = "--retry-failed needs --out with the folder of the run whose failures it is about."
        raise RunError(msg)
    asked = Asked(
        agents=(*(agents or ()), *(agent or ())),
        panel=panel,
        registry=tuple(registry or ()),
        options=parse_pairs(option or [], "--option"),
        protocol=protocol,
        set=parse_pairs(set_ or [], "--set"),
        budget=budget,
        seeds=() if seeds is None else tuple(parse_seeds(seeds)),
        prompts=split_commas(prompt, "--prompt"),
        feedback=split_commas(feedback, "--feedback"),
        identifiers=split_commas(identifiers, "--identifiers"),
        agent_options=parse_pairs(agent_option or [], "--agent-option"),
        q=q,
        epsilon_bar=epsilon_bar,
        audit=parse_audit(audit),
        jobs=jobs,
        concurrency=concurrency,
        max_cost=max_cost,
        max_tokens=max_tokens,
        keep_reads=keep_reads or None,
        retry_failed=retry_failed or None,
    )
    job = job_of(asked)
    if dry_run:
        check_before_reads(job, executor=executor, address=address)
    warn_of_reach(job)
    if dry_run:
        show_plan(job, tokens_per_second=tokens_per_second)
        return
    _finish(_play(job, executor=executor, address=address, out=True if out is None else out))


def _play(job: Job, **more: Any) -> RunResult | Grid:
    common = {"registry": job.panel, "seeds": job.seeds, **job.options, **more}
    try:
        with _said_ctrl_c(job), CampaignProgress(job.total, rounds=job.asking_rounds) as progress:
            if len(job.settings) == 1:
                setting = job.settings[0]
                return evaluate(
                    list(job.specs),
                    protocol=protocol_of(setting, job.protocol),
                    identifiers=setting.identifiers,  # type: ignore[arg-type]
                    progress=progress,
                    **common,
                )
            return evaluate_grid(
                list(job.specs),
                settings=job.settings,
                protocol=job.protocol,
                progress=progress,
                **common,
            )
    except KeyboardInterrupt as error:
        notes = " ".join(getattr(error, "__notes__", ()))
        ERR.print(f"cads: interrupted. {notes}", markup=False, highlight=False)
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def _said_ctrl_c(job: Job) -> Iterator[None]:
    """Say at Ctrl-C what is waited for, where campaigns under way have to come to an end."""
    waits = job.options.get("concurrency", 1) > 1
    if not waits or threading.current_thread() is not threading.main_thread():
        yield
        return

    def hear(number: int, frame: FrameType | None) -> None:
        set_handler(SIGINT, before)
        _say("cads: stopping when the answers under way are here; Ctrl-C again ends at once.")
        default_int_handler(number, frame)

    before = set_handler(SIGINT, hear)
    try:
        yield
    finally:
        set_handler(SIGINT, before)


def _finish(played: RunResult | Grid) -> None:
    """Print what was played and end with the code that says how it went."""
    runs = {"": played} if isinstance(played, RunResult) else dict(played.runs)
    for name, result in runs.items():
        if name:
            OUT.print(f"Setting {name}", style="bold", markup=False, highlight=False)
        OUT.print(run_table(result))
    if isinstance(played, Grid):
        hint = f"One page on all settings: cads report {played.folder}"
        OUT.print(hint, markup=False, highlight=False, soft_wrap=True)
    stopped = [run for run in runs.values() if run.status != "complete"]
    if stopped:
        reason = str(stopped[0].manifest.get("reason") or stopped[0].status).rstrip(".")
        _say(f"cads: stopped: {reason} (--out {played.folder}).")
        raise typer.Exit(STOPPED)
    if any(run.failures for run in runs.values()):
        _say(f"The same command with --out {played.folder} --retry-failed plays them again.")
        raise typer.Exit(FAILED_CAMPAIGNS)


def _say(text: str) -> None:
    ERR.print(text, markup=False, highlight=False)

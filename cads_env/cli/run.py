"""`cads run` and `cads agents`."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from cads_env.cli.arguments import parse_audit, parse_pairs, parse_seeds
from cads_env.cli.progress import CampaignProgress
from cads_env.cli.terminal import ERR, FAILED_CAMPAIGNS, INTERRUPTED, OUT
from cads_env.errors import CadsError, RunError
from cads_env.panel import load_panel
from cads_env.protocol import load_protocol
from cads_env.report.terminal import facts, run_table
from cads_env.run.agents import agent_names, resolve_agents
from cads_env.run.evaluate import DEFAULT_PANEL, DEFAULT_PROTOCOL, evaluate

DEFAULT_AGENTS: Final = ("random", "prior", "module-learner")


def run(
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
    protocol: Annotated[str, typer.Option(help="Preset or YAML file.")] = DEFAULT_PROTOCOL,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Protocol field, e.g. rounds=24.")
    ] = None,
    budget: Annotated[int, typer.Option(min=1, help="Times as many rounds.")] = 1,
    seeds: Annotated[str, typer.Option(help="Campaigns, e.g. 0-19 or 0,2,5-9.")] = "0-19",
    agent: Annotated[
        list[str] | None,
        typer.Option(help="Name, name:option=value, module:Class or file.py; repeat for several."),
    ] = None,
    feedback: Annotated[
        str | None, typer.Option(help="full, none or permuted; sets both feedbacks.")
    ] = None,
    identifiers: Annotated[str, typer.Option(help="named, shuffled or blinded.")] = "named",
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
    jobs: Annotated[int, typer.Option(help="Processes; results do not depend on it.")] = 1,
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
) -> None:
    """Run agents and their twins; print the table and write the files.

    The same command with the same --out goes on with a run that was interrupted.
    """
    if retry_failed and out is None:
        msg = "--retry-failed needs --out with the folder of the run whose failures it is about."
        raise RunError(msg)
    if panel is not None and registry:
        msg = "Both --panel and --registry were given; expected one of them."
        raise RunError(msg)
    options = parse_pairs(option or [], "--option")
    names: str | list[str] = registry or (DEFAULT_PANEL if panel is None else panel)
    rules = load_protocol(protocol, **parse_pairs(set_ or [], "--set"))
    if budget != 1:
        rules = rules.with_budget(budget)
    fields: dict[str, Any] = {"q": q, "epsilon_bar": epsilon_bar, "audit": parse_audit(audit)}
    arms = resolve_agents(agent or list(DEFAULT_AGENTS))
    numbers = parse_seeds(seeds)
    try:
        with CampaignProgress(len(numbers) * len(arms)) as progress:
            result = evaluate(
                arms,
                registry=load_panel(names, **options),
                protocol=rules,
                seeds=numbers,
                feedback=feedback,  # type: ignore[arg-type]
                certificate={k: v for k, v in fields.items() if v is not None},
                jobs=jobs,
                executor=executor,  # type: ignore[arg-type]
                address=address,
                identifiers=identifiers,  # type: ignore[arg-type]
                keep_reads=keep_reads,
                retry_failed=retry_failed,
                out=True if out is None else out,
                progress=progress,
            )
    except KeyboardInterrupt as error:
        notes = " ".join(getattr(error, "__notes__", ()))
        ERR.print(f"cads: interrupted. {notes}", markup=False, highlight=False)
        raise typer.Exit(INTERRUPTED) from None
    OUT.print(run_table(result))
    if result.failures:
        again = f"The same command with --out {result.folder} --retry-failed plays them again."
        ERR.print(again, markup=False, highlight=False)
        raise typer.Exit(FAILED_CAMPAIGNS)


def agents() -> None:
    """List the installed agents."""
    rows = []
    for name in agent_names():
        try:
            spec = resolve_agents(name)[0]
        except CadsError as error:
            rows.append((name, str(error)))
            continue
        summary = (inspect.getdoc(spec.factory) or "").partition("\n")[0]
        requires = getattr(spec.factory, "requires", ())
        needs = f"\nneeds the side table {', '.join(requires)}" if requires else ""
        rows.append((name, f"{summary}{needs}\n{spec.source}"))
    OUT.print(facts(rows))

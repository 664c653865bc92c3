"""`cads`: the command line. Reads arguments, calls the package, prints; decides nothing itself.

Errors of the user's are one paragraph on stderr and exit code 1; failed campaigns exit with 3.
Other packages add commands through the entry-point group `cads_env.commands`.
"""

from __future__ import annotations

import importlib.metadata
import inspect
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from cads_env import __version__
from cads_env.errors import CadsError, RunError
from cads_env.panel import load_panel
from cads_env.protocol import load_protocol
from cads_env.report.terminal import facts, run_table
from cads_env.run.agents import agent_names, resolve_agents
from cads_env.run.evaluate import DEFAULT_PANEL, DEFAULT_PROTOCOL, evaluate
from cads_env.sources import COMMON_OPTIONS, SOURCES
from cads_env.values import parse_value

COMMAND_GROUP: Final = "cads_env.commands"
DEFAULT_AGENTS: Final = ("random", "prior", "module-learner")
USER_ERROR, FAILED_CAMPAIGNS, INTERRUPTED = 1, 3, 130

app = typer.Typer(
    name="cads",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
registry_app = typer.Typer(help="The registries that can be screened.", no_args_is_help=True)
app.add_typer(registry_app, name="registry")

# Tables are set for 80 columns; a narrower terminal wraps lines rather than losing figures.
_out = Console(width=max(80, Console().width))
_err = Console(stderr=True)


@app.callback(invoke_without_command=True)
def about(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Certified agentic discovery screens: run agents against their proposer-removed twins."""
    if version:
        _out.print(f"cads-env {__version__}", highlight=False)
        raise typer.Exit


def parse_seeds(text: str) -> list[int]:
    """Seeds from `0-19` or `0,2,5-9`.

    Raises:
        RunError: The text is no list of numbers and ranges.
    """
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        digits = first + last
        if not first.isdecimal() or (dash and not last.isdecimal()) or len(digits) > 36:
            msg = (
                f"Cannot read seeds {text!r}; expected numbers and ranges such as 0-19 or 0,2,5-9."
            )
            raise RunError(msg)
        low, high = int(first), int(last) if dash else int(first)
        if high < low or high - low >= 1_000_000:
            msg = (
                f"Seed range {part.strip()!r} is empty or longer than a million; expected low-high."
            )
            raise RunError(msg)
        seeds.extend(range(low, high + 1))
    return seeds


def parse_pairs(entries: list[str], option: str) -> dict[str, Any]:
    """`key=value` entries as a mapping; values are read as YAML.

    Raises:
        RunError: An entry has no equals sign.
    """
    pairs: dict[str, Any] = {}
    for entry in entries:
        key, equals, value = entry.partition("=")
        if not equals or not key:
            msg = f"Cannot read {option} {entry!r}; expected {option} name=value."
            raise RunError(msg)
        if key in pairs:
            msg = f"{option} gives {key!r} more than once; expected it once."
            raise RunError(msg)
        pairs[key] = parse_value(value)
    return pairs


@app.command()
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
    out: Annotated[
        Path | None, typer.Option(help="Folder for the files; default runs/0001, counting up.")
    ] = None,
    keep_reads: Annotated[bool, typer.Option(help="Store reads however many.")] = False,
) -> None:
    """Run agents and their twins; print the table and write the files."""
    if panel is not None and registry:
        msg = "Both --panel and --registry were given; expected one of them."
        raise RunError(msg)
    options = parse_pairs(option or [], "--option")
    names: str | list[str] = registry or (DEFAULT_PANEL if panel is None else panel)
    rules = load_protocol(protocol, **parse_pairs(set_ or [], "--set"))
    if budget != 1:
        rules = rules.with_budget(budget)
    fields = {"q": q, "epsilon_bar": epsilon_bar}
    arms = resolve_agents(agent or list(DEFAULT_AGENTS))
    numbers = parse_seeds(seeds)
    label = TextColumn("{task.description}", markup=False)
    columns = (label, BarColumn(), MofNCompleteColumn())
    try:
        with Progress(
            *columns,
            TimeRemainingColumn(),
            console=_err,
            transient=True,
            # Where nobody watches, it would only leave an empty line.
            disable=not _err.is_terminal,
        ) as bar:
            task = bar.add_task("campaigns", total=len(numbers) * len(arms))
            result = evaluate(
                arms,
                registry=load_panel(names, **options),
                protocol=rules,
                seeds=numbers,
                feedback=feedback,  # type: ignore[arg-type]
                certificate={k: v for k, v in fields.items() if v is not None},
                identifiers=identifiers,  # type: ignore[arg-type]
                keep_reads=keep_reads,
                out=True if out is None else out,
                progress=lambda done, _, name: bar.update(task, completed=done, description=name),
            )
    except KeyboardInterrupt as error:
        notes = " ".join(getattr(error, "__notes__", ()))
        _err.print(f"cads: interrupted. {notes}", markup=False, highlight=False)
        raise typer.Exit(INTERRUPTED) from None
    _out.print(run_table(result))
    if result.failures:
        raise typer.Exit(FAILED_CAMPAIGNS)


@app.command()
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
    _out.print(facts(rows))


@registry_app.command("list")
def registry_list() -> None:
    """List the sources of registries and their options."""
    rows = []
    for name, source in SOURCES.items():
        splits = ", ".join(f":{split} ({len(r)})" for split, r in source.splits.items())
        lines = [
            source.summary,
            f"splits: {splits}" if splits else "",
            f"options: {', '.join((*source.options, *COMMON_OPTIONS))}",
            f"needs: pip install 'cads-env[{source.extra}]'" if source.extra else "",
        ]
        rows.append((name, "\n".join(filter(None, lines))))
    _out.print(facts(rows))


@registry_app.command("show")
def registry_show(
    name: Annotated[str, typer.Argument(help="Registry by name or path.")],
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-O", help="Option of the source, e.g. direction=lower."),
    ] = None,
) -> None:
    """Load a registry, or a panel's first one, check it and say what is in it."""
    panel = load_panel(name, **parse_pairs(option or [], "--option"))
    public, private = panel[0]
    rows = []
    if len(panel) > 1:
        rows.append(("panel", f"{panel.name}, {len(panel)} registries; this is the first"))
    rows += [
        ("name", public.name),
        ("candidates", f"{public.m:,}"),
        ("hits", f"{private.hit_count:,} ({private.hit_count / public.m:.1%})"),
    ]
    if private.contrary_hit_count:
        rows.append(("hits with u < 0", f"{private.contrary_hit_count:,}"))
    rows.append(("first candidates", ", ".join(public.identifiers[:8])))
    rows += [(f"side table {title}", t.description) for title, t in public.side_tables.items()]
    rows += [
        ("description", public.description),
        ("public hash", public.hash),
        ("oracle hash", private.hash),
    ]
    _out.print(facts(rows))


def _add_commands_of_others() -> None:
    for point in importlib.metadata.entry_points(group=COMMAND_GROUP):
        command = point.load()
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=point.name)
        else:
            app.command(point.name)(command)


def main() -> None:
    """The console script: one clear paragraph for a user's error, no traceback."""
    # As with `python -m`: an agent's module in this folder can be named.
    sys.path.insert(0, "")
    _add_commands_of_others()
    try:
        app()
    except CadsError as error:
        said = str(error).rstrip()
        stop = "" if said.endswith((".", "?", "!")) else "."
        text = " ".join([said + stop, *getattr(error, "__notes__", ())])
        _err.print(f"cads: {text}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(USER_ERROR)

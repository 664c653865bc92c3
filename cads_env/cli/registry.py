"""`cads registry`: the registries that can be screened, and those remembered under a name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from cads_env.cli.arguments import parse_pairs
from cads_env.cli.terminal import ERR, OUT, USER_ERROR
from cads_env.errors import RegistryError
from cads_env.panel import load_panel
from cads_env.report.terminal import facts
from cads_env.sources import SOURCES
from cads_env.sources.adding import Added, add_registry
from cads_env.sources.checking import check_file
from cads_env.sources.names import Pair
from cads_env.sources.remembered import check_free, find, remembered_names
from cads_env.sources.remembered import remove as remove_registry

registry_app = typer.Typer(help="The registries that can be screened.", no_args_is_help=True)

_FIRST: Final = 8

Options = Annotated[
    list[str] | None,
    typer.Option("--option", "-O", help="Option of the source, e.g. direction=lower."),
]
SourceName = Annotated[
    str | None,
    typer.Option(help="Source that reads the file; default: told from its first lines."),
]
Lines = Annotated[
    list[str] | None,
    typer.Option(help="Cell line of a file that holds many; repeat for several, or all."),
]
DataFile = Annotated[
    str, typer.Argument(help="The data file, such as my_screen.csv, or a registry file (YAML).")
]


@registry_app.command("list")
def registry_list() -> None:
    """List the sources of registries with their options, and the remembered registries."""
    rows = []
    for name, source in SOURCES.items():
        splits = ", ".join(f":{split} ({len(r)})" for split, r in source.splits.items())
        lines = [
            source.summary,
            f"splits: {splits}" if splits else "",
            f"options: {', '.join((*source.options, *source.common_options))}",
            f"panel: {source.member}s=[...] or {source.member}s=all" if source.member else "",
            f"needs: pip install 'cads-env[{source.extra}]'" if source.extra else "",
        ]
        rows.append((name, "\n".join(filter(None, lines))))
    rows += [(name, f"remembered in {find(name)}") for name in remembered_names()]
    OUT.print(facts(rows))


@registry_app.command("show")
def registry_show(
    name: Annotated[str, typer.Argument(help="Registry by name or path.")],
    option: Options = None,
) -> None:
    """Load a registry, or a panel's first one, check it and say what is in it."""
    panel = load_panel(name, **parse_pairs(option or [], "--option"))
    rows = []
    if len(panel) > 1:
        rows.append(("panel", f"{panel.name}, {len(panel)} registries; this is the first"))
    OUT.print(facts(rows + _rows_of(panel[0])))


@registry_app.command("add")
def registry_add(
    path: DataFile,
    name: Annotated[str, typer.Option(help="What to call it from now on.")],
    source: SourceName = None,
    line: Lines = None,
    option: Options = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Take the place of the one of this name.")
    ] = False,
) -> None:
    """Check a data file and remember it under a name; nothing of it is copied."""
    options = parse_pairs(option or [], "--option")
    check_free(name, replace=replace)
    try:
        added = add_registry(
            path, name=name, source=source, members=line or (), replace=replace, options=options
        )
    except RegistryError as error:
        error.add_note("`cads registry check` with the same options lists all that is wrong.")
        raise
    OUT.print(added.guess.reason, markup=False, highlight=False)
    OUT.print(facts(_added_rows(added) + _rows_of(added.first)))
    OUT.print(f"Use it: cads run --registry {name}", markup=False, highlight=False)


@registry_app.command("check")
def registry_check(
    path: DataFile,
    source: SourceName = None,
    line: Lines = None,
    option: Options = None,
) -> None:
    """Say which layout a file has and what it holds, or everything that is wrong with it."""
    options = parse_pairs(option or [], "--option")
    findings = check_file(path, source=source, members=line or (), options=options)
    if findings.guess.reason:
        OUT.print(findings.guess.reason, markup=False, highlight=False)
    if findings.pair is not None:
        OUT.print(facts([("source", findings.guess.source), *_rows_of(findings.pair)]))
        return
    count = len(findings.problems)
    name = Path(path).name or path  # the folder `.` has no name
    plural = "s" * (count > 1)
    ERR.print(f"{name} is not usable yet: {count} problem{plural}.", markup=False, highlight=False)
    for problem in findings.problems:
        ERR.print(f"- {problem}", style="red", markup=False, highlight=False, soft_wrap=True)
    if findings.advice:
        ERR.print(findings.advice, markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(USER_ERROR)


@registry_app.command("remove")
def registry_remove(
    name: Annotated[str, typer.Argument(help="Name of a remembered registry.")],
) -> None:
    """Forget a remembered registry; its data stay where they are."""
    file = remove_registry(name)
    OUT.print(f"Removed {file}.", markup=False, highlight=False)


def _added_rows(added: Added) -> list[tuple[str, str]]:
    rows = [("remembered in", str(added.file)), ("source", added.guess.source)]
    if len(added.names) > 1:
        rows.append(("panel", f"{len(added.names)} registries; this is the first"))
    return rows


def _rows_of(pair: Pair) -> list[tuple[str, str]]:
    """What there is to say of one registry."""
    public, private = pair
    rows = [
        ("name", public.name),
        ("candidates", f"{public.m:,}"),
        ("hits", f"{private.hit_count:,} ({private.hit_count / public.m:.1%})"),
    ]
    if private.contrary_hit_count:
        rows.append(("hits with u < 0", f"{private.contrary_hit_count:,}"))
    rows.append(("first candidates", ", ".join(public.identifiers[:_FIRST])))
    rows += [(f"side table {title}", t.description) for title, t in public.side_tables.items()]
    rows += [
        ("description", public.description),
        ("public hash", public.hash),
        ("oracle hash", private.hash),
    ]
    return rows

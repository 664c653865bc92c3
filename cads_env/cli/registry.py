"""`cads registry`: the registries that can be screened."""

from __future__ import annotations

from typing import Annotated

import typer

from cads_env.cli.arguments import parse_pairs
from cads_env.cli.terminal import OUT
from cads_env.panel import load_panel
from cads_env.report.terminal import facts
from cads_env.sources import COMMON_OPTIONS, SOURCES

registry_app = typer.Typer(help="The registries that can be screened.", no_args_is_help=True)


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
    OUT.print(facts(rows))


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
    OUT.print(facts(rows))

"""`cads doctor`: what is installed, where data live, and whether it works."""

from __future__ import annotations

from itertools import groupby
from typing import Annotated, Final

import typer

from cads_env.cli.terminal import OUT, USER_ERROR
from cads_env.report.doctor import Finding, as_json, examine, is_well
from cads_env.report.terminal import facts

_MARKS: Final = {"ok": "ok", "note": "note", "problem": "PROBLEM"}


def doctor(
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of tables.")
    ] = False,
) -> None:
    """Check the installation; ends with 1 when something that the core needs is wrong."""
    findings = examine()
    well = is_well(findings)
    if json:
        typer.echo(as_json(findings))
    else:
        _show(findings, well)
    if not well:
        raise typer.Exit(USER_ERROR)


def _show(findings: list[Finding], well: bool) -> None:
    for section, group in groupby(findings, key=lambda finding: finding.section):
        OUT.print(section, style="bold", markup=False, highlight=False)
        OUT.print(facts([(f.name, f"{_MARKS[f.status]}: {f.text}") for f in group]))
    count = sum(f.status == "problem" for f in findings)
    notes = sum(f.status == "note" for f in findings)
    verdict = "All that the core needs is well" if well else f"{count} to mend, marked PROBLEM"
    aside = f"; {notes} marked note matter only to what they name." if notes else "."
    OUT.print(verdict + aside, markup=False, highlight=False)

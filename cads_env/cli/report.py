"""`cads report`: what people read of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cads_env.cli.terminal import OUT
from cads_env.report.methods import methods_paragraph
from cads_env.report.terminal import run_table
from cads_env.report.write import FORMATS, check_formats, write_report
from cads_env.run.load import load_run


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a run, e.g. runs/0001.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the report; default the run's own.")
    ] = None,
    format_: Annotated[
        list[str] | None,
        typer.Option("--format", help=f"{', '.join(FORMATS)}; repeat for several; default all."),
    ] = None,
) -> None:
    """Print a run's table and methods paragraph; write report.html, report.md and datasheet.md.

    A run that is not complete is reported as far as it got, and the report says so.
    """
    formats = tuple(format_ or FORMATS)
    check_formats(formats)
    result = load_run(folder)
    written = write_report(result, folder if out is None else out, formats=formats)
    OUT.print(run_table(result))
    OUT.print()
    OUT.print(methods_paragraph(result), markup=False, highlight=False)
    OUT.print()
    for path in written:
        OUT.print(f"Report: {path}", markup=False, highlight=False, soft_wrap=True)

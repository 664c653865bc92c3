"""`cads report`: what people read of a run, or of a grid of settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cads_env.cli.terminal import OUT
from cads_env.errors import RunError
from cads_env.report.grid import summary_lines, write_grid_report
from cads_env.report.methods import methods_paragraph
from cads_env.report.terminal import run_table
from cads_env.report.write import FORMATS, check_formats, write_report
from cads_env.run.grid import is_grid, load_grid
from cads_env.run.load import load_run


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a run or grid, e.g. runs/0001.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the report; default the run's own.")
    ] = None,
    format_: Annotated[
        list[str] | None,
        typer.Option("--format", help=f"{', '.join(FORMATS)}; repeat for several; default all."),
    ] = None,
    natural: Annotated[
        Path | None,
        typer.Option(
            help="Of a run or grid under a quota: run of its arms and seeds without one, for the "
            "natural prompt effects."
        ),
    ] = None,
) -> None:
    """Print a run's table and methods paragraph; write report.html, report.md and datasheet.md.

    A run that is not complete is reported as far as it got, and the report says so. Of a grid, one
    page on all its settings is written, report.html and report.md.
    """
    if is_grid(folder):
        _report_grid(folder, out, format_, natural)
        return
    formats = tuple(format_ or FORMATS)
    check_formats(formats)
    result = load_run(folder)
    if natural is not None and result.protocol.quota is None:
        msg = f"--natural belongs to the report of a run under a quota, and {folder} has none."
        raise RunError(msg)
    free = None if natural is None else load_run(natural)
    place = folder if out is None else out
    written = write_report(result, place, formats=formats, natural=free)
    OUT.print(run_table(result))
    OUT.print()
    OUT.print(methods_paragraph(result), markup=False, highlight=False)
    OUT.print()
    for path in written:
        OUT.print(f"Report: {path}", markup=False, highlight=False, soft_wrap=True)


def _report_grid(
    folder: Path, out: Path | None, formats: list[str] | None, natural: Path | None
) -> None:
    if formats:
        msg = "The report of a grid comes in all its formats; leave --format out."
        raise RunError(msg)
    grid = load_grid(folder)
    natural_run = None if natural is None else load_run(natural)
    written = write_grid_report(grid, out, natural=natural_run)
    for line in summary_lines(grid):
        OUT.print(line, markup=False, highlight=False)
    for path in written:
        OUT.print(f"Report: {path}", markup=False, highlight=False, soft_wrap=True)

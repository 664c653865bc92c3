"""`cads export`: a run's tables for other people's tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cads_env.cli.terminal import OUT
from cads_env.report.export import export_run
from cads_env.report.export.croissant import LEFT_TO_PUBLISHER
from cads_env.report.terminal import facts


def export(
    folder: Annotated[Path, typer.Argument(help="Folder of a run, e.g. runs/0001.")],
    parquet: Annotated[
        bool, typer.Option("--parquet", help="Write Parquet; also when no format is named.")
    ] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Write CSV.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="New folder; default the run's name with -parquet, -csv or -export (both)."
        ),
    ] = None,
) -> None:
    """Write a run's tables as Parquet or CSV, with Croissant metadata."""
    done = export_run(folder, out, parquet=parquet or not csv, csv=csv)
    OUT.print(facts([(name, f"{rows:,} rows") for name, rows in done.rows.items()]))
    notes = [
        f"Files: {done.folder}",
        "croissant.json says what they hold. Before you publish it, add what no run knows: "
        f"{', '.join(LEFT_TO_PUBLISHER)}.",
    ]
    if done.played < done.planned:
        notes.insert(
            0,
            f"The run is not complete: {done.played:,} of {done.planned:,} campaigns are exported.",
        )
    if not done.has_reads:
        notes.insert(0, "This run kept no reads; run it with --keep-reads to export them.")
    for note in notes:
        OUT.print(note, markup=False, highlight=False, soft_wrap=True)

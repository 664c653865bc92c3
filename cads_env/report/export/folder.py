"""The export of a run: a new folder of tables with `croissant.json`, all of it or nothing.

Everything is written into a hidden folder beside the target, which then takes the target's name.
Never writes into the run's own folder and never overwrites anything.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from cads_env.errors import RunError, error_text
from cads_env.report.export.columns import tables
from cads_env.report.export.croissant import ExportedFile, croissant
from cads_env.report.export.source import RunFiles, batches, key_values, open_run
from cads_env.report.export.write import need_pyarrow, write_csv, write_parquet
from cads_env.report.llm.asked import has_traces
from cads_env.run.rows import is_audited

CROISSANT_FILE: Final = "croissant.json"


class Export(NamedTuple):
    """What was exported.

    Attributes:
        folder: Where it lies.
        rows: Rows of each file, by file name.
        has_reads: False when the run kept no reads; they follow from registry, protocol and seed.
        played: Campaigns that are there, scored or failed.
        planned: Campaigns of the whole run; as many, unless it is not complete.
    """

    folder: Path
    rows: dict[str, int]
    has_reads: bool
    played: int
    planned: int


def export_run(
    folder: str | Path, out: str | Path | None = None, *, parquet: bool = True, csv: bool = False
) -> Export:
    """Export the tables of a run that has ended, with Croissant metadata.

    The tables are campaigns, rounds and declarations, reads (one row a read) where the run kept
    them, failures where there are any, and attempts where the run left traces. Memory is bounded by
    a batch of rows and one campaign's reads, whatever the size of the run; attempts, a few a round
    of what a model was asked, are held at once.

    Args:
        folder: Folder of a run; of one that was interrupted or failed, what is complete so far.
        out: A folder that does not exist or is empty; None for the run's name with `-parquet`,
            `-csv` or, for both, `-export`, beside it.
        parquet: Write Parquet files; needs the extra `parquet`.
        csv: Write CSV files; see `write_csv` for what is JSON text in them.

    Returns:
        Where the files are, and their numbers of rows.

    Raises:
        MissingExtraError: Parquet was asked for and pyarrow is missing.
        RunError: The run has not ended or has changed, nothing was asked for, or the target holds
            something or cannot be written.
        RecordError: A line of the run's files is not what a run writes.
    """
    if not (parquet or csv):
        msg = "Neither Parquet nor CSV was asked for; expected at least one of them."
        raise RunError(msg)
    # First, since no package helps with a folder that is no run's.
    run = open_run(folder)
    if parquet:
        need_pyarrow()
    source = run.folder.resolve()
    ending = "export" if parquet and csv else "parquet" if parquet else "csv"
    target = source.with_name(f"{source.name}-{ending}") if out is None else Path(out)
    _check_target(target)
    try:
        with _new_folder(target) as partial:
            files = _write_tables(run, partial, parquet=parquet, csv=csv)
            rows = {file.path.stem: file.rows for file in files}
            played = rows["campaigns"] + rows.get("failures", 0)
            data = croissant(
                files, run.manifest, keys=key_values(run), ended=run.ended, played=played
            )
            text = json.dumps(data, indent=2, ensure_ascii=True) + "\n"
            path = partial / CROISSANT_FILE
            path.write_text(text, encoding="ascii", newline="\n")
            for written in partial.iterdir():
                _put_on_disk(written)
    except OSError as error:
        msg = f"Cannot export into {str(target)!r}: {error_text(error)}. Name another with --out."
        raise RunError(msg) from error
    counts = {file.path.name: file.rows for file in files}
    return Export(target, counts, run.has("reads"), played, run.planned)


def _check_target(target: Path) -> None:
    try:
        free = not os.path.lexists(target) or (target.is_dir() and not any(target.iterdir()))
    except (OSError, ValueError) as error:
        msg = f"Cannot use {str(target)!r}: {error_text(error)}. Name another with --out."
        raise RunError(msg) from error
    if not free:
        what = "not empty" if target.is_dir() else "no folder"
        msg = f"Export folder {str(target)!r} is {what}; name a new one with --out."
        raise RunError(msg)


@contextlib.contextmanager
def _new_folder(target: Path) -> Iterator[Path]:
    """A hidden folder that becomes the target when the block ends without an error."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = _claimed(target)
    try:
        yield partial
        if target.is_dir():
            # Fails when something has come into it meanwhile; renaming onto an empty folder does
            # not work everywhere.
            target.rmdir()
        partial.rename(target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _claimed(target: Path) -> Path:
    """A new hidden folder beside the target."""
    number = 0
    while True:
        partial = target.parent / f".{target.name}.{os.getpid()}-{number}.partial"
        try:
            partial.mkdir()
        except FileExistsError:
            number += 1
        else:
            return partial


def _write_tables(run: RunFiles, folder: Path, *, parquet: bool, csv: bool) -> list[ExportedFile]:
    files: list[ExportedFile] = []
    audited = is_audited(run.manifest["config"])
    known = tables(is_audited=audited, has_traces=has_traces(run.folder))
    for ending, write in (("parquet", write_parquet), ("csv", write_csv)):
        if not (parquet if ending == "parquet" else csv):
            continue
        for table in known.values():
            if table.name in ("reads", "failures") and not run.has(table.name):
                continue
            path = folder / f"{table.name}.{ending}"
            files.append(ExportedFile(path, table, write(path, table, batches(run, table))))
    return files


def _put_on_disk(path: Path) -> None:
    with path.open("rb") as handle, contextlib.suppress(OSError):
        os.fsync(handle.fileno())

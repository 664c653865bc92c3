"""A run read back from its folder, whole or while it is still being written.

Reads the files and checks them against the manifest; plays nothing and writes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cads_env.record import Record
from cads_env.run.manifest import read_manifest
from cads_env.run.mend import whole_lines
from cads_env.run.result import RunResult
from cads_env.run.row_checks import COLUMNS, check_files, check_known, check_totals, checked_lines
from cads_env.run.rows import Key, planned_keys
from cads_env.run.traces import check_traces

Rows = dict[str, list[dict[str, Any]]]


def load_run(folder: str | Path) -> RunResult:
    """The result of the run in a folder.

    A run that is not complete gives what is complete so far; `result.status` says so.

    Args:
        folder: As `cads run --out` made it.

    Raises:
        RunError: There is no run in the folder, or it is of another schema version.
        RecordError: A file is damaged or is not the one that the manifest tells of.
    """
    place = Path(folder)
    manifest = read_manifest(place)
    if manifest["status"] == "complete":
        check_files(place, manifest)
        check_traces(place, manifest)
    rows = read_rows(place, manifest["config"])
    return RunResult.of(rows, manifest, folder=str(folder))


def read_rows(folder: Path, config: Mapping[str, Any]) -> Rows:
    """The rows of complete and failed campaigns by kind, without the reads.

    Args:
        folder: Of the run.
        config: The part `config` of its manifest.

    Raises:
        RunError: A file cannot be read.
        RecordError: A line is damaged, is there twice or is of no campaign of the run, or the files
            do not add up.
    """
    known = set(planned_keys(config))
    rows: Rows = {
        name: [
            line.row
            for line in check_known(
                checked_lines(folder, name, config), known, folder / f"{name}.jsonl"
            )
        ]
        for name in COLUMNS
    }
    done = {Key.of(row) for row in rows["campaigns"]}
    for name in ("rounds", "declarations"):
        rows[name] = [row for row in rows[name] if Key.of(row) in done]
    rows["failures"] = [row for row in rows["failures"] if Key.of(row) not in done]
    check_totals(folder, rows)
    return rows


def read_records(folder: str | Path) -> Iterator[tuple[Key, Record]]:
    """The stored records of a run, one at a time.

    Args:
        folder: Of the run; one without stored reads gives none.

    Raises:
        RecordError: A line is damaged.
    """
    for line in whole_lines(Path(folder) / "reads.jsonl"):
        yield line.key, Record.from_json(line.row)


def rows_as_read(rows: Mapping[str, list[dict[str, Any]]]) -> Rows:
    """Rows as they would be after writing and reading them."""
    back: Rows = {name: json.loads(json.dumps(rows[name])) for name in rows if name != "reads"}
    return back

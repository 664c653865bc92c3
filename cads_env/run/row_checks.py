"""What the rows of a run's files must hold, checked where they are read back.

The hashes of a complete run, the kind of every column, no row twice, and the totals that rows of
different files must share.
Decides nothing about a campaign and never mends a row.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from cads_env.errors import RecordError, RunError, error_text
from cads_env.run.mend import Line, whole_lines
from cads_env.run.rows import (
    CAMPAIGN_COLUMNS,
    DECLARATION_COLUMNS,
    FAILURE_COLUMNS,
    ROUND_COLUMNS,
    ROW_FILES,
    Key,
    campaign_columns,
    planned_keys,
)

COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    "campaigns": CAMPAIGN_COLUMNS,
    "failures": FAILURE_COLUMNS,
    "rounds": ROUND_COLUMNS,
    "declarations": DECLARATION_COLUMNS,
}
"""Columns by kind of row; rows of reads are checked where a record is made of them. Campaigns come
first: they are written last, so that all that belongs to one is there when it has been seen."""

_DISTINCT: Final[Mapping[str, str]] = {"rounds": "round", "declarations": "identifier"}
"""What tells the rows of one campaign apart, where it has several."""

_TEXTS: Final = frozenset(
    {"arm", "registry", "registry_hash", "reads_sha256", "twin_reads_sha256", "identifier",
     "origin", "reason", "text"}
)  # fmt: skip
_SIGNED: Final = frozenset({"net", "displaced"})
_LARGEST: Final = 2**63
_MEND: Final = (
    "The file was changed or damaged after it was written: put back a copy, or start a new folder."
)


def checked_lines(folder: Path, kind: str, config: Mapping[str, Any]) -> Iterator[Line]:
    """The whole lines of `<kind>.jsonl`, each with all its columns of the right kind.

    Args:
        folder: Of the run.
        kind: A key of `COLUMNS`.
        config: The part `config` of its manifest.

    Raises:
        RunError: The file cannot be read.
        RecordError: A line is no such row, or is there twice; the message names its number.
    """
    path = folder / f"{kind}.jsonl"
    columns = campaign_columns(config) if kind == "campaigns" else COLUMNS[kind]
    seen: set[tuple[Key, Any]] = set()
    for number, line in enumerate(whole_lines(path), start=1):
        wrong = next((c for c in columns if not _fits(c, line.row.get(c, ...))), None)
        if wrong is not None:
            msg = f"{path}: line {number} has no usable {wrong!r}. {_MEND}"
            raise RecordError(msg)
        part = line.row[_DISTINCT[kind]] if kind in _DISTINCT else None
        name = (line.key, part)
        if name in seen:
            what = "" if part is None else f"{_DISTINCT[kind]} {part!r} of "
            msg = (
                f"{path} holds {what}the campaign {tuple(line.key)} twice; a run plays it once. "
                f"{_MEND}"
            )
            raise RecordError(msg)
        seen.add(name)
        yield line


def check_known(lines: Iterator[Line], known: Collection[Key], path: Path) -> Iterator[Line]:
    """The lines as they come, all of them of campaigns that the run has.

    Args:
        lines: Of one file.
        known: Every campaign of the run.
        path: The file, for the message.

    Raises:
        RecordError: A line is of another campaign.
    """
    for line in lines:
        if line.key not in known:
            msg = f"{path} holds a row of {tuple(line.key)}, which is no campaign of this run. "
            raise RecordError(msg + _MEND)
        yield line


def check_rows(folder: Path, config: Mapping[str, Any]) -> None:
    """Raise unless every file of a run, complete or not, can be gone on with. Changes nothing.

    Args:
        folder: Of the run.
        config: The part `config` of its manifest.

    Raises:
        RunError: A file cannot be read.
        RecordError: As for `checked_lines`, `check_known` and `check_totals`.
    """
    known = set(planned_keys(config))
    rows: dict[str, list[dict[str, Any]]] = {}
    done: set[Key] = set()
    for kind in COLUMNS:
        path = folder / f"{kind}.jsonl"
        lines = check_known(checked_lines(folder, kind, config), known, path)
        rows[kind] = [
            _counted(line.row) for line in lines if kind == "campaigns" or line.key in done
        ]
        if kind == "campaigns":
            done = {Key.of(row) for row in rows[kind]}
    for _ in whole_lines(folder / "reads.jsonl"):
        pass
    check_totals(folder, rows)


def _counted(row: Mapping[str, Any]) -> dict[str, Any]:
    """What `check_totals` needs of a row: a whole run of them is held at once."""
    return {name: row[name] for name in (*Key._fields, "declared", "reads") if name in row}


def check_totals(folder: Path, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Raise unless rounds and declarations add up to what the campaigns say.

    Args:
        folder: Of the run, for the message.
        rows: Rows by kind, of complete campaigns.

    Raises:
        RecordError: Names the first campaign that they do not add up to.
    """
    declared = Counter(Key.of(row) for row in rows["declarations"])
    reads: Counter[Key] = Counter()
    for row in rows["rounds"]:
        reads[Key.of(row)] += row["reads"]
    for row in rows["campaigns"]:
        key = Key.of(row)
        for what, name, found in (
            ("declared", "declarations", declared[key]),
            ("reads", "rounds", reads[key]),
        ):
            if row[what] != found:
                msg = (
                    f"{folder / 'campaigns.jsonl'} tells of {row[what]} {what} in the campaign "
                    f"{tuple(key)}, but {name}.jsonl of {found}. {_MEND}"
                )
                raise RecordError(msg)


def _fits(column: str, value: object) -> bool:
    if column in _TEXTS:
        return isinstance(value, str)
    if column in ("proposed", "accepted_identifiers"):
        return isinstance(value, list) and all(isinstance(x, str) for x in value)
    if column == "refused":
        return isinstance(value, list) and all(
            isinstance(x, list) and len(x) == 2 and all(isinstance(y, str) for y in x)
            for x in value
        )
    if column == "usage":
        return isinstance(value, dict)
    if column in ("is_hit", "in_twin"):
        return isinstance(value, bool)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if column == "audit_bound":
        return 0 <= value <= 1
    if column == "log_e":
        return abs(value) < _LARGEST and math.isfinite(value)
    lowest = -_LARGEST if column in _SIGNED else 2 if column == "m" else 0
    return isinstance(value, int) and lowest <= value < _LARGEST


def check_files(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Raise unless the row files are those whose hashes the manifest tells.

    Raises:
        RecordError: A file is missing, new or changed.
    """
    told = manifest.get("files", {})
    for name in (f"{kind}.jsonl" for kind in ROW_FILES):
        path = folder / name
        try:
            found = sha256_of(path) if path.exists() else None
        except OSError as error:
            msg = f"{path} cannot be read: {error_text(error)}."
            raise RunError(msg) from error
        if found != told.get(name):
            what = "is missing" if found is None else "is not the file that the run wrote"
            msg = (
                f"{path} {what}: its manifest tells of SHA-256 {told.get(name)}, found {found}. "
                "Put back a copy, or run again."
            )
            raise RecordError(msg)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, read in pieces."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()

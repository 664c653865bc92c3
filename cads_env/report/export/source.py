"""Reading a run's folder in batches: bounded memory, every line checked.

A batch is a mapping of column names to equally long lists. Only runs that have ended, and whose
files match the hashes in their manifest, are read; nothing is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from cads_env.errors import RecordError, RunError, error_text
from cads_env.record import ORIGINS, Record
from cads_env.report.export.columns import KEY, Kind, TableColumns
from cads_env.report.llm.attempts import attempts_of
from cads_env.run.folder import LOG_FILE
from cads_env.run.manifest import read_manifest
from cads_env.run.mend import whole_lines
from cads_env.run.row_checks import check_files

Batch = Mapping[str, Sequence[Any]]

ENDED: Final = ("complete", "interrupted", "failed")
"""Statuses under which a manifest tells the hashes of the files."""

BATCH_ROWS: Final = 65_536
"""Most rows of a batch."""
BATCH_CHARACTERS: Final = 16_000_000
"""A batch ends after the line that reaches this many characters of JSON."""


class RunFiles(NamedTuple):
    """A run on disk that has ended.

    Attributes:
        folder: Where it is.
        manifest: What `manifest.json` holds.
    """

    folder: Path
    manifest: Mapping[str, Any]

    def has(self, name: str) -> bool:
        """Whether the run left `<name>.jsonl`."""
        return (self.folder / f"{name}.jsonl").is_file()

    @property
    def is_complete(self) -> bool:
        """Whether every planned campaign was played."""
        return bool(self.manifest["status"] == "complete")

    @property
    def planned(self) -> int:
        """Campaigns of the whole run, whether played or not."""
        config = self.manifest["config"]
        return len(config["seeds"]) * len(config["agents"])

    @property
    def ended(self) -> str | None:
        """When the run ended (ISO 8601), from the log; None where the log does not say."""
        try:
            lines = (self.folder / LOG_FILE).read_text(encoding="ascii").splitlines()
            return str(json.loads(lines[-1])["time"])
        except (OSError, ValueError, KeyError, IndexError, TypeError):
            return None


def open_run(folder: str | Path) -> RunFiles:
    """The files of a run that has ended, checked against the hashes in its manifest.

    Args:
        folder: Folder of a run.

    Raises:
        RunError: It is no folder of a run, another schema version wrote it, or the run has not
            ended.
        RecordError: Its manifest is damaged, or a file is not the one that the run wrote.
    """
    place = Path(folder)
    manifest = read_manifest(place)
    if manifest["status"] not in ENDED:
        msg = (
            f"The run in {str(folder)!r} has status {manifest['status']!r}; expected one of "
            f"{', '.join(ENDED)}. Let it finish; if nothing is at work on it, repeat the command "
            "that began it with --out and its folder."
        )
        raise RunError(msg)
    check_files(place, manifest)
    return RunFiles(place, manifest)


def batches(run: RunFiles, table: TableColumns) -> Iterator[Batch]:
    """The rows of one table, in the order of the run's files.

    Args:
        run: From `open_run`.
        table: Which one; `reads` are decoded, one row a read.

    Raises:
        RecordError: A line is not what a run writes; the message names file and line.
    """
    if table.name == "reads":
        yield from _read_batches(run)
    elif table.name == "attempts":
        yield _whole(attempts_of(run.folder).to_dict("list"))
    else:
        yield from _row_batches(run, table)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


_FITS: Final[Mapping[Kind, Callable[[Any], bool]]] = {
    "text": lambda value: isinstance(value, str),
    "free text": lambda value: isinstance(value, str),
    "integer": _is_integer,
    "real": lambda value: isinstance(value, float),
    "flag": lambda value: isinstance(value, bool),
    "json": lambda value: isinstance(value, dict),
    "texts": _are_texts,
    "text pairs": lambda value: isinstance(value, list) and all(map(_are_texts, value)),
}


def _as_text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _row_batches(run: RunFiles, table: TableColumns) -> Iterator[Batch]:
    names = [column.name for column in table.columns]
    kept: dict[str, list[Any]] = {name: [] for name in names}
    count = characters = 0
    done = _campaigns_done(run)
    for number, length, row in _lines(run, table.name):
        if _is_left_out(row, table.name, done):
            continue
        if list(row) != names:
            odd = sorted(set(row) ^ set(names)) or ["their order"]
            msg = (
                f"{table.name}.jsonl, line {number}, has other columns than this cads-env writes "
                f"({', '.join(odd)}). Export it with the cads-env that wrote it."
            )
            raise RecordError(msg)
        for column in table.columns:
            value = row[column.name]
            if not _FITS[column.kind](value):
                msg = (
                    f"{table.name}.jsonl, line {number}: {column.name} is {str(value)[:60]!r}, no "
                    f"{column.kind}. The file was changed after the run: put back a copy."
                )
                raise RecordError(msg)
            is_json = column.kind == "json"
            kept[column.name].append(_as_text(value) if is_json else value)
        count, characters = count + 1, characters + length
        if count >= BATCH_ROWS or characters >= BATCH_CHARACTERS:
            yield kept
            kept = {name: [] for name in names}
            count = characters = 0
    if count:
        yield kept


def _read_batches(run: RunFiles) -> Iterator[Batch]:
    names = (*KEY, "candidate", "origin", "round", "value")
    kept: dict[str, list[Any]] = {name: [] for name in names}
    hashes = _hashes_of_reads(run)
    done = _campaigns_done(run)
    for number, _, row in _lines(run, "reads"):
        if _is_left_out(row, "reads", done):
            continue
        try:
            record = Record.from_json(row)
            key = [row[name] for name in KEY]
        except (RecordError, KeyError) as error:
            msg = f"reads.jsonl, line {number}: {error}"
            raise RecordError(msg) from error
        if hashes.get(tuple(key)) != record.sha256:
            msg = (
                f"reads.jsonl, line {number}: the reads do not match reads_sha256 of arm "
                f"{key[0]!r}, registry {key[1]!r}, seed {key[2]} in campaigns.jsonl. Run again."
            )
            raise RecordError(msg)
        origins = [ORIGINS[code] for code in record.origins.tolist()]
        rounds = record.read_rounds
        # A record can hold more reads than a batch; only a slice of it becomes Python objects.
        for start in range(0, record.read_count, BATCH_ROWS):
            part = slice(start, start + BATCH_ROWS)
            slots = record.slots[part]
            for name, value in zip(KEY, key, strict=True):
                kept[name].extend([value] * slots.size)
            kept["candidate"].extend(record.candidates[slots].tolist())
            kept["origin"].extend(origins[slot] for slot in slots.tolist())
            kept["round"].extend(rounds[part].tolist())
            kept["value"].extend(record.values[part].tolist())
            if len(kept["value"]) >= BATCH_ROWS:
                yield kept
                kept = {name: [] for name in names}
    if kept["value"]:
        yield kept


def key_values(run: RunFiles) -> dict[str, list[Any]]:
    """The arms, registries and seeds that the run's rows name, each once, in their order there.

    Args:
        run: From `open_run`.
    """
    found: dict[str, dict[Any, None]] = {name: {} for name in KEY}
    for file in ("campaigns", "failures"):
        for _, _, row in _lines(run, file):
            for name in KEY:
                found[name].setdefault(row[name])
    return {name: list(values) for name, values in found.items()}


def _campaigns_done(run: RunFiles) -> frozenset[tuple[Any, ...]] | None:
    """The scored campaigns of a run that is not complete; None where all rows are of whole ones."""
    return None if run.is_complete else frozenset(_hashes_of_reads(run))


def _is_left_out(row: Mapping[str, Any], name: str, done: Collection[Any] | None) -> bool:
    """Whether a row is of a campaign that the end of the run cut, or that was scored later."""
    if done is None or name == "campaigns":
        return False
    is_done = tuple(row.get(field) for field in KEY) in done
    return is_done if name == "failures" else not is_done


def _hashes_of_reads(run: RunFiles) -> dict[tuple[Any, ...], str]:
    return {
        tuple(row.get(name) for name in KEY): str(row.get("reads_sha256"))
        for _, _, row in _lines(run, "campaigns")
    }


def _lines(run: RunFiles, name: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Number, length and value of each line of a file; nothing when there is no such file."""
    path = run.folder / f"{name}.jsonl"
    try:
        for number, line in enumerate(whole_lines(path), start=1):
            # Half a surrogate pair, as in a cut answer, is nothing that Parquet can hold.
            row = _whole(line.row) if b"\\ud" in line.raw else line.row
            yield number, len(line.raw), row
    except OSError as error:
        msg = f"{str(path)!r} cannot be read: {error_text(error)}."
        raise RunError(msg) from error


def _whole(value: Any) -> Any:
    """A JSON value whose text has `?` in place of half surrogate pairs."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_whole(entry) for entry in value]
    if isinstance(value, dict):
        return {_whole(key): _whole(entry) for key, entry in value.items()}
    return value

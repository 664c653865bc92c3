"""The row files of a run after a kill, and in their final order.

A torn last line is dropped, and so are rows of campaigns that were not complete; everything else
stays as it is. What is rewritten is written beside and renamed, so that no moment is without a
whole file. Knows the key of a row and nothing else of it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from cads_env.errors import RecordError, RunError, error_text
from cads_env.files import is_partial, write_whole
from cads_env.run.rows import ROW_FILES, Key


class Line(NamedTuple):
    """A whole line of a row file.

    Attributes:
        raw: Its bytes, newline included.
        row: What it holds.
        key: The campaign that it belongs to.
    """

    raw: bytes
    row: dict[str, Any]
    key: Key


def whole_lines(path: Path) -> Iterator[Line]:
    """The rows of a file that end with a newline; a torn tail is left out.

    Args:
        path: The file; one that does not exist has no rows.

    Raises:
        RunError: The file cannot be read.
        RecordError: A whole line is no row; the message names its number.
    """
    try:
        yield from _whole_lines(path)
    except FileNotFoundError:
        return
    except OSError as error:
        msg = f"{path} cannot be read: {error_text(error)}. Put back a copy of the file."
        raise RunError(msg) from error


def _whole_lines(path: Path) -> Iterator[Line]:
    with path.open("rb") as handle:
        for number, raw in enumerate(handle, start=1):
            if not raw.endswith(b"\n"):
                return
            try:
                row = json.loads(raw, parse_constant=refuse_constant)
                key = Key.of(row)
                is_key = isinstance(key.seed, int) and isinstance(key.arm + key.registry, str)
            except (ValueError, TypeError, KeyError, RecursionError):
                is_key = False
            if not is_key:
                msg = (
                    f"{path}: line {number} is no row of a run ({raw[:60]!r}...); expected a JSON "
                    "object with arm, registry and seed. The file was changed or damaged after it "
                    "was written: put back a copy, or start a new folder."
                )
                raise RecordError(msg)
            yield Line(raw, row, key)


def refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and Infinity, which Python's JSON reads and no run writes.

    Raises:
        ValueError: Always.
    """
    msg = f"{name} is no JSON"
    raise ValueError(msg)


def mend(folder: Path, *, drop_failures: bool) -> tuple[set[Key], set[Key]]:
    """Make the row files end with whole, complete campaigns.

    Args:
        folder: Of the run; nobody else may write into it.
        drop_failures: Forget the failed campaigns, so that they are played again.

    Returns:
        The keys of the complete and of the failed campaigns.

    Raises:
        RecordError: A line that is not the last one is damaged, or a campaign stands there twice.
        OSError: A file cannot be read or written.
    """
    for leftover in filter(is_partial, list(folder.iterdir())):
        leftover.unlink()
    done = _keys(folder / "campaigns.jsonl")
    failed = set() if drop_failures else _keys(folder / "failures.jsonl") - done
    for name in ROW_FILES:
        kept = failed if name == "failures" else done
        _keep_only(folder / f"{name}.jsonl", kept)
    return done, failed


def _keys(path: Path) -> set[Key]:
    keys: set[Key] = set()
    for line in whole_lines(path):
        if line.key in keys:
            msg = (
                f"{path} holds the campaign {tuple(line.key)} twice; a run plays it once. The file "
                "was changed after it was written: put back a copy, or start a new folder."
            )
            raise RecordError(msg)
        keys.add(line.key)
    return keys


def _keep_only(path: Path, kept: Collection[Key]) -> None:
    """Rewrite a file without the rows of other campaigns and without a torn tail."""
    if not path.exists():
        return
    size = sum(len(line.raw) for line in whole_lines(path) if line.key in kept)
    if size == path.stat().st_size:
        return
    if size == 0:
        path.unlink()
        return
    write_whole(path, (line.raw for line in whole_lines(path) if line.key in kept))


def in_order(path: Path, rank: Mapping[Key, int]) -> None:
    """Put the rows of a file into the order of their campaigns; rows of one campaign keep theirs.

    Args:
        path: The file; one that does not exist is left alone.
        rank: Place of every campaign.

    Raises:
        RecordError: A line is damaged or of a campaign without a place.
        OSError: The file cannot be read or written.
    """
    if not path.exists():
        return
    spans: list[tuple[int, int, int]] = []
    offset = 0
    for line in whole_lines(path):
        if line.key not in rank:
            msg = (
                f"{path} holds a row of {tuple(line.key)}, which is no campaign of this run; "
                "start a new folder."
            )
            raise RecordError(msg)
        spans.append((rank[line.key], offset, len(line.raw)))
        offset += len(line.raw)
    if all(a[0] <= b[0] for a, b in pairwise(spans)):
        return
    with path.open("rb") as source:

        def rows() -> Iterator[bytes]:
            for _, start, length in sorted(spans):
                source.seek(start)
                yield source.read(length)

        write_whole(path, rows())

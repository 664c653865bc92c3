"""The trace files of a run: where they are, what a line holds, and the list of their hashes.

One file a campaign, one line an exchange with the world outside. Reads and lists; never asks
anything, and knows nothing of what an exchange is about.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final, NamedTuple
from urllib.parse import quote

from cads_env.errors import RecordError, RunError, error_text
from cads_env.files import is_partial, write_whole
from cads_env.run.mend import refuse_constant
from cads_env.run.meter import NOTHING_SPENT, Spent, spent_of
from cads_env.run.row_checks import sha256_of
from cads_env.run.rows import Key

TRACES: Final = "traces"
SUMS_FILE: Final = "SHA256SUMS"
"""Beside the traces of a run that ended, as `sha256sum --check` reads it."""
MOST_LINE_BYTES: Final = 64 * 1024 * 1024
"""A longer line is no exchange."""

_LONGEST_NAME: Final = 100
_MOST_SECONDS: Final = 1e9
"""Nobody waits longer for an answer."""
_MEND: Final = (
    "The file was changed or damaged after it was written: put back a copy, or start a new folder."
)


class Exchange(NamedTuple):
    """One line of a trace.

    Attributes:
        n: Number of the exchange in its campaign; a failed one and its later answer share it.
        request: What was asked.
        request_sha256: SHA-256 of the request's canonical JSON.
        answer: What came back; None when it failed for good.
        failed: Why it failed for good; None when it was answered.
        errors: What went wrong on the way to a failure, as the proposer told it.
        started: When it was asked, ISO 8601.
        seconds: How long it took, retries included.
    """

    n: int
    request: Mapping[str, Any]
    request_sha256: str
    answer: Mapping[str, Any] | None
    failed: str | None
    errors: tuple[Any, ...]
    started: str
    seconds: float


def canonical(value: object) -> str:
    """The one JSON text of a value: sorted keys, compact, ASCII.

    Raises:
        TypeError: It holds what JSON does not have.
        ValueError: The same; or a number that is not finite.
    """
    return json.dumps(
        value, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":")
    )


def sha256_text(text: str) -> str:
    """SHA-256 of an ASCII text."""
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def trace_path(folder: Path, key: Key) -> Path:
    """The trace of a campaign, whether it is there or not.

    Args:
        folder: Of the run.
        key: The campaign.
    """
    return folder / TRACES / _quoted(key.arm) / f"{_quoted(key.registry)}--{key.seed}.jsonl"


def _quoted(name: str) -> str:
    """A name as a part of a path; long ones are cut and told apart by a hash."""
    text = quote(name, safe="", errors="surrogatepass")
    if not text.strip("."):
        # These would be folders of the file system's own; nothing else is quoted as a lone "%".
        text = text.replace(".", "%2E") or "%"
    if len(text) <= _LONGEST_NAME:
        return text
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[:80]}-{digest[:16]}"


def trace_files(folder: Path) -> list[Path]:
    """The traces of a run, in the order of their paths.

    Args:
        folder: Of the run; one without traces has none.
    """
    found = (folder / TRACES).glob("*/*.jsonl")
    # A pipe would never end.
    paths = (p for p in found if not is_partial(p) and p.is_file())
    return sorted(paths, key=lambda p: p.as_posix())


def read_trace(path: Path) -> Iterator[Exchange]:
    """The exchanges of a trace, in order; a torn last line is left out.

    Args:
        path: From `trace_path`; a file that does not exist has none.

    Raises:
        RunError: The file cannot be read.
        RecordError: A whole line is no exchange; the message names file and line.
    """
    try:
        with path.open("rb") as handle:
            yield from exchanges(handle)
    except FileNotFoundError:
        return
    except OSError as error:
        msg = f"{path} cannot be read: {error_text(error)}. Put back a copy of the file."
        raise RunError(msg) from error
    except RecordError as error:
        msg = f"{path}: {error}"
        raise RecordError(msg) from error


def exchanges(handle: IO[bytes]) -> Iterator[Exchange]:
    """The exchanges from a handle's place on; a torn last line is left out.

    Raises:
        RecordError: A whole line is no exchange, or one is out of order; names its number.
    """
    last: Exchange | None = None
    number = 0
    while raw := handle.readline(MOST_LINE_BYTES + 1):
        number += 1
        if not raw.endswith(b"\n"):
            if len(raw) <= MOST_LINE_BYTES:
                return
            msg = f"line {number} is longer than {MOST_LINE_BYTES:,} bytes. {_MEND}"
            raise RecordError(msg)
        exchange = _exchange(raw)
        follows = exchange is not None and exchange.n in _next_numbers(last)
        if exchange is None or not follows:
            what = "is no exchange" if exchange is None else f"has n = {exchange.n}, out of order"
            msg = f"line {number} {what} ({raw[:60]!r}...). {_MEND}"
            raise RecordError(msg)
        last = exchange
        yield exchange


def _next_numbers(last: Exchange | None) -> tuple[int, ...]:
    if last is None:
        return (0,)
    return (last.n + 1,) if last.failed is None else (last.n, last.n + 1)


def _exchange(raw: bytes) -> Exchange | None:
    """What a line holds; None when it is no exchange."""
    try:
        row = json.loads(raw, parse_constant=refuse_constant, object_pairs_hook=distinct_names)
        request, sha256 = row["request"], row["request_sha256"]
        n, started, seconds = row["n"], row["started"], row["seconds"]
        answer, failed, errors = row.get("answer"), row.get("failed"), row.get("errors", [])
        is_right = (
            isinstance(n, int) and not isinstance(n, bool)
            and isinstance(request, dict) and isinstance(started, str)
            and isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
            and 0 <= seconds < _MOST_SECONDS
            and isinstance(sha256, str) and _is_hash_of(sha256, request, raw)
            and isinstance(errors, list)
            and (
                isinstance(answer, dict) if failed is None
                else isinstance(failed, str) and answer is None
            )
        )  # fmt: skip
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if not is_right:
        return None
    return Exchange(n, request, sha256, answer, failed, tuple(errors), started, float(seconds))


def distinct_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, every name of which stands there once.

    Raises:
        ValueError: One stands there twice: what is hashed and what is read could differ.
    """
    value = dict(pairs)
    if len(value) != len(pairs):
        msg = "a name stands twice in one object"
        raise ValueError(msg)
    return value


def append_to_trace(path: Path, lines: bytes) -> None:
    """Add whole lines to a trace and put them on disk; the file and its folder are made.

    Raises:
        OSError: They cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as handle:
        handle.write(lines)
        handle.flush()
        os.fsync(handle.fileno())


def read_bytes(path: Path) -> bytes:
    """A trace as it is.

    Raises:
        RunError: The file cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        msg = f"{path} cannot be read: {error_text(error)}. Put back a copy of the file."
        raise RunError(msg) from error


def tally(folder: Path) -> Spent:
    """What the traces of a run add up to; every line is read.

    Raises:
        RunError: A file cannot be read.
        RecordError: A line is damaged.
    """
    spent = NOTHING_SPENT
    for path in trace_files(folder):
        rounds = RoundCounter()
        for exchange in read_trace(path):
            is_new = rounds.is_new(exchange.request)
            spent = spent.plus(spent_of(exchange.answer, is_new_round=is_new))
    return spent


def _is_hash_of(sha256: str, request: Any, raw: bytes) -> bool:
    """Whether a line's request has this hash; as it stands in the line, where that is canonical."""
    start = raw.find(b'"request":') + len(b'"request":')
    stop = raw.find(b',"request_sha256":"' + sha256.encode("ascii"), start)
    if stop >= 0 and hashlib.sha256(raw[start:stop]).hexdigest() == sha256:
        return True
    return sha256 == sha256_text(canonical(request))


class RoundCounter:
    """Tells whether a request of a campaign is the first of its round."""

    def __init__(self) -> None:
        """Before the first request."""
        self._last: object = None

    def is_new(self, request: Mapping[str, Any]) -> bool:
        """Whether this request, the next one, is of another round than the one before."""
        round, self._last = self._last, request.get("round", 0)
        return round != self._last


def seal(folder: Path) -> dict[str, Any] | None:
    """What a manifest says of the traces; None when there are none. Writes the list of hashes.

    Raises:
        OSError: A file cannot be read or written.
    """
    paths = trace_files(folder)
    if not paths:
        return None
    sums = _sums(folder, paths)
    write_whole(folder / TRACES / SUMS_FILE, [sums.encode("ascii")])
    lines = sum(_line_count(path) for path in paths)
    return {"files": len(paths), "exchanges": lines, "sha256": sha256_text(sums)}


def _line_count(path: Path) -> int:
    with path.open("rb") as handle:
        return sum(block.count(b"\n") for block in iter(lambda: handle.read(1 << 20), b""))


def _sums(folder: Path, paths: list[Path]) -> str:
    root = folder / TRACES
    return "".join(f"{sha256_of(p)}  {p.relative_to(root).as_posix()}\n" for p in paths)


def unseal(folder: Path) -> None:
    """Take the list of hashes away, before a run goes on."""
    (folder / TRACES / SUMS_FILE).unlink(missing_ok=True)


def check_traces(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Raise unless the traces are those that the manifest of a complete run tells of.

    Raises:
        RunError: A file cannot be read.
        RecordError: A file is missing, new or changed; names the first.
    """
    told = manifest.get("traces")
    paths = trace_files(folder)
    if told is None and not paths:
        return
    try:
        sums = _sums(folder, paths)
        listed = _listed(folder)
    except (OSError, ValueError) as error:
        msg = f"The traces of {folder} cannot be read: {error}."
        raise RunError(msg) from error
    if isinstance(told, Mapping) and told.get("sha256") == sha256_text(sums):
        return
    found = dict(line.split("  ", 1)[::-1] for line in sums.splitlines())
    names = sorted({*found, *listed})
    wrong = next((name for name in names if found.get(name) != listed.get(name)), SUMS_FILE)
    what = "is missing" if wrong in listed and wrong not in found else "is not what the run wrote"
    msg = (
        f"{folder / TRACES / wrong} {what}: the manifest tells of other traces. Put back a copy, "
        "or run again."
    )
    raise RecordError(msg)


def _listed(folder: Path) -> dict[str, str]:
    path = folder / TRACES / SUMS_FILE
    text = path.read_text(encoding="ascii") if path.is_file() else ""
    pairs = (line.partition("  ") for line in text.splitlines())
    return {name: digest for digest, _, name in pairs}

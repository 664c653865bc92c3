"""The folder of a run: append-only JSON lines beside a manifest, that a killed run goes on with.

Each campaign's lines are on disk before its process counts it as done; the manifest says whether
the run is complete. One process writes at a time. Timestamps stand in `log.jsonl` alone, so that
the same run gives the same bytes.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final

from filelock import FileLock, Timeout

from cads_env.errors import RunError, error_text
from cads_env.files import is_partial, write_whole
from cads_env.run.manifest import MANIFEST_FILE, check_same_run, read_manifest
from cads_env.run.mend import in_order, mend, whole_lines
from cads_env.run.meter import NOTHING_SPENT, Spent
from cads_env.run.plan import Played
from cads_env.run.row_checks import check_files, check_rows, sha256_of
from cads_env.run.rows import ROW_FILES, Key
from cads_env.run.traces import (
    append_to_trace,
    check_traces,
    seal,
    tally,
    trace_path,
    unseal,
)
from cads_env.values import plain_text

Registries = dict[str, dict[str, Any]]

LOG_FILE: Final = "log.jsonl"
LOCK_FILE: Final = ".lock"
DEFAULT_ROOT: Final = "runs"

UNCOUNTED: Final = (LOCK_FILE, ".DS_Store")
"""Names that do not make a folder used; nor does what a killed process did not finish."""


def json_line(row: Mapping[str, Any]) -> str:
    """A row as one line of strict JSON, ASCII only."""
    return json.dumps(row, ensure_ascii=True, allow_nan=False, separators=(",", ":")) + "\n"


def run_folder(out: str | Path | None) -> Path:
    """The folder that a run is to write into; made when it is not there.

    Args:
        out: A path; None for the next free number under `runs`.

    Raises:
        RunError: It cannot be made.
    """
    if out is not None and not isinstance(out, (str, Path)):
        msg = f"out is {out!r}; expected a path, True for the next number, or None for no files."
        raise RunError(msg)
    try:
        if out is None:
            return numbered(Path(DEFAULT_ROOT))
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        msg = f"Output folder {str(out)!r} is no folder; name a new one with --out."
        raise RunError(msg) from error
    except (OSError, ValueError) as error:
        where = str(out or DEFAULT_ROOT)
        msg = f"Output folder {where!r} cannot be made: {error_text(error)}."
        raise RunError(msg) from error
    return folder


def numbered(root: Path) -> Path:
    """A new folder named by the next free number under `root`: 0001, 0002, ..."""
    root.mkdir(parents=True, exist_ok=True)
    taken = [int(p.name) for p in root.iterdir() if p.name.isdecimal()]
    number = max(taken, default=0) + 1
    while True:
        folder = root / f"{number:04d}"
        try:
            # mkdir is atomic, so two runs that start together get two numbers.
            folder.mkdir()
        except FileExistsError:
            number += 1
        else:
            return folder


class RunFolder:
    """Writer of one run's files; use as a context manager.

    Attributes:
        folder: Where it is.
        done: Keys of the campaigns that are complete.
        failed: Keys of the campaigns that failed.
        spent: What the traces of earlier attempts tell of requests, tokens and cost.
    """

    def __init__(
        self,
        folder: Path,
        manifest: Mapping[str, Any],
        *,
        retry_failed: bool = False,
        new: bool = False,
        check: Callable[[Registries], None] = lambda _: None,
    ) -> None:
        """Lock the folder; begin the run that the manifest describes, or go on with it.

        Args:
            folder: From `run_folder`.
            manifest: From `new_manifest`.
            retry_failed: Forget failed campaigns of an earlier attempt.
            new: Refuse to go on with a run that is there.
            check: Given what a run that is there says of its registries, raises unless they are
                those that are to be played; called before anything is changed.

        Raises:
            RunError: The folder holds something else or another run, another process writes into
                it, or it cannot be written.
            RecordError: A file of the earlier attempt is damaged.
        """
        self.folder = folder
        # Absolute: an agent may change the working directory.
        self._place = folder.absolute()
        self._files: dict[str, IO[str]] = {}
        self.done: set[Key] = set()
        self.failed: set[Key] = set()
        self.spent: Spent = NOTHING_SPENT
        self._open_reason: str | None = None
        self._lock = FileLock(self._place / LOCK_FILE, blocking=False)
        try:
            with self._writing():
                self._lock.acquire()
        except Timeout as error:
            msg = (
                f"Another process is writing into {str(folder)!r}. Wait for it, or name another "
                "folder with --out."
            )
            raise RunError(msg) from error
        try:
            with self._writing():
                self._begin(manifest, retry_failed, new, check)
        except BaseException:
            self._lock.release()
            raise

    def _begin(
        self,
        manifest: Mapping[str, Any],
        retry_failed: bool,
        new: bool,
        check: Callable[[Registries], None],
    ) -> None:
        used = [
            p.name for p in self._place.iterdir() if p.name not in UNCOUNTED and not is_partial(p)
        ]
        if not used:
            self._manifest = dict(manifest)
            self._write_manifest()
            self.log("start")
            return
        if new or MANIFEST_FILE not in used:
            if MANIFEST_FILE not in used:
                self._discard_lock()
            what = "holds a run" if MANIFEST_FILE in used else "is not empty and holds no run"
            msg = f"Output folder {str(self.folder)!r} {what}; name a new one with --out."
            raise RunError(msg)
        self._manifest = read_manifest(self._place)
        check_same_run(self._manifest, manifest, self.folder)
        # All of it before the first byte changes: a run that is refused stays as it is.
        check(self.registries)
        if self._manifest["status"] == "complete":
            check_files(self._place, self._manifest)
            check_traces(self._place, self._manifest)
        check_rows(self._place, self._manifest["config"])
        self.spent = tally(self._place)
        # What the end of a run adds, in the order in which an unbroken one adds it.
        for name in ("arms", "reason", "files", "traces"):
            self._manifest.pop(name, None)
        # Before the first row changes: a kill from here on must not leave a run called complete.
        self._manifest["status"] = "running"
        self._write_manifest()
        unseal(self._place)
        self.done, self.failed = mend(self._place, drop_failures=retry_failed)
        self.log("resume", done=len(self.done), failed=len(self.failed))

    def _discard_lock(self) -> None:
        """Leave nothing in a folder that is not ours."""
        self._lock.release()
        with contextlib.suppress(OSError):
            (self._place / LOCK_FILE).unlink()

    def __enter__(self) -> RunFolder:
        """The folder itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the files; the manifest's status becomes "complete" or says what ended the run.

        Raises:
            RunError: A file cannot be written, unless something else ended the run already.
        """
        try:
            with self._writing():
                self._close(error)
        except RunError:
            if error is None:
                raise
        finally:
            self._lock.release()

    def _close(self, error: BaseException | None) -> None:
        unwritten = self._close_files()
        error = error or unwritten
        self._manifest.pop("reason", None)
        if error is None and self._open_reason is not None:
            status, self._manifest["reason"] = "interrupted", self._open_reason
        elif error is None:
            status = "complete"
        else:
            status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            self._manifest["reason"] = plain_text(f"{type(error).__name__}: {error}")
        self._manifest["status"] = status
        self._manifest["files"] = {
            f"{name}.jsonl": sha256_of(path)
            for name in sorted(ROW_FILES)
            if (path := self._place / f"{name}.jsonl").is_file()
        }
        traces = seal(self._place)
        if traces is not None:
            self._manifest["traces"] = traces
        self._write_manifest()
        self.log("end", status=status)
        if unwritten is not None:
            raise unwritten

    def _close_files(self) -> OSError | None:
        """Close all; the first failure, if any."""
        first: OSError | None = None
        for handle in self._files.values():
            try:
                handle.close()
            except OSError as failure:
                first = first or failure
        self._files.clear()
        return first

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except Timeout:
            raise
        except OSError as error:
            msg = (
                f"Cannot write into {str(self.folder)!r}: {error_text(error)}. What was complete "
                f"before is still there; with --out {self.folder} the same command goes on."
            )
            raise RunError(msg) from error

    @property
    def place(self) -> Path:
        """The folder's absolute path."""
        return self._place

    def add_trace(self, key: Key, lines: bytes) -> None:
        """Add lines to a campaign's trace and put them on disk.

        Args:
            key: The campaign.
            lines: Whole lines.

        Raises:
            RunError: They cannot be written.
        """
        with self._writing():
            append_to_trace(trace_path(self._place, key), lines)

    @property
    def registries(self) -> Registries:
        """What the manifest says of each registry that was played, by name."""
        return {entry["name"]: entry for entry in self._manifest["registries"]}

    def keep(self, played: Played) -> None:
        """Put the rows of a task on disk, those that say that a campaign is done last.

        Raises:
            RunError: They cannot be written.
        """
        if played.registry["name"] not in self.registries:
            self._manifest["registries"].append(played.registry)
            with self._writing():
                self._write_manifest()
        for arm, lines in played.traces:
            self.add_trace(Key(arm, played.registry["name"], played.task.seed), lines)
        for name in ROW_FILES:
            self.append(name, played.rows[name])
        for name, event in (("campaigns", "campaign"), ("failures", "failed")):
            for row in played.rows[name]:
                key = Key.of(row)
                reason = {"reason": row["reason"]} if "reason" in row else {}
                with self._writing():
                    self.log(event, **key._asdict(), **reason)
                (self.done if name == "campaigns" else self.failed).add(key)

    def append(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows to `<name>.jsonl` and put them on disk.

        Args:
            name: One of `ROW_FILES`.
            rows: JSON values.

        Raises:
            RunError: They cannot be written.
        """
        lines = map(json_line, rows)
        first = next(lines, None)
        if first is None:
            return
        with self._writing():
            if name not in self._files:
                path = self._place / f"{name}.jsonl"
                self._files[name] = path.open("a", encoding="ascii", newline="\n")
            handle = self._files[name]
            handle.write(first)
            handle.writelines(lines)
            handle.flush()
            os.fsync(handle.fileno())

    def finish(self, keys: Sequence[Key], registries: Sequence[str]) -> None:
        """Put rows and registries into their final order, whatever order they came in.

        Args:
            keys: Every campaign of the run, in order.
            registries: Every registry of the panel, in order.

        Raises:
            RunError: A file cannot be written; what was complete is still there.
        """
        rank = {key: i for i, key in enumerate(keys)}
        place = {name: i for i, name in enumerate(registries)}
        self._manifest["registries"].sort(key=lambda entry: place[entry["name"]])
        with self._writing():
            failure = self._close_files()
            if failure is not None:
                raise failure
            for name in ROW_FILES:
                in_order(self._place / f"{name}.jsonl", rank)

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """The rows by kind, without the reads."""
        return {
            name: [line.row for line in whole_lines(self._place / f"{name}.jsonl")]
            for name in ROW_FILES
            if name != "reads"
        }

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest as it is now."""
        return self._manifest

    def leave_open(self, reason: str) -> None:
        """Say that the run is not complete, so that its command goes on with it."""
        self._open_reason = reason

    def note(self, name: str, value: Any) -> None:
        """Set a field of the manifest; it is written when the run ends."""
        self._manifest[name] = value

    def log(self, event: str, **details: Any) -> None:
        """Add a timestamped event to the log."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        with (self._place / LOG_FILE).open("a", encoding="ascii", newline="\n") as handle:
            handle.write(json_line({"time": now, "event": event, **details}))

    def _write_manifest(self) -> None:
        text = json.dumps(self._manifest, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
        write_whole(self._place / MANIFEST_FILE, [text.encode("ascii")])

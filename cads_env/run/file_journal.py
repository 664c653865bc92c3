"""A journal in a file of the run's folder: append-only, one line an exchange.

Kills leave whole lines and at most one that is torn, which is dropped. Knows nothing of what a line
holds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from io import FileIO
from pathlib import Path
from typing import IO, Any, Final

from cads_env.errors import RunError, error_text
from cads_env.run.journal import CampaignJournal
from cads_env.run.traces import Exchange, exchanges

_LOCK_WAIT_S: Final = 10.0
"""How long the process of a killed run may take to let its file go."""

_disk: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cads-disk")
"""Puts lines on disk, in the order in which they were written."""


class FileJournal(CampaignJournal):
    """A journal in a file of the run's folder, append-only.

    A line is written before its answer is used, so killing the process loses none. That it is on
    the disk, in case the machine fails, is seen to at once by another thread and waited for at the
    end of the campaign: a disk may take longer than all the rest of a round.
    """

    def __init__(self, path: Path, **how: Any) -> None:
        """Nothing is opened or made before the first exchange.

        Args:
            path: From `trace_path`.
            **how: As for `CampaignJournal`.
        """
        super().__init__(**how)
        self._path = path
        self._handle: FileIO | None = None
        self._reading: IO[bytes] | None = None
        self._synced: Future[None] | None = None

    @property
    def where(self) -> str:
        """The file's path."""
        return str(self._path)

    def _recorded(self) -> Iterator[Exchange]:
        try:
            if self._path.is_file():
                if self._mode == "live":
                    self._handle = _locked(self._path)
                    _drop_torn_tail(self._handle)
                self._reading = self._path.open("rb")
                return exchanges(self._reading)
        except OSError as error:
            failure = error
        else:
            return iter(())
        refusal = _unusable("read", failure)
        raise refusal

    def _put(self, line: bytes) -> None:
        try:
            if self._handle is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._handle = _locked(self._path)
            rest = memoryview(line)
            while rest:
                rest = rest[self._handle.write(rest) :]
            self._sync(self._handle.fileno())
        except OSError as error:
            failure = error
        else:
            return
        refusal = _unusable("written", failure)
        raise refusal

    def _sync(self, file: int) -> None:
        last = self._synced
        if last is not None and last.done():
            last.result()
        # One that has not begun will put this line on disk too.
        if last is None or last.running() or last.done():
            self._synced = _disk.submit(os.fsync, file)

    def _let_go(self) -> None:
        try:
            if self._synced is not None:
                self._synced.result()
        except OSError as error:
            msg = f"A trace cannot be written: {error_text(error)}."
            raise RunError(msg) from error
        finally:
            for handle in (self._handle, self._reading):
                if handle is not None:
                    handle.close()
            self._handle = self._reading = self._synced = None


def _unusable(what: str, error: OSError) -> RunError:
    """What an agent may see of an error; raised where the error itself, with its path, is gone.

    Args:
        what: What could not be done with the trace.
        error: Why.
    """
    return RunError(f"A trace cannot be {what}: {error_text(error)}.")


def _locked(path: Path) -> FileIO:
    """The file for appending; a process of a killed run may hold it for a moment.

    Raises:
        OSError: It cannot be opened, or another process keeps it.
    """
    handle = path.open("ab", buffering=0)
    try:
        import fcntl
    except ImportError:
        return handle
    until = time.monotonic() + _LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                handle.close()
                raise
            time.sleep(0.05)
        except OSError:
            # A file system without locks: the folder's own lock must do.
            return handle
        else:
            return handle


def _drop_torn_tail(handle: FileIO) -> None:
    """Cut what a kill left of a line that was being written."""
    with Path(handle.name).open("rb") as reading:
        end = size = reading.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - (1 << 16))
            reading.seek(start)
            at = reading.read(end - start).rfind(b"\n")
            if at >= 0:
                end = start + at + 1
                break
            end = start
    if end < size:
        handle.truncate(end)

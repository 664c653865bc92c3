"""The journals of a run's campaigns: in files of its folder, or in memory where none is at hand.

Travels to other processes; there the folder is the same and the sums are the worker's own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cads_env.run.executors.stopping import Stop
from cads_env.run.file_journal import FileJournal
from cads_env.run.journal import CampaignJournal, MemoryJournal, Mode
from cads_env.run.meter import Meter
from cads_env.run.rows import Key
from cads_env.run.traces import trace_path


class Journals:
    """Opens the journal of each campaign."""

    def __init__(
        self,
        folder: Path | None = None,
        *,
        mode: Mode = "live",
        meter: Meter | None = None,
        stop: Stop | None = None,
    ) -> None:
        """Nothing is opened or made.

        Args:
            folder: Of the run, absolute; None keeps journals in memory.
            mode: Of every journal.
            meter: Counts and limits what is asked in this process.
            stop: Looked at before anything is asked in this process.
        """
        self._folder, self._mode, self._meter, self._stop = folder, mode, meter, stop

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without what counts and stops this process alone."""
        return (_journals, (self._folder, self._mode))

    def open(self, key: Key, recorded: bytes = b"") -> CampaignJournal:
        """The journal of a campaign; the caller ends it.

        Args:
            key: The campaign.
            recorded: Lines of its trace, where the folder is not at hand.
        """
        how: dict[str, Any] = {"mode": self._mode, "meter": self._meter, "stop": self._stop}
        if self._folder is None:
            return MemoryJournal(recorded, **how)
        return FileJournal(trace_path(self._folder, key), **how)


def _journals(folder: Path | None, mode: Mode) -> Journals:
    return Journals(folder, mode=mode)

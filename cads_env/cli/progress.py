"""How far a run is and how long it still takes: a bar on a terminal, else a line at times."""

from __future__ import annotations

import time
from datetime import timedelta
from types import TracebackType
from typing import Final

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from cads_env.cli.terminal import ERR

LINE_EVERY_S: Final = 30.0
"""Seconds between two lines in a log."""


class CampaignProgress:
    """Shows campaigns done, in all, and the time left; a callback for `evaluate`."""

    def __init__(self, total: int) -> None:
        """Nothing is shown before the first campaign.

        Args:
            total: Campaigns in all.
        """
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=ERR,
            transient=True,
            # Where nobody watches, it would only leave an empty line.
            disable=not ERR.is_terminal,
        )
        self._task = self._bar.add_task("campaigns", total=total)
        self._began = self._said = time.monotonic()
        self._first: int | None = None

    def __enter__(self) -> CampaignProgress:
        """Start the bar."""
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bar away."""
        self._bar.stop()

    def __call__(self, done: int, total: int, arm: str) -> None:
        """Show that `done` of `total` campaigns are there, the last one of `arm`."""
        self._bar.update(self._task, completed=done, description=arm or "campaigns")
        now = time.monotonic()
        if self._first is None:
            # Campaigns of an earlier attempt took none of this time.
            self._first, self._began = done, now if not arm else self._began
        if ERR.is_terminal or now - self._said < LINE_EVERY_S or done <= self._first:
            return
        self._said = now
        left = (now - self._began) / (done - self._first) * (total - done)
        ERR.print(
            f"cads: {done} of {total} campaigns, {timedelta(seconds=round(left))} left",
            highlight=False,
        )

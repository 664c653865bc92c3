"""How far a run is and how long it still takes: a bar on a terminal, else a line at times.

Where agents ask a server, also what that has taken and may still take, in tokens and in cost.
"""

from __future__ import annotations

import time
from datetime import timedelta
from types import TracebackType
from typing import Final

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from cads_env.cli.terminal import ERR
from cads_env.run.meter import NOTHING_SPENT, Meter, Spent

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
            TextColumn("{task.fields[spent]}", markup=False),
            console=ERR,
            transient=True,
            # Where nobody watches, it would only leave an empty line.
            disable=not ERR.is_terminal,
        )
        self._task = self._bar.add_task("campaigns", total=total, spent="")
        self._began = self._said = time.monotonic()
        self._done = self._earlier = 0
        self._meters: list[Meter] = []

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

    def watch(self, meter: Meter) -> None:
        """Show from now on what a meter sums; those of several runs are added."""
        if not any(meter is known for known in self._meters):
            self._meters.append(meter)

    def __call__(self, done: int, total: int, arm: str) -> None:
        """Show that `done` of `total` campaigns are there, the last one of `arm`."""
        if not arm:
            # Campaigns of an earlier attempt took none of this time.
            self._earlier += done - self._done
        self._done = done
        spent = self._spent(done, total)
        self._bar.update(self._task, completed=done, description=arm or "campaigns", spent=spent)
        now = time.monotonic()
        played = done - self._earlier
        if ERR.is_terminal or now - self._said < LINE_EVERY_S or played < 1:
            return
        self._said = now
        left = (now - self._began) / played * (total - done)
        ERR.print(
            f"cads: {done} of {total} campaigns, {timedelta(seconds=round(left))} left"
            f"{f'; {spent}' if spent else ''}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )

    def _spent(self, done: int, total: int) -> str:
        """What requests have taken, and what is to come if campaigns go on as they did."""
        spent = sum_of([meter.total for meter in self._meters])
        if not spent.requests:
            return ""
        to_come = (total - done) / done if done else None
        return spent_words(spent, to_come)


def sum_of(parts: list[Spent]) -> Spent:
    """The sum of what several meters count."""
    whole = NOTHING_SPENT
    for part in parts:
        whole = whole.plus(part)
    return whole


def spent_words(spent: Spent, to_come: float | None) -> str:
    """What was spent, in words.

    Args:
        spent: The sums.
        to_come: What is still to come in parts of it; None when nobody can say.
    """
    words = f"{short(spent.tokens)} tokens"
    if to_come is not None:
        words += f" (about {short(spent.tokens * to_come)} to come)"
    if spent.cost:
        words += f", cost {spent.cost:.2f}"
        if to_come is not None:
            words += f" (about {spent.cost * to_come:.2f} to come)"
    return words


def short(number: float) -> str:
    """A count with three digits: 950, 12.3k, 4.56M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.0f}"

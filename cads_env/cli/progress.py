"""How far a run is and how long it still takes: a bar on a terminal, else a line at times.

Where agents ask a server, also what that has taken and may still take, in tokens and in cost.
"""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from types import TracebackType
from typing import Final

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from cads_env.cli.terminal import ERR
from cads_env.run.meter import NOTHING_SPENT, Meter, Spent

LINE_EVERY_S: Final = 30.0
"""Seconds between two lines in a log."""
LOOK_EVERY_S: Final = 1.0
"""Seconds between two looks at what was spent."""
_SHORT_S: Final = 60.0
"""No estimate is good to less."""


class CampaignProgress:
    """Shows campaigns done, in all, and the time left; a callback for `evaluate`."""

    def __init__(self, total: int, *, rounds: int = 0) -> None:
        """Nothing is shown before the first campaign or request.

        Args:
            total: Campaigns in all.
            rounds: Rounds in all in which an agent may ask a server, by which tokens and time to
                come are estimated; 0 where campaigns tell it better.
        """
        self._total, self._rounds = total, rounds
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}", markup=False),
            TextColumn("{task.fields[spent]}", markup=False),
            console=ERR,
            transient=True,
            # Where nobody watches, it would only leave an empty line.
            disable=not ERR.is_terminal,
        )
        self._task = self._bar.add_task("campaigns", total=total, spent="", left="")
        self._began = self._said = time.monotonic()
        self._first: tuple[float, int] | None = None
        self._done = self._earlier = 0
        self._meters: list[Meter] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def __enter__(self) -> CampaignProgress:
        """Start the bar."""
        self._bar.start()
        threading.Thread(target=self._keep_looking, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bar away."""
        self._ended.set()
        # Whoever prints next must not find a line half written.
        with self._lock:
            self._bar.stop()

    def watch(self, meter: Meter) -> None:
        """Show from now on what a meter sums; those of several runs are added."""
        with self._lock:
            if not self._meters:
                # What loading took tells nothing of the campaigns.
                self._began = time.monotonic()
            if not any(meter is known for known in self._meters):
                self._meters.append(meter)

    def __call__(self, done: int, total: int, arm: str) -> None:
        """Show that `done` of `total` campaigns are there, the last one of `arm`."""
        with self._lock:
            if not arm:
                # Campaigns of an earlier attempt took none of this time.
                self._earlier += done - self._done
            self._done, self._total = done, total
            self._bar.update(self._task, completed=done, description=arm or "campaigns")
            self._look()

    def _keep_looking(self) -> None:
        """Look once a second: a campaign that asks a server may take many minutes."""
        while not self._ended.wait(LOOK_EVERY_S):
            with self._lock:
                if not self._ended.is_set():
                    self._look()

    def _look(self) -> None:
        now = time.monotonic()
        spent = sum_of([meter.total for meter in self._meters])
        words = spent_words(spent, self._to_come(spent)) if spent.requests else ""
        seconds = self._seconds_left(now)
        left = "" if seconds is None else f"{self._time_words(seconds)} left"
        self._bar.update(self._task, spent=words, left=left)
        if ERR.is_terminal or now - self._said < LINE_EVERY_S or not left:
            return
        self._said = now
        ERR.print(
            f"cads: {self._done} of {self._total} campaigns, {left}{f'; {words}' if words else ''}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )

    def _to_come(self, spent: Spent) -> float | None:
        """What is still to be spent in parts of what was; None when nobody can say."""
        if self._rounds and spent.rounds:
            left = max(self._rounds - spent.rounds, 0) / spent.rounds
            # The last rounds have begun, and what they still ask is not known.
            return left if left or self._done == self._total else None
        return (self._total - self._done) / self._done if self._done else None

    def _seconds_left(self, now: float) -> float | None:
        """Seconds left, as far as this attempt tells; None before it does."""
        rounds = sum_of([meter.now for meter in self._meters]).rounds
        if self._rounds and rounds:
            if self._first is None:
                self._first = (now, rounds)
            begun, before = self._first
            # The first answers waited for much that comes only once.
            begun, before = (begun, before) if rounds > before else (self._began, 0)
            all_rounds = sum_of([meter.total for meter in self._meters]).rounds
            return max(self._rounds - all_rounds, 0) * (now - begun) / (rounds - before)
        played = self._done - self._earlier
        if played <= 0:
            return None
        return (self._total - self._done) * (now - self._began) / played

    def _time_words(self, seconds: float) -> str:
        """A time left, which is never none while a campaign is open."""
        if seconds < _SHORT_S and self._done < self._total:
            return "less than a minute"
        return str(timedelta(seconds=round(seconds)))


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

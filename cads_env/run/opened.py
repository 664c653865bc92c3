"""The campaigns that are under way: opened once for all arms of a seed, whichever thread asks.

Loading a registry, playing the twin and the reference cost more than many an arm; they are pure
functions of the plan and the seed, so sharing them changes nothing.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

MOST_HELD: Final = 64
"""Seeds that stay open at once; the least recently asked for go first."""

T = TypeVar("T")


class OpenCampaigns(Generic[T]):
    """What opening a seed gave, until every arm has been played on it; safe under threads."""

    def __init__(self, open: Callable[[int], T], arm_count: int) -> None:
        """Nothing is opened.

        Args:
            open: Opens a seed; gives the same whenever it is called.
            arm_count: Arms after which a seed is not needed any more.
        """
        self._open, self._arm_count = open, arm_count
        self._lock = threading.Lock()
        self._held: OrderedDict[int, _Held[T]] = OrderedDict()

    def take(self, seed: int, arms: int) -> T:
        """What opening the seed gave.

        Args:
            seed: The seed.
            arms: Arms that are played with what is returned.
        """
        with self._lock:
            held = self._held.setdefault(seed, _Held())
            self._held.move_to_end(seed)
            held.arms += arms
            if held.arms >= self._arm_count:
                # The last arms: who waits for the same seed holds it already.
                del self._held[seed]
            while len(self._held) > MOST_HELD:
                self._held.popitem(last=False)
        with held.lock:
            if not held.values:
                held.values.append(self._open(seed))
            return held.values[0]


class _Held(Generic[T]):
    """A seed that is open or being opened; a list, because what is held may be None."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.values: list[T] = []
        self.arms = 0

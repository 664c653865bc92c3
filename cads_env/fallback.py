"""The fallback: the seeded, label-free order in which slots left empty are filled.

The order is walked, skipping what was observed, and never consumed, so an arm that proposes and its
twin walk the same one. Never sees a read.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from cads_env.tape import priority

Ints = NDArray[np.int64]

_MOST_AHEAD: Final = 8192
"""Entries drawn at once at most, beyond what is needed now."""


class FallbackOrder:
    """The fallback orders of n campaigns, each with a cursor before which all is observed."""

    def __init__(self, keys: NDArray[np.uint64], m: int, expected: int) -> None:
        """Start at the head of every order.

        Args:
            keys: Key of each campaign's order, shape (n,).
            m: Registry size.
            expected: Entries that a campaign will take at most; drawn at once where they are few,
                so that rounds share the cost.
        """
        self._m, self._expected = m, min(expected, _MOST_AHEAD)
        self.restart(keys)

    def restart(self, keys: NDArray[np.uint64]) -> None:
        """Go to the head of new orders, shape (n,) keys."""
        self._keys = keys
        self._cursors = np.zeros(keys.size, np.int64)
        self._order = np.empty((keys.size, 0), np.int64)

    def of(self, rows: Ints) -> FallbackOrder:
        """The orders of some of the campaigns, sharing no state with these."""
        part = FallbackOrder(self._keys[rows], self._m, self._expected)
        part._cursors, part._order = self._cursors[rows].copy(), self._order[rows].copy()
        return part

    def take(self, needed: Ints, observed: NDArray[np.bool_]) -> Ints:
        """The first `needed` unobserved candidates of each order, marked observed.

        Args:
            needed: How many in each campaign, shape (n,); each has that many unobserved ones left.
            observed: Shape (n, m), contiguous; updated.

        Returns:
            Registry indices, campaign after campaign, shape (sum of needed,).
        """
        known, rows = observed.reshape(-1), np.arange(needed.size)[:, None] * self._m
        # Only a hint of how far to look; proposals made earlier make the walk a little longer.
        width = int(needed.max())
        while True:
            found, inside = self._from_cursors(width)
            free = ~known.take(found + rows) & inside
            if (needed == width).all() and free.all():
                chosen, passed = found.reshape(-1), needed
                break
            order = np.cumsum(free, axis=1)
            if (order[:, -1] >= needed).all():
                chosen = found[free & (order <= needed[:, None])]
                passed = np.count_nonzero(order < needed[:, None], axis=1) + (needed > 0)
                break
            width += width + 16
        known[chosen + np.repeat(rows[:, 0], needed)] = True
        self._cursors += passed
        return chosen

    def _from_cursors(self, width: int) -> tuple[Ints, NDArray[np.bool_]]:
        """The next `width` entries of each order, and which of them exist."""
        start, end = int(self._cursors.min()), int(self._cursors.max())
        length = self._order.shape[1]
        if end + width > length and length < self._m:
            wanted = max(end + width, min(2 * length, _MOST_AHEAD), self._expected)
            positions = np.arange(length, min(wanted, self._m))
            more = priority(self._keys, positions, self._m)
            self._order = np.concatenate([self._order, more], axis=1)
            length = self._order.shape[1]
        if start == end and end + width <= length:
            return self._order[:, end : end + width], np.ones((1, 1), np.bool_)
        positions = self._cursors[:, None] + np.arange(width)
        inside = positions < length
        entries = np.take_along_axis(self._order, np.where(inside, positions, 0), axis=1)
        return entries, inside

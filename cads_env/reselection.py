"""Re-selection: which observed candidates are read again.

Every ranking is on the total order (graduated, score, first-read order), so no tie is ever left to
a sorting routine. Works on scores alone; never sees a candidate's name, effect or label.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BRACKETED: Final = 1024
"""Rows shorter than this are partitioned whole."""
_SAMPLE: Final = 256
_MARGIN: Final = 24
"""Sample ranks on each side of the wanted one: three standard errors of a sample quantile."""


def top(scores: Floats, count: int) -> Ints:
    """Positions of the highest scores of each row, in ascending position.

    Ties go to the lower position. The threshold is a value, so the partition's own order of equal
    elements (which differs between CPUs) never shows.

    Args:
        scores: Shape (n, k), no NaN.
        count: Positions to return a row, 0 to k.

    Returns:
        Shape (n, count).
    """
    n, k = scores.shape
    if count >= k:
        return np.broadcast_to(np.arange(k), (n, k)).copy()
    if count == 0:
        return np.empty((n, 0), np.int64)
    chosen, uncertain, open_places = _bracket(scores, count)
    flat = scores.reshape(-1)
    for row, places in enumerate(open_places):
        at = uncertain[row]
        values = flat.take(at)
        threshold = np.partition(values, values.size - places)[values.size - places]
        better, tied = at[values > threshold], at[values == threshold]
        chosen[better] = True
        chosen[tied[: places - better.size]] = True
    positions: Ints = np.flatnonzero(chosen).reshape(n, count)
    positions -= np.arange(n)[:, None] * k
    return positions


def _bracket(scores: Floats, count: int) -> tuple[NDArray[np.bool_], list[Ints], list[int]]:
    """What a sorted sample of each row already decides about its top `count`.

    Args:
        scores: Shape (n, k).
        count: 1 to k - 1.

    Returns:
        Flat mask of the certainly chosen, shape (n * k,); the flat positions still uncertain, a
        list with one array a row; and how many of those are to be chosen, at least 1 a row. A row
        whose sample misleads is left wholly uncertain, so the result never depends on the sample.
    """
    n, k = scores.shape
    starts = np.arange(n) * k
    if k < _BRACKETED:
        whole = [np.arange(start, start + k) for start in starts]
        return np.zeros(n * k, np.bool_), whole, [count] * n
    sample = np.sort(scores[:, :: k // _SAMPLE], axis=1)
    size = sample.shape[1]
    middle = int((k - count) / k * size)
    low = sample[:, max(middle - _MARGIN, 0), None]
    high = sample[:, min(middle + _MARGIN, size - 1), None]
    above = scores > high
    inside = np.flatnonzero((scores >= low) ^ above)
    bounds = np.searchsorted(inside, [*starts, n * k])
    uncertain, places = [], []
    for row in range(n):
        at = inside[bounds[row] : bounds[row + 1]]
        missing = count - int(np.count_nonzero(above[row]))
        if not 1 <= missing <= at.size:
            above[row] = False
            at, missing = np.arange(starts[row], starts[row] + k), count
        uncertain.append(at)
        places.append(missing)
    return above.reshape(-1), uncertain, places


def ranked(scores: Floats, graduated: NDArray[np.bool_] | None) -> Ints:
    """All positions of each row, best first: ungraduated before graduated, then by score.

    Args:
        scores: Shape (n, k), no NaN.
        graduated: Shape (n, k), or None where nothing graduates.

    Returns:
        Shape (n, k); ties in ascending position.
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    if graduated is not None and graduated.any():
        late = np.take_along_axis(graduated, order, axis=1)
        order = np.take_along_axis(order, np.argsort(late, axis=1, kind="stable"), axis=1)
    return order


def reread_positions(
    scores: Floats,
    graduated: NDArray[np.bool_] | None,
    *,
    rereads: int,
    reads_each: int,
    extra: int,
) -> tuple[Ints, Ints | None]:
    """The reads that re-selection spends in one round.

    Args:
        scores: Shape (n, k).
        graduated: Shape (n, k) or None.
        rereads: Top-ranked candidates that are read again, at most k.
        reads_each: Reads that each of them gets.
        extra: Further single reads of the next-ranked candidates, cycling through all k.

    Returns:
        Observed position of each read, and its number among that candidate's reads of this round
        (from 0; None when all are the first), both of shape (n, rereads * reads_each + extra): the
        top candidates in first-read order, each with its reads in a row, then the extra reads in
        rank order.
    """
    n, k = scores.shape
    full_order = extra > 0 or (graduated is not None and bool(graduated.any()))
    order = ranked(scores, graduated) if full_order else None
    chosen = top(scores, rereads) if order is None else np.sort(order[:, :rereads], axis=1)
    if reads_each == 1 and extra == 0:
        return chosen, None
    positions = np.repeat(chosen, reads_each, axis=1)
    turns = np.broadcast_to(np.tile(np.arange(reads_each), rereads), positions.shape)
    if order is None or extra == 0:
        return positions, turns
    turn_of_extra = rereads + np.arange(extra)
    rank, lap = turn_of_extra % k, turn_of_extra // k
    earlier = np.where(rank < rereads, reads_each + lap - 1, lap)
    return (
        np.concatenate([positions, order[:, rank]], axis=1),
        np.concatenate([turns, np.broadcast_to(earlier, (n, extra))], axis=1),
    )

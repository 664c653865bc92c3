"""Re-selection: which observed candidates are read again.

Every ranking is on the total order (graduated, score, first-read order), so no tie is ever left to
a sorting routine. Works on scores alone; never sees a candidate's name, effect or label.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BRACKETED: Final = 1024
"""Rows shorter than this are partitioned whole."""
_SAMPLE: Final = 512
"""Scores drawn at least, over all rows, to bracket the wanted one."""
_MARGIN: Final = 2.5
"""Standard errors of a sample quantile on each side of the wanted one."""


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
    threshold = _kth_largest(scores, count)[:, None]
    chosen = scores >= threshold
    at = np.flatnonzero(chosen)
    if at.size > n * count:
        for row in np.flatnonzero(np.count_nonzero(chosen, axis=1) > count):
            tied = np.flatnonzero(scores[row] == threshold[row])
            surplus = int(np.count_nonzero(chosen[row])) - count
            chosen[row, tied[tied.size - surplus :]] = False
        at = np.flatnonzero(chosen)
    positions: Ints = at.reshape(n, count)
    positions -= np.arange(n)[:, None] * k
    return positions


def _kth_largest(scores: Floats, count: int) -> Floats:
    """The value of each row's count-th largest score.

    In long rows one sorted sample of all rows brackets it, since campaigns of one plan score alike,
    so that only the scores in the bracket need a partition; a row whose bracket misses is
    partitioned whole. The value is exact either way.

    Args:
        scores: Shape (n, k).
        count: 1 to k - 1.

    Returns:
        Shape (n,).
    """
    n, k = scores.shape
    if k < _BRACKETED:
        whole: Floats = np.partition(scores, k - count, axis=1)[:, k - count]
        return whole
    low, high = _bracket(scores, count)
    above = scores > high
    at = np.flatnonzero((scores >= low) ^ above)
    values = scores.reshape(-1).take(at)
    bounds = np.searchsorted(at, np.arange(n + 1) * k).tolist()
    result = np.empty(n)
    for row in range(n):
        inside = values[bounds[row] : bounds[row + 1]]
        missing = count - int(np.count_nonzero(above[row]))
        if not 1 <= missing <= inside.size:
            inside, missing = scores[row].copy(), count
        rank = inside.size - missing
        # In place: the values are a copy.
        inside.partition(rank)
        result[row] = inside[rank]
    return result


def _bracket(scores: Floats, count: int) -> tuple[float, float]:
    """Two scores that most rows' count-th largest lies between."""
    n, k = scores.shape
    each = min(k, max(-(-_SAMPLE // n), _SAMPLE // 8))
    sample = np.sort(scores[:, :: k // each], axis=None)
    share = (k - count) / k
    # The sample errs, and so does each row about what all have in common.
    error = math.sqrt(share * (1.0 - share) * (1.0 / sample.size + 1.0 / k))
    middle, margin = int(share * sample.size), math.ceil(_MARGIN * error * sample.size)
    low = sample[max(middle - margin, 0)]
    high = sample[min(middle + margin, sample.size - 1)]
    return float(low), float(high)


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

"""Complete-family selection: e-BH on log evidence, and BH on p-values.

The family is always the whole registry. Candidates that were never read count as E = 1 (p = 1)
without being listed, so the cost follows the reads. Compares logs, and never exponentiates
evidence.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cads_env.certificate.cap import real_number
from cads_env.errors import CertificateError, ReadError

_LARGEST_FAMILY = 2**63 - 1
"""Registry indices are 64-bit integers."""

_SCATTER_SHARE = 16
"""A table of the whole family is used to find repeats when at least a 16th of it is listed."""


class Cut(NamedTuple):
    """Where a selection rule cut the entries it was given."""

    positions: NDArray[np.intp]
    """Positions of the selected entries in the input, ascending, shape (D,)."""

    threshold: float
    """The bar that they reached; inf for e-BH and -inf for BH when nothing is selected."""


SMALLEST_LEVEL = 1e-100
"""Levels from here up are accepted."""


def check_level(q: object) -> float:
    """The level as a float in [1e-100, 1).

    Args:
        q: Target false discovery rate.

    Returns:
        The level as a Python float.

    Raises:
        CertificateError: Not a number, not below 1, or below 1e-100.
    """
    value = real_number("q", q)
    # Below the smallest level m / q could leave the range of floats, and no screen gives such
    # evidence.
    if not SMALLEST_LEVEL <= value < 1.0:
        msg = (
            f"q is outside its range: received {value!r}, expected 0 < q < 1 ({SMALLEST_LEVEL} up)."
        )
        raise CertificateError(msg)
    return value


def check_family_size(m: object) -> int:
    """The size of the family as an int of at least 1.

    Args:
        m: Number of candidates of the registry.

    Returns:
        The size as a Python int.

    Raises:
        CertificateError: Not an integer, below 1, or beyond a 64-bit index.
    """
    try:
        size = 0 if isinstance(m, (bool, np.bool_)) else operator.index(m)  # type: ignore[arg-type]
    except TypeError:
        size = 0
    if not 1 <= size <= _LARGEST_FAMILY:
        msg = (
            f"m is not a family size: received {m!r} of type {type(m).__name__}, expected an "
            f"integer from 1 to 2**63 - 1. Pass the number of candidates of the registry."
        )
        raise CertificateError(msg)
    return size


def log_bar(m: int, q: float, k: float = 1.0) -> float:
    """The log evidence that each of k declarations needs: ln(m / (q k)).

    Args:
        m: Number of candidates of the registry, >= 1.
        q: Target false discovery rate, in (0, 1).
        k: Number of declarations that share the bar, > 0.

    Returns:
        The bar in natural-log units, > 0 for k <= m.

    Source: CADS, eq. (5).
    """
    return float(np.log(m / (q * k)))


def e_bh(
    log_e: ArrayLike, q: float, *, m: int, indices: ArrayLike | None = None
) -> NDArray[np.int64]:
    """Registry indices that e-BH declares at level q over the complete family of m candidates.

    With E_(1) >= ... >= E_(m) and k = max{k : E_(k) >= m / (q k)}, declared are all i with
    E_i >= m / (q k). The comparison is log_e >= log(m / (q k)). Ties cannot straddle the bar, so
    the set does not depend on order.

    Args:
        log_e: Natural-log e-values, shape (m,), or (K,) with `indices`. +inf is legal, -inf means
            E = 0.
        q: Target false discovery rate, in (0, 1).
        m: Number of candidates of the registry, read or not.
        indices: Registry index of each entry of `log_e`, unique, in [0, m), shape (K,); all other
            candidates count as E = 1. None means that `log_e` lists the whole registry in order.

    Returns:
        Declared registry indices, ascending, shape (D,).

    Raises:
        ReadError: An e-value is NaN, the length is wrong, or an index is repeated or out of range.
        CertificateError: `q` or `m` is outside its range.

    Source: CADS, eq. (5).
    """
    level, size = check_level(q), check_family_size(m)
    values = _entries("log_e", log_e)
    places = family_indices(indices, len(values), size, name="log_e")
    chosen = cut_log_e(values, level, size).positions.astype(np.int64)
    return chosen if places is None else np.sort(places[chosen])


def cut_log_e(log_e: NDArray[np.float64], q: float, m: int) -> Cut:
    """Where e-BH cuts checked entries of a family of m, the others being E = 1.

    Args:
        log_e: Natural-log e-values, shape (K,), K <= m.
        q: Checked level.
        m: Checked family size.

    Returns:
        Positions in `log_e` and the log bar they reached.

    Raises:
        ReadError: An e-value is NaN.
    """
    return cuts_log_e(log_e, [q], m)[0]


def cuts_log_e(log_e: NDArray[np.float64], qs: Sequence[float], m: int) -> list[Cut]:
    """Where e-BH cuts the same entries at several levels, sorting them once.

    Args:
        log_e: Natural-log e-values, shape (K,), K <= m.
        qs: Checked levels, at least one.
        m: Checked family size.

    Returns:
        What `cut_log_e` gives at each level.

    Raises:
        ReadError: An e-value is NaN.
    """
    # No k has a lower bar than k = m, so entries below it need no sorting. That bar is above 0 for
    # every q below 1 (q * m never rounds to m), so E = 1 meets none. NaN stays in play.
    lowest = [log_bar(m, q, m) for q in qs]
    in_play = np.flatnonzero(~(log_e < min(lowest)))
    high = log_e[in_play]
    if np.isnan(high).any():
        position = int(in_play[np.argmax(np.isnan(high))])
        msg = (
            f"An e-value is not usable: received NaN at position {position} of log_e, expected a "
            f"log e-value; +inf and -inf are legal. The log of a negative number is NaN."
        )
        raise ReadError(msg)
    ordered = np.sort(high)
    cuts = []
    for q, bar in zip(qs, lowest, strict=True):
        best_first = ordered[np.searchsorted(ordered, bar) :][::-1]
        bars = np.log(m / (q * np.arange(1, len(best_first) + 1)))
        met = np.flatnonzero(best_first >= bars)
        threshold = float(bars[met[-1]]) if len(met) else math.inf
        cuts.append(Cut(in_play[high >= threshold] if len(met) else in_play[:0], threshold))
    return cuts


def bh(p: ArrayLike, q: float, *, m: int, indices: ArrayLike | None = None) -> NDArray[np.int64]:
    """Registry indices that the Benjamini-Hochberg step-up procedure declares at level q.

    Args:
        p: p-values in [0, 1]. Shape (m,), or (K,) with `indices`.
        q: Target false discovery rate, in (0, 1).
        m: Number of candidates of the registry, read or not.
        indices: Registry index of each entry of `p`, unique, in [0, m), shape (K,); all other
            candidates count as p = 1. None means that `p` lists the whole registry in order.

    Returns:
        Declared registry indices, ascending, shape (D,).

    Raises:
        ReadError: A p-value is NaN or outside [0, 1], the length is wrong, or an index is repeated
            or out of range.
        CertificateError: `q` or `m` is outside its range.

    Source: Benjamini and Hochberg (1995).
    """
    level, size = check_level(q), check_family_size(m)
    values = _entries("p", p)
    bad = ~((values >= 0.0) & (values <= 1.0))
    if bad.any():
        position = int(np.argmax(bad))
        msg = (
            f"A p-value is not usable: received {float(values[position])!r} at position "
            f"{position}, expected 0 <= p <= 1."
        )
        raise ReadError(msg)
    places = family_indices(indices, len(values), size, name="p")
    chosen = cuts_p(values, [level], size)[0].positions.astype(np.int64)
    return chosen if places is None else np.sort(places[chosen])


def cuts_p(p: NDArray[np.float64], qs: Sequence[float], m: int) -> list[Cut]:
    """Where BH cuts checked entries of a family of m at several levels, the others being p = 1.

    Args:
        p: p-values in [0, 1], shape (K,), K <= m.
        qs: Checked levels, at least one.
        m: Checked family size.

    Returns:
        Positions in `p` and the bar they reached, one a level.
    """
    highest = [q * m / m for q in qs]
    in_play = np.flatnonzero(p <= max(highest))
    low = p[in_play]
    ordered = np.sort(low)
    cuts = []
    for q, bar in zip(qs, highest, strict=True):
        best_first = ordered[: np.searchsorted(ordered, bar, side="right")]
        bars = q * np.arange(1, len(best_first) + 1) / m
        met = np.flatnonzero(best_first <= bars)
        threshold = float(bars[met[-1]]) if len(met) else -math.inf
        cuts.append(Cut(in_play[low <= threshold] if len(met) else in_play[:0], threshold))
    return cuts


def family_indices(
    indices: ArrayLike | None, count: int, m: int, *, name: str
) -> NDArray[np.int64] | None:
    """The checked registry index of each entry, or None when the entries are the whole registry.

    Args:
        indices: Registry index of each entry, or None.
        count: Number of entries.
        m: Checked family size.
        name: Name of the entries, for messages.

    Returns:
        Indices as int64, shape (count,), or None.

    Raises:
        ReadError: The length is wrong, or an index is not an integer, repeated or out of range.
    """
    if indices is None:
        if count != m:
            msg = (
                f"{name} does not cover the family: received {count} entries for m={m}. Selecting "
                f"among the observed candidates alone does not control the false discovery rate of "
                f"the registry. Pass `indices=` (the registry index of each entry), so that the "
                f"others count as unread, and keep m at the size of the registry."
            )
            raise ReadError(msg)
        return None
    places = np.asarray(indices)
    if places.shape != (count,) or (count and places.dtype.kind not in "iu"):
        msg = (
            f"indices do not fit {name}: received shape {places.shape} and dtype {places.dtype}, "
            f"expected {count} integers, the registry index of each entry."
        )
        raise ReadError(msg)
    places = places.astype(np.int64, copy=False)
    if count and (places.min() < 0 or places.max() >= m):
        position = int(np.argmax((places < 0) | (places >= m)))
        msg = (
            f"A registry index is out of range: received {int(places[position])} at position "
            f"{position} of indices, expected 0 <= index < {m}."
        )
        raise ReadError(msg)
    if has_repeats(places, m):
        ordered = np.sort(places)
        twice = int(ordered[1:][np.argmax(ordered[1:] == ordered[:-1])])
        msg = (
            f"A registry index is repeated: received {twice} more than once in indices, expected "
            f"each candidate once. Sum its log evidence first."
        )
        raise ReadError(msg)
    return places


def has_repeats(places: NDArray[np.int64], m: int) -> bool:
    """Whether an index in [0, m) occurs more than once.

    Args:
        places: Indices in range, shape (K,).
        m: Family size.

    Returns:
        True when at least one index is repeated.
    """
    count = len(places)
    if m > _SCATTER_SHARE * count:
        ordered = np.sort(places)
        return bool((ordered[1:] == ordered[:-1]).any())
    # Each entry writes its position at its index; one that finds another's there is repeated. The
    # table needs no clearing, and in a well-read registry this is several times faster than a
    # sort.
    written = np.empty(m, dtype=np.int64)
    positions = np.arange(count)
    written[places] = positions
    return bool((written[places] != positions).any())


def _entries(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """The values as a float64 vector, refused when they are not one-dimensional real numbers."""
    entries = np.asarray(values)
    if entries.ndim != 1 or (entries.size and entries.dtype.kind not in "fiu"):
        msg = (
            f"{name} is not a vector of numbers: received shape {entries.shape} and dtype "
            f"{entries.dtype}, expected a one-dimensional array of floats."
        )
        raise ReadError(msg)
    return entries.astype(np.float64, copy=False)

"""Exact bounds of a binomial probability, for counts of campaigns.

A zero count is never reported without one of these. Never uses a normal approximation.
"""

from __future__ import annotations

from typing import NamedTuple

from scipy import stats

from cads_env.errors import InferenceError
from cads_env.inference.estimate import check_probability


class ProportionInterval(NamedTuple):
    """A share of campaigns with its exact interval.

    Attributes:
        share: count / n; NaN when n = 0.
        low: Lower end, in [0, share].
        high: Upper end, in [share, 1].
    """

    share: float
    low: float
    high: float


def clopper_pearson(count: int, n: int, *, confidence: float = 0.95) -> ProportionInterval:
    """The exact two-sided interval of a binomial probability.

    Each tail holds (1 - confidence) / 2, so `high` is the one-sided bound at (1 + confidence) / 2.

    Args:
        count: Successes, 0 to n.
        n: Trials; for 0 the interval is [0, 1].
        confidence: Two-sided coverage, in (0, 1).

    Raises:
        InferenceError: The count is not in 0..n, or `confidence` is out of range.

    Source: Clopper and Pearson (1934).
    """
    _check(count, n, confidence)
    tail = (1 - confidence) / 2
    # From the beta law itself: scipy's binomtest finds the same ends by a root search.
    low = float(stats.beta.ppf(tail, count, n - count + 1)) if count else 0.0
    high = float(stats.beta.isf(tail, count + 1, n - count)) if count < n else 1.0
    return ProportionInterval(count / n if n else float("nan"), low, high)


def clopper_pearson_upper(count: int, n: int, *, confidence: float = 0.95) -> float:
    """One-sided exact upper bound of a binomial probability.

    The false discovery proportion's mean is at most P(any false declaration), so with `count` =
    campaigns with a false declaration this bounds the FDR.

    Args:
        count: Successes, 0 to n.
        n: Trials; for 0 the bound is 1.
        confidence: One-sided coverage, in (0, 1).

    Returns:
        The bound, in (0, 1]; for count = 0 it is 1 - (1 - confidence)**(1 / n).

    Raises:
        InferenceError: The count is not in 0..n, or `confidence` is out of range.

    Source: Clopper and Pearson (1934); CADS, zero-count bound.
    """
    _check(count, n, confidence)
    if count == n:
        return 1.0
    return float(stats.beta.ppf(confidence, count + 1, n - count))


def _check(count: int, n: int, confidence: float) -> None:
    if not 0 <= count <= n:
        msg = f"count is {count} of n = {n}; expected a count from 0 to n."
        raise InferenceError(msg)
    check_probability(confidence, "confidence")

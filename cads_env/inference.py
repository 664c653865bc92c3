"""Intervals for paired differences and for counts.

Works on plain sequences of numbers, one a campaign; knows nothing of screens or agents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from scipy import stats

DETECTABLE_FACTOR: Final = 2.80
"""z(.975) + z(.80): a difference of this many standard errors is found with 80 % power."""


class Estimate(NamedTuple):
    """A mean over campaigns with its uncertainty.

    Attributes:
        mean: Sample mean; NaN when n = 0.
        low: Lower end of the interval; NaN when n < 2.
        high: Upper end of the interval; NaN when n < 2.
        n: Number of campaigns.
        sd: Sample standard deviation (ddof = 1); NaN when n < 2.
        detectable: The true mean that n campaigns would find with 80 % power, 2.80 sd / sqrt(n).
        p_value: Two-sided p of mean = 0; for zero variance 1 if the mean is 0, else 0.
    """

    mean: float
    low: float
    high: float
    n: int
    sd: float
    detectable: float
    p_value: float

    def __str__(self) -> str:
        """`+1.25 [0.40, 2.10], n = 20, detectable 1.13`."""
        if self.n == 0:
            return "unknown (no campaign was scored)"
        if self.n < 2:
            return f"{self.mean:+.2f} [no interval], n = {self.n}"
        return (
            f"{self.mean:+.2f} [{self.low:.2f}, {self.high:.2f}], n = {self.n}, "
            f"detectable {self.detectable:.2f}"
        )


def paired_t(differences: Sequence[float], *, confidence: float = 0.95) -> Estimate:
    """The paired t interval of a mean difference.

    Args:
        differences: One a campaign; any length, finite.
        confidence: Two-sided coverage, in (0, 1).

    Returns:
        The estimate. When all differences are equal the interval is [mean, mean].

    Source: CADS, section on loop contrasts.
    """
    values = np.asarray(differences, np.float64)
    n = int(values.size)
    if n < 2:
        mean = float(values[0]) if n else math.nan
        return Estimate(mean, math.nan, math.nan, n, math.nan, math.nan, math.nan)
    mean, sd = float(values.mean()), float(values.std(ddof=1))
    error = sd / math.sqrt(n)
    if error == 0.0:
        return Estimate(mean, mean, mean, n, 0.0, 0.0, 1.0 if mean == 0 else 0.0)
    half = float(stats.t.ppf(0.5 + confidence / 2, n - 1)) * error
    p_value = float(2 * stats.t.sf(abs(mean) / error, n - 1))
    return Estimate(mean, mean - half, mean + half, n, sd, DETECTABLE_FACTOR * error, p_value)


def clopper_pearson_upper(count: int, n: int, *, confidence: float = 0.95) -> float:
    """One-sided exact upper bound of a binomial probability.

    The false discovery proportion's mean is at most P(any false declaration), so with `count` =
    campaigns with a false declaration this bounds the FDR.

    Args:
        count: Successes, 0 to n.
        n: Trials, at least 1.
        confidence: One-sided coverage, in (0, 1).

    Returns:
        The bound, in (0, 1]; for count = 0 it is 1 - (1 - confidence)**(1 / n).

    Source: Clopper and Pearson (1934); CADS, zero-count bound.
    """
    if count >= n:
        return 1.0
    return float(stats.beta.ppf(confidence, count + 1, n - count))

"""How large a difference a study finds, and how many campaigns a difference takes.

For planning and for the reading of null results. Never a test: none of these numbers says whether
a difference is there. "Campaigns" are seeds when one registry is played and registries when a
panel is; `sd` is the standard deviation of the same units.
"""

from __future__ import annotations

import math
from typing import Final

from scipy import stats

from cads_env.errors import InferenceError
from cads_env.inference.estimate import DETECTABLE_FACTOR, check_probability

LARGEST_N: Final = 10**12
"""Above as many campaigns the answer is "none": no study has them."""


def detectable_difference(sd: float, n: int) -> float:
    """The true mean difference that n campaigns find with 80 % power, 2.80 sd / sqrt(n).

    Args:
        sd: Standard deviation of the differences, at least 0.
        n: Campaigns, at least 1.

    Raises:
        InferenceError: `sd` is negative or not finite, or n < 1.

    Source: normal approximation at two-sided level .05; CADS, detectable differences.
    """
    _check_sd(sd)
    if n < 1:
        msg = f"n is {n}; expected at least 1 campaign."
        raise InferenceError(msg)
    return DETECTABLE_FACTOR * sd / math.sqrt(n)


def n_to_detect(difference: float, *, sd: float) -> int | None:
    """The campaigns at which `difference` becomes detectable with 80 % power.

    n = ceil((2.80 sd / difference)**2), the inverse of `detectable_difference`.

    Args:
        difference: True mean difference to find; its sign does not matter.
        sd: Standard deviation of the differences, at least 0.

    Returns:
        The smallest n, at least 2 (an interval needs two); None when no study is large enough:
        the difference is 0 or n would pass 10**12.

    Raises:
        InferenceError: A number is not finite, or `sd` is negative.
    """
    _check_sd(sd)
    _check_finite(difference, "difference")
    size = abs(difference)
    if size == 0.0 or DETECTABLE_FACTOR * sd > size * math.sqrt(LARGEST_N):
        return None
    n = max(2, math.ceil((DETECTABLE_FACTOR * sd / size) ** 2))
    # The square rounds: step down where one campaign fewer still does.
    while n > 2 and detectable_difference(sd, n - 1) <= size:
        n -= 1
    return n


def n_to_exclude_zero(mean: float, *, sd: float, confidence: float = 0.95) -> int | None:
    """The campaigns at which this mean and spread would give a t interval without 0.

    The smallest n with t(n - 1) sd / sqrt(n) < abs(mean). It takes the observed mean for the true
    one, so a study of that size succeeds in about half of the cases; plan with `n_to_detect`.

    Args:
        mean: Observed mean difference.
        sd: Observed standard deviation of the differences, at least 0.
        confidence: Two-sided coverage of the interval, in (0, 1).

    Returns:
        The smallest n, at least 2; None when the mean is 0 or n would pass 10**12.

    Raises:
        InferenceError: A number is not finite, `sd` is negative, or `confidence` out of range.
    """
    _check_sd(sd)
    _check_finite(mean, "mean")
    check_probability(confidence, "confidence")
    if mean == 0.0:
        return None

    def leaves_out_zero(n: int) -> bool:
        half = float(stats.t.ppf(0.5 + confidence / 2, n - 1)) * sd / math.sqrt(n)
        return half < abs(mean)

    # The interval shrinks with n, so the smallest n is found by halving.
    low, high = 1, 2
    while not leaves_out_zero(high):
        if high >= LARGEST_N:
            return None
        low, high = high, min(2 * high, LARGEST_N)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if leaves_out_zero(middle) else (middle, high)
    return high


def _check_sd(sd: float) -> None:
    _check_finite(sd, "sd")
    if sd < 0:
        msg = f"sd is {sd}; expected a standard deviation, 0 or more."
        raise InferenceError(msg)


def _check_finite(value: float, name: str) -> None:
    if not math.isfinite(value):
        msg = f"{name} is {value}; expected a finite number."
        raise InferenceError(msg)

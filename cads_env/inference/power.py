"""How large a difference a study finds, and how many campaigns a difference takes.

For planning and for the reading of null results. Never a test: none of these numbers says whether
a difference is there. "Campaigns" are seeds when one registry is played and registries when a
panel is; `sd` is the standard deviation of the same units.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy import stats

from cads_env.errors import InferenceError
from cads_env.inference.estimate import DETECTABLE_FACTOR, check_probability

LARGEST_N: Final = 10**12
"""Above as many campaigns the answer is "none": no study has them."""

POWER: Final = 0.80
"""Chance of finding a difference that the planning numbers ask for."""

_LEVEL: Final = 0.05
_EXACT_UP_TO: Final = 10_000
_Z_LEVEL: Final = float(stats.norm.isf(_LEVEL / 2))
_Z_BOTH: Final = _Z_LEVEL + float(stats.norm.ppf(POWER))


def detectable_difference(sd: float, n: int) -> float:
    """2.80 standard errors: what n campaigns find with 80 % power under the normal law.

    The reported bar, 2.80 sd / sqrt(n). With few campaigns the t test finds less than it says: see
    `t_detectable`.

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


def t_power(difference: float, *, sd: float, n: int) -> float:
    """The chance that the paired t test at two-sided level .05 finds a true mean difference.

    P(abs(T) > t(n - 1, .975)) with T of the noncentral t law on n - 1 degrees of freedom and
    noncentrality abs(difference) sqrt(n) / sd.

    Args:
        difference: True mean difference; its sign does not matter.
        sd: True standard deviation of the differences, at least 0.
        n: Campaigns, at least 2.

    Returns:
        A number in [.05, 1]; 1 without spread unless the difference is 0.

    Raises:
        InferenceError: A number is not finite, `sd` is negative, or n < 2.

    Source: Owen (1965), the power of Student's t test.
    """
    _check_sd(sd)
    _check_finite(difference, "difference")
    if n < 2:
        msg = f"n is {n}; expected at least 2 campaigns, since an interval needs two."
        raise InferenceError(msg)
    if difference == 0.0:
        return _LEVEL
    if sd == 0.0:
        return 1.0
    return _power(abs(difference) / sd * math.sqrt(n), n - 1)


def t_detectable(sd: float, n: int) -> float:
    """The true mean difference that the paired t test on n campaigns finds with 80 % power.

    The exact partner of `detectable_difference`, which takes the normal law: 5 % more at 20
    campaigns, 17 % at 8 and 52 % at 4.

    Args:
        sd: Standard deviation of the differences, at least 0.
        n: Campaigns, at least 2.

    Raises:
        InferenceError: `sd` is negative or not finite, or n < 2.

    Source: Owen (1965), the power of Student's t test, inverted.
    """
    _check_sd(sd)
    if n < 2:
        msg = f"n is {n}; expected at least 2 campaigns, since an interval needs two."
        raise InferenceError(msg)
    low, high = 0.0, 4.0
    while _power(high, n - 1) < POWER:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _power(middle, n - 1) >= POWER else (middle, high)
    return high * sd / math.sqrt(n)


def n_to_detect(difference: float, *, sd: float) -> int | None:
    """The campaigns at which the paired t test finds a true `difference` with 80 % power.

    Args:
        difference: True mean difference to find; its sign does not matter.
        sd: Standard deviation of the differences, at least 0.

    Returns:
        The smallest n, at least 2 (an interval needs two), exact up to 10,000 and by the normal
        law with its second term beyond; None when no study is large enough: the difference is 0
        or n would pass 10**12.

    Raises:
        InferenceError: A number is not finite, or `sd` is negative.

    Source: Owen (1965), the power of Student's t test; beyond 10,000, Guenther (1981),
        ((z(.975) + z(.80)) sd / difference)**2 + z(.975)**2 / 2.
    """
    _check_sd(sd)
    _check_finite(difference, "difference")
    size = abs(difference)
    if size == 0.0 or _Z_BOTH * sd > size * math.sqrt(LARGEST_N):
        return None
    by_normal = (_Z_BOTH * sd / size) ** 2
    if by_normal > _EXACT_UP_TO:
        return math.ceil(by_normal + _Z_LEVEL**2 / 2)
    # Power grows with n, so the smallest n is found by halving.
    low, high = 1, max(2, 2 * math.ceil(by_normal))
    while t_power(size, sd=sd, n=high) < POWER:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        is_enough = t_power(size, sd=sd, n=middle) >= POWER
        low, high = (low, middle) if is_enough else (middle, high)
    return high


def _power(noncentrality: float, degrees: int) -> float:
    """Two-sided power of the t test at level .05."""
    cut = float(stats.t.ppf(1 - _LEVEL / 2, degrees))
    # Far out SciPy gives NaN where it means next to nothing, or all; older ones warn on the way.
    with np.errstate(all="ignore"):
        right = float(stats.nct.sf(cut, degrees, noncentrality))
        left = float(stats.nct.cdf(-cut, degrees, noncentrality))
    if math.isnan(right):
        return 1.0
    return right + (0.0 if math.isnan(left) else left)


def n_to_exclude_zero(mean: float, *, sd: float, confidence: float = 0.95) -> int | None:
    """The campaigns at which this mean and spread would give a t interval without 0.

    The smallest n with t(n - 1) sd / sqrt(n) < abs(mean), exact by the t law. It takes the
    observed mean for the true one, so a study of that size succeeds in about half of the cases;
    plan with `n_to_detect`.

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

"""The estimate of a mean difference, and its paired t interval.

Works on plain numbers, one a campaign; knows nothing of screens or agents. The checks of what is
handed to this package's functions live here too. Never drops a value in silence.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from cads_env.errors import InferenceError

DETECTABLE_FACTOR: Final = 2.80
"""z(.975) + z(.80): a difference of this many standard errors is found with 80 % power."""

PAIRED_T: Final = "paired t"
"""Method of an interval over seeds."""

ONE_REGISTRY: Final = "paired t over the seeds of one registry"
"""Method of a clustered interval that found a single registry."""

REGISTRY_T: Final = "t over registry means"
"""Method of a clustered interval over several registries."""

FEWEST_ALIKE: Final = 5
"""Below as many units that are all equal, an interval without a width is chance as well as fact."""

# Means of equal numbers in another order differ by less than this, relative to their size.
_ROUNDING: Final = 8 * float(np.finfo(np.float64).eps)


class Estimate(NamedTuple):
    """A mean over campaigns with its uncertainty.

    Attributes:
        mean: Sample mean; NaN when n = 0.
        low: Lower end of the interval; NaN when there are fewer than 2 units.
        high: Upper end of the interval; NaN when there are fewer than 2 units.
        n: Number of campaigns.
        sd: Standard deviation of the units (ddof = 1); NaN when there are fewer than 2.
        detectable: The true mean that as many units would find with 80 % power,
            2.80 sd / sqrt(units). This takes the normal law: the t interval needs 5 % more at 20
            units, 17 % at 8 and 52 % at 4.
        p_value: Two-sided p of mean = 0; for zero variance 1 if the mean is 0, else 0.
        registries: Registries that the interval takes as drawn; 1 means seeds alone, so that it
            holds for the registry or registries at hand.
        method: What made the interval.
    """

    mean: float
    low: float
    high: float
    n: int
    sd: float
    detectable: float
    p_value: float
    registries: int = 1
    method: str = PAIRED_T

    @property
    def units(self) -> int:
        """What the interval counts as independent: registries if several, else campaigns."""
        return self.registries if self.registries > 1 else self.n

    @property
    def error(self) -> float:
        """Standard error of the mean, sd / sqrt(units); NaN when there are fewer than 2 units."""
        return self.sd / math.sqrt(self.units) if self.units > 1 else math.nan

    @property
    def untold(self) -> str:
        """Why this decides nothing, where it is too few units that are all equal; else empty."""
        if not 1 < self.units < FEWEST_ALIKE or self.sd > 0:
            return ""
        return f"no spread in {self.units} {'registries' if self.registries > 1 else 'campaigns'}"

    @property
    def scope(self) -> str:
        """How far the interval reaches, as words for a report."""
        if self.registries > 1:
            return f"over {self.registries} registries"
        return "over seeds; holds for this registry"

    def __str__(self) -> str:
        """`+1.25 [0.40, 2.10], n = 20, detectable 1.13`."""
        if self.n == 0:
            return "unknown (no campaign was scored)"
        place = ""
        if self.registries > 1:
            place = f" in {self.registries} registries"
        elif self.method == ONE_REGISTRY:
            place = " in one registry"
        if self.units < 2:
            return f"{self.mean:+.2f} [no interval], n = {self.n}{place}"
        return (
            f"{self.mean:+.2f} [{self.low:.2f}, {self.high:.2f}], n = {self.n}{place}, "
            f"detectable {self.detectable:.2f}"
        )


def paired_t(differences: ArrayLike, *, confidence: float = 0.95) -> Estimate:
    """The paired t interval of a mean difference.

    Args:
        differences: One a campaign, shape (n,), any n, finite.
        confidence: Two-sided coverage, in (0, 1).

    Returns:
        The estimate. When all differences are equal the interval is [mean, mean].

    Raises:
        InferenceError: A difference is not a finite number, or `confidence` is out of range.

    Source: CADS, section on loop contrasts.
    """
    return t_estimate(finite(differences), confidence=confidence)


def t_estimate(units: NDArray[np.float64], *, confidence: float) -> Estimate:
    """The t interval of the mean of independent units, as an `Estimate` with n = units.

    Args:
        units: One number a unit (a campaign, or a registry's mean), shape (n,), finite.
        confidence: Two-sided coverage, in (0, 1).

    Returns:
        The estimate. Units that differ by rounding alone count as equal: the interval is then
        [mean, mean].

    Raises:
        InferenceError: `confidence` is out of range.
    """
    check_probability(confidence, "confidence")
    n = int(units.size)
    if n < 2:
        mean = float(units[0]) if n else math.nan
        return Estimate(mean, math.nan, math.nan, n, math.nan, math.nan, math.nan)
    if are_equal(units):
        mean = float(units[0])
        return Estimate(mean, mean, mean, n, 0.0, 0.0, 1.0 if mean == 0 else 0.0)
    mean, sd = float(units.mean()), float(units.std(ddof=1))
    error = sd / math.sqrt(n)
    half = float(stats.t.ppf(0.5 + confidence / 2, n - 1)) * error
    p_value = float(2 * stats.t.sf(abs(mean) / error, n - 1))
    return Estimate(mean, mean - half, mean + half, n, sd, DETECTABLE_FACTOR * error, p_value)


def are_equal(values: NDArray[np.float64]) -> bool:
    """Whether values, shape (n,) with n >= 1, differ by rounding at most (8 ulp of the largest)."""
    return bool(np.ptp(values) <= _ROUNDING * np.abs(values).max())


def finite(values: ArrayLike, *, name: str = "differences") -> NDArray[np.float64]:
    """Numbers as a float array, shape (n,), checked.

    Args:
        values: A sequence, array or column of numbers, shape (n,).
        name: What the message calls them.

    Returns:
        A new array of float64, shape (n,).

    Raises:
        InferenceError: The values are no list of finite numbers; the message names the first.
    """
    try:
        array = np.array(values, np.float64)
    except (TypeError, ValueError) as error:
        msg = f"{name} are not numbers ({error}); expected one finite number a campaign."
        raise InferenceError(msg) from None
    if array.ndim != 1:
        msg = f"{name} have shape {array.shape}; expected one list of numbers, one a campaign."
        raise InferenceError(msg)
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        msg = (
            f"{name}[{bad[0]}] is {array[bad[0]]}; expected a finite number. Leave out the "
            "campaigns that failed, in both arms, and report how many."
        )
        raise InferenceError(msg)
    return array


def check_probability(value: float, name: str) -> None:
    """Refuse a probability outside (0, 1).

    Raises:
        InferenceError: It is not inside; NaN is not.
    """
    if not 0.0 < value < 1.0:
        msg = f"{name} is {value}; expected a number strictly between 0 and 1, such as 0.95."
        raise InferenceError(msg)

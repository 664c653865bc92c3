"""Two one-sided tests: whether a mean difference is too small to matter.

A wide interval around 0 is not equivalence, and nothing here says so.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from scipy import stats

from cads_env.errors import InferenceError
from cads_env.inference.estimate import Estimate


class Equivalence(NamedTuple):
    """Whether a mean difference lies inside (-margin, margin).

    Attributes:
        margin: The margin, in declarations.
        p_lower: One-sided p of "mean <= -margin"; NaN when there are fewer than 2 units.
        p_upper: One-sided p of "mean >= margin"; NaN when there are fewer than 2 units.
        p_value: The larger of the two.
        low: Lower end of the interval at 1 - 2 alpha (90 % at alpha = .05).
        high: Its upper end.
        is_equivalent: p_value <= alpha, which is the same as that interval lying inside the margin.
    """

    margin: float
    p_lower: float
    p_upper: float
    p_value: float
    low: float
    high: float
    is_equivalent: bool

    @property
    def verdict(self) -> str:
        """`equivalent within 1` or `not shown equivalent within 1`."""
        words = f"equivalent within {self.margin:g}"
        return words if self.is_equivalent else f"not shown {words}"


def tost(estimate: Estimate, *, margin: float, alpha: float = 0.05) -> Equivalence:
    """The two one-sided t tests of an estimate against a margin.

    p = max(P(T <= (mean - margin) / error), P(T >= (mean + margin) / error)) with T of the t law on
    units - 1 degrees of freedom; the units are campaigns, or registries for a clustered estimate.

    Args:
        estimate: From `paired_t` or `clustered`.
        margin: Largest difference that does not matter, above 0, in the unit of the differences.
        alpha: Level of the test, in (0, .5).

    Returns:
        The test. With zero variance a one-sided p is 0 where the mean lies beyond its margin's
        end and 1 elsewhere, the end itself included. Fewer than 2 units decide nothing.

    Raises:
        InferenceError: The margin is not positive and finite, or alpha is out of range.

    Source: Schuirmann (1987); CADS, equivalence within one declaration.
    """
    check_margin(margin)
    if not 0.0 < alpha < 0.5:
        msg = f"alpha is {alpha}; expected a level strictly between 0 and 0.5, such as 0.05."
        raise InferenceError(msg)
    mean, error, degrees = estimate.mean, estimate.error, estimate.units - 1
    if degrees < 1:
        nan = math.nan
        return Equivalence(margin, nan, nan, nan, nan, nan, is_equivalent=False)
    if error == 0.0:
        p_lower, p_upper = float(mean <= -margin), float(mean >= margin)
        low = high = mean
    else:
        p_lower = float(stats.t.sf((mean + margin) / error, degrees))
        p_upper = float(stats.t.cdf((mean - margin) / error, degrees))
        half = float(stats.t.isf(alpha, degrees)) * error
        low, high = mean - half, mean + half
    p_value = max(p_lower, p_upper)
    return Equivalence(margin, p_lower, p_upper, p_value, low, high, p_value <= alpha)


def check_margin(margin: float) -> None:
    """Refuse a margin that is not a positive finite number.

    Raises:
        InferenceError: It is not.
    """
    if not (math.isfinite(margin) and margin > 0):
        msg = f"margin is {margin}; expected a positive number of declarations, such as 1."
        raise InferenceError(msg)

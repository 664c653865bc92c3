"""The bar that a figure draws for Monte Carlo error.

It describes how well a simulation was averaged. It is not a confidence interval and no result,
table or test may call it one: it is clipped, takes the normal law at any n, and near 0 and 1
covers too rarely. For inference use `paired_t`, `clustered` or `clopper_pearson`.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cads_env.errors import InferenceError
from cads_env.inference.estimate import finite

BAR_FACTOR: Final = 1.96
"""Half the length of a bar, in Monte Carlo standard errors."""


class MonteCarloBar(NamedTuple):
    """Mean of simulated shares and the ends of the bar that a figure draws.

    Attributes:
        mean: Mean share, in [0, 1].
        mc_se: Monte Carlo standard error, sd (ddof = 1) / sqrt(n); NaN when n < 2.
        bar_bottom: mean - 1.96 mc_se, not below 0; NaN when n < 2.
        bar_top: mean + 1.96 mc_se, not above 1; NaN when n < 2.
        n: Number of simulations.
    """

    mean: float
    mc_se: float
    bar_bottom: float
    bar_top: float
    n: int


def monte_carlo_bar(shares: ArrayLike) -> MonteCarloBar:
    """The mean of simulated shares (power, false discovery proportion) and its bar.

    Args:
        shares: One a simulation, shape (n,) with n >= 1, each in [0, 1].

    Raises:
        InferenceError: There is none, or one is not in [0, 1].

    Source: CADS, captions of its figures: mean +- 1.96 MC-SE, clipped to [0, 1].
    """
    values = finite(shares, name="shares")
    outside = np.flatnonzero((values < 0) | (values > 1))
    if outside.size:
        msg = f"shares[{outside[0]}] is {values[outside[0]]}; expected a share in [0, 1]."
        raise InferenceError(msg)
    n = int(values.size)
    if n == 0:
        msg = "shares is empty; expected at least one simulation."
        raise InferenceError(msg)
    mean = float(values.mean())
    if n == 1:
        return MonteCarloBar(mean, math.nan, math.nan, math.nan, 1)
    mc_se = float(values.std(ddof=1)) / math.sqrt(n)
    half = BAR_FACTOR * mc_se
    return MonteCarloBar(mean, mc_se, max(0.0, mean - half), min(1.0, mean + half), n)

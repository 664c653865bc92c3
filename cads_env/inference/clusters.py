"""Intervals over a panel, where the campaigns of one registry resemble each other.

Seeds of one registry share its hits, so they are not independent draws of the panel: the unit is
the registry. Never treats the seeds of different registries as one sample.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cads_env.errors import InferenceError
from cads_env.inference.estimate import (
    ONE_REGISTRY,
    REGISTRY_T,
    Estimate,
    finite,
    t_estimate,
)


def clustered(
    differences: ArrayLike, registries: Sequence[Hashable], *, confidence: float = 0.95
) -> Estimate:
    """The mean difference over a panel with a t interval on registry means.

    The differences of each registry are averaged; the mean, its interval and p come from these
    registry means with registries - 1 degrees of freedom. Every registry weighs the same however
    many seeds it was played with, so a registry that lost seeds keeps its voice; with unequal
    numbers of seeds the mean is therefore not the mean over campaigns.

    Why this one: coverage of a nominal 95 % interval in 96 simulated kinds of panel (4,000 panels
    each; 600 for the bootstrap), with 1, 3, 5 or unequally 1, 2 and 5 seeds a registry. "Normal":
    normal registries and seeds, the sd between registries 0, half or twice that between seeds.
    "Counts": differences of Poisson counts around exponentially distributed registry effects of
    sd 0, 1 or 2.9. Each entry is the lowest and highest over the kinds of panel in it.

        panels               sd between   t on registry   registries,        all seeds as one
                             registries   means           seeds resampled    sample (> 1 each)
        normal, 4-8          none         .948-.959       .800-.980          .947-.958
                             moderate     .946-.960       .815-.960          .845-.903
                             large        .946-.954       .802-.903          .603-.758
        normal, 32           none         .948-.954       .937-.990          .953-.959
                             moderate     .948-.952       .928-.972          .864-.906
                             large        .945-.956       .933-.953          .646-.786
        counts, 4-8          none         .940-.959       .853-.975          .945-.953
                             moderate     .932-.953       .820-.968          .846-.900
                             large        .886-.908       .755-.878          .604-.756
        counts, 32           none         .947-.953       .950-.987          .949-.951
                             moderate     .942-.955       .930-.948          .849-.903
                             large        .917-.935       .917-.935          .673-.775

    So with 4 to 8 registries whose effects are strongly skewed it covers near .89, not .95. Means
    weighted by seeds cover less where seeds are unequal (down to .84).

    Args:
        differences: One a campaign, shape (n,), finite.
        registries: Name or number of each campaign's registry, shape (n,), in the same order.
        confidence: Two-sided coverage, in (0, 1).

    Returns:
        The estimate: `n` counts campaigns and `registries` registries; `sd` is that of the
        registry means and `detectable` is 2.80 sd / sqrt(registries). Registry means that are all
        equal give [mean, mean]. With one registry the interval is the paired t over its seeds,
        `registries` is 1 and `method` says so: nothing is claimed about other registries.

    Raises:
        InferenceError: A difference is not finite, or the two lists differ in length.

    Source: summary-measures analysis of clustered data, t on cluster means.
    """
    values = finite(differences)
    groups = by_registry(values, registries)
    if len(groups) < 2:
        estimate = t_estimate(values, confidence=confidence)
        return estimate._replace(registries=len(groups), method=ONE_REGISTRY)
    means = np.array([math.fsum(group) / group.size for group in groups])
    return t_estimate(means, confidence=confidence)._replace(
        n=int(values.size), registries=len(groups), method=REGISTRY_T
    )


def by_registry(
    values: NDArray[np.float64], registries: Sequence[Hashable]
) -> list[NDArray[np.float64]]:
    """The values of each registry, in order of first appearance.

    Args:
        values: One a campaign, shape (n,).
        registries: Each campaign's registry, shape (n,).

    Returns:
        One array a registry; their lengths sum to n.

    Raises:
        InferenceError: The two lists differ in length.
    """
    if len(registries) != values.size:
        msg = (
            f"{values.size} differences came with {len(registries)} registries; "
            "expected one registry for each difference."
        )
        raise InferenceError(msg)
    positions: dict[Hashable, list[int]] = {}
    for position, registry in enumerate(registries):
        positions.setdefault(registry, []).append(position)
    return [values[rows] for rows in positions.values()]

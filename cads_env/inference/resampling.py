"""Bootstrap intervals of a mean difference: over seeds, and over registries and their seeds.

A second opinion beside `paired_t` and `clustered`, which are primary. Randomness comes in as a
generator; nothing here seeds one from the clock. Never resamples the two arms apart: it is given
differences.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import ArrayLike
from scipy import stats

from cads_env.errors import InferenceError, suggest
from cads_env.inference.clusters import by_registry
from cads_env.inference.estimate import are_equal, check_probability, finite
from cads_env.tape import derive_key

RESAMPLES: Final = 10_000
"""Resamples of a bootstrap unless told otherwise."""

# Our names, and scipy's.
_METHODS: Final[Mapping[str, Literal["percentile", "BCa"]]] = {
    "percentile": "percentile",
    "bca": "BCa",
}

# Numbers drawn at a time, so that memory does not grow with seeds times resamples.
_BLOCK: Final = 2_000_000


class BootstrapInterval(NamedTuple):
    """A mean difference with a bootstrap interval.

    Attributes:
        mean: Mean difference; over several registries, the mean of registry means.
        low: Lower end; NaN when there are fewer than 2 campaigns.
        high: Upper end; NaN when there are fewer than 2 campaigns.
        n: Number of campaigns.
        registries: Registries that were resampled; 1 means that only seeds were.
        method: What made the interval.
    """

    mean: float
    low: float
    high: float
    n: int
    registries: int
    method: str


def bootstrap_generator(**parts: str | int | bytes) -> Generator:
    """A generator keyed by what it is for, such as `study="table-1", contrast="net"`.

    The same parts give the same interval on one version of numpy; a bootstrap is not one of the
    frozen streams.
    """
    return Generator(PCG64(derive_key("bootstrap", **parts)))


def bootstrap(
    differences: ArrayLike,
    *,
    generator: Generator,
    method: Literal["percentile", "bca"] = "percentile",
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
) -> BootstrapInterval:
    """The paired bootstrap interval of a mean difference: seeds are resampled, both arms together.

    Quantiles of the resampled means use linear interpolation. BCa takes
    z0 = Phi^-1((#{t* < t} + #{t* <= t}) / (2 B)) and the jackknife's acceleration. With several
    models on the same seeds, average over models first: the unit is the seed.

    Args:
        differences: One a seed, shape (n,), finite.
        generator: Source of the resamples, e.g. `bootstrap_generator(...)`.
        method: "percentile" or "bca" (bias-corrected and accelerated).
        confidence: Two-sided coverage, in (0, 1).
        resamples: Number of resamples, at least 1.

    Returns:
        The interval. When all differences are equal it is [mean, mean].

    Raises:
        InferenceError: A difference is not finite, or an option is out of range.

    Source: Efron (1987); `scipy.stats.bootstrap` does the work.
    """
    values = finite(differences)
    if method not in _METHODS:
        msg = f"method is {method!r}. {suggest(str(method), _METHODS)}"
        raise InferenceError(msg)
    _check(confidence, resamples)
    n = int(values.size)
    name = f"{method} bootstrap over seeds"
    if n < 2 or are_equal(values):
        mean = float(values[0]) if n else math.nan
        end = mean if n > 1 else math.nan
        return BootstrapInterval(mean, end, end, n, min(n, 1), name)
    interval = stats.bootstrap(
        (values,),
        np.mean,
        vectorized=True,
        n_resamples=resamples,
        batch=max(1, _BLOCK // n),
        confidence_level=confidence,
        method=_METHODS[method],
        # Its newer name, rng, is unknown to scipy before 1.15.
        random_state=generator,  # pyright: ignore[reportCallIssue]
    ).confidence_interval
    return BootstrapInterval(
        float(values.mean()), float(interval.low), float(interval.high), n, 1, name
    )


def hierarchical_bootstrap(
    differences: ArrayLike,
    registries: Sequence[Hashable],
    *,
    generator: Generator,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
) -> BootstrapInterval:
    """The percentile interval from resampling registries, then seeds within each.

    The statistic is the mean of registry means, as in `clustered`. With few registries it is too
    short and with no variance between them too long; `clustered` gives the figures and is the
    primary interval. With one registry only its seeds are resampled.

    Args:
        differences: One a campaign, shape (n,), finite.
        registries: Each campaign's registry, shape (n,), in the same order.
        generator: Source of the resamples, e.g. `bootstrap_generator(...)`.
        confidence: Two-sided coverage, in (0, 1).
        resamples: Number of resamples, at least 1.

    Returns:
        The interval. When all differences are equal it is [mean, mean].

    Raises:
        InferenceError: A difference is not finite, or the two lists differ in length.

    Source: Davison and Hinkley (1997), section 3.8.
    """
    values = finite(differences)
    groups = by_registry(values, registries)
    if len(groups) < 2:
        return bootstrap(
            values, generator=generator, confidence=confidence, resamples=resamples
        )._replace(registries=len(groups), method="percentile bootstrap over seeds, one registry")
    _check(confidence, resamples)
    n, count = int(values.size), len(groups)
    mean = float(np.mean([group.mean() for group in groups]))
    name = "percentile bootstrap over registries, then seeds"
    if are_equal(values):
        return BootstrapInterval(mean, mean, mean, n, count, name)
    # Registry by registry and padded, so that one array look-up serves all resamples.
    sizes = np.array([group.size for group in groups])
    width = int(sizes.max())
    table = np.zeros((count, width))
    for row, group in zip(table, groups, strict=True):
        row[: group.size] = group
    means = np.empty(resamples)
    block = max(1, _BLOCK // (count * width))
    for start in range(0, resamples, block):
        shape = (min(block, resamples - start), count)
        drawn = generator.integers(0, count, shape)
        # (block, registries, width): as many seeds of each drawn registry as it has.
        seeds = generator.integers(0, sizes[drawn][..., np.newaxis], (*shape, width))
        is_kept = np.arange(width) < sizes[drawn][..., np.newaxis]
        sums = np.where(is_kept, table[drawn[..., np.newaxis], seeds], 0.0).sum(axis=2)
        means[start : start + shape[0]] = (sums / sizes[drawn]).mean(axis=1)
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return BootstrapInterval(mean, float(low), float(high), n, count, name)


def _check(confidence: float, resamples: int) -> None:
    check_probability(confidence, "confidence")
    if resamples < 1:
        msg = f"resamples is {resamples}; expected at least 1, usually {RESAMPLES}."
        raise InferenceError(msg)

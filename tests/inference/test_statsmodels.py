"""The same numbers from statsmodels, an independent implementation."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from cads_env.inference import (
    clopper_pearson,
    clopper_pearson_upper,
    holm,
    n_to_detect,
    paired_t,
    t_detectable,
    t_power,
    tost,
)

pytestmark = pytest.mark.conformance


@pytest.fixture(autouse=True)
def statsmodels() -> None:
    pytest.importorskip("statsmodels", reason="statsmodels is not installed")


def part(name: str) -> Any:
    """A module of the package, imported when a test runs, since most machines lack it."""
    return importlib.import_module(f"statsmodels.stats.{name}")


@pytest.mark.parametrize("size", [1, 3, 10, 40])
def test_adjusted_p_values_agree(size: int) -> None:
    p_values = np.random.default_rng(size).uniform(0, 0.2, size).round(2)
    expected = part("multitest").multipletests(p_values, method="holm")[1]
    assert holm(p_values) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n", [1, 7, 50, 1000])
def test_exact_binomial_intervals_agree(n: int) -> None:
    for count in {0, 1, n // 3, n - 1, n}:
        for confidence in (0.9, 0.95, 0.999):
            interval = clopper_pearson(count, n, confidence=confidence)
            low, high = part("proportion").proportion_confint(
                count, n, alpha=1 - confidence, method="beta"
            )
            assert interval[1:] == pytest.approx((low, high), rel=1e-9, abs=1e-12)
            upper = clopper_pearson_upper(count, n, confidence=(1 + confidence) / 2)
            assert upper == pytest.approx(high, rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_paired_intervals_and_equivalence_agree(seed: int) -> None:
    generator = np.random.default_rng(seed)
    arm = generator.poisson(6.0, 12 + seed).astype(float)
    twin = generator.poisson(5.5, 12 + seed).astype(float)
    weights = part("weightstats")
    described = weights.DescrStatsW(arm - twin)
    estimate = paired_t(arm - twin)
    assert (estimate.low, estimate.high) == pytest.approx(described.tconfint_mean(0.05), rel=1e-9)
    assert estimate.p_value == pytest.approx(described.ttest_mean(0.0)[1], rel=1e-9)
    p_value, lower, upper = weights.ttost_paired(arm, twin, -1.0, 1.0)
    result = tost(estimate, margin=1.0)
    assert (result.p_value, result.p_lower, result.p_upper) == pytest.approx(
        (p_value, lower[1], upper[1]), rel=1e-9
    )
    # The 90 % interval is the pair of one-sided tests at .05.
    interval = described.tconfint_mean(0.1)
    assert (result.low, result.high) == pytest.approx(interval, rel=1e-9)


@pytest.mark.parametrize("n", [3, 5, 12, 30, 200, 2000])
def test_power_and_planned_sizes_agree(n: int) -> None:
    power = part("power").TTestPower()
    for z in (0.5, 1.5, 2.8, 4.0):
        size = z / n**0.5
        expected = power.power(effect_size=size, nobs=n, alpha=0.05)
        assert t_power(size, sd=1.0, n=n) == pytest.approx(expected, abs=1e-9)
    size = t_detectable(1.0, n)
    assert power.power(effect_size=size, nobs=n, alpha=0.05) == pytest.approx(0.8, abs=1e-9)
    needed = n_to_detect(size * (1 - 1e-6), sd=1.0)
    assert needed == n + 1
    assert n_to_detect(size * (1 + 1e-6), sd=1.0) == n

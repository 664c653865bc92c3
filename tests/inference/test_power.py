"""Planning numbers and the bar of a figure."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from scipy.integrate import trapezoid

from cads_env.errors import InferenceError
from cads_env.inference import (
    detectable_difference,
    monte_carlo_bar,
    n_to_detect,
    n_to_exclude_zero,
    paired_t,
    t_detectable,
    t_power,
)


def test_the_detectable_difference_is_that_of_the_estimate() -> None:
    estimate = paired_t([1, 4, 2, 8, 5, 7])
    assert detectable_difference(estimate.sd, 6) == pytest.approx(estimate.detectable, rel=1e-12)


@given(st.floats(0.2, 20), st.floats(0.2, 20))
def test_one_campaign_fewer_would_not_detect_the_difference(difference: float, sd: float) -> None:
    n = n_to_detect(difference, sd=sd)
    assert n is not None
    assert n == n_to_detect(-difference, sd=sd)
    if n <= 10_000:
        assert t_power(difference, sd=sd, n=n) >= 0.8
        assert n == 2 or t_power(difference, sd=sd, n=n - 1) < 0.8


@pytest.mark.parametrize(
    ("size", "n"), [(0.2, 199), (0.5, 34), (0.8, 15), (1.0, 10), (1.5, 6), (2.0, 5), (20.0, 2)]
)
def test_planned_sizes_are_those_of_the_textbooks(size: float, n: int) -> None:
    # Cohen's d of a paired t test, two-sided .05, power .80, as in tables of G*Power.
    assert n_to_detect(size, sd=1.0) == n


def test_two_campaigns_have_the_power_of_a_cauchy_ratio() -> None:
    # With one degree of freedom T = (Z + c) / abs(Z'), whose law is an integral over Z'.
    size, cut = 9.0, math.tan(0.475 * math.pi)
    z = np.linspace(0, 9, 90_001)
    density = 2 * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    beyond = special.ndtr(size * math.sqrt(2) - cut * z) + special.ndtr(
        -size * math.sqrt(2) - cut * z
    )
    expected = trapezoid(density * beyond, z)
    assert t_power(size, sd=1.0, n=2) == pytest.approx(expected, abs=1e-6)


def test_a_large_study_follows_from_the_normal_law_without_a_jump() -> None:
    for size in (0.02805, 0.0279):
        n = n_to_detect(size, sd=1.0)
        assert n is not None
        assert t_power(size, sd=1.0, n=n + 1) >= 0.8
        assert t_power(size, sd=1.0, n=n - 2) < 0.8


@pytest.mark.parametrize(("n", "more"), [(4, 1.52), (8, 1.17), (20, 1.05), (30, 1.035)])
def test_few_campaigns_find_less_than_2_80_standard_errors(n: int, more: float) -> None:
    ratio = t_detectable(1.7, n) / detectable_difference(1.7, n)
    assert ratio == pytest.approx(more, abs=0.006)
    assert t_power(t_detectable(1.7, n), sd=1.7, n=n) == pytest.approx(0.8, abs=1e-9)


def test_power_needs_two_campaigns_and_is_the_level_at_no_difference() -> None:
    assert t_power(0.0, sd=1.0, n=5) == 0.05
    assert t_power(1e-9, sd=1.0, n=5) == pytest.approx(0.05)
    assert t_power(0.1, sd=0.0, n=2) == 1.0
    assert t_detectable(0.0, 2) == 0.0
    for call in (lambda: t_power(1.0, sd=1.0, n=1), lambda: t_detectable(1.0, 1)):
        with pytest.raises(InferenceError, match="n is 1; expected at least 2"):
            call()


@given(st.floats(0.05, 20), st.floats(0.05, 20))
def test_zero_leaves_the_interval_at_the_number_found(mean: float, sd: float) -> None:
    n = n_to_exclude_zero(mean, sd=sd)
    assert n is not None
    if n > 3000:
        return
    # Differences with exactly this mean and sd.
    for count, is_outside in ((n, True), (n - 1, False)):
        if count < 2:
            continue
        pattern = np.arange(count) - (count - 1) / 2
        values = mean + sd * pattern / pattern.std(ddof=1)
        interval = paired_t(values)
        if abs(interval.low) > 1e-9 * mean:
            assert (interval.low > 0) == is_outside


def test_what_no_study_reaches_has_no_number() -> None:
    assert n_to_detect(0.0, sd=1.0) is None
    assert n_to_detect(1e-9, sd=1.0) is None
    assert n_to_exclude_zero(0.0, sd=1.0) is None
    assert n_to_exclude_zero(1e-9, sd=1.0) is None


def test_without_spread_two_campaigns_are_enough() -> None:
    assert n_to_detect(0.5, sd=0.0) == 2
    assert n_to_exclude_zero(-0.5, sd=0.0) == 2


def test_unusable_numbers_are_refused() -> None:
    with pytest.raises(InferenceError, match="sd is -1"):
        n_to_detect(1.0, sd=-1.0)
    with pytest.raises(InferenceError, match="sd is nan"):
        n_to_exclude_zero(1.0, sd=math.nan)
    with pytest.raises(InferenceError, match="difference is inf"):
        n_to_detect(math.inf, sd=1.0)
    with pytest.raises(InferenceError, match="mean is nan"):
        n_to_exclude_zero(math.nan, sd=1.0)
    with pytest.raises(InferenceError, match="n is 0"):
        detectable_difference(1.0, 0)


def test_the_bar_is_1_96_standard_errors_clipped_to_shares() -> None:
    shares = [0.2, 0.4, 0.9, 0.5]
    bar = monte_carlo_bar(shares)
    error = np.std(shares, ddof=1) / 2
    assert bar.mc_se == pytest.approx(error)
    assert bar.bar_bottom == pytest.approx(0.5 - 1.96 * error)
    assert bar.bar_top == pytest.approx(0.5 + 1.96 * error)
    assert monte_carlo_bar([0.0, 0.0, 0.0, 1.0])[2:] == (0.0, pytest.approx(0.74), 4)
    assert monte_carlo_bar([1.0, 1.0, 1.0, 0.0]).bar_top == 1.0


def test_one_simulation_has_no_bar() -> None:
    bar = monte_carlo_bar([0.3])
    assert bar.mean == 0.3
    assert math.isnan(bar.mc_se)
    assert math.isnan(bar.bar_top)


@pytest.mark.parametrize(
    ("shares", "message"), [([], "shares is empty"), ([0.5, 1.2], r"shares\[1\] is 1.2")]
)
def test_what_is_no_share_is_refused(shares: list[float], message: str) -> None:
    with pytest.raises(InferenceError, match=message):
        monte_carlo_bar(shares)

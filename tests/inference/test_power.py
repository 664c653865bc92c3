"""Planning numbers and the bar of a figure."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cads_env.errors import InferenceError
from cads_env.inference import (
    detectable_difference,
    monte_carlo_bar,
    n_to_detect,
    n_to_exclude_zero,
    paired_t,
)


def test_the_detectable_difference_is_that_of_the_estimate() -> None:
    estimate = paired_t([1, 4, 2, 8, 5, 7])
    assert detectable_difference(estimate.sd, 6) == pytest.approx(estimate.detectable, rel=1e-12)


@given(st.floats(0.01, 100), st.floats(0.01, 100))
def test_one_campaign_fewer_would_not_detect_the_difference(difference: float, sd: float) -> None:
    n = n_to_detect(difference, sd=sd)
    assert n is not None
    assert detectable_difference(sd, n) <= difference * (1 + 1e-12)
    assert n == 2 or detectable_difference(sd, n - 1) > difference
    assert n == n_to_detect(-difference, sd=sd)


def test_rounding_costs_no_campaign() -> None:
    for n in range(2, 400):
        assert n_to_detect(detectable_difference(1.7, n), sd=1.7) == n


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

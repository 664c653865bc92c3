"""Paired intervals beside frozen vectors and scipy, and the cases with no interval."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cads_env.errors import InferenceError
from cads_env.inference import DETECTABLE_FACTOR, clustered, paired_t
from tests.inference.vectors import VECTORS


def test_the_paired_interval_is_that_of_the_vector() -> None:
    vector = VECTORS["paired_t"]
    estimate = paired_t([a - b for a, b in zip(vector["full"], vector["control"], strict=True)])
    assert (estimate.n, estimate.mean) == (vector["n"], vector["mean"])
    assert estimate.sd == pytest.approx(vector["sd_ddof1"], rel=1e-10)
    assert [estimate.low, estimate.high] == pytest.approx(vector["ci95"], rel=1e-10)
    assert estimate.p_value == pytest.approx(vector["p_two_sided"], rel=1e-10)


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=30), st.floats(0.5, 0.999))
def test_the_paired_interval_agrees_with_scipy(differences: list[int], confidence: float) -> None:
    estimate = paired_t(differences, confidence=confidence)
    if len(set(differences)) == 1:
        assert estimate.low == estimate.high == estimate.mean
        return
    test = stats.ttest_1samp(differences, 0.0)
    interval = test.confidence_interval(confidence)
    assert estimate.p_value == pytest.approx(test.pvalue, rel=1e-9, abs=1e-300)
    # Older scipy inverts its t distribution to nine digits only.
    assert [estimate.low, estimate.high] == pytest.approx([*interval], rel=1e-7, abs=1e-7)


@pytest.mark.parametrize(("value", "p_value"), [(0, 1.0), (3, 0.0), (-2, 0.0)])
def test_equal_differences_give_an_interval_of_no_length(value: int, p_value: float) -> None:
    estimate = paired_t([value] * 5)
    assert estimate == (value, value, value, 5, 0.0, 0.0, p_value, 1, "paired t")


def test_one_campaign_has_a_mean_and_no_interval() -> None:
    estimate = paired_t([4])
    assert (estimate.mean, estimate.n) == (4.0, 1)
    assert all(math.isnan(x) for x in (*estimate[1:3], *estimate[4:7]))
    assert str(estimate) == "+4.00 [no interval], n = 1"


def test_no_campaign_has_not_even_a_mean() -> None:
    estimate = paired_t([])
    assert estimate.n == 0
    assert all(math.isnan(x) for x in (*estimate[:3], *estimate[4:7]))


def test_the_detectable_difference_is_2_80_standard_errors() -> None:
    differences = [1.0, 2.0, 4.0, 9.0]
    estimate = paired_t(differences)
    expected = 2.80 * np.std(differences, ddof=1) / 2
    assert estimate.detectable == pytest.approx(expected, rel=1e-12)
    factor = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    assert pytest.approx(factor, abs=0.005) == DETECTABLE_FACTOR


def test_an_estimate_prints_its_uncertainty() -> None:
    assert str(paired_t([1, 2, 3, 4])) == "+2.50 [0.45, 4.55], n = 4, detectable 1.81"
    assert str(paired_t([-1, -1])) == "-1.00 [-1.00, -1.00], n = 2, detectable 0.00"


def test_equal_differences_stay_equal_where_their_mean_rounds() -> None:
    # numpy's mean of these is not 0.1, and their standard deviation is not 0.
    estimate = paired_t([0.1] * 3)
    assert (estimate.low, estimate.high, estimate.sd, estimate.p_value) == (0.1, 0.1, 0.0, 0.0)


def test_an_estimate_over_registries_prints_both_numbers() -> None:
    differences, registries = [1, 3, 4, 6, 9, 13], ["a", "a", "b", "b", "c", "c"]
    text = str(clustered(differences, registries))
    assert text == "+6.00 [-5.38, 17.38], n = 6 in 3 registries, detectable 7.41"
    assert str(clustered(differences, ["a"] * 6)).endswith("n = 6 in one registry, detectable 5.01")
    assert str(clustered([2.0], ["a"])) == "+2.00 [no interval], n = 1 in one registry"


def test_the_scope_says_what_was_drawn() -> None:
    assert paired_t([1, 2]).scope == "over seeds; holds for this registry"
    assert clustered([1, 2, 3], "abb").scope == "over 2 registries"


@pytest.mark.parametrize(
    ("differences", "message"),
    [
        ([1.0, math.nan], r"differences\[1\] is nan; expected a finite number"),
        ([math.inf], r"differences\[0\] is inf"),
        (["two"], r"differences are not numbers"),
        ([[1, 2], [3]], r"differences are not numbers"),
        ([[1, 2], [3, 4]], r"shape \(2, 2\); expected one list"),
        (3.0, r"shape \(\); expected one list"),
    ],
)
def test_what_is_no_list_of_finite_numbers_is_refused(differences: Any, message: str) -> None:
    with pytest.raises(InferenceError, match=message):
        paired_t(differences)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95, math.nan])
def test_a_confidence_outside_its_range_is_refused(confidence: float) -> None:
    with pytest.raises(InferenceError, match=r"confidence is .*strictly between 0 and 1"):
        paired_t([1, 2], confidence=confidence)

"""Paired intervals and exact bounds beside frozen vectors, and the cases with no interval."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cads_env.inference import DETECTABLE_FACTOR, clopper_pearson_upper, paired_t

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parent / "vectors" / "statistics.json").read_text(encoding="utf-8")
)


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
    assert estimate == (value, value, value, 5, 0.0, 0.0, p_value)


def test_one_campaign_has_a_mean_and_no_interval() -> None:
    estimate = paired_t([4])
    assert (estimate.mean, estimate.n) == (4.0, 1)
    assert all(math.isnan(x) for x in (*estimate[1:3], *estimate[4:]))
    assert str(estimate) == "+4.00 [no interval], n = 1"


def test_no_campaign_has_not_even_a_mean() -> None:
    estimate = paired_t([])
    assert estimate.n == 0
    assert all(math.isnan(x) for x in (*estimate[:3], *estimate[4:]))


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


@pytest.mark.parametrize("vector", VECTORS["clopper_pearson_upper_95_one_sided"])
def test_the_exact_bound_is_that_of_the_vector(vector: dict[str, float]) -> None:
    bound = clopper_pearson_upper(int(vector["x"]), int(vector["n"]))
    assert bound == pytest.approx(vector["upper"], rel=1e-10)


@pytest.mark.parametrize("n", [1, 20, 50, 200, 1000])
def test_a_zero_count_has_a_closed_form(n: int) -> None:
    assert clopper_pearson_upper(0, n) == pytest.approx(1 - 0.05 ** (1 / n), rel=1e-10)


@given(st.integers(1, 60), st.data())
def test_the_exact_bound_is_the_largest_rate_that_the_count_does_not_refute(
    n: int, data: st.DataObject
) -> None:
    count = data.draw(st.integers(0, n))
    bound = clopper_pearson_upper(count, n)
    assert count / n <= bound <= 1.0
    if count < n:
        assert stats.binom.cdf(count, n, bound) == pytest.approx(0.05, rel=1e-6)


def test_the_exact_bound_of_no_trials_is_one() -> None:
    assert clopper_pearson_upper(0, 0) == 1.0

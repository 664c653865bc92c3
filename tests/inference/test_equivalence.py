"""Two one-sided tests beside the frozen vectors, and what they say without variance."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cads_env.errors import InferenceError
from cads_env.inference import Estimate, clustered, paired_t, tost
from tests.inference.vectors import VECTORS


@pytest.mark.parametrize("vector", VECTORS["tost"])
def test_the_two_tests_are_those_of_the_vector(vector: dict[str, float]) -> None:
    n, sd = int(vector["n"]), vector["se"] * math.sqrt(vector["n"])
    estimate = Estimate(vector["mean"], math.nan, math.nan, n, sd, math.nan, math.nan)
    result = tost(estimate, margin=vector["margin"])
    assert result.p_lower == pytest.approx(vector["p_lower"], rel=1e-9)
    assert result.p_upper == pytest.approx(vector["p_upper"], rel=1e-9)
    assert result.p_value == pytest.approx(vector["p_tost"], rel=1e-9)
    assert not result.is_equivalent


@given(st.lists(st.integers(-4, 4), min_size=2, max_size=40), st.floats(0.1, 3.0))
def test_equivalence_is_the_90_percent_interval_inside_the_margin(
    differences: list[int], margin: float
) -> None:
    result = tost(paired_t(differences), margin=margin)
    assert result.is_equivalent == (-margin < result.low and result.high < margin)
    interval = paired_t(differences, confidence=0.9)
    assert (result.low, result.high) == pytest.approx((interval.low, interval.high), abs=1e-9)


def test_registries_are_the_units_of_a_clustered_estimate() -> None:
    means = [0.5, -0.5, 0.25]
    estimate = clustered([0.0, 1.0, -0.5, 0.25], [0, 0, 1, 2])
    result = tost(estimate, margin=1.0)
    expected = stats.ttest_1samp(means, 1.0, alternative="less").pvalue
    assert result.p_upper == pytest.approx(expected, rel=1e-9)
    assert result.p_value == result.p_upper


@pytest.mark.parametrize(
    ("value", "p_value", "words"),
    [
        (0, 0.0, "equivalent within 1"),
        (1, 1.0, "not shown equivalent within 1"),
        (-3, 1.0, "not shown equivalent within 1"),
    ],
)
def test_without_variance_the_margin_itself_decides(value: int, p_value: float, words: str) -> None:
    result = tost(paired_t([value] * 4), margin=1.0)
    assert (result.p_value, result.verdict) == (p_value, words)
    assert (result.low, result.high) == (value, value)


def test_one_campaign_shows_no_equivalence() -> None:
    result = tost(paired_t([0]), margin=1.0)
    assert math.isnan(result.p_value)
    assert not result.is_equivalent


def test_a_fractional_margin_is_printed_as_given() -> None:
    assert tost(paired_t([0, 0]), margin=0.5).verdict == "equivalent within 0.5"


@pytest.mark.parametrize("margin", [0.0, -1.0, math.nan, math.inf])
def test_a_margin_that_is_not_positive_is_refused(margin: float) -> None:
    with pytest.raises(InferenceError, match=r"margin is .*expected a positive number"):
        tost(paired_t([1, 2]), margin=margin)


def test_a_level_of_one_half_is_refused() -> None:
    with pytest.raises(InferenceError, match=r"alpha is 0.5; expected .* between 0 and 0.5"):
        tost(paired_t([1, 2]), margin=1.0, alpha=0.5)

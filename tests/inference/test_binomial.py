"""Exact binomial bounds beside frozen vectors and scipy."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cads_env.errors import InferenceError
from cads_env.inference import clopper_pearson, clopper_pearson_upper
from tests.inference.vectors import VECTORS


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
    interval = clopper_pearson(0, 0)
    assert (interval.low, interval.high) == (0.0, 1.0)
    assert math.isnan(interval.share)


@pytest.mark.parametrize("vector", VECTORS["distribution_free_all_zero"])
def test_the_bound_of_all_zero_counts_is_that_of_the_vector(vector: dict[str, float]) -> None:
    bound = clopper_pearson_upper(0, int(vector["n"]))
    assert bound == pytest.approx(vector["bound"], rel=1e-10)


@given(st.integers(1, 60), st.floats(0.5, 0.999), st.data())
def test_the_two_sided_interval_agrees_with_scipys(
    n: int, confidence: float, data: st.DataObject
) -> None:
    count = data.draw(st.integers(0, n))
    interval = clopper_pearson(count, n, confidence=confidence)
    other = stats.binomtest(count, n).proportion_ci(confidence, method="exact")
    assert interval[1:] == pytest.approx([other.low, other.high], rel=1e-6, abs=1e-9)
    assert interval.low <= interval.share <= interval.high


def test_the_two_sided_interval_ends_at_two_one_sided_bounds() -> None:
    interval = clopper_pearson(3, 40, confidence=0.9)
    assert interval.high == pytest.approx(clopper_pearson_upper(3, 40, confidence=0.95))
    assert interval.low == pytest.approx(1 - clopper_pearson_upper(37, 40, confidence=0.95))


@pytest.mark.parametrize(("count", "n"), [(-1, 5), (6, 5), (0, -1)])
def test_an_impossible_count_is_refused(count: int, n: int) -> None:
    for bound in (clopper_pearson, clopper_pearson_upper):
        with pytest.raises(InferenceError, match=f"count is {count} of n = {n}"):
            bound(count, n)

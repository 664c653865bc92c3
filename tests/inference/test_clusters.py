"""Intervals over a panel: weights, degenerate panels and the single registry."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cads_env.errors import InferenceError
from cads_env.inference import clustered, paired_t


def test_the_interval_is_the_t_interval_of_the_registry_means() -> None:
    differences, registries = [1, 2, 3, 5, 7, 0], ["a", "a", "a", "b", "b", "c"]
    estimate = clustered(differences, registries)
    test = stats.ttest_1samp([2.0, 6.0, 0.0], 0.0)
    interval = test.confidence_interval(0.95)
    assert [estimate.low, estimate.high] == pytest.approx([*interval], rel=1e-9)
    assert estimate.p_value == pytest.approx(test.pvalue, rel=1e-9)
    assert (estimate.n, estimate.registries, estimate.units) == (6, 3, 3)
    assert estimate.sd == pytest.approx(np.std([2, 6, 0], ddof=1))
    assert estimate.detectable == pytest.approx(2.80 * estimate.sd / math.sqrt(3))
    assert estimate.error == pytest.approx(estimate.sd / math.sqrt(3))
    assert estimate.method == "t over registry means"


def test_a_registry_weighs_the_same_with_few_seeds_as_with_many() -> None:
    assert clustered([10] * 8 + [0], [0] * 8 + [1]).mean == 5.0


def test_one_seed_a_registry_is_the_paired_interval() -> None:
    differences = [3.0, -1.0, 4.0, 1.0]
    estimate = clustered(differences, range(4))
    assert estimate[:7] == paired_t(differences)[:7]


def test_a_copy_of_every_seed_adds_no_evidence() -> None:
    differences, registries = [1.0, 4.0, 2.0, 8.0], [0, 1, 2, 3]
    once = clustered(differences, registries)
    thrice = clustered(differences * 3, registries * 3)
    assert (thrice.low, thrice.high) == pytest.approx((once.low, once.high))
    assert (once.n, thrice.n) == (4, 12)
    assert paired_t(differences * 3).high < once.high


@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 4)), min_size=2, max_size=25),
    st.randoms(use_true_random=False),
)
def test_the_order_of_campaigns_and_the_names_of_registries_do_not_matter(
    rows: list[tuple[int, int]], random: object
) -> None:
    before = clustered([d for d, _ in rows], [r for _, r in rows])
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    after = clustered([d for d, _ in shuffled], [f"name-{r}" for _, r in shuffled])
    assert after[:7] == pytest.approx(before[:7], rel=1e-9, abs=1e-9, nan_ok=True)
    assert after[7:] == before[7:]


@pytest.mark.parametrize(("value", "p_value"), [(0, 1.0), (2, 0.0)])
def test_equal_registry_means_give_an_interval_of_no_length(value: int, p_value: float) -> None:
    estimate = clustered([value - 1, value + 1, value, value + 3, value - 3], [0, 0, 1, 2, 2])
    assert estimate == (value, value, value, 5, 0.0, 0.0, p_value, 3, "t over registry means")


def test_registry_means_that_differ_by_rounding_are_equal() -> None:
    estimate = clustered([0.1, 0.2, 0.3, 0.3, 0.2, 0.1, 0.2], [0, 0, 0, 1, 1, 1, 2])
    assert (estimate.sd, estimate.p_value) == (0.0, 0.0)
    assert estimate.low == estimate.high == estimate.mean


def test_one_registry_gives_the_interval_over_its_seeds_and_says_so() -> None:
    differences = [1.0, 2.0, 4.0]
    estimate = clustered(differences, ["only"] * 3)
    assert estimate[:7] == paired_t(differences)[:7]
    assert estimate.registries == 1
    assert estimate.method == "paired t over the seeds of one registry"
    assert estimate.scope == "over seeds; holds for this registry"


def test_no_campaign_has_no_registry_either() -> None:
    estimate = clustered([], [])
    assert (estimate.n, estimate.registries) == (0, 0)
    assert math.isnan(estimate.mean)
    assert str(estimate) == "unknown (no campaign was scored)"


def test_lists_of_unequal_length_are_refused() -> None:
    with pytest.raises(InferenceError, match="3 differences came with 2 registries"):
        clustered([1, 2, 3], ["a", "b"])

"""Bootstrap intervals beside enumerated and frozen resamples."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.random import PCG64, Generator

from cads_env.errors import InferenceError
from cads_env.inference import (
    bootstrap,
    bootstrap_generator,
    clustered,
    hierarchical_bootstrap,
)
from tests.inference.vectors import VECTORS


class Enumerated(Generator):
    """Gives every index vector of 5 seeds once instead of a random sample of them."""

    def integers(self, *args: Any, **kwargs: Any) -> Any:
        return np.array(list(itertools.product(range(5), repeat=5)))


def test_percentile_and_bca_are_those_of_the_full_enumeration() -> None:
    vector = VECTORS["bootstrap_exhaustive"]
    expected = {"percentile": vector["percentile_ci95"], "bca": vector["bca"]["ci95"]}
    for method in ("percentile", "bca"):
        interval = bootstrap(
            vector["diffs"], generator=Enumerated(PCG64(0)), method=method, resamples=5**5
        )
        assert interval.mean == vector["estimate"]
        assert [interval.low, interval.high] == pytest.approx(expected[method], rel=1e-12)


def test_the_percentile_interval_is_that_of_the_frozen_resamples() -> None:
    vector = VECTORS["bootstrap_pcg64"]
    interval = bootstrap(vector["diffs"], generator=np.random.default_rng(20260717))
    assert [interval.low, interval.high] == pytest.approx(vector["percentile_ci95"], abs=1e-9)
    assert interval.method == "percentile bootstrap over seeds"


def test_a_key_fixes_the_interval() -> None:
    differences = np.arange(9.0) ** 2
    intervals = [
        bootstrap(differences, generator=bootstrap_generator(contrast=name), resamples=500)
        for name in ("net", "net", "true")
    ]
    assert intervals[0] == intervals[1] != intervals[2]


def test_bca_moves_towards_the_long_tail() -> None:
    differences = [0, 0, 0, 0, 1, 0, 0, 2, 0, 12]
    plain, corrected = (
        bootstrap(differences, generator=bootstrap_generator(case="tail"), method=method)
        for method in ("percentile", "bca")
    )
    assert corrected.low > plain.low
    assert corrected.high > plain.high


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_equal_differences_give_no_length_and_one_campaign_no_interval(method: Any) -> None:
    generator = bootstrap_generator(case="equal")
    equal = bootstrap([2, 2, 2], generator=generator, method=method)
    assert (equal.mean, equal.low, equal.high, equal.n) == (2.0, 2.0, 2.0, 3)
    one = bootstrap([2], generator=generator, method=method)
    assert one.mean == 2.0
    assert math.isnan(one.low)
    assert bootstrap([], generator=generator, method=method).registries == 0


def test_registries_and_then_their_seeds_are_resampled() -> None:
    # Two registries of two seeds: 4 pairs of registries, each with known resampled means.
    differences, registries = [0.0, 4.0, 10.0, 18.0], ["a", "a", "b", "b"]
    pairs = {"a": [0, 2, 2, 4], "b": [10, 14, 14, 18]}
    means = [
        (first + second) / 2
        for one, two in itertools.product("ab", repeat=2)
        for first, second in itertools.product(pairs[one], pairs[two])
    ]
    interval = hierarchical_bootstrap(
        differences, registries, generator=bootstrap_generator(case="pairs"), confidence=0.6
    )
    expected = np.quantile(means, [0.2, 0.8], method="inverted_cdf")
    assert [interval.low, interval.high] == pytest.approx(expected, abs=1e-9)
    assert (interval.mean, interval.n, interval.registries) == (8.0, 4, 2)


def test_the_hierarchical_interval_weighs_registries_as_the_t_interval_does() -> None:
    differences, registries = [1.0, 2.0, 3.0, 5.0, 7.0, 0.0], [0, 0, 0, 1, 1, 2]
    interval = hierarchical_bootstrap(
        differences, registries, generator=bootstrap_generator(case="weights")
    )
    assert interval.mean == pytest.approx(clustered(differences, registries).mean)
    assert interval.low < interval.mean < interval.high
    # No resampled mean can pass the largest registry mean's seeds.
    assert 0.0 <= interval.low
    assert interval.high <= 7.0


def test_a_drawn_registry_weighs_the_same_with_few_seeds_as_with_many() -> None:
    # The resampled mean is 0, 5 or 10 with chances 1/4, 1/2 and 1/4, and nothing between.
    interval = hierarchical_bootstrap(
        [0, 0, 0, 10], "aaab", generator=bootstrap_generator(case="unequal"), confidence=0.4
    )
    assert (interval.low, interval.high, interval.mean) == (5.0, 5.0, 5.0)


def test_blocks_of_resamples_cover_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cads_env.inference.resampling._BLOCK", 7)
    differences, registries = [1.0, 1.0, 3.0, 3.0], [0, 0, 1, 1]
    interval = hierarchical_bootstrap(
        differences, registries, generator=bootstrap_generator(case="block"), resamples=500
    )
    assert (interval.low, interval.high) == (1.0, 3.0)


def test_the_hierarchical_interval_of_one_registry_is_over_its_seeds() -> None:
    differences = [1.0, 2.0, 4.0, 8.0]
    ours = hierarchical_bootstrap(
        differences, ["a"] * 4, generator=bootstrap_generator(case="one"), resamples=300
    )
    seeds = bootstrap(differences, generator=bootstrap_generator(case="one"), resamples=300)
    assert ours[:5] == seeds[:5]
    assert ours.registries == 1
    assert "one registry" in ours.method


def test_equal_differences_over_registries_give_no_length() -> None:
    interval = hierarchical_bootstrap([3, 3, 3], "abb", generator=bootstrap_generator(case="equal"))
    assert (interval.low, interval.high, interval.registries) == (3.0, 3.0, 2)


def test_unusable_options_are_refused() -> None:
    generator = bootstrap_generator(case="options")
    with pytest.raises(InferenceError, match="method is 'BCA'"):
        bootstrap([1, 2], generator=generator, method="BCA")  # type: ignore[arg-type]
    with pytest.raises(InferenceError, match="resamples is 0"):
        bootstrap([1, 2], generator=generator, resamples=0)
    with pytest.raises(InferenceError, match="confidence is 1"):
        hierarchical_bootstrap([1, 2], "ab", generator=generator, confidence=1.0)
    with pytest.raises(InferenceError, match="2 differences came with 1 registries"):
        hierarchical_bootstrap([1, 2], "a", generator=generator)

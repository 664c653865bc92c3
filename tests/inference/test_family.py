"""Contrasts of arms over shared campaigns, Holm's rule and the words of a verdict."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from cads_env.errors import InferenceError
from cads_env.inference import clustered, compare_family, contrast, holm, paired_t, tost
from tests.inference.vectors import VECTORS

P_VALUES = st.lists(st.floats(0, 1), max_size=8)


@pytest.mark.parametrize("vector", VECTORS["holm"])
def test_adjusted_p_values_are_those_of_the_vector(vector: dict[str, list[float]]) -> None:
    assert holm(vector["p"]) == pytest.approx(vector["adjusted"], rel=1e-12)


@given(P_VALUES)
def test_adjusting_keeps_the_order_and_never_lowers_a_p_value(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert (adjusted >= p_values).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(p_values, kind="stable")]) >= 0).all()
    assert (adjusted <= np.minimum(np.array(p_values) * len(p_values), 1)).all()


@given(P_VALUES, st.floats(0, 1))
def test_a_larger_family_never_helps(p_values: list[float], extra: float) -> None:
    assert (holm([*p_values, extra])[:-1] >= holm(p_values)).all()


@pytest.mark.parametrize("p", [-0.1, 1.1, math.nan])
def test_what_is_no_p_value_is_refused(p: float) -> None:
    with pytest.raises(InferenceError, match=r"p_values\[1\] is"):
        holm([0.5, p])


def test_a_contrast_is_the_interval_of_the_differences() -> None:
    a, b, registries = [5, 3, 8, 4], [2, 3, 4, 1], ["x", "x", "y", "z"]
    assert contrast(a, b) == paired_t([3, 0, 4, 3])
    assert contrast(a, b, registries) == clustered([3, 0, 4, 3], registries)
    assert contrast(a, b, confidence=0.9).high < contrast(a, b).high


def test_arms_with_other_campaigns_are_refused() -> None:
    with pytest.raises(InferenceError, match="the arms have 2 and 3 campaigns"):
        contrast([1, 2], [1, 2, 3])


FAMILY: dict[str, ArrayLike] = {
    "ahead": [4, 5, 6, 5, 4, 6, 5, 5],
    "behind": [-4, -5, -6, -5, -4, -6, -5, -5],
    "level": [0, 0, 1, 0, 0, -1, 0, 0],
    "wide": [-9, 9, 4, -3, 6, -6, 2, 0],
    "single": [3],
}


def test_each_contrast_gets_its_verdict() -> None:
    rows = {row.name: row for row in compare_family(FAMILY)}
    assert list(rows) == list(FAMILY)
    assert {name: row.verdict for name, row in rows.items()} == {
        "ahead": "better",
        "behind": "worse",
        "level": "equivalent within 1",
        "wide": "not decided",
        "single": "not decided",
    }
    for name, row in rows.items():
        expected = paired_t(FAMILY[name])
        assert row.estimate[:7] == pytest.approx(expected[:7], nan_ok=True)
        assert row.equivalence.p_value == pytest.approx(
            tost(expected, margin=1.0).p_value, rel=1e-9, nan_ok=True
        )


def test_a_contrast_without_a_p_value_still_counts_in_the_family() -> None:
    rows = {row.name: row for row in compare_family(FAMILY)}
    alone = paired_t(FAMILY["ahead"]).p_value
    # It and its mirror image have the smallest p of the five, so each is multiplied by 5 (or 4,
    # raised again to the first).
    assert rows["ahead"].holm == pytest.approx(5 * alone, rel=1e-9)
    assert math.isnan(rows["single"].holm)
    smaller = {name: values for name, values in FAMILY.items() if name != "single"}
    assert compare_family(smaller)[0].holm == pytest.approx(4 * alone, rel=1e-9)


def test_a_difference_found_alone_may_be_lost_in_a_family() -> None:
    close = [3, 4, -1, 2, 1, 0, 2, 1]
    assert paired_t(close).p_value < 0.05
    noise = {f"noise-{i}": [-9, 9, 4, -3, 6, -6, 2, 0] for i in range(4)}
    assert compare_family({"close": close})[0].verdict == "better"
    assert compare_family({"close": close, **noise})[0].verdict == "not decided"


def test_registries_may_be_shared_or_given_by_contrast() -> None:
    registries = [0, 0, 1, 1, 2, 2, 3, 3]
    differences = {"ahead": FAMILY["ahead"], "level": FAMILY["level"]}
    shared = compare_family(differences, registries)
    assert [row.estimate.registries for row in shared] == [4, 4]
    assert shared == compare_family(differences, {name: registries for name in differences})
    with pytest.raises(InferenceError, match="contrast 'level': it has no registries"):
        compare_family(differences, {"ahead": registries})


def test_the_confidence_sets_the_level_of_both_tests() -> None:
    close = {"close": [3, 4, -1, 2, 1, 0, 2, 1]}
    assert compare_family(close, confidence=0.99)[0].verdict == "not decided"
    (row,) = compare_family({"level": [0, 1, 0, -1, 1, -1, 0, 1]}, confidence=0.999)
    assert row.verdict == "not decided"


def test_a_margin_is_named_in_the_verdict() -> None:
    (row,) = compare_family({"level": FAMILY["level"]}, margin=0.5)
    assert row.verdict == "equivalent within 0.5"


def test_an_empty_family_has_no_rows() -> None:
    assert compare_family({}) == ()


def test_a_bad_number_is_refused_with_the_name_of_its_contrast() -> None:
    with pytest.raises(InferenceError, match=r"contrast 'broken': differences\[1\] is nan"):
        compare_family({"fine": [1, 2], "broken": [1, math.nan]})
    with pytest.raises(InferenceError, match="margin is 0"):
        compare_family({"fine": [1, 2]}, margin=0.0)
    with pytest.raises(InferenceError, match=r"confidence is 0.4; expected .* between 0.5 and 1"):
        compare_family({"fine": [1, 2]}, confidence=0.4)


def test_few_differences_that_are_all_equal_tell_nothing() -> None:
    few, enough = compare_family({"few": [0] * 4, "enough": [0] * 5})
    assert few.verdict == "cannot tell: no spread in 4 campaigns"
    assert math.isnan(few.holm)
    assert enough.verdict == "equivalent within 1"
    (shifted,) = compare_family({"shifted": [3.0] * 4}, [0, 0, 1, 1])
    assert shifted.verdict == "cannot tell: no spread in 2 registries"
    (alone,) = compare_family({"alone": [3.0]})
    assert alone.verdict == "not decided"

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cads_env.certificate import bh, e_bh, log_evidence, naive_bh, solve_cap
from cads_env.certificate.ebh import cut_log_e, cuts_log_e, cuts_p, has_repeats, log_bar
from cads_env.errors import CertificateError, ReadError

levels = st.sampled_from([0.05, 0.1, 0.125, 0.2, 0.5])
# A coarse grid makes ties common; the bounds straddle every bar of small families.
log_values = st.lists(st.integers(-4, 24).map(lambda step: step / 4), min_size=1, max_size=30)


def logs(values: list[Any]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        result: NDArray[np.float64] = np.log(np.array([float(value) for value in values]))
    return result


def by_definition(log_e: list[float], q: float, m: int) -> list[int]:
    """The definition of e-BH, one k at a time."""
    padded = log_e + [0.0] * (m - len(log_e))
    for k in range(m, 0, -1):
        bar = float(np.log(m / (q * k)))
        chosen = [i for i, value in enumerate(padded) if value >= bar]
        if len(chosen) >= k:
            return chosen
    return []


def test_declarations_agree_with_the_vectors(vectors: dict[str, Any]) -> None:
    received = {
        row["name"]: e_bh(logs(row["E"]), row["q"], m=row["m"]).tolist() for row in vectors["ebh"]
    }
    assert len(received) == 10
    assert received == {row["name"]: row["rejected"] for row in vectors["ebh"]}


def test_log_evidence_beyond_double_range_agrees_with_the_vectors(vectors: dict[str, Any]) -> None:
    for row in vectors["ebh_log_domain"]:
        log_e = np.array([float(value) for value in row["log_E"]])
        assert e_bh(log_e, row["q"], m=len(log_e)).tolist() == row["rejected"]


def test_observed_subset_is_no_family(vectors: dict[str, Any]) -> None:
    trap = vectors["ebh_observed_subset_trap"]
    log_e, q, m = logs(trap["E_observed"]), trap["q"], trap["m_full"]
    with pytest.raises(ReadError, match=r"received 4 entries for m=10\. .* `indices=`"):
        e_bh(log_e, q, m=m)
    assert e_bh(log_e, q, m=m, indices=[7, 2, 0, 1]).tolist() == trap["rejected_full_family"]
    assert e_bh(log_e, q, m=4).tolist() == trap["rejected_if_m_were_observed_only"]


def test_bh_agrees_with_the_vectors(vectors: dict[str, Any]) -> None:
    for row in vectors["bh"]:
        assert bh(row["p"], row["q"], m=len(row["p"])).tolist() == row["rejected"]


@given(log_values, levels, st.integers(0, 20))
def test_e_bh_follows_its_definition(log_e: list[float], q: float, unread: int) -> None:
    m = len(log_e) + unread
    listed = e_bh(log_e, q, m=m, indices=np.arange(len(log_e)))
    whole = e_bh(log_e + [0.0] * unread, q, m=m)
    assert listed.tolist() == whole.tolist() == by_definition(log_e, q, m)


@given(log_values, levels, st.randoms(use_true_random=False))
def test_declarations_move_with_the_candidates(log_e: list[float], q: float, random: Any) -> None:
    order = list(range(len(log_e)))
    random.shuffle(order)
    original = set(e_bh(log_e, q, m=len(log_e)).tolist())
    shuffled = e_bh([log_e[i] for i in order], q, m=len(log_e)).tolist()
    assert {order[i] for i in shuffled} == original
    relabelled = e_bh([log_e[i] for i in order], q, m=len(log_e), indices=order)
    assert relabelled.tolist() == sorted(original)


@given(log_values, levels)
def test_an_unread_candidate_more_never_adds_a_declaration(log_e: list[float], q: float) -> None:
    m = len(log_e)
    before = set(e_bh(log_e, q, m=m).tolist())
    after = set(e_bh([*log_e, 0.0], q, m=m + 1).tolist())
    assert after <= before


@given(log_values, levels, st.data())
def test_more_evidence_never_removes_a_declaration(
    log_e: list[float], q: float, data: st.DataObject
) -> None:
    gains = data.draw(
        st.lists(st.floats(0.0, 9.0), min_size=len(log_e), max_size=len(log_e)), label="gains"
    )
    before = set(e_bh(log_e, q, m=len(log_e)).tolist())
    more = [value + gain for value, gain in zip(log_e, gains, strict=True)]
    assert before <= set(e_bh(more, q, m=len(log_e)).tolist())


@given(log_values, levels)
def test_threshold_is_the_bar_of_the_number_declared(log_e: list[float], q: float) -> None:
    m = len(log_e)
    cut = cut_log_e(np.array(log_e), q, m)
    count = len(cut.positions)
    assert cut.threshold == (log_bar(m, q, count) if count else math.inf)


@given(log_values, st.lists(levels, min_size=1, max_size=4))
def test_cuts_at_several_levels_are_those_at_each_alone(
    log_e: list[float], qs: list[float]
) -> None:
    values, m = np.array(log_e), len(log_e) + 3
    for q, cut in zip(qs, cuts_log_e(values, qs, m), strict=True):
        assert cut.positions.tolist() == e_bh(values, q, m=m, indices=np.arange(m - 3)).tolist()
        assert cut.threshold == cut_log_e(values, q, m).threshold
    p = np.exp(-np.abs(values))
    for q, cut in zip(qs, cuts_p(p, qs, m), strict=True):
        assert cut.positions.tolist() == bh(p, q, m=m, indices=np.arange(m - 3)).tolist()


def test_unread_candidates_are_never_declared_at_a_level_next_to_one() -> None:
    q = math.nextafter(1.0, 0.0)
    for m in range(1, 300):
        assert e_bh(np.zeros(m), q, m=m).tolist() == []
        assert bh(np.ones(m), q, m=m).tolist() == []
    assert log_bar(10**15, q, 10**15) > 0.0


def test_false_discoveries_of_null_registries_stay_below_the_level() -> None:
    """Every read is null, a tenth of them is replaced by the worst point, the best get re-read."""
    rng = np.random.default_rng(20)
    m, epsilon, q, runs = 40, 0.1, 0.2, 400
    cap = solve_cap(epsilon)
    false, naive = 0, 0
    for _ in range(runs):
        slots = np.repeat(np.arange(m), 3)
        values = null_reads(rng, len(slots), epsilon)
        for _ in range(6):
            best = np.argsort(-log_evidence(values, slots, size=m, cap=cap))[:10]
            slots = np.concatenate([slots, best])
            values = np.concatenate([values, null_reads(rng, len(best), epsilon)])
        false += len(e_bh(log_evidence(values, slots, size=m, cap=cap), q, m=m)) > 0
        count = np.bincount(slots, minlength=m)
        mean = np.bincount(slots, weights=values, minlength=m) / count
        naive += len(naive_bh(mean, count, q, m=m)) > 0
    assert false / runs <= q
    assert naive / runs > q


def null_reads(rng: np.random.Generator, count: int, epsilon: float) -> NDArray[np.float64]:
    return np.where(rng.random(count) < epsilon, 3.0, 0.5 * rng.standard_normal(count))


@pytest.mark.parametrize("select", [e_bh, bh])
def test_nan_is_named_wherever_it_stands(select: Any) -> None:
    for position in range(4):
        values = [0.5, 0.2, 0.1, 0.9]
        values[position] = math.nan
        with pytest.raises(ReadError, match=rf"received (nan|NaN) at position {position}"):
            select(values, 0.1, m=4)


def test_negative_e_values_are_refused_through_their_logs() -> None:
    with np.errstate(invalid="ignore"):
        log_e = np.log(np.array([-1.0, 3.0]))
    with pytest.raises(ReadError, match="log of a negative number"):
        e_bh(log_e, 0.1, m=2)


@pytest.mark.parametrize("p", [-0.1, 1.1, math.inf])
def test_p_values_outside_their_range_are_refused(p: float) -> None:
    with pytest.raises(ReadError, match=rf"received {p!r} at position 1"):
        bh([0.5, p], 0.1, m=2)


@pytest.mark.parametrize("select", [e_bh, bh])
def test_families_of_another_size_are_refused(select: Any) -> None:
    for count in (3, 5):
        with pytest.raises(ReadError, match=f"received {count} entries for m=4"):
            select(np.full(count, 0.5), 0.1, m=4)


@pytest.mark.parametrize("select", [e_bh, bh])
@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([0, 1, 10], "received 10 at position 2"),
        ([-1, 1, 2], "received -1 at position 0"),
        ([4, 2, 4], "received 4 more than once"),
        ([0, 1], "expected 3 integers"),
        ([0.0, 1.0, 2.0], "expected 3 integers"),
        ([[0, 1, 2]], "expected 3 integers"),
        ([True, False, True], "expected 3 integers"),
    ],
)
def test_unusable_indices_are_named(select: Any, indices: Any, message: str) -> None:
    with pytest.raises(ReadError, match=message):
        select([0.5, 0.5, 0.5], 0.1, m=10, indices=indices)


@given(st.lists(st.integers(0, 49), max_size=30), st.sampled_from([50, 10_000]))
def test_repeats_are_found_in_small_and_large_families(places: list[int], m: int) -> None:
    assert has_repeats(np.array(places, dtype=np.int64), m) == (len(set(places)) < len(places))


@pytest.mark.parametrize("select", [e_bh, bh])
@pytest.mark.parametrize("q", [0.0, 1.0, -0.1, 2, math.nan, math.inf, True, "0.1", None])
def test_unusable_levels_are_refused(select: Any, q: Any) -> None:
    with pytest.raises(CertificateError, match=r"^q is"):
        select([0.5], q, m=1)


@pytest.mark.parametrize("select", [e_bh, bh])
@pytest.mark.parametrize("m", [0, -1, 1.0, True, np.True_, None, "1", 10**400])
def test_unusable_family_sizes_are_refused(select: Any, m: Any) -> None:
    with pytest.raises(CertificateError, match="m is not a family size"):
        select([0.5], 0.1, m=m)


@pytest.mark.parametrize("select", [e_bh, bh])
def test_values_that_are_no_vector_of_numbers_are_refused(select: Any) -> None:
    for values in ([[0.5]], 0.5, ["a"], [1j]):
        with pytest.raises(ReadError, match="not a vector of numbers"):
            select(values, 0.1, m=1)


@pytest.mark.parametrize("select", [e_bh, bh])
def test_a_registry_without_reads_has_no_declarations(select: Any) -> None:
    declared = select([], 0.1, m=np.int64(7), indices=[])
    assert declared.tolist() == []
    assert declared.dtype == np.int64

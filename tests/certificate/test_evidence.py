from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cads_env.certificate import log_evidence, log_increment, solve_cap
from cads_env.certificate.cap import working_model
from cads_env.certificate.evidence import capped_increments, sums_by_slot
from cads_env.certificate.zhou_liu import ZhouLiuIncrement, zhou_liu_log_evidence
from cads_env.errors import CertificateError, ReadError, RecordError

reads = st.floats(-1e300, 1e300)


def close(expected: float | str) -> Any:
    """Equality at the tolerance of the vector file, where infinity is a string."""
    return pytest.approx(float(expected), rel=1e-10, abs=1e-10)


def test_increments_agree_with_the_vectors(vectors: dict[str, Any]) -> None:
    wrong = []
    for row in vectors["increment"]:
        model = row["theta"], row["s"]
        received = float(log_increment(row["y"], solve_cap(row["eps"], *model), *model))
        if not (received == close(row["log_e"]) and math.exp(received) == close(row["e"])):
            wrong.append((row, received))
    assert len(vectors["increment"]) == 35
    assert wrong == []


def test_accumulated_evidence_agrees_with_the_vectors(vectors: dict[str, Any]) -> None:
    for row in vectors["accumulate"]:
        slots = np.zeros(len(row["reads"]), dtype=np.int64)
        cap = solve_cap(row["eps"], row["theta"], row["s"])
        received = log_evidence(
            row["reads"], slots, size=1, cap=cap, theta=row["theta"], s=row["s"]
        )
        assert received[0] == close(row["log_E"])


@given(reads)
def test_an_increment_is_two_roundings_from_exact(y: float) -> None:
    slope, shift = Fraction(0.7 / 0.25), Fraction(0.7 * 0.7 / 0.5)
    product = float(slope * Fraction(y))
    assert float(log_increment(y, math.inf)) == float(Fraction(product) - shift)


@given(reads, st.sampled_from([0.05, 0.1, 0.5, 1.0]))
def test_a_capped_increment_is_the_smaller_of_ratio_and_cap(y: float, epsilon: float) -> None:
    cap = solve_cap(epsilon)
    assert log_increment(y, cap) == min(float(log_increment(y, math.inf)), math.log(cap))


@given(reads, reads)
def test_increments_do_not_decrease_with_the_read(a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert log_increment(low, 3.2) <= log_increment(high, 3.2)


def test_increments_keep_the_shape_of_the_reads() -> None:
    for shape in [(), (0,), (3,), (2, 3), (2, 0, 4)]:
        assert log_increment(np.zeros(shape), 3.2).shape == shape


def test_integers_and_single_precision_are_read_as_numbers() -> None:
    expected = log_increment([1.0, 2.0], math.inf)
    assert np.array_equal(log_increment([1, 2], math.inf), expected)
    assert np.array_equal(log_increment(np.array([1, 2], dtype=np.float32), math.inf), expected)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1.1e300, -1.1e300])
def test_the_first_unusable_read_is_named(bad: float) -> None:
    with pytest.raises(ReadError, match=rf"received {bad!r} at position 2,".replace("+", r"\+")):
        log_increment([0.0, 1.0, bad, math.nan], 3.2)
    with pytest.raises(ReadError, match=r"at position \(1, 0\),"):
        log_increment([[0.0, 1.0], [bad, 1.0]], 3.2)


def test_an_unusable_read_of_a_large_batch_is_named_by_its_campaign() -> None:
    values = np.zeros((5, 40_000))
    values[3, 17] = math.inf
    with pytest.raises(ReadError, match=r"received inf at position \(3, 17\),"):
        log_evidence(values, np.zeros(values.shape, dtype=np.int32), size=1, cap=3.2)


@pytest.mark.parametrize("bad", [["a"], [None], [1j], [True]])
def test_reads_that_are_no_numbers_are_refused(bad: Any) -> None:
    with pytest.raises(ReadError, match="not real numbers"):
        log_increment(bad, 3.2)


@pytest.mark.parametrize("cap", [0.0, -1.0, math.nan, True, None, "3"])
def test_unusable_caps_are_refused(cap: Any) -> None:
    with pytest.raises(CertificateError, match="cap is"):
        log_increment([0.0], cap)


def test_overflowing_increments_are_infinite_and_silent() -> None:
    received = log_increment([1e300, -1e300], math.inf, theta=1.0, s=1e-6)
    assert received.tolist() == [math.inf, -math.inf]


def test_evidence_is_added_in_time_order() -> None:
    values = np.array([0.1, -0.7, 0.3, 0.2, -0.5, 0.6])
    slots = np.array([1, 0, 1, 1, 0, 1])
    increments = log_increment(values, 3.2).tolist()
    first = increments[1] + increments[4]
    second = ((increments[0] + increments[2]) + increments[3]) + increments[5]
    assert log_evidence(values, slots, size=3, cap=3.2).tolist() == [first, second, 0.0]


def test_rows_of_a_batch_equal_single_campaigns_across_blocks() -> None:
    rng = np.random.default_rng(5)
    values = rng.standard_normal((7, 30_000))
    slots = rng.integers(0, 50, values.shape).astype(np.int32)
    together = log_evidence(values, slots, size=50, cap=3.2)
    alone = [log_evidence(v, w, size=50, cap=3.2) for v, w in zip(values, slots, strict=True)]
    assert together.tobytes() == np.stack(alone).tobytes()


def test_sums_taken_together_are_those_taken_alone() -> None:
    rng = np.random.default_rng(5)
    values, slots = rng.standard_normal((3, 40_000)), rng.integers(0, 50, (3, 40_000))
    model = working_model(0.7, 0.5)
    terms = [capped_increments(model, math.log(2.5)), ZhouLiuIncrement(epsilon=0.1)]
    together = sums_by_slot(values, slots, [*terms, capped_increments(model, math.inf)], size=50)
    for row in range(3):
        y, at = values[row], slots[row]
        alone = [
            log_evidence(y, at, size=50, cap=2.5),
            zhou_liu_log_evidence(y, at, size=50, epsilon=0.1),
            log_evidence(y, at, size=50, cap=math.inf),
        ]
        assert [sums[row].tobytes() for sums in together] == [one.tobytes() for one in alone]


def test_campaigns_without_reads_have_evidence_one() -> None:
    empty = np.empty((2, 0))
    assert np.array_equal(
        log_evidence(empty, empty.astype(np.int64), size=3, cap=3.2), np.zeros((2, 3))
    )
    assert log_evidence([], np.empty(0, dtype=np.int64), size=0, cap=3.2).shape == (0,)


@pytest.mark.parametrize("slot", [-1, 2, 10**6])
def test_slots_outside_the_candidates_are_refused(slot: int) -> None:
    with pytest.raises(RecordError, match=f"received {slot}, expected 0 <= slot < 2"):
        log_evidence([0.0, 0.0], [0, slot], size=2, cap=3.2)


def test_slots_that_do_not_match_the_reads_are_refused() -> None:
    with pytest.raises(RecordError, match="do not match"):
        log_evidence([0.0, 0.0], [0], size=1, cap=3.2)
    with pytest.raises(RecordError, match="not integers"):
        log_evidence([0.0], [0.0], size=1, cap=3.2)

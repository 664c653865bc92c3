from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cads_env.certificate import Certificate, bh, naive_bh, uncapped_e_bh
from cads_env.certificate.comparators import naive_p_values
from cads_env.errors import CertificateError, ReadError
from tests.certificate.test_spec import Reads


def test_p_values_agree_with_the_vectors(vectors: dict[str, Any]) -> None:
    for row in vectors["naive_p"]:
        mean, count = [float(np.mean(row["reads"]))], [len(row["reads"])]
        assert naive_p_values(mean, count, s=row["s"])[0] == pytest.approx(row["p"], rel=1e-10)


def test_unread_candidates_have_p_one_whatever_their_mean() -> None:
    assert naive_p_values([math.nan, 5.0, math.inf, 0.0], [0, 0, 0, 1]).tolist() == [1, 1, 1, 0.5]


def test_naive_rule_is_bh_on_its_p_values() -> None:
    mean, count = np.array([0.9, 0.1, 0.5, 1.2, 0.0]), np.array([4, 3, 9, 2, 0])
    p = naive_p_values(mean, count)
    for q in (0.01, 0.1, 0.5):
        assert naive_bh(mean, count, q, m=5).tolist() == bh(p, q, m=5).tolist()


def test_candidates_that_are_not_listed_count_as_unread() -> None:
    mean, count = [0.9, 0.55, -0.2], [4, 4, 4]
    listed = naive_bh(mean, count, 0.1, m=40, indices=[31, 7, 0])
    whole_mean, whole_count = np.zeros(40), np.zeros(40, dtype=np.int64)
    whole_mean[[31, 7, 0]], whole_count[[31, 7, 0]] = mean, count
    assert listed.tolist() == naive_bh(whole_mean, whole_count, 0.1, m=40).tolist() == [31]
    assert naive_bh(mean, count, 0.1, m=3).tolist() == [0, 1]


def test_observed_candidates_alone_are_refused_as_the_family() -> None:
    with pytest.raises(ReadError, match="`indices=`"):
        naive_bh([0.9], [4], 0.1, m=40)


def test_huge_means_give_p_zero_without_a_warning() -> None:
    assert naive_p_values([1e308, -1e308], [9, 9], s=0.1).tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("mean", "count", "message"),
    [
        ([0.5, math.nan], [1, 1], "received nan at position 1"),
        ([math.inf, 0.5], [1, 1], "received inf at position 0"),
        ([0.5, 0.5], [1, -2], "received -2 at position 1"),
        ([0.5, 0.5], [1.0, 2.0], "wrong types"),
        ([0.5, 0.5], [True, True], "wrong types"),
        (["a", "b"], [1, 1], "wrong types"),
        ([0.5, 0.5], [1], "do not match"),
        ([[0.5]], [[1]], "do not match"),
    ],
)
def test_unusable_entries_are_named(mean: Any, count: Any, message: str) -> None:
    with pytest.raises(ReadError, match=message):
        naive_p_values(mean, count)


@pytest.mark.parametrize("s", [0.0, -1.0, math.nan, math.inf, None])
def test_unusable_deviations_are_refused(s: Any) -> None:
    with pytest.raises(CertificateError, match=r"^s is"):
        naive_p_values([0.5], [1], s=s)


def test_the_uncapped_rule_is_the_certificate_at_epsilon_zero() -> None:
    rng = np.random.default_rng(8)
    slots = rng.integers(0, 30, 400)
    record = Reads(
        m=90,
        candidates=rng.permutation(90)[:30],
        slots=slots.astype(np.int32),
        values=rng.normal(np.where(slots < 8, 0.7, -0.2), 0.5),
    )
    for q in (0.01, 0.1, 0.3):
        declared = Certificate(epsilon_bar=0.0, q=q).declare(record).indices
        found = uncapped_e_bh(record.values, record.slots, q, m=90, indices=record.candidates)
        assert found.tolist() == declared.tolist()
        assert len(found)


def test_the_uncapped_rule_believes_one_corrupted_read() -> None:
    record = Reads(
        m=6000,
        candidates=np.array([4, 5, 6]),
        slots=np.array([0, 1, 2], dtype=np.int32),
        values=np.array([9.0, 0.1, 0.0]),
    )
    found = uncapped_e_bh(record.values, record.slots, 0.1, m=6000, indices=[4, 5, 6])
    assert found.tolist() == [4]
    assert not len(Certificate().declare(record))


def test_the_uncapped_rule_takes_registry_indices_as_slots_too() -> None:
    reads, slots = [9.0, 0.1, 9.0], [70, 3, 5]
    assert uncapped_e_bh(reads, slots, 0.1, m=80).tolist() == [5, 70]

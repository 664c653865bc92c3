from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cads_env.certificate import Certificate, e_bh, log_evidence, solve_cap
from cads_env.errors import CertificateError, ReadError, RecordError


@dataclasses.dataclass(frozen=True)
class Reads:
    """What the certificate asks of a record, or of a batch of them."""

    m: int
    candidates: NDArray[np.int64]
    slots: NDArray[np.int32]
    values: NDArray[np.float64]

    def campaign(self, row: int) -> Reads:
        return Reads(self.m, self.candidates[row], self.slots[row], self.values[row])


@pytest.fixture
def batch() -> Reads:
    """Six campaigns of 40 candidates among 300, ten of them hits; a tenth of reads corrupted."""
    rng = np.random.default_rng(11)
    campaigns, observed, reads = 6, 40, 1200
    candidates = np.stack([rng.permutation(300)[:observed] for _ in range(campaigns)])
    slots = rng.integers(0, observed, (campaigns, reads)).astype(np.int32)
    signal = np.where(slots < 10, 0.9, -0.4)
    shocks = np.where(rng.random(signal.shape) < 0.1, rng.uniform(2, 4, signal.shape), 0.0)
    values = signal + 0.5 * rng.standard_normal(signal.shape) + shocks
    return Reads(300, candidates, slots, values)


def test_hits_are_declared_and_nothing_else(batch: Reads) -> None:
    for row, declared in enumerate(Certificate().declare_batch(batch)):
        assert declared.indices.tolist() == sorted(batch.candidates[row, :10].tolist())


def test_a_batch_equals_its_campaigns_byte_for_byte(batch: Reads) -> None:
    certificate = Certificate()
    together = certificate.declare_batch(batch)
    evidence = certificate.log_evidence_batch(batch)
    assert len(together) == 6
    for row, declared in enumerate(together):
        alone = certificate.declare(batch.campaign(row))
        single = certificate.log_evidence(batch.campaign(row))
        assert evidence[row].tobytes() == single.tobytes()
        assert declared.indices.tobytes() == alone.indices.tobytes()
        assert declared.log_e.tobytes() == alone.log_e.tobytes()
        assert declared.threshold == alone.threshold
        assert declared.certificate == alone.certificate == certificate


def test_a_declaration_carries_the_evidence_and_bar_of_its_members(batch: Reads) -> None:
    certificate = Certificate()
    record = batch.campaign(2)
    declared = certificate.declare(record)
    evidence = dict(
        zip(record.candidates.tolist(), certificate.log_evidence(record).tolist(), strict=True)
    )
    assert declared.log_e.tolist() == [evidence[index] for index in declared.indices.tolist()]
    assert declared.threshold == certificate.log_bar(300, len(declared))
    assert declared.log_e.min() >= declared.threshold
    assert declared.indices.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        declared.indices[0] = 5


def test_levels_are_decided_from_the_same_evidence(batch: Reads) -> None:
    certificate = Certificate()
    record = batch.campaign(0)
    evidence = certificate.log_evidence(record)
    sizes = []
    for q in (1e-12, 0.05, 0.1, 0.2):
        decided = certificate.with_q(q).decide(evidence, record.candidates, record.m)
        assert decided.tolist() == Certificate(q=q).declare(record).indices.tolist()
        assert decided.tolist() == e_bh(evidence, q, m=300, indices=record.candidates).tolist()
        sizes.append(len(decided))
    assert sizes == sorted(sizes)
    assert sizes[-1] == 10


def test_registry_size_decides_not_the_number_read(batch: Reads) -> None:
    record = batch.campaign(0)
    huge = dataclasses.replace(record, m=10**18)
    assert len(Certificate().declare(record)) == 10
    empty = Certificate().declare(huge)
    assert len(empty) == 0
    assert empty.threshold == math.inf


def test_a_bound_of_zero_is_the_uncapped_likelihood_ratio(batch: Reads) -> None:
    record = batch.campaign(1)
    uncapped = Certificate(epsilon_bar=0.0)
    ratio = np.zeros(40)
    for slot, value in zip(record.slots.tolist(), record.values.tolist(), strict=True):
        ratio[slot] += 0.7 / 0.25 * value - 0.7 * 0.7 / 0.5
    assert uncapped.log_evidence(record).tolist() == ratio.tolist()
    expected = e_bh(ratio, 0.1, m=300, indices=record.candidates)
    assert uncapped.declare(record).indices.tolist() == expected.tolist()


@pytest.mark.parametrize("k", [0, -1, 301, math.nan, None, True])
def test_bars_of_impossible_numbers_of_declarations_are_refused(k: Any) -> None:
    with pytest.raises(CertificateError, match=r"^k is"):
        Certificate().log_bar(300, k)


def test_evidence_is_that_of_the_rounded_cap(batch: Reads) -> None:
    record = batch.campaign(3)
    certificate = Certificate(epsilon_bar=0.2, theta=0.9, s=0.6)
    exact = log_evidence(
        record.values, record.slots, size=40, cap=certificate.cap, theta=0.9, s=0.6
    )
    received = certificate.log_evidence(record)
    assert np.all(received <= exact)
    assert received == pytest.approx(exact, abs=1e-9)


@given(st.floats(1e-9, 1.0), st.floats(0.2, 2.0), st.floats(0.2, 2.0))
@example(1e-9, 1.0493960559242361, 0.2)
def test_log_cap_is_a_multiple_just_below_the_log_of_the_cap(
    epsilon: float, theta: float, s: float
) -> None:
    certificate = Certificate(epsilon_bar=epsilon, theta=theta, s=s)
    exact = math.log(solve_cap(epsilon, theta, s))
    assert certificate.cap == solve_cap(epsilon, theta, s)
    assert (certificate.log_cap * 2.0**40).is_integer()
    # The grid point is decided exactly, the cap and its log here are doubles.
    assert exact - 2.0**-40 - 1e-13 < certificate.log_cap <= exact


def test_log_cap_of_the_default_is_frozen() -> None:
    assert Certificate().log_cap * 2.0**40 == 1283261527139
    assert Certificate(epsilon_bar=0.0).log_cap == math.inf
    assert Certificate(epsilon_bar=1.0).log_cap == 0.0


def test_nothing_is_declared_when_every_read_may_be_corrupted(batch: Reads) -> None:
    certificate = Certificate(epsilon_bar=1.0)
    assert [len(declared) for declared in certificate.declare_batch(batch)] == [0] * 6


def test_numbers_are_stored_as_floats() -> None:
    certificate = Certificate(epsilon_bar=1, theta=np.float32(0.5), s=1, q=np.float64(0.2))  # type: ignore[arg-type]
    assert certificate.to_dict() == {"epsilon_bar": 1.0, "theta": 0.5, "s": 1.0, "q": 0.2}
    assert {type(value) for value in certificate.to_dict().values()} == {float}


def test_certificates_are_values() -> None:
    assert Certificate(q=0.2) == Certificate().with_q(0.2)
    assert hash(Certificate(q=0.2)) == hash(Certificate().with_q(0.2))
    assert Certificate() != Certificate(theta=0.8)
    assert pickle.loads(pickle.dumps(Certificate(q=0.2))) == Certificate(q=0.2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Certificate().q = 0.2  # type: ignore[misc]


def test_a_declaration_survives_pickling(batch: Reads) -> None:
    declared = Certificate().declare(batch.campaign(0))
    for other in (pickle.loads(pickle.dumps(declared)), copy.deepcopy(declared)):
        assert other.indices.tolist() == declared.indices.tolist()
        assert other.certificate == declared.certificate


@pytest.mark.parametrize("name", ["epsilon_bar", "theta", "s", "q"])
@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, True, "0.1", None])
def test_unusable_fields_are_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(CertificateError, match=rf"^{name} is"):
        Certificate(**{name: value})


def test_models_beyond_double_precision_are_refused_at_once() -> None:
    with pytest.raises(CertificateError, match="cannot be used together"):
        Certificate(theta=1e200)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_unusable_reads_are_named(batch: Reads, bad: float) -> None:
    values = batch.values.copy()
    values[4, 7] = bad
    with pytest.raises(ReadError, match=r"at position \(4, 7\)"):
        Certificate().declare_batch(dataclasses.replace(batch, values=values))


def test_repeated_candidates_are_refused(batch: Reads) -> None:
    record = batch.campaign(0)
    candidates = record.candidates.copy()
    candidates[1] = candidates[0]
    with pytest.raises(ReadError, match="more than once"):
        Certificate().declare(dataclasses.replace(record, candidates=candidates))


def test_arrays_that_do_not_fit_are_refused(batch: Reads) -> None:
    for change in (
        {"candidates": batch.candidates[:3]},
        {"slots": batch.slots[:, :-1]},
        {"candidates": batch.candidates[:, :-1]},
    ):
        with pytest.raises(RecordError):
            Certificate().declare_batch(dataclasses.replace(batch, **change))


def test_a_campaign_without_reads_declares_nothing() -> None:
    nothing = Reads(
        9, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float64)
    )
    assert len(Certificate().declare(nothing)) == 0

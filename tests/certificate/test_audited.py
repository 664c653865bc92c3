"""A certificate with an audit: caps by round from the record's own controls, e-BH at q - delta."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cads_env.certificate import AuditCap, Certificate, solve_cap
from cads_env.errors import CertificateError, ReadError, RecordError

FAR = 1e6
"""A read so high that its increment is the cap, whatever the cap."""


@dataclasses.dataclass(frozen=True)
class Audited:
    """What an audited certificate asks of a record, or of a batch of them."""

    m: int
    candidates: NDArray[np.int64]
    slots: NDArray[np.int32]
    values: NDArray[np.float64]
    round_starts: NDArray[np.int64]
    audit_values: NDArray[np.float64]
    audit_starts: NDArray[np.int64]

    def campaign(self, row: int) -> Audited:
        rows = ("candidates", "slots", "values", "audit_values")
        return dataclasses.replace(self, **{name: getattr(self, name)[row] for name in rows})


def saturated(flags: Any, audit_starts: Any, *, m: int = 50) -> Audited:
    """One candidate, read once in each round, far above every cap."""
    rounds = len(audit_starts)
    return Audited(
        m=m,
        candidates=np.array([3]),
        slots=np.zeros(rounds, np.int32),
        values=np.full(rounds, FAR),
        round_starts=np.arange(rounds + 1),
        audit_values=np.where(np.asarray(flags, bool), 3.0, 0.0),
        audit_starts=np.asarray(audit_starts),
    )


@pytest.fixture
def batch() -> Audited:
    """Six campaigns of eight rounds: 40 candidates, ten of them hits, and 80 controls each."""
    rng = np.random.default_rng(12)
    campaigns, observed, rounds, each = 6, 40, 8, 250
    shape = (campaigns, rounds * each)
    slots = rng.integers(0, observed, shape).astype(np.int32)
    signal = np.where(slots < 10, 1.5, -0.4)
    shocks = np.where(rng.random(shape) < 0.1, rng.uniform(2, 4, shape), 0.0)
    controls = 0.5 * rng.standard_normal((campaigns, 80))
    controls += np.where(rng.random(controls.shape) < 0.1, rng.uniform(2, 4, controls.shape), 0.0)
    return Audited(
        m=300,
        candidates=np.stack([rng.permutation(300)[:observed] for _ in range(campaigns)]),
        slots=slots,
        values=signal + 0.5 * rng.standard_normal(shape) + shocks,
        round_starts=np.arange(rounds + 1) * each,
        audit_values=controls,
        audit_starts=np.arange(rounds) * 10,
    )


def test_a_whole_worked_path_gives_its_bounds_caps_and_evidence(vectors: dict[str, Any]) -> None:
    path = vectors["audit_path"]
    starts = np.concatenate([[0], np.cumsum(path["batch_sizes"])[:-1]])
    record = saturated(path["flags"], starts)
    certificate = Certificate(audit={"delta": path["delta"]})  # type: ignore[arg-type]
    outcome = certificate.audit_outcome(record)
    expected = [row["eps_hat"] for row in path["rounds"]]
    assert outcome.epsilon_hat == pytest.approx(expected, abs=2e-12)
    assert outcome.final_bound == pytest.approx(path["final_eps_hat_batch_looks"], abs=2e-12)
    assert (outcome.flag_count, outcome.control_count) == (sum(path["flags"]), 50)
    caps = certificate.round_log_caps(record)
    logs = np.log([row["cap"] for row in path["rounds"]])
    assert caps == pytest.approx(logs, abs=1e-11)
    # The far reads gain exactly their rounds' caps.
    assert certificate.log_evidence(record).tolist() == [sum(caps.tolist())]
    assert certificate.log_evidence(record) == pytest.approx([logs.sum()], abs=1e-10)


def test_caps_and_bounds_are_rounded_to_the_safe_side(batch: Audited) -> None:
    certificate = Certificate(audit=AuditCap())
    caps = certificate.round_log_caps(batch)
    for row in range(6):
        bounds = certificate.audit_outcome(batch.campaign(row)).epsilon_hat
        exact = [math.log(solve_cap(bound)) for bound in bounds.tolist()]
        assert (caps[row] <= exact).all()
        assert (caps[row] > np.array(exact) - 2.0**-39).all()
        assert (np.diff(bounds) <= 0).all()
    assert (caps * 2.0**40 == np.round(caps * 2.0**40)).all()


@pytest.mark.parametrize("looks", ["batch", "per_read"])
def test_a_batch_equals_its_campaigns_byte_for_byte(batch: Audited, looks: Any) -> None:
    certificate = Certificate(audit=AuditCap(looks=looks), q=0.2)
    evidence = certificate.log_evidence_batch(batch)
    caps = certificate.round_log_caps(batch)
    for row, declared in enumerate(certificate.declare_batch(batch)):
        alone = batch.campaign(row)
        assert evidence[row].tobytes() == certificate.log_evidence(alone).tobytes()
        assert caps[row].tobytes() == certificate.round_log_caps(alone).tobytes()
        assert declared.indices.tobytes() == certificate.declare(alone).indices.tobytes()
        assert declared.indices.tolist() == sorted(batch.candidates[row, :10].tolist())


def test_evidence_is_the_sum_of_increments_capped_by_round(batch: Audited) -> None:
    record = batch.campaign(4)
    certificate = Certificate(audit=True)  # type: ignore[arg-type]
    caps = np.repeat(certificate.round_log_caps(record), 250)
    increments = np.minimum(0.7 / 0.25 * record.values - 0.7 * 0.7 / (2 * 0.25), caps)
    expected = np.zeros(40)
    for slot, value in zip(record.slots.tolist(), increments.tolist(), strict=True):
        expected[slot] += value
    assert certificate.log_evidence(record).tolist() == expected.tolist()


def test_the_declared_bound_plays_no_part_in_an_audited_judgement(batch: Audited) -> None:
    one, other = (Certificate(epsilon_bar=e, audit=AuditCap()) for e in (0.0, 0.9))
    same = (one.log_evidence_batch(batch), other.log_evidence_batch(batch))
    assert same[0].tobytes() == same[1].tobytes()


def test_no_round_is_capped_by_its_own_or_later_controls(batch: Audited) -> None:
    record = batch.campaign(0)
    certificate = Certificate(audit=AuditCap(looks="per_read"))
    caps = certificate.round_log_caps(record)
    for round in range(8):
        late = record.audit_values.copy()
        late[int(record.audit_starts[round]) :] = 9.0
        changed = certificate.round_log_caps(dataclasses.replace(record, audit_values=late))
        assert changed[: round + 1].tobytes() == caps[: round + 1].tobytes()
        assert (changed[round + 1 :] <= caps[round + 1 :]).all()


def test_a_cap_that_looks_at_its_own_rounds_controls_would_declare_what_ours_does_not() -> None:
    clean = np.zeros(400, bool)
    honest = saturated(clean, [0, 200], m=10)
    peeking = saturated(clean, [200, 400], m=10)
    certificate = Certificate(audit=AuditCap(), q=0.5)
    assert certificate.round_log_caps(honest)[0] == 0.0
    assert certificate.round_log_caps(peeking)[0] > 1.0
    assert len(certificate.declare(honest)) == 0
    assert certificate.declare(peeking).indices.tolist() == [3]


def test_while_nothing_is_known_a_low_read_counts_and_a_high_one_does_not() -> None:
    record = saturated([], [0, 0])
    low = dataclasses.replace(record, values=np.array([0.1, 0.1]))
    certificate = Certificate(audit=AuditCap())
    assert certificate.log_evidence(record).tolist() == [0.0]
    assert certificate.log_evidence(low)[0] == pytest.approx(2 * (0.28 - 0.98))


def test_declarations_are_made_at_the_level_less_delta() -> None:
    plain, audited = Certificate(q=0.1), Certificate(q=0.1, audit=AuditCap(delta=0.06))
    assert (plain.level, audited.level) == (0.1, pytest.approx(0.04))
    assert audited.log_bar(100, 5) == math.log(100 / (audited.level * 5))
    between = np.array([(plain.log_bar(100) + audited.log_bar(100)) / 2])
    assert plain.decide(between, np.array([7]), 100).tolist() == [7]
    assert audited.decide(between, np.array([7]), 100).tolist() == []
    assert audited.with_q(0.2).level == pytest.approx(0.14)
    assert audited.with_q(0.2).audit == audited.audit


@pytest.mark.parametrize(
    "audit", [AuditCap(tau=1.5, looks="per_read"), AuditCap(Delta=math.inf, alpha_lo=0.02)]
)
def test_a_certificate_with_an_audit_survives_json_and_pickling(audit: AuditCap) -> None:
    certificate = Certificate(audit=audit, q=0.2)
    text = json.dumps(certificate.to_dict(), allow_nan=False)
    assert Certificate(**json.loads(text)) == certificate
    assert pickle.loads(pickle.dumps(certificate)) == certificate
    assert hash(certificate) != hash(Certificate(q=0.2))


def test_an_audit_may_be_given_by_its_fields_or_by_a_word() -> None:
    assert Certificate(audit={"tau": 1.5}).audit == AuditCap(tau=1.5)  # type: ignore[arg-type]
    assert Certificate(audit=True).audit == AuditCap()  # type: ignore[arg-type]
    assert Certificate(audit=False) == Certificate(audit=None) == Certificate()  # type: ignore[arg-type]
    assert "audit" not in Certificate().to_dict()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"audit": 3}, "audit is 3; expected an AuditCap, a mapping of its fields, True"),
        ({"audit": {"tua": 1}}, "Unknown field 'tua' of the audit. Did you mean 'tau'"),
        ({"audit": {"tau": "x"}}, "tau is not a number: received 'x'"),
        ({"audit": {"delta": 0.1}, "q": 0.1}, "leaves no level: received delta=0.1 and q=0.1"),
        ({"audit": {"alpha_lo": 0.99}}, "cannot bound contamination"),
        ({"audit": {"Delta": 0.5}, "s": 0.05}, "cannot bound contamination"),
        ({"audit": {"looks": "always"}}, "looks is unknown: received 'always'"),
    ],
)
def test_an_unusable_audit_is_refused_with_what_was_received(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(CertificateError, match=message):
        Certificate(**fields)
    with pytest.raises(CertificateError, match="leaves no level"):
        Certificate(audit=AuditCap()).with_q(0.005)


def test_a_record_without_controls_cannot_be_judged_by_them(batch: Audited) -> None:
    certificate = Certificate(audit=AuditCap())
    nothing = dataclasses.replace(batch, audit_values=np.empty((6, 0)), audit_starts=np.empty(0))
    for record in (nothing, nothing.campaign(0)):
        with pytest.raises(RecordError, match=r"no controls.*audit_controls=200"):
            certificate.round_log_caps(record)
    with pytest.raises(RecordError, match="no controls"):
        certificate.declare_batch(nothing)
    with pytest.raises(RecordError, match="no controls"):
        certificate.declare(nothing.campaign(0))
    # Without an audit, controls change nothing.
    left = Certificate().log_evidence_batch(batch)
    assert left.tobytes() == Certificate().log_evidence_batch(nothing).tobytes()


def test_only_a_certificate_with_an_audit_tells_of_one(batch: Audited) -> None:
    for ask in (Certificate().round_log_caps, Certificate().audit_outcome):
        with pytest.raises(CertificateError, match="no audit; expected one such as"):
            ask(batch.campaign(0))


@pytest.mark.parametrize(
    "change",
    [
        {"audit_starts": np.arange(7) * 10},
        {"audit_starts": np.arange(8) * 20},
        {"audit_starts": np.arange(8)[::-1] * 10},
        {"audit_starts": np.arange(8) * 10 - 5},
        {"round_starts": np.arange(9) * 249},
        {"round_starts": np.arange(8) * 250},
    ],
)
def test_controls_that_do_not_fit_the_rounds_are_refused(
    batch: Audited, change: dict[str, Any]
) -> None:
    with pytest.raises(RecordError, match="do not fit the rounds"):
        Certificate(audit=AuditCap()).declare_batch(dataclasses.replace(batch, **change))


def test_an_unusable_control_is_named(batch: Audited) -> None:
    values = batch.audit_values.copy()
    values[2, 5] = math.nan
    with pytest.raises(ReadError, match=r"at position \(2, 5\)"):
        Certificate(audit=AuditCap()).declare_batch(dataclasses.replace(batch, audit_values=values))

from __future__ import annotations

import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pytest

from cads_env.certificate import AuditCap, audit_bound, kappa, solve_cap
from cads_env.errors import CertificateError, ReadError, RecordError

RATE = 0.12026
SPREAD = np.cumsum([0, *[len(x) for x in np.array_split(np.arange(50), 16)]])[:-1]


def some_flags(paths: int, controls: int, rate: float = RATE) -> np.ndarray[Any, np.dtype[Any]]:
    return np.random.default_rng(controls).random((paths, controls)) < rate


def test_the_worked_path_of_sixteen_rounds_is_reproduced(vectors: dict[str, Any]) -> None:
    path = vectors["audit_path"]
    flags = np.array(path["flags"], dtype=bool)
    starts = np.cumsum([0, *path["batch_sizes"]])[:-1]
    outcome = AuditCap().outcome(flags, starts, s=path["s"])
    for ours, row in zip(outcome.rounds.tolist(), path["rounds"], strict=True):
        assert ours == pytest.approx(row["eps_hat"], abs=1e-11)
        assert solve_cap(ours, path["theta"], path["s"]) == pytest.approx(row["cap"], abs=1e-10)
    assert float(outcome.final) == pytest.approx(path["final_eps_hat_batch_looks"], abs=1e-11)
    per_read = AuditCap(looks="per_read").final_bound(flags, starts, s=0.5)
    assert float(per_read) == pytest.approx(path["final_U_per_read_runmin"] / path["kappa"])


def test_final_bounds_have_the_published_means(vectors: dict[str, Any]) -> None:
    for row in vectors["audit_published_means"]["rows"]:
        # An idealised detector: its kappa is that of a class that starts where it is reached.
        idealised = {1: math.inf, 0.9: 1.640775782772, 0.7: 1.262200256354}
        smallest = 2.0 if row["alpha_R"] else idealised[row["kappa"]]
        rate = (1 - row["eps_audit"]) * row["alpha_R"] + row["eps_audit"] * row["sensitivity"]
        flags = np.random.default_rng(5).random((4000, row["A"])) < rate
        starts = np.cumsum([0, *[len(x) for x in np.array_split(flags[0], 16)]])[:-1]
        final = AuditCap(Delta=smallest, rho=row["rho"]).final_bound(flags, starts, s=0.5)
        assert float(final.mean()) == pytest.approx(row["ours_20000_seeds"], abs=2e-3)
        assert float(final.mean()) == pytest.approx(row["published"], abs=5e-3)


def test_the_correction_for_false_alarms_agrees_with_the_vectors(vectors: dict[str, Any]) -> None:
    for row in vectors["audit_alpha_corrected"]:
        audit = AuditCap(alpha_lo=row["alpha_lo"], rho=row["rho"])
        ours = float(audit.epsilon_hat(row["U"], s=0.5))
        assert ours == pytest.approx(row["eps_hat"], abs=1e-11)


def test_a_round_is_judged_by_the_controls_before_it_alone() -> None:
    flags = some_flags(1, 50)[0]
    bounds = AuditCap().bounds(flags, SPREAD, s=0.5)
    assert bounds[0] == 1.0
    for round, start in enumerate(SPREAD):
        other = flags.copy()
        other[start:] = ~other[start:]
        assert AuditCap().bounds(other, SPREAD, s=0.5)[: round + 1].tolist() == (
            bounds[: round + 1].tolist()
        )


@pytest.mark.parametrize("looks", ["batch", "per_read"])
def test_bounds_never_rise_and_equal_the_running_minimum(looks: Any) -> None:
    audit, flags = AuditCap(looks=looks, rho=0.02), some_flags(3, 50)
    outcome = audit.outcome(flags, SPREAD, s=0.5)
    assert (np.diff(outcome.rounds, axis=1) <= 0).all()
    rate = kappa(2.0)
    for row in range(3):
        ends = range(51) if looks == "per_read" else [*SPREAD.tolist(), 50]
        least, by_end = 1.0, {}
        for end in ends:
            least = min(least, audit_bound(int(flags[row, :end].sum()), end))
            by_end[end] = min(1.0, least / rate + 0.02)
        for round, start in enumerate(SPREAD.tolist()):
            assert outcome.rounds[row, round] == pytest.approx(by_end[start], abs=1e-11)
        assert outcome.final[row] == pytest.approx(by_end[50], abs=1e-11)


def test_a_campaign_has_the_same_bounds_alone_and_in_a_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flags = some_flags(40, 50)
    for audit in (AuditCap(), AuditCap(looks="per_read", alpha_lo=0.02)):
        together = audit.outcome(flags, SPREAD, s=0.5)
        for row in (0, 17, 39):
            alone = audit.outcome(flags[row], SPREAD, s=0.5)
            assert alone.rounds.tobytes() == together.rounds[row].tobytes()
            assert alone.final.shape == ()
            assert alone.final == together.final[row]
        monkeypatch.setattr("cads_env.certificate.audit._BLOCK_FLAGS", 153)
        assert audit.bounds(flags, SPREAD, s=0.5).tobytes() == together.rounds.tobytes()


def test_controls_before_the_first_round_serve_every_round() -> None:
    flags = some_flags(5, 200)
    outcome = AuditCap().outcome(flags, [200] * 16, s=0.5)
    assert (outcome.rounds == outcome.final[:, None]).all()
    assert (outcome.rounds < 1).all()


def test_no_controls_leave_every_bound_at_one() -> None:
    outcome = AuditCap().outcome(np.zeros((2, 0), dtype=bool), [0] * 4, s=0.5)
    assert (outcome.rounds == 1).all()
    assert (outcome.final == 1).all()


def test_rounding_never_lowers_a_bound() -> None:
    bounds = np.linspace(0.0, 1.0, 1001)
    for audit in (AuditCap(), AuditCap(rho=0.1), AuditCap(alpha_lo=0.02275, Delta=1.5)):
        exact = np.maximum(0, bounds - audit.alpha_lo) / (kappa(audit.Delta) - audit.alpha_lo)
        exact = np.minimum(1.0, exact + audit.rho)
        ours = audit.epsilon_hat(bounds, s=0.5)
        assert (ours >= exact).all()
        assert (ours - exact < 1e-11).all()


def test_flags_are_reads_above_tau() -> None:
    assert AuditCap(tau=1.0).flags([0.2, 1.0, np.nextafter(1.0, 2), -7.0]).tolist() == [
        False,
        False,
        True,
        False,
    ]
    with pytest.raises(ReadError, match="position 1"):
        AuditCap().flags([0.0, math.nan])


def test_the_level_pays_for_the_bound() -> None:
    assert AuditCap().level(0.1) == pytest.approx(0.09)
    with pytest.raises(CertificateError, match="leaves no level"):
        AuditCap(delta=0.1).level(0.1)


def test_a_detector_that_sees_nothing_is_refused() -> None:
    with pytest.raises(CertificateError, match="cannot bound contamination"):
        AuditCap(Delta=-5.0).kappa(0.5)
    with pytest.raises(CertificateError, match="cannot bound contamination"):
        AuditCap(Delta=1.0, alpha_lo=0.5).bounds(np.zeros(3, dtype=bool), [0], s=0.5)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"tau": math.inf}, "tau"),
        ({"tau": "1"}, "tau"),
        ({"Delta": math.nan}, "Delta"),
        ({"Delta": -math.inf}, "Delta"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"rho": -0.1}, "rho"),
        ({"alpha_lo": 1.5}, "alpha_lo"),
        ({"looks": "daily"}, "looks"),
        ({"looks": None}, "looks"),
    ],
)
def test_a_field_outside_its_range_is_refused_by_name(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(CertificateError, match=named):
        AuditCap(**fields)


def test_an_audit_is_a_value() -> None:
    audit = AuditCap(tau=1, Delta=2, looks="per_read")
    assert audit == AuditCap(tau=1.0, looks="per_read")
    assert type(audit.tau) is float
    assert pickle.loads(pickle.dumps(audit)) == audit
    with pytest.raises(dataclasses.FrozenInstanceError):
        audit.tau = 2.0  # type: ignore[misc]


@pytest.mark.parametrize("starts", [[0, 51], [3, 2], [-1, 0], [0.5], [[0]]])
def test_starts_that_do_not_fit_the_controls_are_refused(starts: Any) -> None:
    with pytest.raises(RecordError, match="starts of an audit"):
        AuditCap().bounds(np.zeros(50, dtype=bool), starts, s=0.5)


@pytest.mark.parametrize("flags", [np.zeros(5), np.zeros((1, 2, 3), dtype=bool)])
def test_flags_that_are_not_booleans_are_refused(flags: Any) -> None:
    with pytest.raises(RecordError, match="Flags are not usable"):
        AuditCap().bounds(flags, [0], s=0.5)

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cads_env.certificate import AuditCap, kappa, solve_cap
from cads_env.certificate.audit_plan import plan_audit
from cads_env.errors import CertificateError

PUBLISHED = {50: 0.336, 100: 0.271, 200: 0.225, 500: 0.187, 1000: 0.168}


@pytest.mark.parametrize("controls", PUBLISHED)
def test_mean_final_bounds_are_the_published_ones(controls: int) -> None:
    plan = plan_audit(AuditCap(), controls=controls, timings=("interleaved",))
    planned = plan.timings[0]
    assert planned.final_mean == pytest.approx(PUBLISHED[controls], abs=4e-3)
    assert planned.final_low < planned.final_mean < planned.final_high
    assert planned.covered > 0.99


def test_a_plan_says_what_an_audit_of_two_hundred_controls_buys() -> None:
    plan = plan_audit(AuditCap(), controls=200)
    interleaved, front = plan.timings
    assert (plan.kappa, plan.level) == (pytest.approx(kappa(2.0)), pytest.approx(0.09))
    assert plan.flag_rate == pytest.approx(0.12026, abs=1e-5)
    assert interleaved.epsilon_hat[0] == 1.0
    assert (np.diff(interleaved.epsilon_hat) < 0).all()
    assert np.ptp(front.epsilon_hat) == 0.0
    # Bounds from the whole audit serve every round, so evidence is worth more.
    assert front.reads[0] < interleaved.reads[0]
    assert plan.oracle.reads[0] <= front.reads[0] <= plan.blind.reads[0]
    assert plan.oracle.cap == pytest.approx(solve_cap(0.1), abs=1e-11)
    assert plan.declarations == (1, 100)


def test_reads_count_the_rounds_of_a_single_path() -> None:
    plan = plan_audit(AuditCap(tau=30.0, Delta=40.0), controls=64, epsilon=0.0)
    for planned in plan.timings:
        # Nothing is ever flagged, so every path is the same.
        logs = [np.log(solve_cap(float(e))) for e in planned.epsilon_hat]
        reached = np.cumsum(logs)
        for k, reads in zip(plan.declarations, planned.reads, strict=True):
            bar = np.log(6000 / (0.09 * k))
            if bar <= reached[-1]:
                assert reads == 1 + int(np.argmax(reached >= bar))
            else:
                last = np.log(solve_cap(planned.final_mean))
                assert reads == 16 + int(np.ceil((bar - reached[-1]) / last))


def test_corruptions_outside_the_declared_class_show_as_missing_coverage() -> None:
    plan = plan_audit(AuditCap(Delta=3.0), controls=1000, epsilon=0.3, displacement=(0.5, 1.0))
    assert all(planned.covered < 0.5 for planned in plan.timings)


def test_a_plan_is_the_same_every_time() -> None:
    first, second = (plan_audit(AuditCap(), controls=30, rounds=4) for _ in range(2))
    for a, b in zip(first.timings, second.timings, strict=True):
        assert a.cap.tobytes() == b.cap.tobytes()
        assert a.final_mean == b.final_mean


def test_a_larger_audit_is_planned_on_fewer_paths() -> None:
    assert plan_audit(AuditCap(), controls=20_000, rounds=2).paths == 1000


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"controls": 0}, "controls"),
        ({"controls": 2.5}, "controls"),
        ({"controls": 10**6}, "controls"),
        ({"rounds": 0}, "rounds"),
        ({"epsilon": 1.2}, "epsilon"),
        ({"blind": -1}, "blind"),
        ({"m": 0}, "m is"),
        ({"q": 0.005}, "leaves no level"),
        ({"declarations": (7000,)}, "k is"),
        ({"displacement": (3.0, 2.0)}, "high is below low"),
        ({"theta": 0.0}, "theta"),
    ],
)
def test_impossible_plans_are_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(CertificateError, match=named):
        plan_audit(AuditCap(), **{"controls": 20, **options})

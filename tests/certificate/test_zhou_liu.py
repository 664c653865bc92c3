from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cads_env.certificate import (
    e_bh,
    zhou_liu_burn_in,
    zhou_liu_e_bh,
    zhou_liu_log_evidence,
    zhou_liu_log_increment,
    zhou_liu_phi,
)
from cads_env.errors import CertificateError, ReadError, RecordError


def test_increments_agree_with_the_vectors(vectors: dict[str, Any]) -> None:
    for row in vectors["zhou_liu_increment"]:
        ours = zhou_liu_log_increment(
            row["y"], epsilon=row["eps"], s=math.sqrt(row["v"]), lam=row["lambda"]
        )
        assert float(ours) == pytest.approx(row["log_increment"], abs=1e-12)
    for row in vectors["zhou_liu_phi"]:
        assert float(zhou_liu_phi(row["x"])) == pytest.approx(row["phi"], abs=1e-12)


def test_burn_ins_agree_with_the_vectors(vectors: dict[str, Any]) -> None:
    for row in vectors["zhou_liu_burn_in"]:
        pulls = zhou_liu_burn_in(row["K"], row["q"], row["eps"])
        assert pulls == row["pulls_per_arm"]
        assert pulls * row["K"] == row["total"]


def test_the_default_scale_makes_the_normaliser_one_plus_two_epsilon() -> None:
    largest = float(zhou_liu_log_increment(1e300, epsilon=0.1))
    assert largest == pytest.approx(math.log(2.0) - math.log(1.2), rel=1e-14)
    given = zhou_liu_log_increment(0.3, epsilon=0.1, lam=math.sqrt(0.1) / 0.5)
    assert float(given) == float(zhou_liu_log_increment(0.3, epsilon=0.1))


@pytest.mark.parametrize("order", [2.0, 1.5])
def test_phi_is_odd_nondecreasing_and_below_its_majorant(order: float) -> None:
    x = np.linspace(-3, 3, 2001)
    phi = zhou_liu_phi(x, order=order)
    assert (phi == -zhou_liu_phi(-x, order=order)).all()
    assert (np.diff(phi) >= 0).all()
    assert (np.exp(phi) <= 1 + x + np.abs(x) ** order / order + 1e-12).all()
    assert phi[-1] == pytest.approx(math.log(order))


@pytest.mark.parametrize("order", [2.0, 1.5])
@pytest.mark.parametrize("mean", [0.0, -0.4])
def test_the_mean_increment_is_at_most_one_under_contamination(order: float, mean: float) -> None:
    for epsilon in (0.01, 0.1, 0.3):
        nodes, weights = np.polynomial.hermite_e.hermegauss(120)
        reads = mean + 0.5 * nodes
        e = np.exp(zhou_liu_log_increment(reads, epsilon=epsilon, order=order))
        clean = float(e @ weights / weights.sum())
        worst = float(np.exp(zhou_liu_log_increment(1e9, epsilon=epsilon, order=order)))
        assert clean <= 1.0
        assert (1 - epsilon) * clean + epsilon * worst <= 1.0


def test_evidence_is_the_sum_of_increments_and_batch_rows_equal_single_ones() -> None:
    rng = np.random.default_rng(3)
    reads, slots = rng.normal(size=(4, 60)), rng.integers(0, 7, (4, 60))
    batch = zhou_liu_log_evidence(reads, slots, size=9, epsilon=0.1)
    for row in range(4):
        alone = zhou_liu_log_evidence(reads[row], slots[row], size=9, epsilon=0.1)
        assert alone.tobytes() == batch[row].tobytes()
    logs = zhou_liu_log_increment(reads[0], epsilon=0.1)
    for slot in range(9):
        assert batch[0, slot] == pytest.approx(math.fsum(logs[slots[0] == slot]), abs=1e-12)
    assert (batch[:, 7:] == 0).all()
    assert zhou_liu_log_evidence([], [], size=2, epsilon=0.1).tolist() == [0.0, 0.0]


def test_reads_are_left_as_they_were() -> None:
    reads = np.array([0.1, 2.0, -0.4])
    zhou_liu_log_increment(reads, epsilon=0.1)
    zhou_liu_phi(reads)
    zhou_liu_log_evidence(reads, [0, 1, 0], size=2, epsilon=0.1)
    assert reads.tolist() == [0.1, 2.0, -0.4]


def test_the_rule_is_e_bh_on_its_evidence_over_the_whole_family() -> None:
    reads = np.concatenate([np.full(40, 3.0), np.zeros(10)])
    slots = np.repeat([0, 1], [40, 10])
    log_e = zhou_liu_log_evidence(reads, slots, size=2, epsilon=0.1)
    expected = e_bh(log_e, 0.1, m=500, indices=[77, 3])
    got = zhou_liu_e_bh(reads, slots, 0.1, m=500, epsilon=0.1, indices=[77, 3])
    assert got.tolist() == expected.tolist() == [77]
    assert zhou_liu_e_bh(reads, slots, 0.1, m=2, epsilon=0.1).tolist() == [0]


def test_at_epsilon_zero_the_default_scale_says_nothing() -> None:
    assert zhou_liu_log_increment([0.0, 5.0], epsilon=0.0).tolist() == [0.0, 0.0]


def test_order_two_has_the_second_moment_and_lower_orders_the_normal_one() -> None:
    moment = float(stats.norm.expect(lambda z: np.abs(z) ** 1.5))
    lam, epsilon = 0.4, 0.1
    scale = (lam * 0.5) ** 1.5 * moment / 1.5 + (1.5 - 1 / 1.5) * epsilon
    ours = zhou_liu_log_increment(0.0, epsilon=epsilon, lam=lam, order=1.5)
    assert float(ours) == pytest.approx(-math.log1p(scale), rel=1e-9)


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda: zhou_liu_log_increment(0.0, epsilon=1.1), CertificateError, "epsilon"),
        (lambda: zhou_liu_log_increment(0.0, epsilon=0.1, lam=0.0), CertificateError, "lam"),
        (lambda: zhou_liu_log_increment(0.0, epsilon=0.1, s=-1.0), CertificateError, "s is"),
        (lambda: zhou_liu_log_increment(0.0, epsilon=0.1, mu0=math.inf), CertificateError, "mu0"),
        (lambda: zhou_liu_log_increment(0.0, epsilon=0.1, order=1.0), CertificateError, "order"),
        (lambda: zhou_liu_log_increment(math.nan, epsilon=0.1), ReadError, "not usable"),
        (lambda: zhou_liu_log_evidence([0.1], [4], size=2, epsilon=0.1), RecordError, "slot"),
        (lambda: zhou_liu_log_evidence([0.1], [0], size=-1, epsilon=0.1), RecordError, "size"),
        (lambda: zhou_liu_burn_in(6000, 0.1, 0.0), CertificateError, "no end"),
        (lambda: zhou_liu_burn_in(0, 0.1, 0.1), CertificateError, "family size"),
    ],
)
def test_impossible_input_is_refused(call: Any, error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=named):
        call()

"""The audit's bounds and the step-up rules from ville, statsmodels and mpmath."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from cads_env.certificate import AuditCap, audit_bound, audit_bounds, bh, e_bh

pytestmark = pytest.mark.conformance


def package(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name} is not installed")


@pytest.mark.parametrize("prior", [(0.5, 0.5), (1.0, 1.0)])
@pytest.mark.parametrize("rate", [0.0, 0.02, 0.12, 0.9])
def test_every_bound_of_a_path_agrees_with_ville(rate: float, prior: tuple[float, float]) -> None:
    flags = np.random.default_rng(7).random(600) < rate
    sequence = package("ville").BernoulliCS(alpha=0.01, prior=prior, intersect=False)
    sequence.update(flags.astype(float))
    counts = np.cumsum(flags)
    ours = audit_bounds(counts, np.arange(1, 601), prior=prior)
    # Ours are rounded up to steps of 2**-40.
    assert (ours - np.asarray(sequence.upper_) >= -1e-14).all()
    assert (ours - np.asarray(sequence.upper_) <= 2.0**-40 + 1e-14).all()


def test_the_running_minimum_at_every_read_agrees_with_ville() -> None:
    flags = np.random.default_rng(3).random(400) < 0.12
    sequence = package("ville").BernoulliCS(alpha=0.01, prior=(0.5, 0.5), intersect=True)
    sequence.update(flags.astype(float))
    audit = AuditCap(Delta=float("inf"), looks="per_read")
    ours = audit.bounds(flags, np.arange(1, 401), s=0.5)
    assert ours == pytest.approx(np.asarray(sequence.upper_), abs=2e-12)


@pytest.mark.parametrize("size", [1, 20, 500])
def test_e_bh_agrees_with_ville(size: int) -> None:
    rng = np.random.default_rng(size)
    log_e = rng.normal(2.0, 4.0, size)
    for q in (0.05, 0.2):
        theirs = np.flatnonzero(package("ville").evalues.ebh(np.exp(log_e), alpha=q))
        assert e_bh(log_e, q, m=size).tolist() == theirs.tolist()


@pytest.mark.parametrize("size", [1, 20, 500])
def test_bh_agrees_with_statsmodels(size: int) -> None:
    package("statsmodels")
    multitest = importlib.import_module("statsmodels.stats.multitest")
    rng = np.random.default_rng(size)
    p = rng.uniform(0.0, 1.0, size) ** 3
    for q in (0.05, 0.2):
        rejected = multitest.multipletests(p, alpha=q, method="fdr_bh")[0]
        assert bh(p, q, m=size).tolist() == np.flatnonzero(rejected).tolist()


def exact_excess(flagged: int, n: int, step: int, delta: float) -> float:
    mpmath = package("mpmath")
    with mpmath.workdps(60):
        p = mpmath.mpf(step) / 2**40
        logs = mpmath.log(mpmath.beta(flagged + 0.5, n - flagged + 0.5) / mpmath.pi)
        logs += mpmath.log(delta) - flagged * mpmath.log(p) - (n - flagged) * mpmath.log(1 - p)
        return float(mpmath.sign(logs))


@pytest.mark.parametrize("n", [1, 2, 9, 100, 1000, 100_000])
def test_each_bound_is_the_first_step_that_the_martingale_exceeds(n: int) -> None:
    for flagged in sorted({0, n // 9, n // 2, n - 1}):
        step = round(audit_bound(flagged, n) * 2**40)
        if step < 2**40:
            assert exact_excess(flagged, n, step, 0.01) > 0
        assert exact_excess(flagged, n, step - 1, 0.01) <= 0

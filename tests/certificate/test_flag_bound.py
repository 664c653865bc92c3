from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cads_env.certificate import audit_bound, audit_bounds
from cads_env.errors import CertificateError

STEP = 2.0**-40


def test_bounds_agree_with_the_vectors_and_are_never_below_them(vectors: dict[str, Any]) -> None:
    for row in vectors["audit_U_KT"]:
        ours = audit_bound(row["S"], row["n"], delta=row["delta"])
        assert row["U"] - 1e-15 <= ours <= row["U"] + 2 * STEP
    for row in vectors["audit_U_beta11"]:
        ours = audit_bound(row["S"], row["n"], delta=row["delta"], prior=(1.0, 1.0))
        assert row["U"] - 1e-14 <= ours <= row["U"] + 2 * STEP


def test_many_bounds_equal_the_single_ones() -> None:
    flags, n = np.array([[0, 3], [24, 200]]), np.array([[40, 41], [200, 200]])
    together = audit_bounds(flags, n)
    for place in np.ndindex(2, 2):
        assert together[place] == audit_bound(int(flags[place]), int(n[place]))
    assert audit_bounds(np.arange(11), 10).tolist() == [audit_bound(x, 10) for x in range(11)]
    assert audit_bounds([], []).shape == (0,)


def test_no_control_and_all_flagged_bound_nothing() -> None:
    assert audit_bounds([0, 1, 7, 1000], [0, 1, 7, 1000]).tolist() == [1.0] * 4


def test_without_a_flag_the_bound_has_a_closed_form() -> None:
    for n in (1, 2, 17, 400, 20_000):
        log_beta = math.lgamma(0.5) + math.lgamma(n + 0.5) - math.lgamma(n + 1) - math.log(math.pi)
        exact = 1.0 - math.exp((math.log(0.01) + log_beta) / n)
        assert exact - 1e-12 <= audit_bound(0, n) <= exact + 2 * STEP


def test_bounds_are_multiples_of_the_step_and_rise_with_the_flags() -> None:
    bounds = audit_bounds(np.arange(201), 200)
    assert (bounds / STEP == np.rint(bounds / STEP)).all()
    assert (np.diff(bounds) > 0).all()
    assert (bounds[:-1] > np.arange(200) / 200).all()


def test_bounds_shrink_with_more_controls_at_one_rate_and_with_a_larger_delta() -> None:
    n = 10 * np.arange(1, 60)
    assert (np.diff(audit_bounds(n // 10, n)) < 0).all()
    assert audit_bound(24, 200, delta=0.05) < audit_bound(24, 200, delta=0.01)


def test_the_bounds_of_all_looks_hold_together() -> None:
    rate, n, paths = 0.12, 300, 2000
    flags = np.random.default_rng(1).random((paths, n)) < rate
    counts = np.cumsum(flags, axis=1)
    table = {k: audit_bounds(np.arange(k + 1), k) for k in range(1, n + 1)}
    missed = np.zeros(paths, dtype=bool)
    for k in range(1, n + 1):
        missed |= table[k][counts[:, k - 1]] < rate
    assert 0 < missed.sum() <= 0.01 * paths


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: audit_bound(3, 2), "received 3 flags in 2 controls"),
        (lambda: audit_bound(-1, 2), "received -1 flags"),
        (lambda: audit_bound(0.5, 2), "flags is not a count"),
        (lambda: audit_bound(0, 2.0), "n is not a count"),
        (lambda: audit_bound(0, 10**9), "n <= 8388607"),
        (lambda: audit_bounds([1, 2], [3, 4, 5]), "do not match"),
        (lambda: audit_bound(0, 2, delta=0.0), "delta"),
        (lambda: audit_bound(0, 2, delta=1.0), "delta"),
        (lambda: audit_bound(0, 2, prior=(0.0, 1.0)), r"prior\[0\]"),
    ],
)
def test_impossible_counts_and_parameters_are_refused(call: Any, named: str) -> None:
    with pytest.raises(CertificateError, match=named):
        call()

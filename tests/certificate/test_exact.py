from __future__ import annotations

import math
from decimal import Decimal
from importlib import import_module

import numpy as np
import pytest
from scipy.special import ndtr

from cads_env.certificate import audit_bound, audit_bounds, log_cap_for, solve_cap
from cads_env.certificate.exact import (
    STEPS,
    _normal_cdf,
    cap_is_within_budget,
    mixture_exceeds,
)

BOUNDS = [1e-6, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.9, 0.999999]
RATIO = 0.7 / 0.5


@pytest.mark.parametrize("epsilon", BOUNDS)
def test_the_log_cap_is_the_last_grid_point_within_the_budget(epsilon: float) -> None:
    step = round(log_cap_for(epsilon) * STEPS)
    assert cap_is_within_budget(step, epsilon, RATIO)
    assert not cap_is_within_budget(step + 1, epsilon, RATIO)
    assert 0 <= math.log(solve_cap(epsilon)) - step / STEPS <= 1.1 / STEPS


@pytest.mark.parametrize("nudge", [-1e-14, 1e-14])
def test_a_log_cap_does_not_depend_on_the_last_bits_of_the_root(
    nudge: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = import_module("cads_env.certificate.cap")
    bounds = np.linspace(0.01, 0.99, 400).tolist()
    right = [log_cap_for(bound) for bound in bounds]
    plain = module._solve
    monkeypatch.setattr(module, "_solve", lambda e, r: plain(e, r) * (1.0 + nudge))
    module._log_cap.cache_clear()
    moved = [math.floor(math.log(plain(b, RATIO) * (1 + nudge)) * STEPS) / STEPS for b in bounds]
    assert moved != right
    assert [log_cap_for(bound) for bound in bounds] == right
    module._log_cap.cache_clear()


def test_certain_contamination_and_none_need_no_decision() -> None:
    assert log_cap_for(1.0) == 0.0
    assert log_cap_for(0.0) == math.inf


def test_caps_beyond_the_reach_of_the_decision_are_rounded_down() -> None:
    log_cap = log_cap_for(1e-12, theta=5.0, s=0.1)
    assert 0 <= math.log(solve_cap(1e-12, 5.0, 0.1)) - log_cap <= 1 / STEPS


def test_the_normal_law_agrees_with_scipy() -> None:
    for x in (-12.0, -3.2, -1.0, 0.0, 0.3, 2.0, 8.0):
        assert float(_normal_cdf(Decimal(x))) == pytest.approx(float(ndtr(x)), rel=1e-13)


@pytest.mark.parametrize(("flags", "n"), [(0, 1), (1, 9), (24, 200), (499, 500), (0, 4000)])
def test_each_bound_is_the_first_step_that_the_martingale_exceeds(flags: int, n: int) -> None:
    step = round(audit_bound(flags, n) * STEPS)
    assert mixture_exceeds(flags, n, step, 0.01)
    assert not mixture_exceeds(flags, n, step - 1, 0.01)


def test_a_wrong_last_step_of_a_bound_is_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("cads_env.certificate.flag_bound")
    right = audit_bound(24, 200)
    # Doubles that are off by more than a step, on a machine that knows how far they can be off.
    plain = module._Mixture.log_excess
    monkeypatch.setattr(module._Mixture, "log_excess", lambda self, p: plain(self, p) - 1e-9)
    wrong = float(audit_bounds([24], [200])[0])
    monkeypatch.setattr(module, "_ERROR_ALWAYS", 1e-7)
    assert wrong > right
    assert audit_bound(24, 200) == right

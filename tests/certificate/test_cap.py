from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from cads_env.certificate import expected_increment, log_increment, solve_cap
from cads_env.certificate.cap import _mean_excess
from cads_env.errors import CertificateError

bounds = st.floats(1e-9, 0.999)
alternatives = st.floats(0.2, 2.0)
deviations = st.floats(0.2, 2.0)


def close(expected: float | str) -> Any:
    """Equality at the tolerance of the vector file, where infinity is a string."""
    return pytest.approx(float(expected), rel=1e-10, abs=1e-10)


def test_caps_and_their_means_agree_with_the_vectors(vectors: dict[str, Any]) -> None:
    wrong = []
    for row in vectors["cap"]:
        model = row["theta"], row["s"]
        cap = solve_cap(row["eps"], *model)
        mean = expected_increment(cap, *model)
        if not (cap == close(row["C"]) and mean == close(row["E0_min_L_C"])):
            wrong.append((row, cap, mean))
    assert len(vectors["cap"]) == 60
    assert wrong == []


def test_misspecified_nulls_agree_with_table_s6(vectors: dict[str, Any]) -> None:
    wrong = []
    for row in vectors["table_S6"]["rows"]:
        cap = solve_cap(row["eps_bar"])
        clean = expected_increment(cap, mu=row["mu"], sigma=row["sd"])
        implied = (1.0 - row["true_eps"]) * clean + row["true_eps"] * cap
        exact = implied == close(row["implied_E"])
        printed = abs(implied - row["published"]) <= row["tol_published"]
        # The first cell is 1 by construction, which the last bit of the sum may miss.
        if not (exact and printed and (implied <= 1.0 + 1e-12) == row["valid"]):
            wrong.append((row, implied))
    assert len(vectors["table_S6"]["rows"]) == 24
    assert wrong == []


def test_point_masses_agree_with_the_vectors(vectors: dict[str, Any]) -> None:
    for row in vectors["pointmass_budget"]:
        cap = solve_cap(row["eps"])
        increment = float(np.exp(log_increment(row["y"], cap)))
        mean = (1.0 - row["eps"]) * expected_increment(cap) + row["eps"] * increment
        assert mean == close(row["lhs"])
        assert mean <= row["must_be_le"] + 1e-12


@given(bounds, alternatives, deviations)
def test_cap_lies_between_one_and_the_inverse_of_the_bound(
    epsilon: float, theta: float, s: float
) -> None:
    assert 1.0 < solve_cap(epsilon, theta, s) < 1.0 / epsilon


@given(bounds, bounds, alternatives, deviations)
def test_cap_shrinks_as_contamination_grows(a: float, b: float, theta: float, s: float) -> None:
    low, high = sorted((a, b))
    if high - low > 1e-9 * high and high - low > 1e-12:
        assert solve_cap(low, theta, s) > solve_cap(high, theta, s)


@given(bounds, alternatives, deviations)
def test_budget_is_spent_exactly(epsilon: float, theta: float, s: float) -> None:
    cap = solve_cap(epsilon, theta, s)
    total = (1.0 - epsilon) * expected_increment(cap, theta, s) + epsilon * cap
    assert total == pytest.approx(1.0, abs=1e-12)


@given(st.floats(0.0, 1.0, exclude_min=True), alternatives, deviations)
def test_rounding_of_the_cap_never_exceeds_the_budget(
    epsilon: float, theta: float, s: float
) -> None:
    cap = solve_cap(epsilon, theta, s)
    assert epsilon * (cap - 1.0) <= (1.0 - epsilon) * _mean_excess(math.log(cap), theta / s)


@given(bounds, st.floats(-50.0, 50.0))
def test_no_point_mass_exceeds_the_budget(epsilon: float, y: float) -> None:
    cap = solve_cap(epsilon)
    increment = float(np.exp(log_increment(y, cap)))
    assert (1.0 - epsilon) * expected_increment(cap) + epsilon * increment <= 1.0 + 1e-12


@given(bounds, st.floats(-3.0, -1e-3), alternatives, deviations)
def test_a_negative_mean_is_worth_less(epsilon: float, mu: float, theta: float, s: float) -> None:
    cap = solve_cap(epsilon, theta, s)
    assert expected_increment(cap, theta, s, mu) < expected_increment(cap, theta, s)


@given(bounds, bounds)
def test_overrating_contamination_is_safe_and_underrating_is_not(a: float, b: float) -> None:
    true, declared = sorted((a, b))

    def worst_mean(actual: float, cap: float) -> float:
        return (1.0 - actual) * expected_increment(cap) + actual * cap

    assert worst_mean(true, solve_cap(declared)) <= 1.0 + 1e-12
    if declared - true > 1e-6:
        assert worst_mean(declared, solve_cap(true)) > 1.0


@given(st.floats(0.01, 0.9), alternatives, deviations, st.floats(-2.0, 2.0), st.floats(0.05, 3.0))
def test_mean_of_an_increment_agrees_with_quadrature(
    epsilon: float, theta: float, s: float, mu: float, sigma: float
) -> None:
    cap = solve_cap(epsilon, theta, s)
    bend = s * s * math.log(cap) / theta + theta / 2.0
    a, b = theta / (s * s), theta * theta / (2.0 * s * s)
    low = min(bend, mu + sigma * sigma * a) - 40.0 * sigma

    def density(y: float) -> float:
        return math.exp(a * y - b - 0.5 * ((y - mu) / sigma) ** 2) / (
            sigma * math.sqrt(2 * math.pi)
        )

    peak = min(max(mu + sigma * sigma * a, low), bend)
    edges = sorted({low, peak - 8.0 * sigma, peak - sigma, peak, bend})
    edges = [edge for edge in edges if low <= edge <= bend]
    below = sum(
        quad(density, left, right, epsabs=1e-13, epsrel=1e-11)[0]
        for left, right in itertools.pairwise(edges)
    )
    expected = below + cap * float(norm.sf(bend, loc=mu, scale=sigma))
    assert expected_increment(cap, theta, s, mu, sigma) == pytest.approx(
        expected, rel=1e-8, abs=1e-12
    )


@pytest.mark.parametrize(("mu", "sigma"), [(1e6, 0.5), (1e6, 1e6), (0.0, 1e15), (1e300, 1.0)])
def test_mean_of_an_increment_stays_below_the_cap_for_huge_laws(mu: float, sigma: float) -> None:
    cap = solve_cap(0.1)
    mean = expected_increment(cap, mu=mu, sigma=sigma)
    assert 0.45 * cap < mean <= cap


@pytest.mark.parametrize("sigma", np.geomspace(1e9, 1e150, 24).tolist())
def test_a_law_far_wider_than_the_cap_saturates_half_the_time(sigma: float) -> None:
    cap = solve_cap(0.1)
    assert expected_increment(cap, sigma=sigma) == pytest.approx(cap / 2.0, rel=1e-8)


def test_uncapped_mean_of_the_null_is_one_and_of_the_hit_is_larger() -> None:
    assert expected_increment(math.inf) == 1.0
    assert expected_increment(math.inf, mu=0.7) == pytest.approx(math.exp(0.49 / 0.25))
    assert expected_increment(math.inf, mu=1e6) == math.inf


def test_a_bound_of_zero_leaves_the_ratio_uncapped() -> None:
    assert solve_cap(0.0) == math.inf


def test_a_bound_of_one_leaves_no_evidence() -> None:
    assert solve_cap(1) == 1.0


@pytest.mark.parametrize("epsilon", [5e-324, 1e-310, 1e-30, 1.0 - 2**-53])
@pytest.mark.parametrize("ratio", [1e-12, 1e-3, 0.1, 1.0, 1e3])
def test_extreme_bounds_have_caps_in_range(epsilon: float, ratio: float) -> None:
    cap = solve_cap(epsilon, ratio, 1.0)
    assert 1.0 <= cap < math.inf
    assert epsilon * cap <= 1.0


@pytest.mark.parametrize("epsilon", [-1e-9, 1.0000001, math.nan, math.inf, -math.inf])
def test_bounds_that_are_no_share_are_refused(epsilon: float) -> None:
    with pytest.raises(CertificateError, match="epsilon_bar"):
        solve_cap(epsilon)


@pytest.mark.parametrize("value", [True, "0.1", None, 1j, np.True_, [0.1]])
def test_bounds_that_are_no_number_are_refused(value: Any) -> None:
    solve_cap(1.0)  # so that True, which equals 1.0, would be in the cache
    with pytest.raises(CertificateError, match="epsilon_bar is not a number"):
        solve_cap(value)


@pytest.mark.parametrize("value", [0.0, -0.7, math.inf, math.nan, True, "0.7", None, 10**400])
@pytest.mark.parametrize("name", ["theta", "s"])
def test_unusable_models_are_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(CertificateError, match=rf"^{name} is"):
        solve_cap(0.1, **{name: value})
    with pytest.raises(CertificateError, match=rf"^{name} is"):
        expected_increment(2.0, **{name: value})


@pytest.mark.parametrize(("theta", "s"), [(1e-200, 1.0), (1e200, 1.0), (1.0, 1e-200)])
def test_models_beyond_double_precision_are_refused(theta: float, s: float) -> None:
    with pytest.raises(CertificateError, match="cannot be used together"):
        solve_cap(0.1, theta, s)


@pytest.mark.parametrize(("mu", "sigma"), [(math.inf, 1.0), (0.0, 0.0), (0.0, -1.0)])
def test_laws_that_are_not_normal_are_refused(mu: float, sigma: float) -> None:
    with pytest.raises(CertificateError, match="not a normal law"):
        expected_increment(2.0, mu=mu, sigma=sigma)


def test_numpy_numbers_are_accepted() -> None:
    assert solve_cap(np.float64(0.1), np.float32(0.5), np.int64(1)) == solve_cap(0.1, 0.5, 1.0)  # type: ignore[arg-type]

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cads_env.certificate import (
    CleanFamily,
    CleanLaw,
    GammaLaw,
    MixtureLaw,
    NormalLaw,
    SkewNormalLaw,
    StudentLaw,
    clean_law,
    expected_increment,
    expected_increment_under,
    implied_expectation,
    solve_cap,
    solve_cap_for_family,
)
from cads_env.errors import CertificateError

CAP = solve_cap(0.1)
SKEW = 4.0 / math.sqrt(17.0) * math.sqrt(2.0 / math.pi)
SKEW_SCALE = 0.5 / math.sqrt(1.0 - SKEW * SKEW)
FROZEN: dict[str, tuple[CleanLaw, Any]] = {
    "student": (StudentLaw(df=5.0, mean=0.1), stats.t(5, loc=0.1, scale=0.5 * math.sqrt(3 / 5))),
    "skew-normal": (
        SkewNormalLaw(shape=4.0),
        stats.skewnorm(4.0, loc=-SKEW_SCALE * SKEW, scale=SKEW_SCALE),
    ),
    "gamma": (
        GammaLaw(shape=0.9, mean=-0.1),
        stats.gamma(0.9, loc=-0.1 - 0.5 * math.sqrt(0.9), scale=0.5 / math.sqrt(0.9)),
    ),
}


class Bounded:
    """A law of a user's: uniform on [-1, 1]."""

    breaks = (-1.0, 1.0)

    def survival(self, y: float) -> float:
        return min(1.0, max(0.0, (1.0 - y) / 2.0))


def test_every_cell_of_the_published_table_is_exact(vectors: dict[str, Any]) -> None:
    rows = vectors["table_S6"]["rows"]
    assert len(rows) == 24
    for row in rows:
        law = NormalLaw(mean=row["mu"], sd=row["sd"])
        ours = implied_expectation(law, epsilon=row["true_eps"], epsilon_bar=row["eps_bar"])
        assert ours == pytest.approx(row["implied_E"], abs=1e-10)
        assert ours == pytest.approx(row["published"], abs=5e-4)
        assert (ours <= 1.0 + 1e-12) is row["valid"]


@pytest.mark.parametrize("name", FROZEN)
def test_survival_functions_and_means_agree_with_scipys_laws(name: str) -> None:
    law, frozen = FROZEN[name]
    for y in (-2.0, -0.56, -0.1, 0.0, 0.4, 1.7):
        assert law.survival(y) == pytest.approx(float(frozen.sf(y)), abs=1e-12)
    meets = (math.log(CAP) + 0.98) / 2.8
    below = frozen.expect(
        lambda y: math.exp(2.8 * y - 0.98), lb=max(-12.0, frozen.support()[0]), ub=meets
    )
    direct = float(below) + CAP * float(frozen.sf(meets))
    assert expected_increment_under(law, CAP) == pytest.approx(direct, abs=1e-7)


def test_the_integral_agrees_with_the_closed_form_of_a_normal_law() -> None:
    class Plain:
        breaks = ()

        def survival(self, y: float) -> float:
            return NormalLaw(mean=0.2, sd=0.6).survival(y)

    for cap in (1.001, CAP, 50.0):
        closed = expected_increment(cap, mu=0.2, sigma=0.6)
        integrated = expected_increment_under(Plain(), cap)
        assert closed - 1e-13 <= integrated <= closed + 1e-8


def test_a_law_of_ones_own_with_kinks_is_integrated() -> None:
    meets = (math.log(CAP) + 0.98) / 2.8
    exact = (math.exp(2.8 * meets - 0.98) - math.exp(-2.8 - 0.98)) / 5.6 + CAP * (1 - meets) / 2
    assert expected_increment_under(Bounded(), CAP) == pytest.approx(exact, abs=1e-9)


def test_a_mixture_is_the_mean_of_its_parts() -> None:
    parts = (NormalLaw(sd=0.5), StudentLaw(df=3.0))
    mixture = MixtureLaw(weights=(0.75, 0.25), parts=parts)
    expected = 0.75 * expected_increment_under(parts[0], CAP)
    expected += 0.25 * expected_increment_under(parts[1], CAP)
    assert expected_increment_under(mixture, CAP) == pytest.approx(expected, rel=1e-14)
    assert mixture.survival(0.3) == pytest.approx(
        0.75 * parts[0].survival(0.3) + 0.25 * parts[1].survival(0.3)
    )


def test_a_gamma_law_has_its_long_tail_where_it_is_said_to_be() -> None:
    high, low = GammaLaw(shape=1.0), GammaLaw(shape=1.0, tail="low")
    assert high.survival(2.0) > NormalLaw().survival(2.0) > low.survival(2.0) == 0.0
    assert high.survival(-0.51) == 1.0
    assert low.survival(-0.2) == pytest.approx(1.0 - high.survival(0.2))


def test_heavy_tails_of_matched_variance_keep_the_budget_and_of_matched_core_break_it() -> None:
    df = 4.896
    matched = implied_expectation(StudentLaw(df=df), epsilon=0.1, epsilon_bar=0.1)
    assert matched == pytest.approx(0.943, abs=5e-4)
    core = StudentLaw(df=df, sd=0.5 * math.sqrt(df / (df - 2)))
    assert implied_expectation(core, epsilon=0.1, epsilon_bar=0.1) > 1.0


def test_the_published_null_gives_the_published_cap() -> None:
    for epsilon in (0.01, 0.1, 0.5):
        ours = solve_cap_for_family(epsilon, CleanFamily())
        assert ours == pytest.approx(solve_cap(epsilon), rel=1e-12)
        assert ours <= solve_cap(epsilon) * (1 + 1e-14)
    assert solve_cap_for_family(0.0, CleanFamily()) == math.inf
    assert solve_cap_for_family(1.0, CleanFamily()) == 1.0


FAMILIES = [
    CleanFamily(mean_high=0.15),
    CleanFamily(sd_low=0.3, sd_high=0.6),
    CleanFamily(laws=(StudentLaw(df=4.9, sd=0.65), GammaLaw(shape=0.9, mean=0.1))),
]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_wider_family_costs_a_smaller_cap_that_keeps_the_budget(family: CleanFamily) -> None:
    cap = solve_cap_for_family(0.1, family)
    assert 1.0 < cap < CAP
    budget = 0.9 * family.worst_mean(cap) + 0.1 * cap
    assert 1.0 - 1e-9 < budget <= 1.0
    members: list[CleanLaw] = [*family.laws]
    members += [
        NormalLaw(mean=mean, sd=sd)
        for mean in (family.mean_high, family.mean_high - 0.3)
        for sd in np.linspace(family.sd_low, family.sd_high, 7)
    ]
    for law in members:
        assert implied_expectation(law, epsilon=0.1, cap=cap) <= 1.0
        assert implied_expectation(law, epsilon=0.05, cap=cap) <= 1.0


def test_the_worst_standard_deviation_may_lie_inside_the_range() -> None:
    family = CleanFamily(mean_high=0.8, sd_low=0.02, sd_high=1.5)
    scales = np.linspace(0.02, 1.5, 4000)
    means = [expected_increment(CAP, mu=0.8, sigma=float(sd)) for sd in scales]
    assert family.worst_mean(CAP) >= max(means) - 1e-12
    family = CleanFamily(mean_high=0.5, sd_low=0.001, sd_high=0.35)
    means = [
        expected_increment(CAP, mu=0.5, sigma=float(sd)) for sd in np.linspace(0.001, 0.35, 4000)
    ]
    assert family.worst_mean(CAP) >= max(means) - 1e-12


def test_a_shifted_null_needs_a_cap_even_without_contamination() -> None:
    cap = solve_cap_for_family(0.0, CleanFamily(mean_high=0.1))
    assert expected_increment(cap, mu=0.1) == pytest.approx(1.0, abs=1e-9)


def test_a_family_that_looks_like_hits_is_refused() -> None:
    with pytest.raises(CertificateError, match="leaves no evidence"):
        solve_cap_for_family(0.1, CleanFamily(mean_high=30.0))


def test_laws_are_read_from_mappings() -> None:
    assert clean_law({"law": "normal", "mean": 0.1}) == NormalLaw(mean=0.1)
    parts = [{"law": "normal"}, {"law": "student", "df": 3}]
    mixture = clean_law({"law": "mixture", "weights": [0.5, 0.5], "parts": parts})
    assert mixture == MixtureLaw(weights=(0.5, 0.5), parts=(NormalLaw(), StudentLaw(df=3)))
    assert clean_law({"law": "gamma", "shape": 2, "tail": "low"}) == GammaLaw(shape=2, tail="low")
    assert clean_law({"law": "skew-normal", "shape": 2}) == SkewNormalLaw(shape=2)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: NormalLaw(sd=0.0), "sd"),
        (lambda: NormalLaw(mean=math.inf), "mean"),
        (lambda: StudentLaw(df=2.0), "df"),
        (lambda: SkewNormalLaw(shape=math.nan), "shape"),
        (lambda: GammaLaw(shape=-1.0), "shape"),
        (lambda: GammaLaw(shape=1.0, tail="left"), "tail"),
        (lambda: MixtureLaw(weights=(1.0,), parts=()), "does not fit"),
        (lambda: MixtureLaw(weights=(0.5,), parts=(NormalLaw(),)), "sum to 1"),
        (lambda: CleanFamily(sd_low=0.6), "sd_high is below"),
        (lambda: clean_law({"law": "norml"}), "Did you mean 'normal'"),
        (lambda: clean_law({"law": "normal", "mu": 1}), "does not accept"),
        (lambda: expected_increment_under(StudentLaw(df=5), math.inf), "closed form"),
        (lambda: implied_expectation(NormalLaw(), epsilon=0.1), "exactly one"),
        (
            lambda: implied_expectation(NormalLaw(), epsilon=0.1, epsilon_bar=0.1, cap=2.0),
            "exactly one",
        ),
        (lambda: implied_expectation(NormalLaw(), epsilon=2, cap=2.0), "epsilon"),
    ],
)
def test_impossible_parameters_are_refused(call: Any, named: str) -> None:
    with pytest.raises(CertificateError, match=named):
        call()

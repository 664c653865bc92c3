"""The e-value of "beats its twin": its integral, its expectation under the null, its tails."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special

from cads_env.errors import InferenceError
from cads_env.inference import beats_twin, beats_twin_path


def expected_e(n: int, win: float, loss: float) -> float:
    """Exact E[e] after n seeds with these chances of a win and of a loss."""
    tie = 1 - win - loss
    return sum(
        special.comb(n, s + f) * special.comb(s + f, s)
        * win**s * loss**f * tie ** (n - s - f) * math.exp(beats_twin(s, f))
        for s in range(n + 1)
        for f in range(n + 1 - s)
    )  # fmt: skip


@pytest.mark.parametrize(("wins", "losses"), [(0, 1), (1, 0), (7, 3), (3, 7), (40, 10), (25, 25)])
def test_the_closed_form_is_the_integral_of_the_mixture(wins: int, losses: int) -> None:
    # pi = sin(t)^2 turns the Beta(1/2, 1/2) law into a uniform one on (0, pi/2).
    def bet(t: float) -> float:
        pi = math.sin(t) ** 2
        return (2 * pi) ** wins * (2 * (1 - pi)) ** losses

    area, _ = integrate.quad(bet, math.pi / 4, math.pi / 2, epsabs=0, epsrel=1e-12)
    assert beats_twin(wins, losses) == pytest.approx(math.log(area * 4 / math.pi), abs=1e-10)


@pytest.mark.parametrize(
    ("wins", "losses", "log_e"),
    [
        (5000, 0, 3461.5980634416537),
        (0, 5000, -8.968975836748315),
        (2400, 2600, -5.849343449984293),
        (2600, 2400, 0.20743733882080725),
        (3, 1500, -7.763471093064907),
        (100_000, 100_500, -7.037878645993152),
    ],
)
def test_thousands_of_seeds_agree_with_forty_digits(wins: int, losses: int, log_e: float) -> None:
    assert beats_twin(wins, losses) == pytest.approx(log_e, rel=1e-12, abs=1e-10)


@given(st.integers(0, 60), st.integers(0, 60))
def test_the_two_evaluations_meet(wins: int, losses: int) -> None:
    a, b = wins + 0.5, losses + 0.5
    direct = (
        math.log(2) + special.betaln(a, b) - math.log(math.pi)
        + (wins + losses) * math.log(2) + math.log(special.betainc(b, a, 0.5))
    )  # fmt: skip
    assert beats_twin(wins, losses) == pytest.approx(direct, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_a_fair_coin_leaves_the_expectation_at_one(n: int) -> None:
    assert expected_e(n, 0.5, 0.5) == pytest.approx(1.0, abs=1e-12)
    assert expected_e(n, 0.2, 0.2) == pytest.approx(1.0, abs=1e-12)


@settings(max_examples=40)
@given(st.integers(1, 7), st.floats(0, 0.5), st.floats(0, 0.5))
def test_no_null_expects_more_than_one(n: int, win: float, loss: float) -> None:
    assert expected_e(n, min(win, loss), max(win, loss)) <= 1 + 1e-9


@settings(max_examples=50)
@given(st.integers(0, 30), st.integers(0, 30))
def test_under_a_fair_coin_the_next_seed_moves_the_expectation_nowhere(s: int, f: int) -> None:
    now = math.exp(beats_twin(s, f))
    after = (math.exp(beats_twin(s + 1, f)) + math.exp(beats_twin(s, f + 1))) / 2
    assert after == pytest.approx(now, rel=1e-9)


def test_the_running_maximum_reaches_twenty_on_at_most_one_fair_path_in_twenty() -> None:
    # Exact: chances of the counts of wins on paths that have not reached 20 so far.
    not_yet, reached = {0: 1.0}, 0.0
    for n in range(1, 51):
        chances: dict[int, float] = {}
        for wins, chance in not_yet.items():
            for after in (wins, wins + 1):
                chances[after] = chances.get(after, 0.0) + chance / 2
        not_yet = {w: c for w, c in chances.items() if beats_twin(w, n - w) < math.log(20)}
        reached += sum(chances.values()) - sum(not_yet.values())
    assert 0.01 < reached <= 0.05


def test_losses_are_no_evidence() -> None:
    assert math.exp(beats_twin(10, 40)) == pytest.approx(0.0202, abs=1e-4)
    assert math.exp(beats_twin(40, 10)) == pytest.approx(3435, abs=1)
    assert beats_twin(0, 0) == 0.0


@settings(max_examples=40)
@given(st.integers(0, 200), st.integers(0, 200))
def test_a_win_raises_the_evidence_and_a_loss_lowers_it(wins: int, losses: int) -> None:
    now = beats_twin(wins, losses)
    assert beats_twin(wins, losses + 1) < now < beats_twin(wins + 1, losses)


def test_the_path_follows_the_seeds_and_keeps_its_maximum() -> None:
    path = beats_twin_path([3, 0, 1, -2, -1, -1, 5])
    assert path.wins.tolist() == [1, 1, 2, 2, 2, 2, 3]
    assert path.losses.tolist() == [0, 0, 0, 1, 2, 3, 3]
    pairs = zip(path.wins, path.losses, strict=True)
    assert path.log_e.tolist() == pytest.approx([beats_twin(s, f) for s, f in pairs])
    assert path.log_e[1] == path.log_e[0]
    assert path.log_running_max.tolist() == pytest.approx(
        [max(0.0, *path.log_e[: k + 1]) for k in range(7)]
    )
    assert path.p_value == pytest.approx(math.exp(-beats_twin(2, 0)))


def test_a_path_that_only_loses_has_a_p_value_of_one() -> None:
    path = beats_twin_path([-1] * 5000)
    assert path.p_value == 1.0
    assert np.isfinite(path.log_e).all()
    assert beats_twin_path([]).p_value == 1.0
    assert beats_twin_path([1] * 5000).p_value == 0.0


def test_negative_counts_and_unusable_differences_are_refused() -> None:
    with pytest.raises(InferenceError, match="wins and losses are -1 and 3"):
        beats_twin(-1, 3)
    with pytest.raises(InferenceError, match=r"differences\[0\] is nan"):
        beats_twin_path([math.nan])

"""The certificate wrapper: pays at the end, tells nothing before, and can judge again."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

from cads_env.certificate import Certificate
from cads_env.envs import make
from cads_env.errors import ActionError, CertificateError
from cads_env.score import play_twin, score
from cads_env.testing import tiny_protocol
from cads_env.wrappers import CertificateWrapper
from cads_env.wrappers.certificate import OUTCOME_KEYS
from tests.envs.campaigns import play, same, tiny_env, tiny_panel

CLEAN = tiny_protocol(rounds=8, reads_each=4, noise_sd=0.1, epsilon=0.0)
"""Quiet reads, so that several candidates are declared."""


def clean_env(**arguments: Any) -> gym.Env[Any, Any]:
    return make(tiny_panel(), CLEAN, **arguments)


def outcome_of(info: dict[str, Any]) -> dict[str, Any]:
    return {key: info[key] for key in OUTCOME_KEYS}


@pytest.mark.parametrize("reward", ["net", "certified", "none"])
def test_the_reward_is_paid_once_at_the_end(reward: str) -> None:
    env = clean_env(reward=reward)
    expected = set()
    for seed in range(6):
        *before, (_, paid, _, _, info) = play(env, seed=seed)[1:]
        assert [step[1] for step in before] == [0.0] * 7
        assert paid == {"net": info["net"], "certified": info["true"], "none": 0}[reward]
        expected.add((info["net"], info["true"]))
    assert len({net for net, _ in expected}) > 2
    assert all(net < true for net, true in expected)


def test_a_false_declaration_is_not_paid() -> None:
    dirty = CLEAN.override(epsilon=0.3)
    env = make(tiny_panel(), dirty, epsilon_bar=0.0, q=0.4, reward="certified")
    _, paid, _, _, info = play(env, seed=3)[-1]
    assert info["false"] > 0
    assert paid == info["true"] == info["declared"] - info["false"]


def test_the_outcome_is_zero_until_the_end_and_scored_says_so() -> None:
    *before, last = [returned[-1] for returned in play(clean_env(), seed=3)]
    for info in before:
        assert info["scored"] is False
        assert set(outcome_of(info).values()) == {0}
    assert last["scored"] is True
    assert last["declared"] > 0
    assert all(type(value) is int for value in outcome_of(last).values())


def test_a_new_campaign_starts_from_zero() -> None:
    env = clean_env()
    play(env, seed=3)
    info = env.reset(seed=3)[1]
    assert info["scored"] is False
    assert set(outcome_of(info).values()) == {0}


def test_the_outcome_is_that_of_the_record_and_the_twin() -> None:
    env = clean_env()
    info = play(env, seed=3)[-1][-1]
    screen: Any = env.unwrapped
    pair = (screen.registry, screen.oracle)
    judge = Certificate()
    twin = play_twin(*pair, CLEAN, 3)
    expected = score(screen.record, twin, screen.oracle, judge)[0]
    assert outcome_of(info) == {key: getattr(expected, key) for key in OUTCOME_KEYS}


@pytest.mark.parametrize("fields", [{"q": 0.01}, {"epsilon_bar": 0.3}, {"theta": 1.2, "s": 0.8}])
def test_an_outer_wrapper_judges_the_record_as_a_fresh_environment_would(
    fields: dict[str, Any],
) -> None:
    outer = CertificateWrapper(clean_env(q=0.1), **fields)
    fresh = clean_env(**fields)
    seeds = range(8)
    again = [play(outer, seed=seed) for seed in seeds]
    assert same(again, [play(fresh, seed=seed) for seed in seeds])
    inner = [outcome_of(play(clean_env(), seed=seed)[-1][-1]) for seed in seeds]
    assert [outcome_of(steps[-1][-1]) for steps in again] != inner


def test_judging_again_changes_no_read() -> None:
    plain = clean_env()
    judged = CertificateWrapper(clean_env(), q=0.01)
    play(plain, seed=3)
    play(judged, seed=3)
    first: Any = plain.unwrapped
    second: Any = judged.unwrapped
    assert first.record.sha256 == second.record.sha256


def test_a_certificate_is_taken_whole_or_changed_by_field() -> None:
    given = Certificate(q=0.2, epsilon_bar=0.05)
    assert CertificateWrapper(tiny_env(), certificate=given).certificate == given
    changed = CertificateWrapper(tiny_env(), certificate=given, q=0.3).certificate
    assert changed == Certificate(q=0.3, epsilon_bar=0.05)
    assert CertificateWrapper(tiny_env()).certificate == Certificate()


def test_the_default_certificate_is_the_protocols() -> None:
    env = make(tiny_panel(), tiny_protocol(certificate={"q": 0.25, "epsilon_bar": 0.0}))
    assert env.get_wrapper_attr("certificate") == Certificate(q=0.25, epsilon_bar=0.0)


@pytest.mark.parametrize(
    ("fields", "pattern"),
    [
        ({"epsilon": 0.1}, "Unknown certificate field 'epsilon'. Did you mean 'epsilon_bar'"),
        ({"q": 0.0}, "q"),
        ({"q": "0.1"}, "q"),
        ({"epsilon_bar": 1.5}, "epsilon_bar"),
        ({"theta": -1}, "theta"),
        ({"s": float("nan")}, "s"),
    ],
)
def test_unusable_fields_are_refused(fields: dict[str, Any], pattern: str) -> None:
    with pytest.raises(CertificateError, match=pattern):
        CertificateWrapper(tiny_env(), **fields)


def test_an_unknown_reward_is_refused() -> None:
    with pytest.raises(ActionError, match=r"'certifed'.*Did you mean 'certified'"):
        CertificateWrapper(tiny_env(), reward="certifed")


def test_the_spec_of_a_wrapper_holds_its_certificate_as_plain_numbers() -> None:
    made = gym.make("CADSScreen-v0", registry="synthetic-depmap-6000/0", rounds=3)
    env = CertificateWrapper(made, certificate=Certificate(q=0.2), reward="none")
    assert env.spec is not None
    spec = gym.envs.registration.EnvSpec.from_json(env.spec.to_json())
    again = gym.make(spec)
    assert isinstance(again, CertificateWrapper)
    assert (again.certificate, again.reward) == (Certificate(q=0.2), "none")


def test_a_time_limit_that_cuts_a_campaign_short_pays_nothing() -> None:
    limited = gym.wrappers.TimeLimit(clean_env(), 3)
    *_, (_, paid, terminated, truncated, info) = play(limited, seed=3)
    assert (paid, terminated, truncated, info["scored"]) == (0.0, False, True, False)


def test_an_outer_wrapper_changes_only_the_fields_it_names() -> None:
    inner = CertificateWrapper(clean_env(), epsilon_bar=0.2)
    outer = CertificateWrapper(inner, q=0.05)
    assert outer.certificate == Certificate(epsilon_bar=0.2, q=0.05)

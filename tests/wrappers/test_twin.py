"""The twin as an environment."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import cads_env
from cads_env.certificate import Certificate
from cads_env.envs import ScreenEnv, make
from cads_env.score import play_twin
from cads_env.testing import tiny_protocol
from cads_env.wrappers import CertificateWrapper, IdentifierLists, make_twin
from tests.envs.campaigns import action_in, play, same, tiny_env, tiny_panel

CLEAN = tiny_protocol(rounds=8, reads_each=4, noise_sd=0.1, epsilon=0.0)


def test_the_twins_net_is_zero_and_its_true_is_the_environments_twin_true() -> None:
    env = make(tiny_panel(), CLEAN)
    twin = make_twin(env)
    nets = set()
    for seed in range(6):
        arm, alone = play(env, seed=seed)[-1][-1], play(twin, seed=seed)[-1][-1]
        assert alone["net"] == 0
        assert alone["true"] == alone["twin_true"] == arm["twin_true"]
        assert alone["false"] == arm["twin_false"]
        nets.add(arm["net"])
    assert len(nets) > 2


def test_the_twin_ignores_its_actions() -> None:
    twin = make_twin(tiny_env())
    assert same(play(twin, seed=1, key=5), play(twin, seed=1, key=6))
    screen: Any = twin.unwrapped
    assert screen.record.sha256 == play_twin(*tiny_panel()[1], tiny_protocol(), 1).sha256
    assert screen.record.origins.sum() == 0


def test_even_a_malformed_action_is_ignored() -> None:
    twin = make_twin(tiny_env())
    twin.reset(seed=0)
    assert twin.step(None)[4]["last_raw"] == 0


def test_making_and_playing_a_twin_leaves_the_environment_alone() -> None:
    expected = play(tiny_env(), seed=4)
    env = tiny_env()
    env.reset(seed=4)
    steps = [env.step(action_in(env, 0))]
    twin = make_twin(env)
    play(twin, seed=2)
    steps += [env.step(action_in(env, round)) for round in range(1, 5)]
    assert same(steps, expected[1:])
    assert twin.unwrapped is not env.unwrapped


def test_the_twin_of_a_wrapped_environment_has_its_certificate_and_spaces() -> None:
    env = CertificateWrapper(tiny_env(), certificate=Certificate(q=0.3), reward="certified")
    twin = make_twin(gym.wrappers.OrderEnforcing(IdentifierLists(env)))
    assert isinstance(twin, CertificateWrapper)
    assert (twin.certificate, twin.reward) == (Certificate(q=0.3), "certified")
    assert twin.observation_space == env.observation_space
    assert twin.action_space == env.action_space


def test_the_twin_of_a_bare_screen_scores_nothing() -> None:
    twin = make_twin(ScreenEnv(tiny_panel(), tiny_protocol()))
    assert "scored" not in play(twin, seed=0)[-1][-1]


def test_the_twin_of_a_registered_environment_plays_the_same_panel() -> None:
    twin = cads_env.make_twin(gym.make("CADSScreenPublished-v0"))
    seen, _ = twin.reset(seed=0)
    assert seen["status"].shape == (18159,)
    assert np.array_equal(twin.step(twin.action_space.sample())[0]["status"] > 0, was_read(twin))


def was_read(env: Any) -> Any:
    status = np.zeros(env.unwrapped.m, np.bool_)
    status[env.unwrapped.record.candidates] = True
    return status


def test_the_twin_of_anything_else_is_refused() -> None:
    other: gym.Env[Any, Any] = gym.Env()
    with pytest.raises(TypeError, match="CADSScreen environment; received Env"):
        make_twin(other)

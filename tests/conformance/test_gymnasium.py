"""Gymnasium's own checkers and wrappers, on whatever version is installed."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

import cads_env
from cads_env.wrappers import IdentifierLists

pytestmark = pytest.mark.conformance

IDS = [name for name in gym.registry if name.startswith("CADS")]


def test_the_ids_are_registered() -> None:
    assert cads_env.__version__
    assert {"CADSScreen-v0", "CADSScreenPublished-v0"} <= set(IDS)


@pytest.mark.parametrize("feedback", ["full", "none", "permuted"])
@pytest.mark.parametrize("name", IDS)
def test_the_checker_finds_nothing_under_any_feedback(name: str, feedback: str) -> None:
    check_env(gym.make(name, feedback=feedback, quota=3).unwrapped)


@pytest.mark.parametrize("name", IDS)
def test_the_usual_wrappers_fit(name: str) -> None:
    env: Any = gym.make(name, render_mode="rgb_array")
    env = gym.wrappers.RecordEpisodeStatistics(env)
    env = gym.wrappers.FlattenObservation(env)
    env = gym.wrappers.TransformReward(env, lambda reward: float(reward) / 100)
    seen, _ = env.reset(seed=0)
    assert env.observation_space.contains(seen)
    for _ in range(12):
        seen, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert env.observation_space.contains(seen)
    assert (terminated, truncated) == (True, False)
    assert reward == info["net"] / 100
    assert info["episode"]["l"] == 12


def test_lists_of_identifiers_flatten_to_nothing_fixed() -> None:
    space = IdentifierLists(gym.make("CADSScreenPublished-v0")).observation_space
    assert isinstance(space, spaces.Dict)
    assert not space.is_np_flattenable


@pytest.mark.parametrize("context", ["spawn", "forkserver"])
@pytest.mark.parametrize("shared", [True, False])
def test_worker_processes_of_any_kind_play(context: str, shared: bool) -> None:
    kind = {"context": context, "shared_memory": shared}
    envs = gym.make_vec("cads_env:CADSScreen-v0", 2, "async", kind)
    sync = gym.make_vec("cads_env:CADSScreen-v0", 2, "sync")
    try:
        seen, expected = envs.reset(seed=4)[0], sync.reset(seed=4)[0]
        for _ in range(13):
            assert all(np.array_equal(seen[key], expected[key]) for key in expected)
            actions = sync.action_space.sample()
            seen, rewards, *_ = envs.step(actions)
            expected, paid, *_ = sync.step(actions)
            assert rewards.tolist() == paid.tolist()
    finally:
        envs.close()

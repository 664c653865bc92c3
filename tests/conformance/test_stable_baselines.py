"""Stable-Baselines3's checker, and a few steps of a learner."""

from __future__ import annotations

import importlib
from typing import Any

import gymnasium as gym
import pytest

import cads_env
from cads_env.envs import make
from cads_env.testing import tiny_protocol, tiny_registry

pytestmark = pytest.mark.conformance


@pytest.fixture(autouse=True)
def stable_baselines() -> None:
    pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed")


def part(name: str) -> Any:
    """A module of the package, imported when a test runs, since most machines lack it."""
    return importlib.import_module(f"stable_baselines3{name}")


@pytest.mark.parametrize("render_mode", [None, "rgb_array", "ansi"])
@pytest.mark.parametrize("name", ["CADSScreen-v0", "CADSScreenPublished-v0"])
def test_the_checker_finds_nothing(name: str, render_mode: str | None) -> None:
    assert name in gym.registry, cads_env.__version__
    part(".common.env_checker").check_env(gym.make(name, render_mode=render_mode), warn=True)


def test_a_learner_takes_a_few_steps() -> None:
    env: Any = make(tiny_registry(), tiny_protocol())
    model = part("").PPO(
        "MultiInputPolicy", env, n_steps=32, batch_size=16, n_epochs=1, seed=0, device="cpu"
    )
    model.learn(64)
    assert model.num_timesteps == 64

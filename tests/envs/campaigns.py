"""Campaigns for the tests of environments: small panels, keyed actions, exact comparison."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from cads_env.envs import ScreenVectorEnv, make
from cads_env.panel import Panel
from cads_env.registry import Oracle, Registry
from cads_env.score import resolve_certificate
from cads_env.testing import tiny_protocol, tiny_registry

SMALL = "synthetic-depmap-6000/0"
"""A registry by name that loads fast."""

Actions = NDArray[np.int64]


@cache
def _tiny_pairs() -> list[tuple[Registry, Oracle]]:
    return [tiny_registry(seed=i, name=f"tiny/{i}") for i in range(5)]


def tiny_panel() -> Panel:
    """A new panel of five made-up registries of 60 candidates."""
    return Panel.of(_tiny_pairs(), name="tiny")


def tiny_env(**arguments: Any) -> gym.Env[Any, Any]:
    """An environment of 5 rounds on the tiny panel."""
    return make(tiny_panel(), tiny_protocol(), **arguments)


def tiny_vector(mode: str = "NextStep", n: int = 4, **changes: Any) -> ScreenVectorEnv:
    """The native vector environment on the tiny panel."""
    protocol = tiny_protocol(**changes)
    judge = resolve_certificate(None, protocol)
    return ScreenVectorEnv(tiny_panel(), protocol, judge, num_envs=n, autoreset_mode=mode)


def tiny_sync(mode: str = "NextStep", n: int = 4, **changes: Any) -> gym.vector.SyncVectorEnv:
    """Gymnasium's own vector environment over the same environments."""
    protocol = tiny_protocol(**changes)
    return gym.vector.SyncVectorEnv([lambda: make(tiny_panel(), protocol)] * n, autoreset_mode=mode)


def some_action(batch: int, m: int, key: int) -> Actions:
    """An action with valid entries, repeats and "no proposal"; the same for the same key."""
    random = np.random.default_rng(key)
    action = random.integers(0, m + 1, batch)
    action[random.random(batch) < 0.2] = m
    action[-1] = action[0]
    return action


def action_in(env: gym.Env[Any, Any], round: int, key: int = 0) -> Actions:
    """The action that tests take in a round of the environment's present campaign."""
    screen: Any = env.unwrapped
    return some_action(screen.batch, screen.m, 1000 * key + round)


def play(env: gym.Env[Any, Any], seed: int | None, *, key: int = 0, **reset: Any) -> list[Any]:
    """Everything that a campaign returns, from reset to the end."""
    returned: list[Any] = [env.reset(seed=seed, **reset)]
    over = False
    while not over:
        step = env.step(action_in(env, len(returned) - 1, key))
        returned.append(step)
        over = step[2] or step[3]
    return returned


def play_with(env: gym.Env[Any, Any], seed: int, answer: Callable[[Any], Sequence[str]]) -> Any:
    """The last info of a campaign in which `answer` names candidates for each view."""
    screen: Any = env.unwrapped
    env.reset(seed=seed)
    while True:
        _, _, terminated, _, info = env.step(screen.action_for(answer(screen.view)))
        if terminated:
            return info


def same(left: Any, right: Any) -> bool:
    """Whether two values agree in type, dtype, shape and every byte."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, np.ndarray) and left.dtype == object:
        return left.shape == right.shape and same(left.tolist(), right.tolist())
    if isinstance(left, np.ndarray):
        alike = bool(left.dtype == right.dtype) and left.shape == right.shape
        return alike and left.tobytes() == right.tobytes()
    return pickle.dumps(left) == pickle.dumps(right)

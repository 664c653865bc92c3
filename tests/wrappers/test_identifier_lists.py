"""Lists of identifiers as observations."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env

from cads_env.envs import make
from cads_env.panel import Panel
from cads_env.registry import Registry
from cads_env.testing import tiny_protocol, tiny_registry
from cads_env.wrappers import IdentifierLists
from tests.envs.campaigns import action_in, play, same, tiny_env

LISTS = ("high", "low", "tested")


@pytest.mark.parametrize("feedback", ["full", "none", "permuted"])
def test_the_lists_are_those_of_the_view_and_lie_in_the_space(feedback: str) -> None:
    env = IdentifierLists(tiny_env(feedback=feedback))
    plain = tiny_env(feedback=feedback)
    screen: Any = env.unwrapped
    seen, other = env.reset(seed=1)[0], plain.reset(seed=1)[0]
    for round in range(6):
        assert env.observation_space.contains(seen)
        assert {name: seen[name] for name in LISTS} == {
            name: getattr(screen.view, name) for name in LISTS
        }
        kept = {name: value for name, value in other.items() if name != "status"}
        assert same({name: seen[name] for name in kept}, kept)
        assert len(seen["tested"]) == (other["status"] > 0).sum()
        if round < 5:
            action = action_in(env, round)
            seen, other = env.step(action)[0], plain.step(action)[0]
    assert bool(seen["high"] or seen["low"]) == (feedback != "none")
    assert len(seen["tested"]) == 22


def test_rewards_ends_and_infos_pass_unchanged() -> None:
    listed = play(IdentifierLists(tiny_env()), seed=2)
    assert same([step[1:] for step in listed], [step[1:] for step in play(tiny_env(), seed=2)])


def test_the_space_samples_what_it_contains() -> None:
    space = IdentifierLists(tiny_env()).observation_space
    space.seed(3)
    for _ in range(20):
        assert space.contains(space.sample())


def test_the_space_holds_the_other_registries_of_a_panel() -> None:
    usual, oracle = tiny_registry(6, 2)
    names = tuple(f"{'β' * 70}-{i}" for i in range(6))
    greek = Registry("greek", names, usual.description, usual.side_tables)
    env = IdentifierLists(make(Panel.of([(usual, oracle), (greek, oracle)], name="p"), rules()))
    before = env.observation_space
    for seed in (0, 1, 2):
        env.reset(seed=seed)
        seen = env.step(action_in(env, 0))[0]
        assert seen["tested"]
        assert env.observation_space.contains(seen)
        assert (env.observation_space == before) == (seed == 0)


def rules() -> Any:
    return tiny_protocol(first_fresh=3, fresh=1, rounds=2)


def test_a_text_outside_the_space_is_told_apart() -> None:
    env = IdentifierLists(tiny_env())
    seen, _ = env.reset(seed=0)
    assert not env.observation_space.contains(seen | {"high": ("β",)})
    assert not env.observation_space.contains(seen | {"high": (3,)})


def test_gymnasiums_checker_finds_nothing() -> None:
    env = IdentifierLists(gym.make("CADSScreen-v0", registry="synthetic-depmap-6000/0"))
    with warnings.catch_warnings():
        # Its only objection: what it was given is wrapped, as it is meant to be.
        warnings.filterwarnings("ignore", message=".*different from the unwrapped version.*")
        check_env(env)

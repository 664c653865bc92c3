"""One campaign, one record: whichever of the environments, or `evaluate`, plays it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import cads_env
from cads_agents.module_learner import ModuleLearner
from cads_env.run.evaluate import proposer_seed
from cads_env.score import play_twin
from cads_env.testing import tiny_protocol
from tests.envs.campaigns import (
    action_in,
    some_action,
    tiny_env,
    tiny_panel,
    tiny_sync,
    tiny_vector,
)

PANEL: dict[str, Any] = {"registry": "synthetic-depmap-6000:dev", "rounds": 6}
SEEDS = range(500, 520)
"""Twenty campaigns on twenty registries of the panel."""

Trace = tuple[str, list[bytes], list[Any]]
"""Of one campaign: sha256 of its reads, bytes of its observations, its last info."""


def one_by_one(act: bool) -> dict[int, Trace]:
    env = gym.make("CADSScreen-v0", **PANEL)
    return {seed: trace(env, seed, act) for seed in SEEDS}


def trace(env: gym.Env[Any, Any], seed: int, act: bool) -> Trace:
    screen: Any = env.unwrapped
    seen = [env.reset(seed=seed)[0]]
    info: dict[str, Any] = {}
    over = False
    while not over:
        action = action_in(env, len(seen) - 1, seed) if act else screen.action_for([])
        observation, _, over, _, info = env.step(action)
        seen.append(observation)
    return screen.record.sha256, [bytes_of(one) for one in seen], sorted(info.items())


def bytes_of(observation: Any) -> bytes:
    return b"".join(np.asarray(observation[key]).tobytes() for key in sorted(observation))


@contextmanager
def vector(mode: str) -> Iterator[Any]:
    disabled: dict[str, Any] = {"autoreset_mode": "Disabled"}
    if mode == "async":
        # Threads of a numerical library make a plain fork unsafe; spawn is safe everywhere.
        disabled["context"] = "spawn"
    if mode == "vector_entry_point":
        envs = gym.make_vec("CADSScreen-v0", 4, **PANEL, **disabled)
    else:
        envs = gym.make_vec("CADSScreen-v0", 4, mode, disabled, **PANEL)
    try:
        yield envs
    finally:
        envs.close()


def four_at_once(envs: Any, act: bool) -> dict[int, Trace]:
    traces: dict[int, Trace] = {}
    batch, m = envs.single_action_space.nvec.size, int(envs.single_action_space.nvec[0]) - 1
    for start in SEEDS[::4]:
        seeds = list(range(start, start + 4))
        seen = [envs.reset(seed=seeds)[0]]
        for round in range(6):
            actions = [some_action(batch, m, 1000 * seed + round) for seed in seeds]
            blank = np.full((4, batch), m)
            observation, _, _, _, info = envs.step(np.stack(actions) if act else blank)
            seen.append(observation)
        for row, (seed, record) in enumerate(zip(seeds, envs.get_attr("record"), strict=True)):
            rows = [bytes_of({key: one[key][row] for key in one}) for one in seen]
            mine = [(k, v[row].item()) for k, v in info.items() if not k.startswith("_")]
            traces[seed] = record.sha256, rows, sorted(mine)
    return traces


@pytest.fixture(scope="module")
def alone() -> dict[int, Trace]:
    return one_by_one(act=True)


@pytest.fixture(scope="module")
def twins() -> dict[int, Trace]:
    return one_by_one(act=False)


@pytest.mark.parametrize("mode", ["sync", "async", "vector_entry_point"])
def test_twenty_seeds_and_their_twins_agree_in_every_byte_four_at_once(
    alone: dict[int, Trace], twins: dict[int, Trace], mode: str
) -> None:
    with vector(mode) as envs:
        assert four_at_once(envs, act=True) == alone
        assert four_at_once(envs, act=False) == twins


def test_campaigns_of_different_seeds_and_twins_are_different(
    alone: dict[int, Trace], twins: dict[int, Trace]
) -> None:
    assert len({reads for reads, _, _ in [*alone.values(), *twins.values()]}) == 40


def test_twin_environments_play_the_twins(twins: dict[int, Trace]) -> None:
    twin = cads_env.make_twin(gym.make("CADSScreen-v0", **PANEL))
    panel = cads_env.load_panel(PANEL["registry"])
    protocol = cads_env.load_protocol("standard", rounds=6)
    for seed in SEEDS:
        assert trace(twin, seed, act=True)[:2] == twins[seed][:2]
        assert play_twin(*panel.for_seed(seed), protocol, seed).sha256 == twins[seed][0]


OUTCOME = ("true", "false", "net", "gained", "lost", "originated", "displaced", "proposed_hits")


def learner_for(seed: int) -> ModuleLearner:
    oracle = tiny_panel().for_seed(seed)[1]
    return ModuleLearner(seed=proposer_seed(oracle, seed))


def learned_alone() -> Iterator[tuple[int, str, list[int]]]:
    env = tiny_env()
    screen: Any = env.unwrapped
    for seed in range(20):
        agent = learner_for(seed)
        env.reset(seed=seed)
        for _ in range(5):
            info = env.step(screen.action_for(agent.propose(screen.view)))[4]
        yield seed, screen.record.sha256, [info[key] for key in OUTCOME]


def learned_by_four(envs: Any) -> Iterator[tuple[int, str, list[int]]]:
    for start in range(0, 20, 4):
        agents = [learner_for(seed) for seed in range(start, start + 4)]
        envs.reset(seed=start)
        for _ in range(5):
            actions = np.full((4, 6), 60)
            for row, view in enumerate(envs.get_attr("view")):
                names = agents[row].propose(view)
                actions[row, : len(names)] = [view.identifiers.index(name) for name in names]
            info = envs.step(actions)[4]
        for row, record in enumerate(envs.get_attr("record")):
            yield start + row, record.sha256, [int(info[key][row]) for key in OUTCOME]


@pytest.mark.parametrize(
    "play",
    [
        learned_alone,
        lambda: learned_by_four(tiny_sync("Disabled")),
        lambda: learned_by_four(tiny_vector("Disabled")),
    ],
    ids=["env", "sync", "native"],
)
def test_an_agent_reaches_the_same_in_an_environment_as_in_evaluate(
    play: Callable[[], Iterator[tuple[int, str, list[int]]]],
) -> None:
    run = cads_env.evaluate(
        "module-learner", registry=tiny_panel(), protocol=tiny_protocol(), seeds=range(20)
    )
    frame = run.campaigns
    expected = [
        (row["seed"], row["reads_sha256"], [row[key] for key in OUTCOME])
        for row in frame.to_dict("records")
    ]
    assert list(play()) == expected
    assert frame["net"].nunique() > 2

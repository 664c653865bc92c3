"""The ids: Gymnasium's checkers, making by name anywhere, specs, and arguments."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import PassiveEnvChecker, RecordEpisodeStatistics

import cads_env
from cads_env.envs import ScreenEnv, ScreenVectorEnv, make
from cads_env.errors import ActionError, CertificateError, ProtocolError, RegistryError
from cads_env.testing import tiny_protocol, tiny_registry
from cads_env.wrappers import CertificateWrapper, IdentifierLists
from tests.envs.campaigns import SMALL, action_in, play, same, tiny_env
from tests.envs.workers import first_rounds

IDS = ("CADSScreen-v0", "CADSScreenPublished-v0")


@pytest.mark.parametrize("name", IDS)
def test_gymnasiums_checker_finds_nothing(name: str) -> None:
    check_env(gym.make(name).unwrapped)


def test_gymnasiums_checker_finds_nothing_in_the_certificate_wrapper() -> None:
    env = gym.make("CADSScreen-v0", registry=SMALL)
    with warnings.catch_warnings():
        # Its only objection: what it was given is wrapped, as it is meant to be.
        warnings.filterwarnings("ignore", message=".*different from the unwrapped version.*")
        check_env(env)


def test_the_passive_checker_is_silent_through_a_whole_campaign() -> None:
    env = gym.make("CADSScreen-v0", registry=SMALL)
    layers = []
    layer: Any = env
    while isinstance(layer, gym.Wrapper):
        layers.append(type(layer))
        layer = layer.env
    assert PassiveEnvChecker in layers
    play(env, seed=3)


def test_episode_statistics_can_be_recorded() -> None:
    env = RecordEpisodeStatistics(gym.make("CADSScreen-v0", registry=SMALL))
    last = play(env, seed=1)[-1][4]
    assert last["episode"]["l"] == 12
    assert last["episode"]["r"] == last["net"]


def test_a_bare_process_makes_the_environment_by_its_id() -> None:
    program = (
        "import gymnasium, sys; assert 'cads_env' not in sys.modules;"
        "env = gymnasium.make('cads_env:CADSScreen-v0'); obs, info = env.reset(seed=0);"
        "print(env.unwrapped.m, int(obs['proposal_slots']))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["18159", "40"]
    assert done.stderr == ""


def test_a_spawned_worker_makes_the_environment_by_its_id_and_returns_the_same() -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        loaded, there = pool.submit(first_rounds, 5).result(timeout=60)
    assert not loaded
    assert same(there, first_rounds(5)[1])


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"registry": SMALL, "q": 0.05, "epsilon_bar": 0.2, "rounds": 4},
        {"registry": SMALL, "feedback": "none", "reward": "certified", "render_mode": "ansi"},
    ],
)
def test_a_spec_survives_json_and_makes_an_equal_environment(arguments: dict[str, Any]) -> None:
    env = gym.make("CADSScreen-v0", **arguments)
    assert env.spec is not None
    spec = EnvSpec.from_json(env.spec.to_json())
    assert spec.kwargs == arguments
    again = gym.make(spec)
    assert again.spec == env.spec
    assert same(play(again, seed=2), play(env, seed=2))


def test_a_spec_holds_names_and_numbers_only() -> None:
    spec = gym.make("CADSScreen-v0", registry=SMALL, q=0.05).spec
    assert spec is not None
    assert json.loads(spec.to_json())["kwargs"] == {"registry": SMALL, "q": 0.05}


def test_a_spec_takes_other_arguments() -> None:
    spec = gym.make("CADSScreen-v0", registry=SMALL, q=0.05).spec
    assert spec is not None
    env = gym.make(spec, q=0.2, reward="none")
    assert env.get_wrapper_attr("certificate").q == 0.2
    assert env.get_wrapper_attr("reward") == "none"


def test_a_spec_keeps_the_wrappers_that_a_user_added() -> None:
    env = IdentifierLists(CertificateWrapper(gym.make("CADSScreen-v0", registry=SMALL), q=0.02))
    assert env.spec is not None
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert isinstance(again, IdentifierLists)
    assert isinstance(again.env, CertificateWrapper)
    assert again.env.certificate.q == 0.02
    assert same(play(again, seed=2), play(env, seed=2))


def test_an_environment_made_from_objects_has_no_spec() -> None:
    assert tiny_env().spec is None


@pytest.mark.parametrize("mode", [None, "sync", "vector_entry_point"])
def test_a_vector_environment_is_made_from_an_environments_spec(mode: str | None) -> None:
    env = gym.make("CADSScreen-v0", registry=SMALL, rounds=3)
    assert env.spec is not None
    envs = gym.make_vec(env.spec, num_envs=2, vectorization_mode=mode)
    kind = gym.vector.SyncVectorEnv if mode == "sync" else ScreenVectorEnv
    assert isinstance(envs, kind)
    seen, _ = envs.reset(seed=4)
    first, _ = env.reset(seed=4)
    assert same({key: value[0] for key, value in seen.items()}, first)


def test_a_vector_spec_survives_json_and_makes_an_equal_environment() -> None:
    envs = gym.make_vec(
        "CADSScreen-v0", num_envs=3, registry=SMALL, rounds=3, autoreset_mode="Disabled"
    )
    assert envs.spec is not None
    again = gym.make_vec(EnvSpec.from_json(envs.spec.to_json()))
    assert again.num_envs == 3
    assert again.spec == envs.spec
    assert same(again.reset(seed=8), envs.reset(seed=8))


def test_the_published_id_plays_the_published_protocol() -> None:
    screen: Any = gym.make("CADSScreenPublished-v0").unwrapped
    assert (screen.protocol.name, screen.panel.name) == ("proposer", "synthetic-depmap/0")


def test_the_default_id_plays_the_training_split_under_the_standard_protocol() -> None:
    screen: Any = gym.make("CADSScreen-v0").unwrapped
    assert (screen.protocol.name, screen.panel.name) == ("standard", "synthetic-depmap:train")


def test_arguments_reach_the_protocol_and_the_certificate() -> None:
    env = gym.make("CADSScreen-v0", registry=SMALL, rounds=5, quota=7, q=0.03, feedback="permuted")
    screen: Any = env.unwrapped
    assert (screen.protocol.rounds, screen.protocol.quota) == (5, 7)
    assert screen.protocol.feedback_proposer == screen.protocol.feedback_reselection == "permuted"
    assert env.get_wrapper_attr("certificate").q == 0.03
    assert len(play(env, seed=0)) == 6


def test_a_registry_and_a_protocol_are_also_taken_by_path(tmp_path: Path) -> None:
    table = tmp_path / "screen.csv"
    rows = "\n".join(f"G{i},{-1.0 if i < 8 else 0.1}" for i in range(40))
    table.write_text("gene,effect\n" + rows + "\n")
    (tmp_path / "screen.yaml").write_text(
        "source: table\nidentifier: gene\neffect: effect\ndirection: lower\nthreshold: -0.5\n"
    )
    rules = tmp_path / "mine.yaml"
    rules.write_text("name: mine\nrounds: 2\nfirst_fresh: 5\nfresh: 3\n")
    env = gym.make("CADSScreen-v0", registry=str(table), protocol=str(rules))
    screen: Any = env.unwrapped
    assert (screen.m, screen.batch, screen.protocol.name) == (40, 5, "mine")
    assert len(play(env, seed=0)) == 3


@pytest.mark.parametrize("vector", [False, True])
@pytest.mark.parametrize(
    ("arguments", "error", "pattern"),
    [
        ({"rewrd": "net"}, ProtocolError, "'rewrd'.*Did you mean 'reward'"),
        ({"epsilon_barr": 0.1}, ProtocolError, "Did you mean 'epsilon_bar'"),
        ({"round": 3}, ProtocolError, "Did you mean 'rounds'"),
        ({"name": "mine"}, ProtocolError, "'name'"),
        ({"rounds": 0}, ProtocolError, "rounds"),
        ({"law": "normal"}, ProtocolError, "law"),
        ({"q": 1.5}, CertificateError, "q"),
        ({"reward": "profit"}, ActionError, "reward is 'profit'.*net"),
        ({"registry": tiny_registry()}, RegistryError, r"cads_env\.envs\.make"),
        ({"registry": Path("screen.csv")}, RegistryError, "name or path as text"),
        ({"registry": "synthetic-depmapp"}, RegistryError, "Did you mean 'synthetic-depmap'"),
        ({"protocol": tiny_protocol()}, ProtocolError, r"cads_env\.envs\.make"),
        ({"protocol": "standrd"}, ProtocolError, "Did you mean 'standard'"),
    ],
)
def test_unusable_arguments_are_refused_by_name(
    vector: bool, arguments: dict[str, Any], error: type[Exception], pattern: str
) -> None:
    build = partial(gym.make_vec, num_envs=2) if vector else gym.make
    with pytest.raises(error, match=pattern):
        build("CADSScreen-v0", **({"registry": SMALL} | arguments))


def test_a_panel_of_unequal_sizes_is_refused() -> None:
    panel = cads_env.Panel.of([tiny_registry(60), tiny_registry(61, name="other")], name="mixed")
    with pytest.raises(RegistryError, match=r"different sizes.*cads_env\.evaluate"):
        make(panel, tiny_protocol())


@pytest.mark.parametrize("mode", ["ansi", "rgb_array"])
def test_a_render_mode_renders_every_round(mode: str) -> None:
    env = gym.make("CADSScreen-v0", registry=SMALL, render_mode=mode)
    env.reset(seed=0)
    before: Any = env.render()
    env.step(action_in(env, 0))
    after: Any = env.render()
    assert type(before) is type(after) is (str if mode == "ansi" else np.ndarray)
    assert not same(before, after)


def test_gymnasium_offers_lists_of_frames() -> None:
    env = gym.make("CADSScreen-v0", registry=SMALL, rounds=2, render_mode="rgb_array_list")
    play(env, seed=0)
    frames: Any = env.render()
    assert len(frames) == 3


def test_an_unknown_render_mode_is_refused() -> None:
    with pytest.raises(ActionError, match="render_mode is 'svg'"):
        ScreenEnv(cads_env.Panel.resolve(tiny_registry()), tiny_protocol(), render_mode="svg")
    with pytest.raises(ProtocolError, match="render_mode"):
        gym.make_vec("CADSScreen-v0", num_envs=2, registry=SMALL, render_mode="ansi")

"""The text environment: the array environment's campaign in words, and what it takes as words."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

from cads_env.envs import TextScreenEnv, make, playable_text
from cads_env.envs.text_form import LISTED_UP_TO, NAMES_SHOWN, longest_text, text_of
from cads_env.errors import ActionError, ProtocolError
from cads_env.panel import Panel
from cads_env.registry import Registry
from cads_env.testing import tiny_protocol, tiny_registry
from cads_env.wrappers import make_twin
from tests.envs.campaigns import SMALL, action_in, same, tiny_env, tiny_panel

Env = gym.Env[Any, Any]


def text_env(**arguments: Any) -> Env:
    return make(tiny_panel(), tiny_protocol(), text=True, **arguments)


def screen_of(env: Env) -> Any:
    return env.unwrapped


@pytest.fixture
def env() -> Env:
    return text_env()


def answer_in(env: Env, round: int) -> str:
    """The text that names what `action_in` names in the array environment."""
    screen = screen_of(env)
    array = screen_of(tiny_env())
    array.reset(seed=screen.campaign_seed)
    action = action_in(tiny_env(), round)
    names = [screen.identifiers[i] for i in action.tolist() if i < screen.m]
    return "\n".join(names)


@pytest.mark.parametrize("feedback", ["full", "none", "permuted"])
def test_the_same_names_give_the_same_bytes_as_in_the_array_environment(feedback: str) -> None:
    text, array = text_env(feedback=feedback), tiny_env(feedback=feedback)
    text.reset(seed=7)
    array.reset(seed=7)
    rng = np.random.default_rng(3)
    for _ in range(5):
        names = [str(n) for n in rng.choice(screen_of(array).identifiers, 4, replace=False)]
        *_, in_words = text.step(json.dumps(names))
        *_, in_numbers = array.step(screen_of(array).action_for(names))
        assert {key: in_words[key] for key in in_numbers} == in_numbers
    assert screen_of(text).record.sha256 == screen_of(array).record.sha256
    assert in_words["scored"]


def test_every_text_is_in_the_space_and_says_what_the_view_says(env: Env) -> None:
    screen = screen_of(env)
    seen, _ = env.reset(seed=1)
    for round in range(5):
        assert env.observation_space.contains(seen)
        assert seen == text_of(screen.view)
        assert f"Round {round + 1} of 5" in seen
        assert all(name in seen for name in screen.view.tested)
        high = seen.partition("Tested and high")[2].partition("\n")[0]
        assert all(name in high for name in screen.view.high)
        seen = env.step(answer_in(env, round))[0]
    assert env.observation_space.contains(seen)
    assert seen.startswith("The screen is over after 5 rounds.")
    assert "Answer with" not in seen


def test_without_feedback_nothing_is_high_or_low() -> None:
    env = text_env(feedback="none")
    env.reset(seed=0)
    seen = env.step("GENE001")[0]
    assert "results not released (6): GENE001" in seen
    assert "and high" not in seen


def test_words_of_the_registry_are_told_and_the_names_listed_up_to_a_size() -> None:
    registry, oracle = tiny_registry()
    told = dataclasses.replace(registry, assay="knockout", high_means="cells die")
    env = make((told, oracle), tiny_protocol(), text=True)
    seen, _ = env.reset(seed=0)
    assert "Assay: knockout" in seen
    assert "High means: cells die" in seen
    assert ", ".join(registry.identifiers) in seen
    large, _ = make(tiny_registry(LISTED_UP_TO + 1), tiny_protocol(), text=True).reset(seed=0)
    assert "501 candidates, too many to list" in large
    assert len(large) < 1_000


def test_the_last_answer_is_told_with_reasons_and_a_cap_that_is_said(env: Env) -> None:
    env.reset(seed=0)
    seen = env.step("GENE001, GENE002, GENE001, nonsense\tname\nFOO")[0]
    assert "2 got a place: GENE001, GENE002" in seen
    assert "GENE001 (named twice)" in seen
    assert "FOO (no candidate)" in seen
    seen = env.step("\n".join(["GENE001", *(f"Xé{i}" for i in range(60))]))[0]
    assert "61 were refused: " in seen
    assert f"and {61 - NAMES_SHOWN} more, not shown" in seen
    assert "X?0 (no candidate)" in seen
    assert env.observation_space.contains(seen)


def test_a_flood_of_long_answers_stays_within_the_computed_length(env: Env) -> None:
    screen = screen_of(env)
    longest = env.observation_space.max_length  # type: ignore[attr-defined]
    assert longest == longest_text(screen.registry, screen.protocol)
    env.reset(seed=0)
    for _ in range(5):
        seen = env.step(json.dumps(["Y" * 190] * 90))[0]
        assert len(seen) <= longest
        assert env.observation_space.contains(seen)


def test_info_counts_what_was_read_out_of_the_answer_under_constant_keys(env: Env) -> None:
    _, first = env.reset(seed=0)
    *_, info = env.step('["GENE001", "GENE002", "GENE001", "FOO"]')
    counts = ("parse_proposed", "parse_invalid", "parse_duplicate", "parse_unparsed")
    assert [first[key] for key in counts] == [0, 0, 0, 0]
    assert [info[key] for key in counts] == [2, 1, 1, 0]
    assert (info["last_raw"], info["last_invalid"], info["last_duplicate"]) == (4, 1, 1)
    *_, again = env.step("I cannot help with that.")
    assert [again[key] for key in counts] == [0, 0, 0, 1]
    assert {k: type(v) for k, v in again.items()} == {k: type(v) for k, v in first.items()}
    assert {type(value) for value in again.values()} <= {int, float, bool, str}


def test_answers_of_nothing_are_the_twin_and_the_twin_ignores_answers(env: Env) -> None:
    twin = make_twin(env)
    assert isinstance(twin.unwrapped, TextScreenEnv)
    for each, answer in ((env, ""), (twin, "GENE001, GENE002")):
        each.reset(seed=3)
        for _ in range(5):
            *_, info = each.step(answer)
        assert info["net"] == 0
    assert screen_of(env).record.sha256 == screen_of(twin).record.sha256


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("x" * 20_001, r"20,001 characters; expected at most 20,000.*playable_text"),
        ("TP53\x00", r"Character 4 of the action is '\\x00'.*playable_text"),
        ("\ud800", "no printable character"),
        (b"TP53", "is a bytes; expected the answer as text"),
        (np.array([1]), "is a ndarray; expected the answer as text"),
        (None, "is a NoneType"),
    ],
)
def test_what_is_no_text_is_refused_with_what_to_do(env: Env, action: Any, message: str) -> None:
    env.reset(seed=0)
    before = screen_of(env).view.round
    with pytest.raises(ActionError, match=message):
        env.step(action)
    assert not env.action_space.contains(action)
    assert screen_of(env).view.round == before


def test_any_text_is_made_playable_and_one_that_is_stays_as_it_is(env: Env) -> None:
    for text in ("TP53 — α\u00a0β 中文 😀\r\n", "", "x" * 20_000):
        assert playable_text(text) == text
        assert env.action_space.contains(text)
    assert playable_text("a\x00b\x1b[0m\ud800" + "x" * 30_000) == "ab[0m" + "x" * 19_992
    assert env.action_space.contains(playable_text("\x00" * 30_000))


def test_a_step_before_the_first_reset_or_after_the_end_is_refused(env: Env) -> None:
    with pytest.raises(ActionError, match="call reset"):
        env.step("GENE001")
    env.reset(seed=0)
    for _ in range(5):
        env.step("")
    with pytest.raises(ActionError, match="ended after 5 rounds"):
        env.step("")


def test_a_registry_with_longer_or_other_names_widens_the_space() -> None:
    registry, oracle = tiny_registry()
    names = tuple(f"{'λ' * 90}{i}" for i in range(registry.m))
    other = Registry("other", names, registry.description, registry.side_tables)
    env = make(Panel.of([(registry, oracle), (other, oracle)], name="two"), tiny_protocol(),
               text=True)  # fmt: skip
    narrow = env.observation_space
    for seed, round in ((0, 0), (1, 1)):
        seen, _ = env.reset(seed=seed)
        assert env.observation_space.contains(seen), round
    assert not narrow.contains(seen)
    assert env.observation_space.contains(env.reset(seed=0)[0])


def test_gymnasiums_checker_finds_nothing() -> None:
    check_env(gym.make("CADSScreenText-v0", registry=SMALL).unwrapped)


def test_a_spec_survives_json_and_makes_an_equal_environment() -> None:
    env = gym.make("CADSScreenText-v0", registry=SMALL, q=0.05, rounds=3)
    assert env.spec is not None
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert again.spec == env.spec
    assert again.get_wrapper_attr("certificate").q == 0.05
    assert same(again.reset(seed=2), env.reset(seed=2))
    assert same(again.step("TP53"), env.step("TP53"))


def test_a_vector_of_texts_is_made_by_its_id() -> None:
    envs = gym.make_vec("CADSScreenText-v0", num_envs=2, registry=SMALL, rounds=2)
    single = gym.make("CADSScreenText-v0", registry=SMALL, rounds=2)
    seen, _ = envs.reset(seed=4)
    assert seen[0] == single.reset(seed=4)[0]
    seen, *_ = envs.step(("TP53", "MYC"))
    assert seen[0] == single.step("TP53")[0]
    _, rewards, ended, *_ = envs.step(("", ""))
    assert ended.all()
    assert rewards.shape == (2,)


def test_an_unknown_argument_is_refused_by_name() -> None:
    with pytest.raises(ProtocolError, match="Did you mean 'rounds'"):
        gym.make("CADSScreenText-v0", registry=SMALL, round=3)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_in_mid_campaign_goes_on_alike(env: Env, clone: Any) -> None:
    env.reset(seed=5)
    env.step("GENE003")
    other = clone(env)
    assert same(other.step("GENE004, GENE005"), env.step("GENE004, GENE005"))

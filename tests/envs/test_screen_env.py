"""The single environment: what it returns, what it refuses, and that nothing is reused."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import Error, ResetNeeded

from cads_env.envs import make
from cads_env.errors import ActionError, ProposalError, RegistryError
from cads_env.panel import Panel
from cads_env.score import play_twin
from cads_env.testing import tiny_protocol, tiny_registry
from tests.envs.campaigns import SMALL, action_in, play, same, tiny_env, tiny_panel

Env = gym.Env[Any, Any]


@pytest.fixture
def env() -> Env:
    return tiny_env()


def screen_of(env: Env) -> Any:
    return env.unwrapped


@pytest.mark.parametrize("feedback", ["full", "none", "permuted"])
def test_every_observation_is_in_the_space_and_tells_what_the_view_tells(feedback: str) -> None:
    env = tiny_env(feedback=feedback)
    screen = screen_of(env)
    index = screen.registry.index
    seen, _ = env.reset(seed=0)
    codes = set()
    for round in range(6):
        assert env.observation_space.contains(seen)
        view = screen.view
        assert (seen["round"], seen["proposal_slots"]) == (round, view.slots)
        status = np.zeros(screen.m, np.int8)
        status[[index[name] for name in view.tested]] = 1
        status[[index[name] for name in view.low]] = 2
        status[[index[name] for name in view.high]] = 3
        assert same(seen["status"], status)
        codes |= set(status.tolist())
        if round < 5:
            seen = env.step(action_in(env, round))[0]
    assert codes == ({0, 1} if feedback == "none" else {0, 2, 3})


def test_permuted_feedback_shows_the_same_codes_on_other_candidates() -> None:
    # Re-selection sees the same in both, so that both read the same.
    full, permuted = tiny_env(), tiny_env(feedback_proposer="permuted")
    for env in (full, permuted):
        env.reset(seed=0)
    for round in range(5):
        true, other = (env.step(action_in(env, round))[0]["status"] for env in (full, permuted))
        assert np.array_equal(true > 0, other > 0)
        assert sorted(true) == sorted(other)
    assert not np.array_equal(true, other)


def test_a_quota_shows_in_the_proposal_slots() -> None:
    env = tiny_env(quota=2, first_quota=1)
    seen, _ = env.reset(seed=0)
    assert (seen["fresh_slots"], seen["proposal_slots"]) == (6, 1)
    seen = env.step(action_in(env, 0))[0]
    assert (seen["fresh_slots"], seen["proposal_slots"]) == (4, 2)


def test_a_campaign_ends_by_termination_after_its_rounds(env: Env) -> None:
    steps = play(env, seed=0)[1:]
    assert [step[2] for step in steps] == [False, False, False, False, True]
    assert all(step[3] is False and type(step[2]) is bool for step in steps)
    assert all(type(step[1]) is float for step in steps)
    seen = steps[-1][0]
    assert (seen["round"], seen["fresh_slots"], seen["proposal_slots"]) == (5, 0, 0)


def test_info_has_the_same_keys_and_plain_types_in_every_reset_and_step(env: Env) -> None:
    infos = [returned[-1] for _ in range(2) for returned in play(env, seed=0)]
    types = {key: type(value) for key, value in infos[0].items()}
    assert set(types.values()) <= {int, float, bool, str}
    for info in infos:
        assert {key: type(value) for key, value in info.items()} == types
    assert not any(key.startswith("_") or key == "episode" for key in types)


def test_info_counts_the_delivery_of_the_last_round(env: Env) -> None:
    screen = screen_of(env)
    env.reset(seed=0)
    first = np.array([3, 3, screen.m, 4, 5, 6])
    seen, *_, info = env.step(first)
    counts = {key: info[f"last_{key}"] for key in ("raw", "valid", "duplicate", "fallback")}
    assert counts == {"raw": 5, "valid": 4, "duplicate": 1, "fallback": 2}
    unseen = np.flatnonzero(seen["status"] == 0)
    info = env.step(np.array([3, *unseen[:5]]))[4]
    counts = {key: info[f"last_{key}"] for key in ("already_tested", "accepted", "over_delivered")}
    assert counts == {"already_tested": 1, "accepted": 4, "over_delivered": 1}
    assert (info["observed"], info["rounds"]) == (10, 5)


def test_the_order_of_an_action_is_the_order_of_the_proposals(env: Env) -> None:
    screen = screen_of(env)
    env.reset(seed=0)
    env.step(screen.action_for(["GENE009", "GENE002", "GENE030"]))
    assert screen.view.tested[:3] == ("GENE009", "GENE002", "GENE030")
    assert screen.view.accepted == ("GENE009", "GENE002", "GENE030")


def test_an_action_of_no_proposals_is_the_twin(env: Env) -> None:
    screen = screen_of(env)
    env.reset(seed=3)
    for _ in range(5):
        info = env.step(screen.action_for([]))[4]
    twin = play_twin(screen.registry, screen.oracle, screen.protocol, 3)
    assert screen.record.sha256 == twin.sha256
    assert info["net"] == 0


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(env: Env) -> None:
    first = play(env, seed=6)
    assert same(play(tiny_env(), seed=6), first)
    assert same(play(env, seed=6), first)
    assert not same(play(env, seed=11), first)


def test_a_seed_plays_the_registry_at_its_position_in_the_panel(env: Env) -> None:
    screen = screen_of(env)
    for seed in (0, 4, 5, 12):
        env.reset(seed=seed)
        assert screen.registry.name == f"tiny/{seed % 5}"
        assert screen.campaign_seed == seed


def test_an_option_names_the_registry_instead(env: Env) -> None:
    screen = screen_of(env)
    for position in (2, np.int64(3)):
        env.reset(seed=0, options={"registry": position})
        assert screen.registry.name == f"tiny/{position}"
        assert screen.campaign_seed == 0


def test_resets_without_a_seed_draw_campaigns_that_follow_from_the_last_seed(env: Env) -> None:
    def drawn(env: Env) -> list[int]:
        env.reset(seed=9)
        seeds = []
        for _ in range(4):
            env.reset()
            seeds.append(screen_of(env).campaign_seed)
        return seeds

    assert drawn(env) == drawn(tiny_env())
    assert len(set(drawn(env))) == 4
    seed = screen_of(env).campaign_seed
    assert same(
        play(tiny_env(), seed=seed)[-1], [env.step(action_in(env, r)) for r in range(5)][-1]
    )


def test_a_first_reset_without_a_seed_plays(env: Env) -> None:
    assert len(play(env, seed=None)) == 6


@pytest.mark.parametrize("seed", [np.int64(3), "3", 3.0, -1])
def test_seeds_are_checked_by_gymnasium(env: Env, seed: Any) -> None:
    with pytest.raises(Error, match="Seed must be"):
        env.reset(seed=seed)


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ({"registri": 1}, "Unknown reset option 'registri'"),
        ({"registry": 5}, r"options\['registry'\] is 5.*0 to 4"),
        ({"registry": -1}, "from 0 to 4"),
        ({"registry": True}, "is True"),
        ({"registry": "tiny/1"}, "is 'tiny/1'"),
        ({"registry": 1.0}, "is 1.0"),
    ],
)
def test_a_refused_reset_names_the_option_and_leaves_the_campaign(
    env: Env, options: dict[str, Any], pattern: str
) -> None:
    expected = play(env, seed=1)
    env.reset(seed=1)
    first = env.step(action_in(env, 0))
    with pytest.raises(ActionError, match=pattern):
        env.reset(seed=2, options=options)
    rest = [env.step(action_in(env, round)) for round in range(1, 5)]
    assert screen_of(env).campaign_seed == 1
    assert same([first, *rest], expected[1:])


def test_a_registry_of_another_size_is_refused_when_it_is_played() -> None:
    env = tiny_env()
    screen = screen_of(env)
    screen.panel = Panel.of([tiny_registry(60), tiny_registry(61, name="odd")], name="mixed")
    with pytest.raises(RegistryError, match="'odd' has 61 candidates"):
        env.reset(seed=1)


@pytest.mark.parametrize(
    ("action", "pattern"),
    [
        (np.zeros(5, np.int64), r"shape \(5,\).*expected \(6,\)"),
        (np.zeros((1, 6), np.int64), r"shape \(1, 6\)"),
        (np.zeros(6), "type float64"),
        (np.zeros(6, np.bool_), "type bool"),
        ([0, 1, 2, 3, 4, 61], "Entry 5 of the action is 61.*0 to 59, or 60"),
        ([0, -1, 2, 3, 4, 5], "Entry 1 of the action is -1"),
        (["GENE001"] * 6, "type <U7"),
        ([[0], [1, 2]], "not an array"),
        (None, "shape"),
        (7, r"shape \(\)"),
    ],
)
def test_a_wrong_action_is_refused_and_changes_nothing(env: Env, action: Any, pattern: str) -> None:
    expected = play(env, seed=1)
    env.reset(seed=1)
    with pytest.raises(ActionError, match=pattern):
        env.step(action)
    assert same([env.step(action_in(env, round)) for round in range(5)], expected[1:])


@pytest.mark.parametrize("kind", [list, tuple, np.int8, np.uint16, np.int32])
def test_any_whole_numbers_make_an_action(env: Env, kind: Any) -> None:
    expected = play(env, seed=1)[1]
    env.reset(seed=1)
    plain = action_in(env, 0)
    action = kind(plain.tolist()) if kind in (list, tuple) else plain.astype(kind)
    assert same(env.step(action), expected)


def test_a_step_after_the_end_raises_and_a_reset_helps(env: Env) -> None:
    expected = play(env, seed=0)
    with pytest.raises(ActionError, match=r"ended after 5 rounds; call reset\(\)"):
        env.step(action_in(env, 0))
    assert same(play(env, seed=0), expected)


def test_a_step_before_the_first_reset_raises(env: Env) -> None:
    for call in (lambda: env.step(action_in(env, 0)), env.render, lambda: screen_of(env).view):
        with pytest.raises(ActionError, match=r"call reset\(\) first"):
            call()
    made = gym.make("CADSScreen-v0", registry=SMALL)
    with pytest.raises(ResetNeeded):
        made.step(made.action_space.sample())


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        (["GENE001", "TP53"], "'TP53' is no identifier"),
        ("GENE001", "expected a list"),
        ([f"GENE{i + 1:03d}" for i in range(7)], "Received 7 identifiers; an action holds 6"),
        ([3], "3 is no identifier"),
    ],
)
def test_names_that_make_no_action_are_refused(env: Env, names: Any, pattern: str) -> None:
    with pytest.raises(ProposalError, match=pattern):
        screen_of(env).action_for(names)


@pytest.mark.parametrize("through", [pickle.loads, copy.deepcopy])
def test_a_copy_made_in_mid_campaign_goes_on_identically(env: Env, through: Any) -> None:
    made: Env = gym.make("CADSScreen-v0", registry=SMALL, rounds=4)
    for original in (env, made):
        original.reset(seed=2)
        original.step(action_in(original, 0))
        original.step(action_in(original, 1))
        state = original if through is copy.deepcopy else pickle.dumps(original)
        copied = through(state)
        rounds = range(2, screen_of(original).protocol.rounds)
        rest = [original.step(action_in(original, round)) for round in rounds]
        assert same([copied.step(action_in(copied, round)) for round in rounds], rest)
        assert same(play(copied, seed=None), play(original, seed=None))


def test_closing_twice_is_fine(env: Env) -> None:
    env.reset(seed=0)
    env.close()
    env.close()


def test_the_text_shows_counts_and_neither_seed_nor_instance() -> None:
    env = tiny_env(render_mode="ansi")
    env.reset(seed=13)
    env.step(action_in(env, 0))
    text: Any = env.render()
    assert text.startswith("60 candidates under tiny: round 1 of 5\nunseen 54, ")
    assert "13" not in text
    assert "tiny/3" not in text


def test_the_picture_has_one_cell_a_candidate_in_the_colour_of_its_status() -> None:
    env = tiny_env(render_mode="rgb_array")
    seen, _ = env.reset(seed=0)
    for round in range(5):
        picture: Any = env.render()
        assert (picture.shape, picture.dtype) == ((32, 32, 3), np.uint8)
        cells = picture[::4, ::4].reshape(-1, 3)
        assert (cells[60:] == 255).all()
        for code in np.unique(seen["status"]):
            assert len(np.unique(cells[:60][seen["status"] == code], axis=0)) == 1
        assert len(np.unique(cells[:60], axis=0)) == np.unique(seen["status"]).size
        seen = env.step(action_in(env, round))[0]


def test_a_render_mode_of_none_renders_nothing(env: Env) -> None:
    env.reset(seed=0)
    assert env.render() is None


def arrays_of(value: Any) -> list[np.ndarray[Any, Any]]:
    parts = value.values() if isinstance(value, dict) else value
    if isinstance(value, np.ndarray):
        return [value]
    return [a for part in parts for a in arrays_of(part)] if isinstance(value, dict | tuple) else []


def spoil(value: Any) -> None:
    """Overwrite all that can be overwritten in place."""
    for array in arrays_of(value):
        array[...] = 77
    for part in value if isinstance(value, tuple) else ():
        if isinstance(part, dict):
            part.clear()


def test_what_a_caller_does_to_returned_values_changes_nothing(env: Env) -> None:
    expected = play(env, seed=4)
    spoilt, untouched = tiny_env(render_mode="rgb_array"), []
    returned: Any = spoilt.reset(seed=4)
    for round in range(6):
        untouched.append(copy.deepcopy(returned))
        spoil(returned)
        spoil((spoilt.render(),))
        if round < 5:
            action = action_in(spoilt, round)
            returned = spoilt.step(action)
            action[...] = 0
    assert same(untouched, expected)


def test_no_memory_is_shared_between_calls_or_with_the_engine(env: Env) -> None:
    steps = play(env, seed=4)
    arrays = [array for step in steps for array in arrays_of(step)]
    assert len(arrays) == 6
    engine = [a for a in vars(screen_of(env)._screen).values() if isinstance(a, np.ndarray)]
    assert len(engine) > 5
    for i, array in enumerate(arrays):
        assert not any(np.may_share_memory(array, other) for other in arrays[:i] + engine)
    assert len({id(step[-1]) for step in steps}) == len({id(step[0]) for step in steps}) == 6


def test_a_record_taken_in_mid_campaign_stays_as_it_was(env: Env) -> None:
    env.reset(seed=0)
    env.step(action_in(env, 0))
    record = screen_of(env).record
    before = record.sha256
    env.step(action_in(env, 1))
    assert record.sha256 == before != screen_of(env).record.sha256


def test_environments_over_one_panel_do_not_disturb_each_other() -> None:
    panel = tiny_panel()
    left, right = (make(panel, tiny_protocol()) for _ in range(2))
    expected = play(tiny_env(), seed=1)
    left.reset(seed=1)
    right.reset(seed=2)
    steps = []
    for round in range(5):
        steps.append(left.step(action_in(left, round)))
        right.step(action_in(right, round, key=3))
    assert same(steps, expected[1:])

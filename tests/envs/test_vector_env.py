"""The native vector environment: equal to Gymnasium's own in every returned value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import Error
from gymnasium.vector import AutoresetMode

from cads_env.envs import ScreenVectorEnv, make
from cads_env.errors import ActionError, RegistryError
from cads_env.panel import Panel
from cads_env.score import play_twin, resolve_certificate
from cads_env.testing import tiny_protocol, tiny_registry
from tests.envs.campaigns import (
    action_in,
    play,
    same,
    some_action,
    tiny_env,
    tiny_panel,
    tiny_sync,
    tiny_vector,
)

MODES = ("NextStep", "SameStep", "Disabled")
Vector = Callable[..., Any]


def actions_at(step: int, n: int = 4) -> Any:
    return np.stack([some_action(6, 60, 100 * step + row) for row in range(n)])


def three_campaigns(envs: Any, mode: str) -> list[Any]:
    """Everything returned by three campaigns in a row of every row."""
    returned = [envs.reset(seed=[2, 9, 4, 4])]
    length = {"NextStep": 5 * 3 + 2, "SameStep": 15, "Disabled": 15}[mode]
    for step in range(length):
        returned.append(envs.step(actions_at(step)))
        if mode == "Disabled" and returned[-1][2].all():
            everyone = {"reset_mask": np.ones(4, np.bool_)}
            returned.append(envs.reset(seed=step, options=everyone))
    return returned


@pytest.mark.parametrize("mode", MODES)
def test_it_equals_the_sync_vector_environment_in_every_value(mode: str) -> None:
    native = three_campaigns(tiny_vector(mode), mode)
    assert same(native, three_campaigns(tiny_sync(mode), mode))
    assert sum(step[2].sum() for step in native if len(step) == 5) == 12


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_it_equals_the_sync_vector_environment_after_partial_resets(mode: str) -> None:
    def mixed(envs: Any) -> list[Any]:
        returned = [envs.reset(seed=0)]
        for step in range(22):
            returned.append(envs.step(actions_at(step)))
            if step in (1, 2, 8):
                mask = np.array([step == 1, True, step == 8, False])
                seed = None if step == 8 else 70 + step
                returned.append(envs.reset(seed=seed, options={"reset_mask": mask}))
        return returned

    native = mixed(tiny_vector(mode))
    assert same(native, mixed(tiny_sync(mode)))
    ends = {tuple(step[2].tolist()) for step in native if len(step) == 5}
    assert len(ends) > 3


def test_partial_resets_keep_cohorts_apart_while_autoreset_is_disabled() -> None:
    def staggered(envs: Any) -> list[Any]:
        returned = [envs.reset(seed=0)]
        for step in range(2):
            returned.append(envs.step(actions_at(step)))
        late = np.array([False, True, False, True])
        returned.append(envs.reset(seed=[None, 8, None, 9], options={"reset_mask": late}))
        for step in range(3):
            returned.append(envs.step(actions_at(10 + step)))
        assert returned[-1][2].tolist() == [True, False, True, False]
        returned.append(envs.reset(seed=30, options={"reset_mask": ~late}))
        for step in range(2):
            returned.append(envs.step(actions_at(20 + step)))
        assert returned[-1][2].tolist() == [False, True, False, True]
        return returned

    native = tiny_vector("Disabled")
    assert same(staggered(native), staggered(tiny_sync("Disabled")))
    assert native.get_attr("campaign_seed") == (30, 8, 32, 9)


def test_rows_equal_single_environments_in_every_byte() -> None:
    envs = tiny_vector("Disabled")
    seen, info = envs.reset(seed=7)
    steps = [(seen, info)] + [envs.step(actions_at(step)) for step in range(5)]
    for row in range(4):
        env = tiny_env()
        alone: list[Any] = [env.reset(seed=7 + row)]
        alone += [env.step(actions_at(step)[row]) for step in range(5)]
        for together, single in zip(steps, alone, strict=True):
            for key, value in single[0].items():
                assert same(together[0][key][row], value)
            for key, value in single[-1].items():
                assert together[-1][key][row] == value
        screen: Any = env.unwrapped
        assert envs.get_attr("record")[row].sha256 == screen.record.sha256


@pytest.mark.parametrize("kind", [tiny_vector, tiny_sync])
@pytest.mark.parametrize("mode", MODES)
def test_each_of_three_campaigns_in_a_row_is_the_campaign_that_its_seed_names(
    kind: Vector, mode: str
) -> None:
    envs = kind(mode)
    envs.reset(seed=20)
    alone = tiny_env()
    for number in range(3):
        seeds = envs.get_attr("campaign_seed")
        assert number or seeds == (20, 21, 22, 23)
        rewards = np.zeros(4)
        for round in range(5):
            actions = np.stack([some_action(6, 60, 1000 * row + round) for row in range(4)])
            _, paid, ended, _, info = envs.step(actions)
            rewards += paid
            assert ended.tolist() == [round == 4] * 4
        final = info["final_info"] if mode == "SameStep" else info
        for row in range(4):
            steps = play(alone, seeds[row], key=row)
            assert len(steps) == 6
            assert sum(step[1] for step in steps[1:]) == rewards[row] == final["net"][row]
        if mode == "NextStep":
            _, paid, ended, _, info = envs.step(actions)
            assert not paid.any()
            assert not ended.any()
        elif mode == "Disabled":
            envs.reset(seed=40 * number + 50)


@pytest.mark.parametrize("mode", ["NextStep", "Disabled"])
def test_a_registered_vector_environment_plays_twelve_rounds_each_time(mode: str) -> None:
    envs = gym.make_vec(
        "CADSScreen-v0", num_envs=2, registry="synthetic-depmap-6000/0", autoreset_mode=mode
    )
    lengths: list[int] = []
    length = 0
    envs.reset(seed=0)
    while len(lengths) < 3:
        _, _, ended, _, info = envs.step(envs.action_space.sample())
        length += 1
        if ended.any():
            assert ended.all()
            assert info["scored"].all()
            lengths.append(length)
            length = 0
            if mode == "Disabled":
                envs.reset(seed=len(lengths))
            else:
                envs.step(envs.action_space.sample())
    assert lengths == [12, 12, 12]


def test_same_step_hands_over_the_end_of_the_finished_campaign() -> None:
    envs = tiny_vector("SameStep", n=2)
    envs.reset(seed=3)
    for step in range(5):
        seen, rewards, ended, _, info = envs.step(actions_at(step, 2))
    assert ended.all()
    assert seen["round"].tolist() == [0, 0]
    assert not info["scored"].any()
    assert [final["round"] for final in info["final_obs"]] == [5, 5]
    assert info["final_info"]["scored"].all()
    assert info["final_info"]["net"].tolist() == rewards.tolist()


@pytest.mark.parametrize("mode", MODES)
def test_it_states_its_mode_and_its_spaces_hold_what_it_returns(mode: str) -> None:
    envs = tiny_vector(mode)
    sync = tiny_sync(mode)
    assert envs.metadata["autoreset_mode"] is AutoresetMode(mode)
    assert envs.single_observation_space == sync.single_observation_space
    assert envs.observation_space == sync.observation_space
    assert envs.action_space == sync.action_space
    seen, _ = envs.reset(seed=0)
    assert envs.observation_space.contains(seen)
    assert envs.observation_space.contains(envs.step(envs.action_space.sample())[0])


@pytest.mark.skipif(
    gym.__version__.startswith("1.1."), reason="DictInfoToList of Gymnasium 1.1 loses statistics"
)
def test_vector_wrappers_of_gymnasium_fit() -> None:
    wrapped = gym.wrappers.vector.RecordEpisodeStatistics(tiny_vector("NextStep"))
    listed = gym.wrappers.vector.DictInfoToList(wrapped)
    listed.reset(seed=0)
    for step in range(5):
        infos: Any = listed.step(actions_at(step))[4]
    assert [info["episode"]["l"] for info in infos] == [5] * 4
    assert [info["episode"]["r"] for info in infos] == [info["net"] for info in infos]


def test_returned_arrays_belong_to_the_caller() -> None:
    expected = three_campaigns(tiny_vector("NextStep"), "NextStep")
    envs = tiny_vector("NextStep")
    spoilt: Any = envs.reset(seed=[2, 9, 4, 4])
    for step in range(17):
        assert same(spoilt, expected[step])
        for array in (*spoilt[0].values(), *spoilt[-1].values(), *spoilt[1:-1]):
            array[...] = 1
        spoilt[-1].clear()
        actions = actions_at(step)
        spoilt = envs.step(actions)
        actions[...] = 0
    assert same(spoilt, expected[17])


@pytest.mark.parametrize("reward", ["certified", "none"])
def test_the_reward_is_that_of_the_single_environment(reward: str) -> None:
    protocol = tiny_protocol(rounds=8, noise_sd=0.1)
    judge = resolve_certificate({"q": 0.4}, protocol)
    envs = ScreenVectorEnv(
        tiny_panel(), protocol, judge, num_envs=3, reward=reward, autoreset_mode="Disabled"
    )
    envs.reset(seed=0)
    for step in range(8):
        paid = envs.step(actions_at(step, 3))[1]
    env = make(tiny_panel(), protocol, certificate=judge, reward=reward)
    for row in range(3):
        env.reset(seed=row)
        for step in range(8):
            alone = env.step(actions_at(step, 3)[row])[1]
        assert alone == paid[row]
    assert paid.any() == (reward == "certified")


def test_values_of_each_campaign_are_had_as_from_the_sync_vector_environment() -> None:
    native, sync = tiny_vector(), tiny_sync()
    for envs in (native, sync):
        envs.reset(seed=1)
        envs.step(actions_at(0))
    for name in ("view", "campaign_seed", "registry", "oracle", "identifiers", "m", "reward"):
        assert native.get_attr(name) == sync.get_attr(name)
    mine, theirs = native.get_attr("record"), sync.get_attr("record")
    assert [r.sha256 for r in mine] == [r.sha256 for r in theirs]


def test_an_unknown_value_is_refused_with_a_suggestion() -> None:
    envs = tiny_vector()
    with pytest.raises(ActionError, match=r"reset\(\) first"):
        envs.get_attr("view")
    with pytest.raises(AttributeError, match="Did you mean 'record'"):
        envs.get_attr("records")


def test_rows_without_proposals_are_their_twins() -> None:
    envs = tiny_vector("Disabled")
    envs.reset(seed=5)
    for _ in range(5):
        info = envs.step(np.full((4, 6), 60))[4]
    assert info["net"].tolist() == [0] * 4
    for row, record in enumerate(envs.get_attr("record")):
        pair = tiny_panel().for_seed(5 + row)
        assert record.sha256 == play_twin(*pair, tiny_protocol(), 5 + row).sha256


@pytest.mark.parametrize(
    ("seed", "error"),
    [
        ([1, 2], ActionError),
        (np.int64(3), ActionError),
        ("1234", Error),
        (-1, Error),
        ([0, 1, 2, -3], Error),
        ([0, 1, 2, np.int64(3)], Error),
        (2.0, ActionError),
        (True, ActionError),
    ],
)
def test_unusable_seeds_are_refused_and_leave_the_campaigns(
    seed: Any, error: type[Exception]
) -> None:
    envs, untouched = tiny_vector(), tiny_vector()
    for env in (envs, untouched):
        env.reset(seed=3)
        env.step(actions_at(0))
    with pytest.raises(error):
        envs.reset(seed=seed)
    for step in range(1, 7):
        assert same(envs.step(actions_at(step)), untouched.step(actions_at(step)))


@pytest.mark.parametrize(
    ("mask", "pattern"),
    [
        (np.zeros(4, np.bool_), "at least one True"),
        (np.ones(3, np.bool_), "4 booleans"),
        (np.ones(4, np.int64), "4 booleans"),
    ],
)
def test_an_unusable_reset_mask_is_refused(mask: Any, pattern: str) -> None:
    envs = tiny_vector()
    envs.reset(seed=0)
    with pytest.raises(ActionError, match=pattern):
        envs.reset(seed=0, options={"reset_mask": mask})


def test_the_first_reset_starts_every_campaign() -> None:
    mask = np.array([True, False, True, True])
    with pytest.raises(ActionError, match="first reset starts every campaign"):
        tiny_vector().reset(seed=0, options={"reset_mask": mask})


def test_options_name_the_registry_of_all_that_start_and_are_left_as_they_were() -> None:
    envs = tiny_vector()
    envs.reset(seed=0)
    options = {"reset_mask": np.array([True, False, False, True]), "registry": 2}
    envs.reset(seed=0, options=options)
    names = [registry.name for registry in envs.get_attr("registry")]
    assert names == ["tiny/2", "tiny/1", "tiny/2", "tiny/2"]
    assert set(options) == {"reset_mask", "registry"}
    with pytest.raises(ActionError, match="Unknown reset option 'seed'"):
        envs.reset(options={"seed": 3})


def actions_with(row: int, entry: int) -> Any:
    actions = actions_at(0)
    actions[row, 2] = entry
    return actions


@pytest.mark.parametrize(
    ("actions", "pattern"),
    [
        (actions_at(0)[:3], r"shape \(3, 6\); expected \(4, 6\)"),
        (actions_at(0)[0], r"shape \(6,\)"),
        (actions_at(0).astype(np.float64), "Campaign 0: .*float64"),
        (actions_with(2, 61), "Campaign 2: Entry 2 of the action is 61"),
        (actions_with(3, -1), "Campaign 3: Entry 2 of the action is -1"),
        ([[0] * 6, [0] * 5, [0] * 6, [0] * 6], "no array"),
        (None, r"shape \(\)"),
    ],
)
def test_a_wrong_action_is_refused_and_no_campaign_moves(actions: Any, pattern: str) -> None:
    envs, untouched = tiny_vector(), tiny_vector()
    for env in (envs, untouched):
        env.reset(seed=3)
    with pytest.raises(ActionError, match=pattern):
        envs.step(actions)
    for step in range(6):
        assert same(envs.step(actions_at(step)), untouched.step(actions_at(step)))


def test_a_step_before_the_first_reset_raises() -> None:
    with pytest.raises(ActionError, match=r"call reset\(\) first"):
        tiny_vector().step(actions_at(0))


def test_a_step_of_finished_campaigns_raises_while_autoreset_is_disabled() -> None:
    envs = tiny_vector("Disabled")
    envs.reset(seed=0)
    envs.step(actions_at(0))
    envs.reset(seed=5, options={"reset_mask": np.array([False, True, False, False])})
    for step in range(4):
        envs.step(actions_at(step))
    records = [record.sha256 for record in envs.get_attr("record")]
    with pytest.raises(ActionError, match=r"Campaigns \[0, 2, 3\] are over.*reset_mask"):
        envs.step(actions_at(0))
    assert [record.sha256 for record in envs.get_attr("record")] == records


@pytest.mark.parametrize("changes", [{"num_envs": 0}, {"num_envs": True}, {"num_envs": "2"}])
def test_an_unusable_number_of_campaigns_is_refused(changes: dict[str, Any]) -> None:
    judge = resolve_certificate(None, tiny_protocol())
    with pytest.raises(ActionError, match="num_envs"):
        ScreenVectorEnv(tiny_panel(), tiny_protocol(), judge, **changes)


def test_an_unknown_mode_and_a_mixed_panel_are_refused() -> None:
    with pytest.raises(ActionError, match=r"autoreset_mode is 'Never'.*'SameStep'"):
        tiny_vector("Never")
    mixed = Panel.of([tiny_registry(60), tiny_registry(61, name="other")], name="mixed")
    judge = resolve_certificate(None, tiny_protocol())
    with pytest.raises(RegistryError, match="different sizes"):
        ScreenVectorEnv(mixed, tiny_protocol(), judge, num_envs=2)


def test_it_renders_nothing_and_closes_twice() -> None:
    envs = tiny_vector()
    envs.reset(seed=0)
    assert envs.render() is None  # type: ignore[func-returns-value]
    envs.close()
    envs.close()


def test_a_single_campaign_is_a_vector_of_one() -> None:
    envs = tiny_vector("Disabled", n=1)
    env = tiny_env()
    envs.reset(seed=6)
    env.reset(seed=6)
    for round in range(5):
        action = action_in(env, round)
        together, alone = envs.step(action[None]), env.step(action)
        assert same(together[0]["status"][0], alone[0]["status"])
    assert together[1][0] == alone[1]

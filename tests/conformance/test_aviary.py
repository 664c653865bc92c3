"""The Aviary environment under the real package: tools, text, data set."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any

import gymnasium as gym
import pytest

pytestmark = pytest.mark.conformance

SMALL = {"registry": "synthetic-depmap-6000/0", "rounds": 3}
NAMES = "TP53\nMYC\nKRAS"


def adapter() -> Any:
    pytest.importorskip("aviary.core", reason="fhaviary is not installed")
    return importlib.import_module("cads_env.adapters.aviary_env")


def by_hand(seed: int, answer: str = NAMES) -> tuple[list[str], float]:
    env = gym.make("CADSScreenText-v0", **SMALL)
    texts: list[Any] = [env.reset(seed=seed)[0]]
    for _ in range(3):
        seen, reward, *_ = env.step(answer)
        texts.append(seen)
    return texts, float(reward)


async def play(env: Any, message: Any) -> tuple[list[str], float, list[Any]]:
    (first,), _ = await env.reset()
    texts, over = [first.content], False
    while not over:
        seen, reward, over, is_truncated = await env.step(message)
        assert not is_truncated
        texts.append(seen[-1].content)
    return texts, reward, seen


def test_a_campaign_by_text_and_one_by_tool_calls_are_the_same() -> None:
    core: Any = importlib.import_module("aviary.core") if adapter() else None
    call = core.ToolCall.from_name("propose", names=NAMES)
    for message in (core.Message(content=NAMES), core.ToolRequestMessage(tool_calls=[call])):
        texts, reward, _ = asyncio.run(play(adapter().AviaryScreen(3, **SMALL), message))
        assert (texts, reward) == by_hand(3)


def test_several_calls_are_one_answer_and_an_unknown_tool_is_told() -> None:
    module = adapter()
    core: Any = importlib.import_module("aviary.core")
    calls = [core.ToolCall.from_name("propose", names=name) for name in ("TP53", "MYC", "KRAS")]
    calls.append(core.ToolCall.from_name("delete", names="TP53"))
    env = module.AviaryScreen(1, **SMALL)
    texts, reward, last = asyncio.run(play(env, core.ToolRequestMessage(tool_calls=calls)))
    assert (texts, reward) == by_hand(1)
    assert [message.content for message in last[:-1]] == ["Taken."] * 3 + ["No tool 'delete'."]
    assert [message.tool_call_id for message in last[:-1]] == [call.id for call in calls]
    assert env.export_frame().info["scored"]


def test_the_data_set_gives_each_campaign_by_its_number_and_by_its_name() -> None:
    core: Any = importlib.import_module("aviary.core") if adapter() else None
    screens = core.TaskDataset.from_name("cads-screen", seeds=2, **SMALL)
    assert len(screens) == 2
    batches = list(screens.iter_batches(1))
    assert [asyncio.run(env.get_id()) for (env,) in batches] == ["0", "1"]
    (seen,), (tool,) = asyncio.run(batches[1][0].reset())
    assert seen.content == by_hand(1)[0][0]
    assert tool.info.name == "propose"
    assert set(tool.info.get_properties()) == {"names"}
    with pytest.raises(IndexError):
        screens.get_new_env_by_idx(2)

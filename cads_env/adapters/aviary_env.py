"""An Aviary environment: one campaign over messages, with one tool that proposes.

`AviaryScreen` is one campaign, `AviaryScreens` a data set of campaigns. A message is a round,
whether it calls the tool or answers in text; nothing a message says can end a campaign early.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import gymnasium as gym

from cads_env.envs import playable_text
from cads_env.envs.factory import DEFAULT_PROTOCOL, DEFAULT_REGISTRY
from cads_env.errors import ActionError, MissingExtraError

try:
    from aviary.core import (
        TASK_DATASET_REGISTRY,
        Environment,
        Frame,
        Message,
        TaskDataset,
        Tool,
        ToolRequestMessage,
        ToolResponseMessage,
    )
except ImportError as error:
    MSG: Final = "The Aviary environment needs fhaviary; run: pip install 'cads-env[aviary]'"
    raise MissingExtraError(MSG) from error


class AviaryScreen(Environment[None]):
    """A discovery screen for agents that call tools or answer in text."""

    def __init__(
        self,
        seed: int = 0,
        *,
        registry: str = DEFAULT_REGISTRY,
        protocol: str = DEFAULT_PROTOCOL,
        reward: str = "net",
        **overrides: Any,
    ) -> None:
        """A campaign, not yet started.

        Args:
            seed: Which campaign, a whole number from 0.
            registry: Name or path of a registry or panel.
            protocol: Preset name or path.
            reward: "net", "certified" or "none", paid at the end.
            **overrides: Protocol and certificate fields.
        """
        self.state = None
        self.tools: list[Tool] = []
        self._seed = seed
        self._info: dict[str, Any] = {}
        self._env: gym.Env[str, str] = gym.make(
            "cads_env:CADSScreenText-v0",
            registry=registry,
            protocol=protocol,
            reward=reward,
            **overrides,
        )

    async def reset(self) -> tuple[list[Message], list[Tool]]:
        """Start the campaign: the first text, and the tool `propose`."""
        self.tools = [Tool.from_function(propose)]
        seen, self._info = await asyncio.to_thread(self._env.reset, seed=self._seed)
        return [Message(content=seen)], self.tools

    async def step(self, action: Message) -> tuple[list[Message], float, bool, bool]:
        """Play one round with the names of a message: those of its tool calls, else of its text.

        Args:
            action: The agent's message. Several calls are one answer, in order.

        Returns:
            Messages, reward, whether the campaign is over, and False.
        """
        calls = action.tool_calls if isinstance(action, ToolRequestMessage) else []
        proposals = [call for call in calls if call.function.name == propose.__name__]
        texts = [str(call.function.arguments.get("names", "")) for call in proposals]
        answer = "\n".join(texts) if calls else action.content or ""
        seen, reward, ended, _, self._info = await asyncio.to_thread(
            self._env.step, playable_text(answer)
        )
        replies: list[Message] = [
            ToolResponseMessage.from_call(
                call,
                content="Taken." if call in proposals else f"No tool {call.function.name!r}.",
            )
            for call in calls
        ]
        return [*replies, Message(content=seen)], float(reward), ended, False

    async def get_id(self) -> str:
        """The number of the campaign."""
        return str(self._seed)

    def export_frame(self) -> Frame:
        """Counts so far, and the outcome once the campaign is over."""
        return Frame(info=dict(self._info))


def propose(names: str) -> None:
    """Propose candidates to test in the coming round.

    Args:
        names: Names of candidates, one a line, most promising first.
    """


class AviaryScreens(TaskDataset[AviaryScreen]):
    """Campaigns 0 to `seeds - 1` of a panel."""

    def __init__(self, seeds: int = 20, **arguments: Any) -> None:
        """The campaigns.

        Args:
            seeds: Number of campaigns, at least 1.
            **arguments: As for `AviaryScreen`.

        Raises:
            ActionError: `seeds` is no whole number from 1.
        """
        if isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1:
            msg = f"seeds is {seeds!r}; expected the number of campaigns, a whole number from 1."
            raise ActionError(msg)
        self._seeds, self._arguments = seeds, arguments

    def __len__(self) -> int:
        """Number of campaigns."""
        return self._seeds

    def get_new_env_by_idx(self, idx: int) -> AviaryScreen:
        """Campaign `idx`, not yet started."""
        return AviaryScreen(range(self._seeds)[idx], **self._arguments)


TASK_DATASET_REGISTRY.setdefault("cads-screen", (__name__, AviaryScreens.__name__))

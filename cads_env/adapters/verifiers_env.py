"""A `verifiers` environment: a chat over the rounds of a campaign, rewarded with what it nets.

`load_environment(registry=..., seeds=...)` makes one. The loaders of verifiers know this module as
`cads_screen` once it is imported; their command line needs a file `cads_screen.py` on the path with
`from cads_env.adapters.verifiers_env import *`. A campaign cut short fails: it is never a 0.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import Any, Final, Literal, SupportsFloat

import gymnasium as gym

from cads_env.envs import playable_text
from cads_env.envs.factory import DEFAULT_PROTOCOL, DEFAULT_REGISTRY
from cads_env.errors import MissingExtraError

try:
    import httpx
    import verifiers.v1 as vf
    from pydantic import Field
    from verifiers.v1.dialects.chat import message_to_wire
except ImportError as error:
    MSG: Final = "The verifiers environment needs verifiers; run: pip install 'cads-env[verifiers]'"
    raise MissingExtraError(MSG) from error

__all__ = ["ScreenChat", "ScreenEnvironment", "ScreenTaskset", "load_environment"]

TASKSET_ID: Final = "cads_screen"
METRICS: Final = ("net", "true", "false", "twin_true", "twin_false", "declared")
"""What is recorded of a campaign beside its reward."""

sys.modules.setdefault(TASKSET_ID, sys.modules[__name__])


class ScreenTasksetConfig(vf.TasksetConfig):
    """Which campaigns: `seeds` of them from `first_seed` on."""

    registry: str = DEFAULT_REGISTRY
    protocol: str = DEFAULT_PROTOCOL
    reward: Literal["net", "certified"] = "net"
    first_seed: int = 0
    seeds: int = 32
    overrides: dict[str, Any] = Field(default_factory=dict)


class ScreenData(vf.TaskData):
    """One campaign: what `gym.make` takes, and its number; the model sees neither."""

    arguments: dict[str, Any]
    seed: int


class ScreenTask(vf.Task[ScreenData]):
    """A campaign, opened by the environment's first text, which also records its reward."""


class ScreenTaskset(vf.Taskset[ScreenTask, ScreenTasksetConfig]):
    """The campaigns of a panel, in order."""

    def load(self) -> Iterator[ScreenTask]:
        """One task a campaign."""
        own = self.config
        named = {"registry": own.registry, "protocol": own.protocol, "reward": own.reward}
        for seed in range(own.first_seed, own.first_seed + own.seeds):
            data = ScreenData(arguments={**named, **own.overrides}, seed=seed)
            yield ScreenTask(data, own.task)


class ScreenChat(vf.Harness[vf.HarnessConfig]):
    """Asks the model for one answer a turn, in this process and without tools."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """One request over the whole conversation so far."""
        system, prompt = self.resolve_prompt(data)
        messages = [{"role": "system", "content": system}] if system else []
        said = [vf.UserMessage(content=prompt)] if isinstance(prompt, str) else prompt or []
        messages += [message_to_wire(message) for message in said]
        async with httpx.AsyncClient(timeout=None) as client:
            reply = await client.post(
                f"{endpoint.rstrip('/')}/chat/completions",
                headers={"authorization": f"Bearer {secret}"},
                json={"model": ctx.model, "messages": messages},
            )
        return vf.ProgramResult(exit_code=int(reply.is_error), stdout="", stderr=reply.text)


class ScreenEnvironmentConfig(vf.EnvConfig):
    """One seat, `player`; by default it chats in this process."""

    player: vf.AgentConfig = vf.AgentConfig(
        harness=vf.HarnessConfig(id=TASKSET_ID), runtime=vf.SubprocessConfig()
    )


class ScreenEnvironment(vf.Env[ScreenEnvironmentConfig]):
    """Plays one campaign an episode: the text environment is the user, the model the player."""

    async def run(self, task: ScreenTask, agents: vf.Agents) -> None:
        """One episode: a round a turn, and the reward at its end."""
        # Off the event loop: a registry is loaded here, and a twin is played at the end.
        env = await asyncio.to_thread(_open, task.data.arguments)
        seen, _ = await asyncio.to_thread(env.reset, seed=task.data.seed)
        reward: SupportsFloat = 0.0
        ended, info = False, dict[str, Any]()
        async with agents.player.interaction(task) as interaction:
            segment = await interaction.turn(seen)
            while not segment.terminated:
                answer = playable_text(segment.last_reply)
                seen, reward, ended, _, info = await asyncio.to_thread(env.step, answer)
                if ended:
                    break
                segment = await interaction.turn(seen)
        if not ended:
            msg = f"The campaign stopped after {info.get('observed', 0)} candidates; see its trace."
            raise vf.EnvError(msg)
        interaction.trace.record_reward(task.data.arguments["reward"], float(reward), 1.0)
        interaction.trace.record_metrics({name: float(info[name]) for name in METRICS})


def load_environment(**taskset: Any) -> vf.Env:
    """The environment over these campaigns.

    Args:
        **taskset: Fields of `ScreenTasksetConfig`.
    """
    config = {"taskset": {"id": TASKSET_ID, **taskset}}
    return vf.load_environment(vf.resolve_env_config(config))


def _open(arguments: dict[str, Any]) -> gym.Env[Any, Any]:
    return gym.make("cads_env:CADSScreenText-v0", **arguments)

"""An Inspect task: the model under test plays campaigns, and the score is what it nets.

`inspect eval cads_env/cads_screen --model ...`, or the path of this file in place of the name. One
sample is one campaign; what a sample shows is the text environment's, so no seed reaches the model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import gymnasium as gym

from cads_env.envs import playable_text
from cads_env.envs.factory import DEFAULT_PROTOCOL
from cads_env.errors import ActionError, MissingExtraError

try:
    from inspect_ai import Task, task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ChatMessageUser
    from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
    from inspect_ai.solver import Generate, Solver, TaskState, solver
except ImportError as error:
    MSG: Final = "The Inspect task needs inspect-ai; run: pip install 'cads-env[inspect]'"
    raise MissingExtraError(MSG) from error

VALUES: Final = ("net", "true", "false", "twin_true", "twin_false", "originated", "gained", "lost")
"""What is scored of a campaign, under the names of `cads_env.score.Outcome`."""
_OUTCOME: Final = "cads_outcome"


@task
def cads_screen(
    registry: str = "synthetic-depmap:dev",
    protocol: str = DEFAULT_PROTOCOL,
    seeds: int = 20,
    overrides: Mapping[str, Any] | None = None,
) -> Task:
    """Campaigns 0 to `seeds - 1` of a panel.

    Args:
        registry: Name or path of a registry or panel.
        protocol: Preset name or path.
        seeds: Number of campaigns, at least 1.
        overrides: Protocol and certificate fields, such as `{"feedback": "none"}`.

    Raises:
        ActionError: `seeds` is no whole number from 1.
    """
    if isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1:
        msg = f"seeds is {seeds!r}; expected the number of campaigns, a whole number from 1."
        raise ActionError(msg)
    arguments = {"registry": registry, "protocol": protocol, **(overrides or {})}
    env = _open(arguments)
    samples = [
        Sample(input=env.reset(seed=seed)[0], id=seed, metadata={"seed": seed})
        for seed in range(seeds)
    ]
    return Task(
        dataset=MemoryDataset(samples, name=registry),
        solver=play_campaign(arguments),
        scorer=campaign_score(),
    )


@solver
def play_campaign(arguments: dict[str, Any]) -> Solver:
    """Plays a whole campaign: each answer of the model is one round.

    Args:
        arguments: What `gym.make("CADSScreenText-v0")` takes.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        # Off the event loop: a registry is loaded here, and a twin is played at the end.
        env = await asyncio.to_thread(_open, arguments)
        await asyncio.to_thread(env.reset, seed=state.metadata["seed"])
        while True:
            state = await generate(state)
            answer = playable_text(state.output.completion)
            seen, _, ended, _, info = await asyncio.to_thread(env.step, answer)
            if ended:
                state.store.set(_OUTCOME, info)
                return state
            state.messages.append(ChatMessageUser(content=seen))

    return solve


@scorer(metrics={"*": [mean(), stderr()]})
def campaign_score() -> Scorer:
    """True and false declarations, the twin's, and the net between them.

    A campaign that a limit cut short has no score, rather than a net of 0.
    """

    async def score(state: TaskState, target: Target) -> Score | None:
        info = state.store.get(_OUTCOME)
        if info is None:
            return None
        return Score(
            value={name: info[name] for name in VALUES},
            explanation=f"{info['true']} true declarations, {info['twin_true']} of the twin",
            metadata=dict(info),
        )

    return score


def _open(arguments: Mapping[str, Any]) -> gym.Env[str, str]:
    return gym.make("cads_env:CADSScreenText-v0", **arguments)

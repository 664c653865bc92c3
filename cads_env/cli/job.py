"""What `cads run` is asked for, found and checked: agents, settings, protocol, panel, seeds.

Reads files and loads registries; plays nothing and prints nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from cads_env.cli.run_file import Asked, with_run_files
from cads_env.errors import RunError
from cads_env.panel import Panel, load_panel
from cads_env.protocol import Protocol, load_protocol
from cads_env.run.agents import AgentSpec, find_agents, resolve_agents
from cads_env.run.evaluate import DEFAULT_PANEL, DEFAULT_PROTOCOL, DEFAULT_SEEDS
from cads_env.run.settings import Setting, protocol_of, settings_of
from cads_env.run.vary import vary, with_options

DEFAULT_AGENTS: Final = ("random", "prior", "module-learner")
PROMPT: Final = "prompt"
"""The option of which each value of --prompt makes an arm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be played.

    Attributes:
        specs: The agents, one an arm.
        settings: Feedback and identifiers; one for a plain run, several for a grid.
        protocol: Without the feedback of a setting.
        panel: Seed k plays `panel[k % len(panel)]`.
        seeds: Campaigns of each arm in each setting.
        options: Other keyword arguments of `evaluate`.
    """

    specs: tuple[AgentSpec, ...]
    settings: tuple[Setting, ...]
    protocol: Protocol
    panel: Panel
    seeds: tuple[int, ...]
    options: dict[str, Any]

    @property
    def total(self) -> int:
        """Campaigns in all."""
        return len(self.specs) * len(self.settings) * len(self.seeds)

    @property
    def asking_rounds(self) -> int:
        """Rounds in all of the arms that keep a journal of what they ask."""
        asking = sum(spec.accepts("journal") for spec in self.specs)
        return asking * len(self.settings) * len(self.seeds) * self.protocol.rounds


def job_of(asked: Asked) -> Job:
    """What is asked for, with what `cads run` does where nothing is said.

    Raises:
        CadsError: Something is unknown or unusable.
    """
    if asked.panel is not None and asked.registry:
        msg = "Both --panel and --registry were given; expected one of them."
        raise RunError(msg)
    typed, asked = asked, with_run_files(asked)
    names = list(asked.registry) or asked.panel or DEFAULT_PANEL
    rules = load_protocol(asked.protocol or DEFAULT_PROTOCOL, **asked.set)
    if asked.budget is not None:
        rules = rules.with_budget(asked.budget)
    settings = settings_of(asked.feedback, asked.identifiers)
    for setting in settings:
        protocol_of(setting, rules)
    found = find_agents(list(asked.agents or DEFAULT_AGENTS))
    asked = _fitting(asked, typed, found)
    arms = vary(with_options(found, asked.agent_options), PROMPT, asked.prompts)
    fields = {"q": asked.q, "epsilon_bar": asked.epsilon_bar, "audit": asked.audit}
    return Job(
        specs=tuple(resolve_agents(arms)),
        settings=settings,
        protocol=rules,
        panel=load_panel(names, **asked.options),
        seeds=asked.seeds or tuple(DEFAULT_SEEDS),
        options={
            "certificate": {k: v for k, v in fields.items() if v is not None},
            "keep_reads": bool(asked.keep_reads),
            "retry_failed": bool(asked.retry_failed),
            **_given(asked, "jobs", "concurrency", "max_cost", "max_tokens"),
        },
    )


def _fitting(asked: Asked, typed: Asked, found: list[AgentSpec]) -> Asked:
    """Without what a run file says for its own agents, where others were typed that lack it."""
    has_run_file = asked.agents != typed.agents
    if not has_run_file or any(agent not in typed.agents for agent in asked.agents):
        # Nothing was replaced, so what nobody has is a mistake.
        return asked
    accepted = {name for spec in found for name in spec.parameters}
    options = {
        name: value
        for name, value in asked.agent_options.items()
        if name in typed.agent_options or name in accepted
    }
    keeps_prompts = bool(typed.prompts) or PROMPT in accepted
    return replace(asked, agent_options=options, prompts=asked.prompts if keeps_prompts else ())


def _given(asked: Asked, *names: str) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(asked, name)) is not None}

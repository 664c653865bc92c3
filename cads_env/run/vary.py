"""Arms that differ in one option, and options set for all agents that have them.

Works on specs alone: builds no agent and reads no file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any, Final

from cads_env.errors import AgentError, suggest
from cads_env.run.agent_files import is_yaml
from cads_env.run.agents import AgentSpec
from cads_env.values import plain_text

GIVEN_BY_RUNS: Final = ("seed", "journal")
"""What a run hands to a factory, another one in each campaign."""


def vary(specs: Iterable[AgentSpec], option: str, values: Sequence[Any]) -> list[AgentSpec]:
    """One arm for each value of an option, named `arm/value`.

    Args:
        specs: The agents; one that has no parameter of this name stays as it is.
        option: Name of the option.
        values: Its values, distinct. A value that is a path to a file gives its stem to the name.
            Empty: all agents stay as they are.

    Raises:
        AgentError: No agent has the option, or two values give one name.
    """
    arms = list(specs)
    if not values:
        return arms
    names = [_shown(value) for value in values]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        msg = (
            f"{option} has two values called {twice[0]!r}; expected each once, and files "
            "with names of their own."
        )
        raise AgentError(msg)
    if not any(spec.accepts(option) for spec in arms):
        raise AgentError(_nobody(arms, option))
    pairs = list(zip(values, names, strict=True))
    return [
        one
        for spec in arms
        for one in (_variants(spec, option, pairs) if spec.accepts(option) else [spec])
    ]


def with_options(specs: Iterable[AgentSpec], options: Mapping[str, Any]) -> list[AgentSpec]:
    """The agents with each option set on all of them that have a parameter of its name.

    Raises:
        AgentError: No agent has one of the options, or the run itself gives it.
    """
    arms = list(specs)
    for option in options:
        if option in GIVEN_BY_RUNS:
            msg = (
                f"{option!r} is given to each campaign by the run, so it is no option for all of "
                "them. Leave it out; --seeds says which campaigns are played."
            )
            raise AgentError(msg)
        if not any(spec.accepts(option) for spec in arms):
            raise AgentError(_nobody(arms, option))
    return [
        replace(
            spec, options={**spec.options, **{k: v for k, v in options.items() if spec.accepts(k)}}
        )
        for spec in arms
    ]


def _variants(
    spec: AgentSpec, option: str, pairs: Sequence[tuple[Any, str]]
) -> Iterable[AgentSpec]:
    for value, name in pairs:
        options = {**spec.options, option: value}
        yield replace(spec, name=plain_text(f"{spec.name}/{name}"), options=options)


def _shown(value: Any) -> str:
    """What an arm is called after a value."""
    text = str(value)
    return PurePath(text).stem if is_yaml(text) or "/" in text else text


def _nobody(specs: Sequence[AgentSpec], option: str) -> str:
    known = {name for spec in specs for name in spec.parameters} - set(GIVEN_BY_RUNS)
    return (
        f"None of the agents ({', '.join(spec.name for spec in specs)}) has an option {option!r}. "
        f"{suggest(option, known)}"
    )

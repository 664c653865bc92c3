"""Agent files: YAML that says which agent plays, under which name, with which options.

Finds and reads them, the user's own and those that come with the package. Loads no agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

from cads_env.errors import AgentError, error_text, quoted, suggest
from cads_env.values import load_yaml

AGENT_KEYS: Final = ("agent", "arm", "options")
CONFIGS: Final = "configs/"
"""A path that begins so and is not there is looked for in the installed package of configs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFile:
    """What an agent file says.

    Attributes:
        where: What it is, for messages.
        agent: An installed agent, `module:Class` or a Python file.
        arm: Name of its arm; None for the agent's own.
        options: Keyword arguments of the agent.
    """

    where: str
    agent: str
    arm: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def is_yaml(text: str) -> bool:
    """True for the name of a YAML file."""
    return text.endswith((".yaml", ".yml"))


def shipped_agents() -> tuple[str, ...]:
    """Names of the agent files that come with the package, sorted."""
    folder = resources.files("cads_configs") / "agents"
    if not folder.is_dir():
        return ()
    names = (entry.name for entry in folder.iterdir())
    return tuple(sorted(name[: -len(".yaml")] for name in names if name.endswith(".yaml")))


def read_agent_file(name: str) -> AgentFile:
    """An agent file.

    Args:
        name: A path that ends in .yaml or .yml, or the bare name of a file of the package.

    Raises:
        AgentError: There is no such file, or it is no agent file.
    """
    path = name if is_yaml(name) else f"{CONFIGS}agents/{name}.yaml"
    file = agent_file_of(read_mapping(path), where=f"Agent file {name!r}")
    if file.arm is not None:
        return file
    return AgentFile(where=file.where, agent=file.agent, arm=Path(path).stem, options=file.options)


def read_mapping(path: str) -> Mapping[str, Any]:
    """What a YAML file of agents or of a run holds, the user's or one that comes with the package.

    Raises:
        AgentError: There is no such file, or it holds no mapping.
    """
    try:
        text = _place(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        shown = ", ".join(shipped_agents()) or "none"
        msg = (
            f"File {path[:200]!r} does not exist; expected a YAML file of an agent or of a run. "
            f"Agent files that come with the package, by name: {shown}."
        )
        raise AgentError(msg) from error
    except (OSError, ValueError) as error:
        msg = f"File {path[:200]!r} cannot be read: {error_text(error)}."
        raise AgentError(msg) from error
    try:
        data = load_yaml(text)
    except ValueError as error:
        msg = f"File {path!r} is not valid YAML: {error}"
        raise AgentError(msg) from error
    if not isinstance(data, Mapping):
        msg = (
            f"File {path!r} holds a {type(data).__name__}; expected a mapping with `agent` (an "
            "agent file) or `agents` (a run file)."
        )
        raise AgentError(msg)
    return data


def _place(path: str) -> Path | Traversable:
    own = Path(path)
    if own.exists() or not path.startswith(CONFIGS):
        return own
    return resources.files("cads_configs").joinpath(*Path(path).parts[1:])


def agent_file_of(data: Mapping[Any, Any], *, where: str) -> AgentFile:
    """A mapping of the form of an agent file, checked.

    Args:
        data: The mapping.
        where: What it is, for messages.

    Raises:
        AgentError: Names the key that is unknown, missing or of another kind.
    """
    unknown = [key for key in data if key not in AGENT_KEYS]
    if unknown:
        msg = f"{where} has the unknown key {quoted(unknown[0])}. "
        if "agents" in data:
            msg += "A file with `agents` is that of a run: give it to `cads run`."
        else:
            msg += f"{suggest(str(unknown[0]), AGENT_KEYS)} Options of the agent go under options."
        raise AgentError(msg)
    agent, arm, options = data.get("agent"), data.get("arm"), data.get("options") or {}
    if not isinstance(agent, str) or not agent:
        msg = (
            f"{where} has agent: {quoted(agent)}; expected an installed agent (such as llm), "
            "module:Class or path/to/file.py."
        )
        raise AgentError(msg)
    if arm is not None and (not isinstance(arm, str) or not arm.strip()):
        msg = f"{where} has arm: {quoted(arm)}; expected a name, or no such line."
        raise AgentError(msg)
    if not isinstance(options, Mapping) or not all(isinstance(key, str) for key in options):
        msg = f"{where} has options: {quoted(options)}; expected names with values."
        raise AgentError(msg)
    return AgentFile(where=where, agent=agent, arm=arm, options=dict(options))

"""The agents of a run as words of a command line, and as agent files where words do not do.

Knows how `cads run --agent` names arms; loads no agent.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cads_env.report.wording import listed, visible
from cads_env.run.agents import ENTRY_POINT_GROUP
from cads_env.values import dump_yaml, parse_value


class AgentWords(NamedTuple):
    """The agents of a run, as a command line gives them.

    Attributes:
        words: The word of every arm for `--agent`.
        files: Text of each agent file that a word names, by its name.
        notes: What the command line cannot say.
    """

    words: dict[str, str]
    files: dict[str, str]
    notes: list[str]


def agent_words(agents: Sequence[Mapping[str, Any]]) -> AgentWords:
    """The word of every arm; options that cannot be typed stand in an agent file.

    Args:
        agents: `config.agents` of a manifest.
    """
    points = importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)
    installed = {point.value: point.name for point in points}
    found = AgentWords({}, {}, [])
    odd, renamed = [], []
    for number, agent in enumerate(agents, start=1):
        arm, source = str(agent.get("arm")), str(agent.get("source"))
        options = agent.get("options") or {}
        name = installed.get(source, source)
        is_lost = "<" in source
        if not is_lost and options and not (name != source and _can_be_typed(options)):
            file = f"agent-{number}.yaml"
            found.words[arm] = file
            found.files[file] = dump_yaml({"agent": name, "arm": arm, "options": dict(options)})
            continue
        pairs = [f"{key}={typed(value)}" for key, value in options.items()]
        found.words[arm] = f"{name}:{','.join(pairs)}" if pairs else name
        if is_lost:
            odd.append(arm)
        called = name if source in installed else source.rpartition(":")[2]
        if not called.endswith(".py") and arm != called:
            renamed.append(f"{visible(arm)} = {visible(found.words[arm])}")
    if renamed:
        found.notes.append(
            f"Arms had names of their own, which a command line does not give: {listed(renamed)}."
        )
    if odd:
        found.notes.append(
            "Made in Python, or with options that a command line cannot give: "
            f"{listed([visible(arm) for arm in odd])}."
        )
    return found


def _can_be_typed(options: Mapping[str, Any]) -> bool:
    """Whether `name:key=value,key=value` gives the options back."""
    return all(
        key.isidentifier() and not isinstance(value, (dict, list)) and "," not in typed(value)
        for key, value in options.items()
    )


def typed(value: object) -> str:
    """A value as it is typed on a command line, where values are read as YAML."""
    if not isinstance(value, str):
        return json.dumps(value)
    return value if parse_value(value) == value else json.dumps(value)

"""The agents of a run as words of a command line.

Knows how `cads run --agent` names arms; loads no agent.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Mapping, Sequence
from typing import Any

from cads_env.report.wording import listed, visible
from cads_env.run.agents import ENTRY_POINT_GROUP
from cads_env.values import parse_value


def agent_words(agents: Sequence[Mapping[str, Any]]) -> tuple[dict[str, str], list[str]]:
    """The word of every arm for `--agent`, and what the command line cannot say.

    Args:
        agents: `config.agents` of a manifest.
    """
    points = importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)
    installed = {point.value: point.name for point in points}
    words: dict[str, str] = {}
    odd, renamed = [], []
    for agent in agents:
        arm, source = str(agent.get("arm")), str(agent.get("source"))
        options = agent.get("options") or {}
        name = installed.get(source, source)
        pairs = [f"{key}={typed(value)}" for key, value in options.items()]
        words[arm] = f"{name}:{','.join(pairs)}" if pairs else name
        if "<" in source or any("," in pair for pair in pairs) or (pairs and name == source):
            odd.append(arm)
        called = name if source in installed else source.rpartition(":")[2]
        if not called.endswith(".py") and arm != called:
            renamed.append(f"{visible(arm)} = {visible(words[arm])}")
    notes = []
    if renamed:
        notes.append(
            f"Arms had names of their own, which a command line does not give: {listed(renamed)}."
        )
    if odd:
        notes.append(
            "Made in Python, or with options that a command line cannot give: "
            f"{listed([visible(arm) for arm in odd])}."
        )
    return words, notes


def typed(value: object) -> str:
    """A value as it is typed on a command line, where values are read as YAML."""
    if not isinstance(value, str):
        return json.dumps(value)
    return value if parse_value(value) == value else json.dumps(value)

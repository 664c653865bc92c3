"""`cads agents`: what can be played."""

from __future__ import annotations

import inspect

from cads_env.cli.terminal import OUT
from cads_env.errors import CadsError
from cads_env.report.terminal import facts
from cads_env.report.wording import visible
from cads_env.run.agent_files import AgentFile, read_agent_file, shipped_agents
from cads_env.run.agents import agent_names, find_agents


def agents() -> None:
    """List the installed agents, and the agent files that come with the package."""
    rows = []
    for name in agent_names():
        try:
            spec = find_agents(name)[0]
        except CadsError as error:
            rows.append((name, str(error)))
            continue
        summary = (inspect.getdoc(spec.factory) or "").partition("\n")[0]
        requires = getattr(spec.factory, "requires", ())
        needs = f"\nneeds the side table {', '.join(requires)}" if requires else ""
        rows.append((name, f"{summary}{needs}\n{spec.source}"))
    rows += [(name, _file_words(read_agent_file(name))) for name in shipped_agents()]
    OUT.print(facts(rows))


def _file_words(file: AgentFile) -> str:
    """What an agent file plays, in a line."""
    options = ", ".join(f"{k}={v}" for k, v in file.options.items() if not isinstance(v, dict))
    return f"agent file: {file.agent}{f', {visible(options, 200)}' if options else ''}"

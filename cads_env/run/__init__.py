"""Runs: arms x campaigns, as frames and files. Imports no report and no command line."""

from cads_env.run.agents import AgentSpec, agent_names, resolve_agents
from cads_env.run.combine import merge, split
from cads_env.run.compare import Comparison, compare
from cads_env.run.evaluate import evaluate
from cads_env.run.load import load_run, read_records
from cads_env.run.replay import Mismatch, Replayed, replay
from cads_env.run.result import ArmResult, RunResult

__all__ = [
    "AgentSpec",
    "ArmResult",
    "Comparison",
    "Mismatch",
    "Replayed",
    "RunResult",
    "agent_names",
    "compare",
    "evaluate",
    "load_run",
    "merge",
    "read_records",
    "replay",
    "resolve_agents",
    "split",
]

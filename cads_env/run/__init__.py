"""Runs: arms x campaigns, as frames and files. Imports no report and no command line."""

from cads_env.run.agents import AgentSpec, agent_names, resolve_agents
from cads_env.run.combine import merge, split
from cads_env.run.compare import Comparison, compare
from cads_env.run.evaluate import evaluate
from cads_env.run.evaluate_grid import evaluate_grid
from cads_env.run.grid import Grid, load_grid
from cads_env.run.load import load_run, read_records
from cads_env.run.replay import Mismatch, Replayed, replay
from cads_env.run.result import ArmResult, RunResult
from cads_env.run.settings import Setting, settings_of
from cads_env.run.vary import vary

__all__ = [
    "AgentSpec",
    "ArmResult",
    "Comparison",
    "Grid",
    "Mismatch",
    "Replayed",
    "RunResult",
    "Setting",
    "agent_names",
    "compare",
    "evaluate",
    "evaluate_grid",
    "load_grid",
    "load_run",
    "merge",
    "read_records",
    "replay",
    "resolve_agents",
    "settings_of",
    "split",
    "vary",
]

"""What the page of one run with traces says first beside the answers: a row an arm, and the grid.

Formats what the run and `factors` hold; computes nothing.
"""

from __future__ import annotations

import math

from cads_env.report.content import Table
from cads_env.report.llm.arms import setting_runs
from cads_env.report.llm.asked import has_traces
from cads_env.report.llm.factors import origins, precision
from cads_env.report.llm.feedback import CONTROLS
from cads_env.report.llm.missing import setting_words
from cads_env.report.llm.probes import DETECTORS
from cads_env.report.llm.tables import share_ends
from cads_env.report.wording import number, visible
from cads_env.run.result import RunResult


def first_table(result: RunResult) -> Table | None:
    """What each arm gained, lost, originated and filled; None for a run without traces.

    Args:
        result: Read from its folder; one that was played in memory has no traces.
    """
    if not has_traces(result.folder):
        return None
    named = {o.arm: o.originated for o in origins(result)}
    rows = []
    for name, arm in result.arms.items():
        share = precision(result, name).estimate
        rows.append(
            (
                visible(name),
                f"{number(arm.gained)} / {number(arm.lost)}",
                number(named.get(name, math.nan)),
                f"{number(arm.filled, 1)}/{arm.slots:g}",
                f"{number(arm.filled_in_reach, 1)}/{arm.slots_in_reach:g}",
                number(share.mean, 3),
                share_ends(share),
            )
        )
    return Table(
        caption="What each arm brings, means a campaign",
        columns=(
            "arm", "gained / lost", "originated", "slots filled", "in reach", "precision",
            "95 % interval",
        ),
        rows=tuple(rows),
        note=(
            "originated: certified hits that the proposer named first. precision: share of hits "
            f"among the accepted proposals.{_grid_note(result)}"
        ),
    )  # fmt: skip


def _grid_note(result: RunResult) -> str:
    """The command that plays the gate and the leak detector too; empty where this is no base."""
    (setting,) = setting_runs({"run": result})
    if (setting.feedback, setting.identifiers) != ("full", "named"):
        return ""
    shuffled = DETECTORS[1]
    words = setting_words(setting, (setting,), feedback=CONTROLS, identifiers=(shuffled,))
    return f" The gate and a probe of the names take a grid, a new folder: {words}"

"""What the page of a grid says first: what was played, what to beware of, and a row an arm.

Formats what `found` holds; computes nothing.
"""

from __future__ import annotations

import math
from typing import Final

from cads_env.report.badge import badge_line, badge_warning
from cads_env.report.chain import adjusted_p
from cads_env.report.content import Table
from cads_env.report.llm.delivery import guided_note, mixed_arms
from cads_env.report.llm.factors import origins, precision
from cads_env.report.llm.found import Found
from cads_env.report.llm.tables import ends, found_at
from cads_env.report.verdict import scored_scope, undeclared_contamination, why_untold
from cads_env.report.wording import (
    UNDEFINED,
    counted,
    listed,
    number,
    p_cell,
    plain,
    signed,
    visible,
)
from cads_env.run.result import bound_words

KEY: Final = (
    ("Net", "certified hits of a campaign more than those of the same loop without a proposer."),
    (
        "Originated",
        "certified hits that the proposer named first; the twin finds some too.",
    ),
    ("In reach", "early enough to gather the reads that a certified hit needs."),
    ("Gate", "certified hits under full feedback are above those under none and under permuted."),
)
"""What the first table's columns mean."""


def lead(found: Found) -> str:
    """What was played, in a line."""
    run = found.base.run
    c = run.certificate
    return (
        f"{counted(len(run.arms), 'arm')} in {counted(len(found.settings), 'setting')} "
        f"({listed([visible(s.name) for s in found.settings])}); the first table is of "
        f"{visible(found.base.name)}: {counted(len(run.campaigns), 'campaign')} scored, "
        f"{scored_scope(run)}; {visible(run.protocol.name, 160)} on {visible(run.panel, 160)}, "
        f"q = {plain(c.q)}, {bound_words(c)}. {badge_line(run.protocol)}"
    )


def warnings_of(found: Found) -> tuple[str, ...]:
    """What a reader must know before the figures."""
    run = found.base.run
    told = []
    if found.missing:
        names = listed([visible(name) for name in found.missing])
        told.append(f"Not begun yet: {names}. The same command goes on with the grid.")
    for setting in found.settings:
        if setting.run.status != "complete":
            done = len(setting.run.campaigns) + len(setting.run.failures)
            told.append(
                f"{visible(setting.name)} is not complete (status: "
                f"{visible(setting.run.status)}): {done:,} of "
                f"{counted(setting.run.planned, 'campaign')} are there."
            )
    if (found.base.proposer, found.base.reselection, found.base.identifiers) != (
        "full", "full", "named",
    ):  # fmt: skip
        told.append(
            "No setting with full feedback and named identifiers was played: nets are of "
            f"{visible(found.base.name)}."
        )
    if note := guided_note(found.settings):
        told.append(note)
    if mixed := mixed_arms(found.attempts):
        told.append(
            f"More than one model or server answered for {listed([visible(a) for a in mixed])}."
        )
    if any(s.run.failures for s in found.settings):
        told.append(
            "Failed campaigns are left out of their arm, and an arm that fails where it would have "
            "done badly looks better than it is."
        )
    if (words := undeclared_contamination(run)) is not None:
        told.append(
            f"{words} is below the channel's contamination {plain(run.protocol.epsilon)}: FDR <= q "
            "is not guaranteed."
        )
    if words := badge_warning(run.protocol):
        told.append(words)
    if run.panel.startswith("synthetic-"):
        told.append(f"{visible(run.panel)}: synthetic: plumbing and calibration, not biology.")
    return tuple(told)


def summary_table(found: Found) -> Table:
    """One row an arm of the base setting: what the first screen of the page holds."""
    run = found.base.run
    passes = {gate.arm: gate.passes for gate in found.gates}
    named = {o.arm: o.originated for o in origins(run)}
    rows = []
    for (name, arm), p in zip(run.arms.items(), adjusted_p(list(run.arms.values())), strict=True):
        gate = passes.get(name)
        rows.append(
            (
                visible(name),
                signed(arm.net.mean),
                UNDEFINED if why_untold(arm) else ends(arm.net),
                p_cell(p),
                found_at(arm.net),
                f"{number(arm.gained)} / {number(arm.lost)}",
                number(named.get(name, math.nan)),
                f"{number(arm.true)} / {number(arm.twin)}",
                f"{number(arm.filled, 1)}/{arm.slots:g}",
                f"{number(arm.filled_in_reach, 1)}/{arm.slots_in_reach:g}",
                number(precision(run, name).estimate.mean, 3),
                UNDEFINED if gate is None else "passes" if gate else "fails",
                f"{arm.n:,}",
                f"{arm.failed:,}",
            )
        )
    return Table(
        caption="What each arm adds, means a campaign",
        columns=(
            "arm", "net", "95 % interval", "p (Holm)", "found at this n", "gained / lost",
            "originated", "certified / twin", "slots filled", "in reach", "precision", "gate", "n",
            "failed",
        ),
        rows=tuple(rows),
        note=(
            "net = certified - twin = gained - lost. p (Holm): over all arms. found at this n: the "
            "true net that as many campaigns find with 80 % power."
        ),
    )  # fmt: skip

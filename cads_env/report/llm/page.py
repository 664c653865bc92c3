"""The page of a grid: what each arm adds, in one table and a line a question, and the tables.

Puts together what the other modules of this package compute; a setting that was not played is said
to be missing, with the command that adds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cads_env.report.campaigns import registries_section
from cads_env.report.content import (
    Block,
    Code,
    Figure,
    Listing,
    Paragraph,
    Report,
    Section,
    Table,
    Terms,
)
from cads_env.report.figures.strip import Row, draw_strip
from cads_env.report.glossary import TERMS
from cads_env.report.llm.arms import find, model_arms
from cads_env.report.llm.delivery import (
    answered_by,
    by_attempt_table,
    delivery_table,
    failures_table,
    spend_table,
)
from cads_env.report.llm.factors import scores
from cads_env.report.llm.feedback import CONTROLS
from cads_env.report.llm.findings import findings
from cads_env.report.llm.found import Found
from cads_env.report.llm.grids import quota_blocks, settings_table
from cads_env.report.llm.missing import grid_words, missing_blocks
from cads_env.report.llm.opening import KEY, lead, summary_table, warnings_of
from cads_env.report.llm.probes import MODES
from cads_env.report.llm.section import effect_kind
from cads_env.report.llm.tables import (
    floors_table,
    gate_table,
    origins_table,
    probes_table,
    prompts_table,
    slots_table,
    splits_table,
    values_table,
)
from cads_env.report.repeat import language_of, repeat
from cads_env.report.wording import (
    UNDEFINED,
    counted,
    listed,
    number,
    visible,
)
from cads_env.run.result import RunResult

ARMS_DRAWN: Final = 12
"""Arms whose campaigns are drawn; tables hold all."""

_GATE: Final = (
    "The gate asks whether a loop with full feedback certifies more than the same loop with none "
    "or permuted. The loop without a proposer is the first row."
)


def build_grid_report(found: Found) -> Report:
    """The page.

    Args:
        found: From `find_all`.
    """
    return Report(
        title="What does each proposer add?",
        lead=lead(found),
        warnings=warnings_of(found),
        cards=(),
        key=KEY,
        summary=summary_table(found),
        sections=_sections(found),
        kicker="cads-env report of a grid",
        footer=(
            "Every number here follows from the files of the runs below this folder. The same "
            "tables stand in report.md; cads report on the folder of one setting says more of it."
        ),
    )


def _sections(found: Found) -> tuple[Section, ...]:
    run = found.base.run
    several = len(found.settings) > 1
    words = (Terms(findings(found)),)
    sections = [Section(key="findings", title="In words", blocks=words)]
    sections += [_net_section(found)] if len(run.campaigns) else []
    sections += [_feedback_section(found), _prompts_section(found), _probes_section(found)]
    if run.protocol.quota is not None and len(run.campaigns):
        blocks = quota_blocks(run, found.natural)
        sections.append(Section(key="quota", title="At equal delivery", blocks=blocks))
    if (table := settings_table(found.settings)) is not None:
        sections.append(Section(key="settings", title="Every setting", blocks=(table,)))
    sections.append(_delivery_section(found, several=several))
    if (failed := failures_table(found.settings, several=several)) is not None:
        text = (
            "A campaign fails when the proposer's infrastructure broke. It is left out of its arm "
            "and never averaged in; an empty answer is not a failure."
        )
        blocks = (Paragraph(text), failed)
        sections.append(Section(key="failures", title="Failed campaigns", blocks=blocks))
    sections += [
        registries_section(run),
        Section(key="definitions", title="Definitions", blocks=(Terms(TERMS),)),
        _provenance_section(found),
    ]
    return tuple(section for section in sections if section.blocks)


def _net_section(found: Found) -> Section:
    run = found.base.run
    rows = [
        Row(name=name, values=list(scores(run, name, "net").values()), estimate=arm.net)
        for name, arm in run.arms.items()
        if arm.n
    ]
    drawn = rows[:ARMS_DRAWN]
    figure = Figure(
        caption="A dot a campaign; below, the mean with its 95 % interval.",
        drawings=(draw_strip(drawn, title="Net by campaign"),),
        data=origins_table(run),
        is_wide=True,
    )
    return Section(key="net", title="Origin, net and slots", blocks=(figure, slots_table(run)))


def _feedback_section(found: Found) -> Section:
    blocks: list[Block] = []
    if found.gates:
        blocks += [Paragraph(_reach_words(found.base.run)), gate_table(found.gates)]
    controls = [mode for mode in CONTROLS if find(found.settings, mode) is None]
    if controls:
        blocks += missing_blocks(
            f"The gate needs {listed(controls)} feedback.", found, feedback=controls
        )
    if found.splits:
        blocks.append(splits_table(found.splits))
    elif find(found.settings) is not None:
        wanted = ["proposer=permuted"]
        text = "What an arm makes of its own feedback needs it permuted, and re-selection's full."
        blocks += missing_blocks(text, found, feedback=wanted)
    return Section(key="feedback", title="The gate, and the use of feedback", blocks=tuple(blocks))


def _reach_words(run: RunResult) -> str:
    arm = next((arm for arm in run.arms.values() if arm.n), None)
    if arm is None:
        return "No campaign was scored under full feedback."
    lasts = sorted(set(arm.reach.values()))
    if lasts[-1] < 0:
        return f"{_GATE} No slot is in reach, so nothing can be certified, whatever the feedback."
    rounds = [f"the first {counted(last + 1, 'round')}" if last >= 0 else "none" for last in lasts]
    return (
        f"{_GATE} In reach: {number(arm.slots_in_reach, 1)} of {number(arm.slots, 1)} slots a "
        f"campaign, those of {listed(rounds)} of {run.protocol.rounds:,}; what is first read later "
        "cannot be certified, whatever the feedback."
    )


def _prompts_section(found: Found) -> Section:
    run = found.base.run
    tables = (prompts_table(found.effects, effect_kind(run)), floors_table(run))
    blocks: list[Block] = [table for table in tables if table is not None]
    if not model_arms(run):
        blocks.append(Paragraph("No arm with a language model was played."))
        return Section(key="prompts", title="Prompts and floors", blocks=tuple(blocks))
    if not found.effects:
        blocks.append(
            Paragraph(
                "No two arms differ in their prompt only: cads run ... --prompt thin --prompt "
                "informed plays such arms."
            )
        )
    if tables[1] is None:
        blocks.append(
            Paragraph(
                "The arms without a language model are missing: --agent random --agent prior adds "
                "them."
            )
        )
    return Section(key="prompts", title="Prompts and floors", blocks=tuple(blocks))


def _probes_section(found: Found) -> Section:
    blocks: list[Block] = []
    if found.probes:
        blocks.append(probes_table(found.probes))
    if found.values:
        blocks.append(values_table(found.values))
    played = {s.identifiers for s in found.settings}
    absent = [mode for mode in MODES if mode not in played]
    if absent:
        text = f"Not played: {listed(absent)} identifiers."
        if "blinded" in absent:
            text += " Arms that need a side table, such as prior, cannot play blinded ones."
        blocks += missing_blocks(text, found, identifiers=absent)
    return Section(key="probes", title="Identifier probes", blocks=tuple(blocks))


def _delivery_section(found: Found, *, several: bool) -> Section:
    base = found.base.name
    others = {name: frame for name, frame in found.sums.items() if name != base}
    tables = [
        delivery_table({base: found.sums[base]}, several=False),
        by_attempt_table(found.attempts[base]),
        spend_table({"": found.total}, several=False),
    ]
    if several:
        tables += [delivery_table(others, several=True), spend_table(found.sums, several=True)]
    blocks: list[Block] = [table for table in tables if table is not None and table.rows]
    if (said := answered_by(found.attempts)) is not None:
        blocks.append(said)
    return Section(key="delivery", title="Delivery, tokens and cost", blocks=tuple(blocks))


def _provenance_section(found: Found) -> Section:
    rows = []
    for setting in found.settings:
        manifest = setting.run.manifest
        traces = manifest.get("traces")
        exchanges = traces.get("exchanges") if isinstance(traces, Mapping) else None
        rows.append(
            (
                visible(setting.name),
                visible(setting.feedback),
                visible(setting.identifiers),
                visible(setting.run.status),
                f"{len(setting.run.campaigns):,}",
                visible(str(exchanges)) if exchanges is not None else UNDEFINED,
                visible(str(manifest.get("protocol_hash", UNDEFINED)))[:12],
            )
        )
    table = Table(
        caption="Settings",
        columns=(
            "setting", "feedback", "identifiers", "status", "campaigns", "exchanges",
            "protocol hash",
        ),
        rows=tuple(rows),
        words=(1, 2, 3, 6),
    )  # fmt: skip
    again = repeat(found.base.run)
    blocks: list[Block] = [table, Paragraph("To play the grid:"), Code(grid_words(found))]
    for name, text in again.files.items():
        blocks += [Paragraph(f"{name} holds:"), Code(text, language=language_of(name))]
    if again.notes:
        blocks.append(Listing(again.notes))
    return Section(key="provenance", title="Provenance", blocks=tuple(blocks))

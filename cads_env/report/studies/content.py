"""What a study's report says: every table and chart, and how many figures agree.

Formats and counts; the verdicts come from the entries themselves.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from cads_env.report.content import Block, Listing, Paragraph, Report, Section
from cads_env.report.content import Table as Page
from cads_env.report.figures.chart import draw_chart
from cads_env.report.wording import UNDEFINED, counted, plain
from cads_env.studies.config import settings_in_use
from cads_env.studies.play import StudyRows
from cads_env.studies.study import Summary
from cads_env.studies.tables import Chart, Entry, Table, Verdict

VERDICTS: Final[Mapping[Verdict, str]] = {
    "within": "inside the range that agrees",
    "noise": "outside it by less than three Monte Carlo standard errors",
    "explained": "further outside, and the note says what the published text leaves open",
    "off": "further outside",
    "no figure": "nothing is expected of it",
}
"""What each verdict means."""

FOOTER: Final = (
    "Every figure here follows from rows.jsonl beside this file; `cads reproduce check` recomputes "
    "them. Published figures are those of the CADS paper's text and tables."
)


def figure_text(value: float | None) -> str:
    """A figure of any size: four decimals, or three digits of what is smaller."""
    if value is None or math.isnan(value):
        return UNDEFINED
    if value == 0 or abs(value) >= 0.001:
        text = f"{value:,.4f}" if abs(value) < 10 else f"{value:,.2f}"
        is_whole = float(value).is_integer() and abs(value) >= 10
        text = f"{value:,.0f}" if is_whole else text
    else:
        text = f"{value:.2e}"
    return text.replace("-", "−")


def entry_cells(entry: Entry) -> tuple[str, ...]:
    """An entry's texts: row, measure, ours, MC SE, published, difference, range, verdict."""
    difference = entry.difference
    shown = UNDEFINED if difference is None else figure_text(difference)
    if difference is not None and difference > 0:
        shown = f"+{shown}"
    return (
        *entry.row,
        entry.measure,
        figure_text(entry.ours),
        figure_text(entry.mc_se),
        figure_text(entry.published),
        shown,
        range_text(entry),
        entry.verdict,
    )


def range_text(entry: Entry) -> str:
    """The range that agrees, as short as it can be written."""
    if entry.expected is None:
        return UNDEFINED
    low, high = (plain(round(end, 6)) for end in entry.expected)
    return low if low == high else f"{low} to {high}"


def table_page(table: Table) -> tuple[Block, ...]:
    """A table with its caption and notes."""
    labels = len(table.label_columns)
    rows = tuple(entry_cells(entry) for entry in table.entries)
    words = (*range(1, labels + 1), labels + 6)
    blocks: list[Block] = []
    if table.caption:
        blocks.append(Paragraph(table.caption))
    blocks.append(
        Page(
            caption="Ours beside the published figures.",
            columns=(
                *table.label_columns, "measure", "ours", "MC SE", "published", "difference",
                "agrees", "verdict",
            ),
            rows=rows,
            words=words,
        )
    )  # fmt: skip
    if notes := table_notes(table):
        blocks.append(Listing(notes))
    return tuple(blocks)


def table_notes(table: Table) -> tuple[str, ...]:
    """What its entries' notes say, each once, with what it is about."""
    notes: dict[str, list[str]] = {}
    for entry in table.entries:
        if entry.note:
            notes.setdefault(entry.note, []).append(f"{', '.join(entry.row)}: {entry.measure}")
    return tuple(f"{'; '.join(dict.fromkeys(what))}. {note}" for note, what in notes.items())


def verdicts_of(built: Mapping[str, Table | Chart]) -> Counter[Verdict]:
    """How many figures have each verdict."""
    return Counter(
        entry.verdict
        for item in built.values()
        if isinstance(item, Table)
        for entry in item.entries
    )


def build_items(plan: StudyRows, summary: Summary) -> dict[str, Table | Chart]:
    """The tables and charts of a study, by item name."""
    with settings_in_use(plan.study.name, plan.config):
        return {name: plan.study.items[name](plan.config, summary) for name in plan.items}


def build_study_report(
    plan: StudyRows, summary: Summary, built: Mapping[str, Table | Chart]
) -> Report:
    """The report of a study.

    Args:
        plan: What was played.
        summary: What it gave.
        built: From `build_items`.
    """
    counts = verdicts_of(built)
    off = counts["off"]
    agreed = counts["within"] + counts["noise"]
    played = f"{counted(plan.campaigns, 'row')} in {counted(len(plan.cells), 'cell')}"
    lead = f"{plan.study.about} {played}."
    warnings = (
        [f"{counted(off, 'figure')} outside what agrees, without an explanation."] if off else []
    )
    warnings += [f"Cell {name} was not played: {why}" for name, why in summary.absent.items()]
    listed = Page(
        caption=f"{agreed} of {agreed + off + counts['explained']} figures agree.",
        columns=("item", *VERDICTS),
        rows=tuple(_count_row(name, item) for name, item in built.items()),
    )
    return Report(
        title=plan.study.title,
        lead=lead,
        warnings=tuple(warnings),
        cards=(),
        key=tuple(VERDICTS.items()),
        summary=listed,
        sections=tuple(_section(name, item) for name, item in built.items()),
        kicker="cads-env study",
        footer=FOOTER,
    )


def _count_row(name: str, item: Table | Chart) -> tuple[str, ...]:
    if isinstance(item, Chart):
        return (name, *(UNDEFINED for _ in VERDICTS))
    counts = Counter(entry.verdict for entry in item.entries)
    return (name, *(str(counts[v]) if counts[v] else UNDEFINED for v in VERDICTS))


def _section(name: str, item: Table | Chart) -> Section:
    blocks: Sequence[Block]
    blocks = (draw_chart(item),) if isinstance(item, Chart) else table_page(item)
    return Section(key=name, title=item.title, blocks=tuple(blocks))

"""The terminal table of a self-check. Formats what an outcome holds; computes nothing."""

from __future__ import annotations

import textwrap
from typing import Final

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cads_env.report.instrument.content import MARKS, chance, expected, lead
from cads_env.report.wording import interval, signed, visible
from cads_env.selfcheck import Check, SelfCheck

SURFACE_NOTE: Final = (
    "feedback: certified hits that a learner gains by its feedback; list: net of a list memorised "
    "from other registries; by structure and by what names tell."
)
_STYLES: Final = {
    "pass": "green",
    "fail": "bold red",
    "undecided": "yellow",
    "not applicable": "dim",
}


def selfcheck_table(outcome: SelfCheck, *, rows: bool = False) -> RenderableType:
    """A row a check, then the surface and the verdict.

    Args:
        outcome: What a self-check found.
        rows: Show the rows of every check too, with their intervals.
    """
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("check", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("what was found", overflow="fold")
    for check in outcome.checks:
        style = _STYLES[check.verdict]
        table.add_row(check.name, Text(MARKS[check.verdict], style), Text(visible(check.says, 400)))
    parts: list[RenderableType] = [Text(lead(outcome)), table]
    for check in outcome.checks:
        if rows and check.rows:
            parts.append(_rows(check))
    if (surface := _surface(outcome)) is not None:
        parts += [surface, Text(SURFACE_NOTE)]
    notes = [note for check in outcome.checks for note in check.notes]
    parts += [Text(textwrap.shorten(visible(note, 300), 160, placeholder=" ...")) for note in notes]
    parts += [Text(chance(outcome)), Text(), Text(outcome.verdict, "bold")]
    return Group(*parts)


def _rows(check: Check) -> Table:
    table = Table(
        title=Text(check.name), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0),
        pad_edge=False,
    )  # fmt: skip
    table.add_column("row", overflow="fold")
    for column in ("mean", "interval", "n", "expected", ""):
        table.add_column(column, no_wrap=True, justify="right" if column != "expected" else "left")
    for row in check.rows:
        mark = "" if row.status == "pass" else MARKS[row.status]
        span = interval(row.low, row.high)
        table.add_row(
            Text(row.name), signed(row.mean), Text(span), f"{row.n:,}", expected(row), mark
        )
    return table


def _surface(outcome: SelfCheck) -> Table | None:
    """Structure down, name information across: feedback to the left, a list to the right."""
    points = {(p.series, p.at, p.by): p.mean for p in outcome.points if p.by is not None}
    if not points:
        return None
    downs = sorted({at for _, at, _ in points if at is not None})
    acrosses = sorted({by for _, _, by in points if by is not None})
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("structure", vertical="bottom")
    columns = [(series, by) for series in ("feedback", "names") for by in acrosses]
    for series, by in columns:
        what = "feedback" if series == "feedback" else "list"
        table.add_column(f"{what},\nnames {by:g}", justify="right", no_wrap=True)
    for at in downs:
        table.add_row(f"{at:g}", *(signed(points[(series, at, by)]) for series, by in columns))
    return table

"""A study on a terminal: its tables with their verdicts, and one line that sums them up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich import box
from rich.console import RenderableType
from rich.table import Table as Grid
from rich.text import Text

from cads_env.report.studies.content import entry_cells, table_notes, verdicts_of
from cads_env.report.studies.folder import StudyFolder
from cads_env.report.wording import counted
from cads_env.studies.tables import Table

_MOST_ROWS: Final = 60
"""Figures of a table without published ones that a terminal shows."""

_STYLES: Final = {"off": "bold red", "explained": "yellow", "within": "green", "noise": "green"}


def study_tables(study: StudyFolder) -> Iterator[RenderableType]:
    """The tables of a study, each with its caption and notes; charts are files only."""
    for item in study.built.values():
        if isinstance(item, Table):
            yield _grid(item)
            if item.caption:
                yield Text(f"  {item.caption}", style="dim")
            for note in table_notes(item):
                yield Text(f"  {note}", style="dim")
    for name, why in study.summary.absent.items():
        yield Text(f"  Cell {name} was not played: {why}", style="dim")


def _grid(table: Table) -> Grid:
    judged = [entry for entry in table.entries if entry.expected is not None or entry.is_own]
    shown = judged or list(table.entries)[:_MOST_ROWS]
    left_out = len(table.entries) - len(shown)
    grid = Grid(title=table.title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    grid.add_column(" / ".join(table.label_columns), overflow="fold")
    for name in ("ours", "published", "difference"):
        grid.add_column(name, justify="right", no_wrap=True)
    grid.add_column("verdict", no_wrap=True)
    for entry in shown:
        cells = entry_cells(entry)[len(entry.row) :]
        measure, ours, _, published, difference, _, verdict = cells
        what = f"{' / '.join(entry.row)}: {measure}"
        # Texts as they are: brackets in a label are no markup.
        style = Text(verdict, style=_STYLES.get(verdict, ""))
        grid.add_row(Text(what), Text(ours), Text(published), Text(difference), style)
    if left_out:
        grid.caption = f"{counted(left_out, 'further figure')} in the files"
        grid.caption_justify = "left"
    return grid


def verdict_line(study: StudyFolder) -> str:
    """How many figures agree, in a sentence."""
    counts = verdicts_of(study.built)
    agreed = counts["within"] + counts["noise"]
    judged = agreed + counts["explained"] + counts["off"]
    parts = [f"{agreed} of {counted(judged, 'figure')} agree"]
    if counts["explained"]:
        parts.append(f"{counts['explained']} differ with an explanation")
    if counts["off"]:
        parts.append(f"{counts['off']} OFF")
    return f"{study.plan.study.name}: {', '.join(parts)}."

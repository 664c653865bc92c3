"""The files of a study's items: CSV and Markdown of a table, SVG of a chart.

CSV keeps every figure exactly; Markdown and SVG are for reading.
"""

from __future__ import annotations

import csv
import io
from typing import Final

from cads_env.report.content import Section
from cads_env.report.figures.chart import draw_chart
from cads_env.report.html import standalone_svg
from cads_env.report.markdown import markdown_sections
from cads_env.report.studies.content import table_page
from cads_env.studies.tables import Chart, Entry, Table

CSV_COLUMNS: Final = (
    "measure", "ours", "mc_se", "published", "difference", "expected_low", "expected_high",
    "verdict", "note",
)  # fmt: skip
"""Columns of a table's CSV after its label columns; numbers as Python writes them."""


def csv_text(table: Table) -> str:
    """A table as CSV, every figure to its last digit; empty where there is none."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*table.label_columns, *CSV_COLUMNS])
    writer.writerows(csv_row(entry) for entry in table.entries)
    return out.getvalue()


def csv_row(entry: Entry) -> list[str]:
    """An entry as the cells of a CSV line."""
    low, high = entry.expected or (None, None)
    numbers = (entry.ours, entry.mc_se, entry.published, entry.difference, low, high)
    return [
        *entry.row,
        entry.measure,
        *("" if value is None else repr(float(value)) for value in numbers),
        entry.verdict,
        entry.note,
    ]


def item_files(name: str, item: Table | Chart) -> dict[str, str]:
    """The files of an item: their texts by file name.

    Args:
        name: The item's name.
        item: Its table or chart.
    """
    if isinstance(item, Chart):
        return {f"{name}.svg": standalone_svg(draw_chart(item))}
    section = Section(key=name, title=item.title, blocks=table_page(item))
    return {
        f"{name}.csv": csv_text(item),
        f"{name}.md": markdown_sections(item.title, "", (section,)),
    }

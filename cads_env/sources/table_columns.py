"""The columns of a user's table as names, labels, numbers and side tables, each row checked.

An entry that is not usable is a problem that names its row; its place is then filled so that the
other columns can still be looked at. Nothing is dropped and nothing mended.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cads_env.registry import SideTable
from cads_env.sources.delimited import TextTable, number
from cads_env.sources.problems import Problems
from cads_env.sources.table_options import TableOptions

Float64s = NDArray[np.float64]
Labels = NDArray[np.bool_]

LABELS: Final = {"0": False, "1": True, "false": False, "true": True, "no": False, "yes": True}
"""Spellings of a label, in lower case."""

LONGEST_TEXT: Final = 200
"""Characters of a text in a side table, at most."""

_LISTED: Final = 5


@dataclass(frozen=True, slots=True)
class Column:
    """One column, read.

    Attributes:
        values: One entry a row, shape (n,): texts, numbers or labels.
        is_usable: False where a row's entry is a problem, shape (n,).
    """

    values: NDArray[Any]
    is_usable: Labels


def read_identifiers(table: TextTable, column: str, problems: Problems) -> Column | None:
    """The candidates' names; not usable where one is empty or repeats an earlier one.

    Args:
        table: Holds the column.
        column: Its name.
        problems: Where what is wrong goes.

    Returns:
        The column; None when the table has none of this name.
    """
    names = _texts_of(table, column, "identifier", problems)
    if names is None:
        return None
    empty = [i for i, name in enumerate(names) if not name]
    if empty:
        problems.add(
            f"{table.path}: {len(empty)} rows have no identifier: "
            f"{table.offenders(empty, names)}. Name or remove them."
        )
    first: dict[str, int] = {}
    again = [i for i, name in enumerate(names) if name and first.setdefault(name, i) != i]
    if again:
        shown = [f"{name} (first in row {table.rows[first.get(name, 0)]})" for name in names]
        problems.add(
            f"{table.path}: {len(again)} rows repeat an identifier: "
            f"{table.offenders(again, shown)}. Merge or rename them."
        )
    is_usable = np.ones(len(names), np.bool_)
    is_usable[[*empty, *again]] = False
    return Column(np.array(names, dtype=object), is_usable)


def read_labels(table: TextTable, column: str, problems: Problems) -> Column | None:
    """A column of labels, False where one is not usable; None when the table has no such column.

    Args:
        table: Holds the column.
        column: Its name.
        problems: Where what is wrong goes.
    """
    texts = _texts_of(table, column, "label", problems)
    if texts is None:
        return None
    labels = [LABELS.get(text.lower()) for text in texts]
    bad = [i for i, label in enumerate(labels) if label is None]
    if bad:
        problems.add(
            f"{table.path}: {len(bad)} entries of the label column {column!r} are none of "
            f"{', '.join(LABELS)}: {table.offenders(bad, texts)}. Mend or remove those rows."
        )
    return Column(np.array(labels, np.bool_), np.array([x is not None for x in labels], np.bool_))


def read_numbers(
    table: TextTable, column: str, option: str, problems: Problems, *, advice: str = ""
) -> Column | None:
    """A column of finite numbers, NaN where one is not; None when the table has no such column.

    Args:
        table: Holds the column.
        column: Its name.
        option: The option that names it, for messages.
        problems: Where what is wrong goes.
        advice: What else may be done about missing numbers.
    """
    texts = _texts_of(table, column, option, problems)
    if texts is None:
        return None
    values = [number(text) for text in texts]
    for what, bad in (
        ("are no numbers", [i for i, x in enumerate(values) if x is None]),
        ("are missing", [i for i, x in enumerate(values) if x is not None and math.isnan(x)]),
        ("are infinite", [i for i, x in enumerate(values) if x is not None and math.isinf(x)]),
    ):
        if bad:
            also = f" {advice}" if advice and what == "are missing" else ""
            problems.add(
                f"{table.path}: {len(bad)} entries of the column {column!r} ({option}=) {what}: "
                f"{table.offenders(bad, texts)}. Mend or remove those rows.{also}"
            )
    numbers = np.array([math.nan if x is None else x for x in values], np.float64)
    is_usable = np.isfinite(numbers)
    return Column(np.where(is_usable, numbers, math.nan), is_usable)


def read_side_tables(
    table: TextTable, options: TableOptions, problems: Problems
) -> dict[str, SideTable]:
    """The public columns that are declared, by title; those that are not usable are left out.

    Args:
        table: Holds the columns.
        options: Names them.
        problems: Where what is wrong goes.
    """
    truth = (options.effect, options.label)
    for option, columns in (("module", [options.module]), ("features", options.features)):
        for column in columns:
            if column is not None and column in truth:
                problems.add(
                    f"{option}= names the column {column!r}, which holds the truth; it would be a "
                    "copy of the truth. Proposers see side tables; leave it out."
                )
    tables: dict[str, SideTable] = {}
    if options.prior is not None:
        read = read_numbers(table, options.prior, "prior", problems)
        if read is not None and read.is_usable.all():
            is_higher = options.prior_direction == "higher"
            sign, order = ("", read.values) if is_higher else ("minus ", -read.values)
            tables["prior"] = SideTable(
                f"Score: {sign}column {options.prior!r}; higher = more promising.", order + 0.0
            )
    if options.module is not None and options.module not in truth:
        groups = _groups(table, options.module, problems)
        if groups is not None:
            tables["module"] = SideTable(f"Group label: column {options.module!r}.", groups)
    declared = {"prior": options.prior, "module": options.module}
    for column in options.features:
        if declared.get(column) is not None or column in tables:
            problems.add(
                f"features names the column {column!r}, but a side table of that name is declared "
                f"by {column}= already. Rename the column or leave it out."
            )
        elif column not in truth:
            values = _feature(table, column, problems)
            if values is not None:
                tables[column] = SideTable(f"Column {column!r}.", values)
    return tables


def _texts_of(
    table: TextTable, column: str, option: str, problems: Problems
) -> Sequence[str] | None:
    with problems.gathered():
        return table.column(column, option)
    return None


def _groups(table: TextTable, column: str, problems: Problems) -> NDArray[Any] | None:
    labels = _texts_of(table, column, "module", problems)
    if labels is None:
        return None
    pairs = zip(table.rows, labels, strict=True)
    empty = [f"row {row}" for row, label in pairs if not label.strip()]
    if empty:
        problems.add(
            f"{table.path}: {len(empty)} entries of column {column!r} (module=) are missing: "
            f"{', '.join(empty[:_LISTED])}. An empty group would join them; label each."
        )
    texts = _short_texts(labels, column, "module", problems)
    return None if empty else texts


def _feature(table: TextTable, column: str, problems: Problems) -> NDArray[Any] | None:
    texts = _texts_of(table, column, "features", problems)
    if texts is None:
        return None
    # A column is of numbers when every entry is a number or missing, and at least one is there.
    parsed = [number(text) for text in texts]
    if None in parsed or all(x is not None and math.isnan(x) for x in parsed):
        return _short_texts(texts, column, "features", problems)
    read = read_numbers(table, column, "features", problems)
    return read.values if read is not None and read.is_usable.all() else None


def _short_texts(
    texts: Sequence[str], column: str, option: str, problems: Problems
) -> NDArray[Any] | None:
    """A column of text, of which no entry is so long that all would take its room."""
    longest = max(texts, key=len, default="")
    if len(longest) > LONGEST_TEXT:
        problems.add(
            f"{option}= names the column {column!r}, which holds a text of {len(longest):,} "
            f"characters ({longest[:40]!r}...); a side table takes {LONGEST_TEXT} at most."
        )
        return None
    return np.array(texts)

"""Tables in answers: from rows of cells to the entries of the column that holds the names.

Rows come from Markdown (`| a | b |`) or from lines with tabs, semicolons or commas. Never decides
which part of an answer counts, and never takes two columns of names for one list.
"""

from __future__ import annotations

import csv
import re

from cads_env.parsing.entries import entries_of
from cads_env.parsing.names import Entry, Lookup, is_number
from cads_env.parsing.pieces import pieces_of

NAME_HEADER = re.compile(
    r"(?:gene|symbol|candidate|identifier|id|name|compound|drug|target|smiles|molecule)s?"
    r"(?:[ _](?:name|symbol|id))?",
    re.IGNORECASE,
)
"""What stands above a column of names."""

_RULE_CELL = re.compile(r":?-+:?")
_DECORATION = " *_`\"'"


def entries_of_rows(rows: list[list[str]], lookup: Lookup) -> list[Entry]:
    """The entries of a Markdown table: of the column headed as names, else of the best one.

    The best column is the one with most identifiers. A first row without any identifier that names
    a column (`Gene`) is the heading even where no rule of dashes follows it.

    Args:
        rows: Cells of each line, rules of dashes included.
        lookup: The identifiers.

    Returns:
        The entries in the order of the rows.
    """
    is_rule = [all(_RULE_CELL.fullmatch(cell) for cell in row) for row in rows]
    body = [row for row, rule in zip(rows, is_rule, strict=True) if not rule]
    header = rows[is_rule.index(True) - 1] if True in is_rule[1:] and not is_rule[0] else None
    if header is None and len(body) > 1 and _is_header(body[0], lookup):
        header = body[0]
    body = [row for row in body if row is not header]
    columns: list[list[str]] = [[] for _ in range(max(map(len, rows)))]
    for row in body:
        for cells, cell in zip(columns, row, strict=False):
            cells.append(cell)
    named = [columns[j] for j in _named_columns(header or []) if j < len(columns)]
    # Most tables have a column of bare names, and the long explanations need no reading.
    bare = [sum(lookup.whole(cell) is not None for cell in cells) for cells in columns]
    clear = [cells for cells, count in zip(columns, bare, strict=True) if 2 * count > len(body)]
    best: list[Entry] = []
    best_count = -1
    for cells in (*named, *(clear or columns)):
        read = [entries_of(cell, lookup) for cell in cells]
        count = sum(any(entry.identifier for entry in entries) for entries in read)
        if count > best_count:
            best, best_count = [entry for entries in read for entry in entries], count
        if count and any(cells is each for each in named):
            break
    return best


def entries_of_lines(lines: list[str], lookup: Lookup) -> list[Entry] | None:
    """The entries of lines that are rows with one column of names beside numbers or explanations.

    Args:
        lines: Lines without a marker.
        lookup: The identifiers.

    Returns:
        The entries; None when the lines are no such table.
    """
    for separator in "\t;,":
        rows = [
            [cell.strip(_DECORATION) for cell in _cells(line, separator, lookup)]
            for line in (line.strip().rstrip(separator + " ") for line in lines)
            if separator in line
        ]
        if len(rows) < 2:
            continue
        entries = _column_of_names(rows, lookup)
        if entries is not None:
            return entries
    return None


def _cells(line: str, separator: str, lookup: Lookup) -> list[str]:
    """The cells of a line; quotes may hold separators, and so may identifiers."""
    if '"' in line:
        try:
            return next(csv.reader([line], delimiter=separator, skipinitialspace=True))
        except csv.Error:
            return [line]
    return pieces_of(line, lookup, pattern=re.compile(separator))


def _column_of_names(rows: list[list[str]], lookup: Lookup) -> list[Entry] | None:
    header = rows[0] if _is_header(rows[0], lookup) else None
    body = rows[1:] if header else rows
    valid: dict[int, int] = {}
    other = 0
    for row in body:
        for j, cell in enumerate(row):
            # `DNA repair: ATM, BRCA1` is a list with a label, not a row.
            is_valid = lookup.whole(cell.rpartition(": ")[2]) is not None
            valid[j] = valid.get(j, 0) + is_valid
            other += not is_valid and (" " in cell or is_number(cell))
    full = [j for j, count in valid.items() if 2 * count >= len(body)]
    named = [j for j in _named_columns(header or []) if valid.get(j)]
    if not named and (len(full) != 1 or 2 * other < len(body)):
        return None
    column = named[0] if named else full[0]
    cells = [row[column] for row in body if len(row) > column]
    return [entry for cell in cells for entry in entries_of(cell, lookup)]


def _is_header(row: list[str], lookup: Lookup) -> bool:
    return bool(_named_columns(row)) and all(lookup.whole(cell) is None for cell in row)


def _named_columns(header: list[str]) -> list[int]:
    return [j for j, cell in enumerate(header) if NAME_HEADER.fullmatch(cell.strip(_DECORATION))]

"""What is publicly known of PRISM compounds: name, mechanism and target by BRD id.

Reads a compound list, or the same columns of a dose-response table. Never reads a measurement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from cads_env.errors import RegistryError
from cads_env.registry import SideTable
from cads_env.sources.columns import collect, open_rows
from cads_env.sources.delimited import MISSING, TextTable

LONGEST_TEXT: Final = 200
"""Characters of a mechanism or a list of targets that a side table keeps."""

_LISTS: Final = (
    ("IDs", "Drug.Name", "MOA", "repurposing_target"),
    ("broad_id", "name", "moa", "target"),
)
"""Columns of id, name, mechanism and target in the releases' compound lists."""


class Compounds(NamedTuple):
    """Public facts by BRD id, without the prefix `BRD:`; an empty text where nothing is known.

    Attributes:
        names: Drug names; empty where entries disagree.
        mechanisms: Mechanisms of action.
        targets: Target genes, comma-separated.
    """

    names: Mapping[str, str]
    mechanisms: Mapping[str, str]
    targets: Mapping[str, str]

    def identifiers(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Each compound's name where it is known and no other compound here has it, else its id."""
        names = [self.names.get(x, "") for x in ids]
        count = Counter(name.casefold() for name in names)
        taken = {x.casefold() for x in ids}
        return tuple(
            name if name and count[name.casefold()] == 1 and name.casefold() not in taken else x
            for name, x in zip(names, ids, strict=True)
        )


def bare_id(text: str) -> str:
    """The BRD id without the prefix that some files put before it."""
    return text.strip().removeprefix("BRD:")


def read_compounds(path: Path) -> Compounds:
    """The compounds of a list.

    Args:
        path: The compound list, a CSV file.

    Raises:
        RegistryError: It is no compound list.
    """
    with open_rows(path, sep=",") as stream:
        columns = next((c for c in _LISTS if {c[0], c[1]} <= set(stream.header)), None)
        if columns is None:
            shown = " or ".join(f"{c[0]} and {c[1]}" for c in _LISTS)
            msg = (
                f"{path} (compounds=) is no PRISM compound list: expected the columns {shown}. "
                f"Columns: {', '.join(map(repr, stream.header[:20]))}."
            )
            raise RegistryError(msg)
        return _compounds(collect(stream, columns), columns)


def compounds_of_rows(table: TextTable) -> Compounds:
    """The compounds that a dose-response table itself describes."""
    return _compounds(table, _LISTS[1])


def _compounds(table: TextTable, columns: Sequence[str]) -> Compounds:
    ids = [bare_id(x) for x in table.columns[columns[0]]]
    names: dict[str, str] = {}
    unclear: set[str] = set()
    for x, name in zip(ids, _column(table, columns[1], len(ids)), strict=True):
        known = names.setdefault(x, name) or name
        if name and known.casefold() != name.casefold():
            unclear.add(x)
        names[x] = known
    names.update(dict.fromkeys(unclear, ""))
    mechanisms, targets = (_first(ids, _column(table, column, len(ids))) for column in columns[2:4])
    return Compounds(names, mechanisms, targets)


def _column(table: TextTable, column: str, count: int) -> list[str]:
    values = table.columns.get(column, [""] * count)
    return ["" if value.lower() in MISSING else value for value in values]


def _first(ids: Sequence[str], values: Sequence[str]) -> dict[str, str]:
    """The first text of each compound that is not empty."""
    found: dict[str, str] = {}
    for x, value in zip(ids, values, strict=True):
        found[x] = found.get(x) or value
    return found


def side_tables(about: Compounds, ids: Sequence[str]) -> dict[str, SideTable]:
    """Mechanism and target as public columns; one of which nothing is known is left out.

    Args:
        about: What is known.
        ids: The compounds, in registry order.
    """
    tables = {}
    for title, what, known in (
        ("moa", "Mechanism of action", about.mechanisms),
        ("target", "Target genes, comma-separated", about.targets),
    ):
        texts = [known.get(x, "") for x in ids]
        if not any(texts):
            continue
        cut = [
            text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 3] + "..."
            for text in texts
        ]
        note = f"; cut to {LONGEST_TEXT} characters" if cut != texts else ""
        tables[title] = SideTable(f"{what}; empty where unknown{note}.", np.array(cut))
    return tables

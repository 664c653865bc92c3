"""The values of one cell line in a PRISM file, of either screen and either orientation.

Rows are read one at a time; what a line's cells hold is returned as it stands, with compounds
perhaps repeated. Never holds a whole matrix and knows no threshold.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cads_env.errors import RegistryError, quoted
from cads_env.registry_checks import listed
from cads_env.sources.columns import RowStream, collect, measured, open_rows
from cads_env.sources.compounds import Compounds, bare_id, compounds_of_rows
from cads_env.sources.declared import file_of
from cads_env.sources.delimited import TextTable, describe_columns, number
from cads_env.sources.layouts import LINE_ID, mostly

Float64s = NDArray[np.float64]

MEASURES: Final = ("auc", "ic50", "ec50")
"""Measures of the secondary screen; higher means that the line resists."""

_NEEDED: Final = ("broad_id", "depmap_id", "screen_id", "auc")
_EXPECTED: Final = (
    "expected a PRISM file: a matrix of compounds (BRD-...) by cell lines (ACH-...) in either "
    "orientation, or secondary-screen-dose-response-curve-parameters.csv"
)


class Wells(NamedTuple):
    """What one line's cells hold, before compounds are made unique.

    Attributes:
        path: The file.
        ids: Compound of each value, without the prefix `BRD:`.
        screens: Screen of each value; empty where the file names none.
        values: Shape (n,), NaN where missing.
        compounds: What the file itself says about compounds.
    """

    path: Path
    ids: list[str]
    screens: list[str]
    values: Float64s
    compounds: Compounds


def read_line(path: Path, *, line: str | None, measure: str | None) -> Wells:
    """The values of one line.

    Args:
        path: The file.
        line: DepMap id of the line.
        measure: Column of the secondary screen; None for the primary screen.

    Raises:
        RegistryError: The file is no PRISM file, the line is not in it (the message names the
            nearest), the measure does not fit the file, or a value is no number.
    """
    with open_rows(path, sep=",") as stream:
        is_secondary = set(_NEEDED) <= set(stream.header)
        _check_measure(path, measure, is_secondary)
        if is_secondary:
            return _read_secondary(stream, line, str(measure))
        if _has_compounds_in_rows(stream):
            return _compounds_in_rows(stream, line)
        return _lines_in_rows(stream, line)


def lines_of(*, path: str | Path | None = None, **options: Any) -> tuple[str, ...]:
    """Every cell line of a PRISM file, in its order.

    Args:
        path: The file.
        **options: Ignored.

    Raises:
        RegistryError: The file is no PRISM file.
    """
    del options
    file = file_of("prism", "path", path, "a PRISM matrix or dose-response table (.csv)")
    with open_rows(file, sep=",") as stream:
        if set(_NEEDED) <= set(stream.header):
            at = stream.header.index("depmap_id")
            return tuple(dict.fromkeys(fields[at].strip() for _, fields in stream.rows))
        if _has_compounds_in_rows(stream):
            return tuple(stream.header[1:])
        return tuple(fields[0].strip() for _, fields in stream.rows)


def _check_measure(path: Path, measure: str | None, is_secondary: bool) -> None:
    if is_secondary and measure is None:
        msg = (
            f"{path} is the secondary screen; say which column holds the effect: measure=auc, "
            "ic50 or ec50 (in each, lower is a stronger kill; ic50 is often empty)."
        )
        raise RegistryError(msg)
    if not is_secondary and measure is not None:
        msg = (
            f"measure={measure!r} is for the secondary screen, but {path} is no "
            "dose-response table. Leave measure out."
        )
        raise RegistryError(msg)


def _check_line(path: Path, chosen: str | None, lines: Sequence[str]) -> str:
    """The chosen line, which must be there."""
    if chosen is not None and chosen in lines:
        return chosen
    if chosen is None:
        msg = (
            f"{path} has {len(lines)} cell lines; say which with line=..., such as {lines[0]!r}. "
            f"Available: {listed(lines)}."
        )
        raise RegistryError(msg)
    near = difflib.get_close_matches(chosen, lines, n=3) or list(lines[:3])
    msg = (
        f"{path} has no cell line {chosen!r} among its {len(lines)}; the nearest are "
        f"{', '.join(map(repr, near))}. Say line=... with a DepMap id."
    )
    raise RegistryError(msg)


def _has_compounds_in_rows(stream: RowStream) -> bool:
    """Whether the rows of a matrix are compounds; raises when it is no matrix of PRISM."""
    columns = stream.header[1:]
    if mostly(LINE_ID, columns):
        return True
    if columns and all(name.startswith("BRD") for name in columns):
        return False
    msg = f"{stream.path} is not usable: {_EXPECTED}. {describe_columns(stream.header)}"
    raise RegistryError(msg)


def _compounds_in_rows(stream: RowStream, line: str | None) -> Wells:
    line = _check_line(stream.path, line, stream.header[1:])
    at = stream.header.index(line, 1)
    ids: list[str] = []
    texts: list[str] = []
    rows: list[int] = []
    for i, fields in stream.rows:
        rows.append(i)
        ids.append(fields[0].strip())
        texts.append(fields[at].strip())
    table = TextTable(stream.path, {line: texts}, rows)
    return _wells(stream.path, ids, measured(table, line, "line"))


def _lines_in_rows(stream: RowStream, line: str | None) -> Wells:
    lines: list[str] = []
    found: list[list[str]] = []
    for _, fields in stream.rows:
        lines.append(fields[0].strip())
        if lines[-1] == line:
            found.append(fields[1:])
    if not lines:
        msg = f"{stream.path} has a header and no data rows; expected one row a cell line."
        raise RegistryError(msg)
    line = _check_line(stream.path, line, lines)
    if len(found) > 1:
        msg = f"{stream.path} has {len(found)} rows of the line {line!r}. Remove all but one."
        raise RegistryError(msg)
    columns = stream.header[1:]
    values = [number(cell.strip()) for cell in found[0]]
    bad = [
        f"{column}: {quoted(cell)}"
        for column, cell, x in zip(columns, found[0], values, strict=True)
        if x is None or abs(x) == float("inf")
    ]
    if bad:
        msg = (
            f"{stream.path}: {len(bad)} entries of the line {line!r} are no finite numbers: "
            f"{', '.join(bad[:5])}. Mend or remove them."
        )
        raise RegistryError(msg)
    return _wells(stream.path, columns, np.array(values, np.float64))


def _wells(path: Path, names: Sequence[str], values: Float64s) -> Wells:
    """Values of a matrix, whose names may be `BRD-...::dose::screen`."""
    parts = [bare_id(name).split("::") for name in names]
    screens = [part[2] if len(part) > 2 else "" for part in parts]
    return Wells(path, [part[0] for part in parts], screens, values, Compounds({}, {}, {}))


def _read_secondary(stream: RowStream, line: str | None, measure: str) -> Wells:
    at = stream.header.index("depmap_id")
    name_at = stream.header.index("ccle_name") if "ccle_name" in stream.header else at
    lines: dict[str, str] = {}

    def is_chosen(fields: list[str]) -> bool:
        lines.setdefault(fields[at].strip(), fields[name_at].strip())
        return fields[at].strip() == line

    table = collect(stream, ("broad_id", "screen_id", measure, "name", "moa", "target"), is_chosen)
    if not lines:
        msg = f"{stream.path} has a header and no data rows; expected one row a curve."
        raise RegistryError(msg)
    # People know a line by its name: HT-29 or HT29_LARGE_INTESTINE.
    meant = [x for x, title in lines.items() if line and _is_same(line, title)]
    if line not in lines and meant:
        msg = (
            f"{stream.path} has no cell line {line!r}, but that is the name of {meant[0]} "
            f"({lines[meant[0]]}). Say line={meant[0]}."
        )
        raise RegistryError(msg)
    _check_line(stream.path, line, [line for line in lines if line])
    ids = [bare_id(x) for x in table.column("broad_id", "path")]
    values = measured(table, measure, "measure")
    return Wells(stream.path, ids, table.columns["screen_id"], values, compounds_of_rows(table))


def _is_same(word: str, title: str) -> bool:
    def folded(text: str) -> str:
        return "".join(filter(str.isalnum, text)).casefold()

    return bool(title) and folded(word) in (folded(title), folded(title.partition("_")[0]))

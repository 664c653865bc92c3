"""A registry from a user's own CSV, TSV or Parquet table: one row a candidate.

Which column is what, which direction is a hit and where the threshold lies are declared, never
guessed: a missing declaration is an error that prints the options to add. Nothing that equals the
truth may become a side table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cads_env.errors import InvariantError, RegistryError
from cads_env.registry import Oracle, Registry, SideTable
from cads_env.registry_checks import check_identifiers, listed
from cads_env.sources.delimited import TextTable, number, read_delimited
from cads_env.sources.excel_names import check_excel_names
from cads_env.sources.layouts import recognise
from cads_env.sources.parquet import SUFFIX, read_parquet
from cads_env.sources.problems import Problems
from cads_env.sources.table_columns import (
    Column,
    read_identifiers,
    read_labels,
    read_numbers,
    read_side_tables,
)
from cads_env.sources.table_options import TableOptions, declared_options
from cads_env.sources.truth import Truth, make_pair

Float64s = NDArray[np.float64]
Labels = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Screen:
    """What a table says, in the order of the rows that are usable.

    Attributes:
        truth: Signal and labels.
        identifiers: The candidates.
        description: In words that a proposer reads.
        side_tables: Public columns by title.
        is_whole: Whether every row is usable.
    """

    truth: Truth
    identifiers: tuple[str, ...]
    description: str
    side_tables: Mapping[str, SideTable]
    is_whole: bool

    def make(self, name: str, salt: bytes) -> tuple[Registry, Oracle]:
        """The checked pair."""
        return make_pair(
            self.truth,
            name=name,
            salt=salt,
            identifiers=self.identifiers,
            description=self.description,
            side_tables=self.side_tables,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Content:
    """Which columns decide about hits: those that are there, and those that are asked for.

    Attributes:
        has_effect: The column of effects is there.
        has_label: The column of labels is there.
        needs_effect: It is there, or named by the user.
        needs_label: It is there, or named by the user.
    """

    has_effect: bool
    has_label: bool
    needs_effect: bool
    needs_label: bool

    @property
    def is_complete(self) -> bool:
        """True when the columns that are asked for are there."""
        return self.has_effect >= self.needs_effect and self.has_label >= self.needs_label


def load_table(
    source: str, *, name: str, path: Path, salt: bytes = b"", **options: Any
) -> tuple[Registry, Oracle]:
    """A registry from a CSV, TSV or Parquet file.

    u = threshold - effect where lower is a hit, effect - threshold where higher is. A candidate is
    a hit when u > 0, unless the table has labels. A table with labels alone needs `signal`.
    Candidates are put in the order of their names, since a file's own order may follow its effects.

    Args:
        source: Name of the source.
        name: What the registry is to be called; the panel in every random key.
        path: The file.
        salt: Secret of a private panel; changes the random streams.
        **options: See `TableOptions`.

    Raises:
        RegistryError: The file is not a usable table, a declaration is missing or contradicts the
            file, or a side table is a copy of the truth. The message lists the offending rows.
    """
    del source
    screen = _read_screen(name, path, options, Problems(are_gathered=False))
    if screen is None:
        msg = f"{path} gave neither a registry nor a problem; this is a bug of cads-env: report it."
        raise InvariantError(msg)
    return screen.make(name, salt)


def problems_of(
    *, name: str, path: Path, salt: bytes = b"", keeps_excel_names: bool = False, **options: Any
) -> tuple[str, ...]:
    """Everything for which `load_table` would refuse a file, as far as it can be told at once.

    Rows with a problem are left aside where the table as a whole is looked at.

    Args:
        name: As for `load_table`.
        path: As for `load_table`.
        salt: As for `load_table`.
        keeps_excel_names: Whether names that a spreadsheet changed are no problem.
        **options: As for `load_table`.

    Returns:
        One message a problem; empty for a table that is usable.
    """
    problems = Problems(are_gathered=True)
    screen = _read_screen(name, path, options, problems, keeps_excel_names=keeps_excel_names)
    if screen is not None:
        labels = screen.truth.labels
        # The hits, or the nulls, may be among the rows that are to be mended.
        if screen.is_whole or (labels.any() and not labels.all()):
            with problems.gathered():
                screen.make(name, salt)
    return tuple(problems.found)


def _read_screen(
    name: str,
    path: Path,
    options: Mapping[str, Any],
    problems: Problems,
    *,
    keeps_excel_names: bool = True,
) -> _Screen | None:
    """What the table says; None when problems leave nothing to judge."""
    declared = declared_options(options, problems)
    table: TextTable | None = None
    with problems.gathered():
        table = _read(path, declared)
    if table is None:
        return None
    content = _content(table, declared, options, problems)
    given = {option for option, value in options.items() if value is not None}
    _check_declarations(table, declared, given, content, problems)
    dropped = 0
    if content.has_effect and declared.drop_missing:
        table, dropped = _without_missing(table, str(declared.effect))
    names = read_identifiers(table, declared.identifier, problems)
    if names is not None:
        _check_names(names, name, problems, keeps_excel_names=keeps_excel_names)
    effects = labels = None
    if content.has_effect:
        advice = "Or leave them out with drop_missing=true."
        effects = read_numbers(table, str(declared.effect), "effect", problems, advice=advice)
    if content.has_label:
        labels = read_labels(table, str(declared.label), problems)
    side_tables = read_side_tables(table, declared, problems)
    signal = _signal(effects, labels, declared)
    if names is None or signal is None or not content.is_complete:
        return None
    is_usable = names.is_usable.copy()
    for column in (effects, labels):
        is_usable &= True if column is None else column.is_usable
    identifiers = tuple(names.values[is_usable].tolist())
    signal = signal[is_usable]
    truth = signal > 0 if labels is None else labels.values[is_usable]
    if labels is not None and effects is not None and "label" not in options:
        _check_undeclared_labels(truth, signal > 0, identifiers, path, problems)
        truth = signal > 0
    # An undeclared label says what the threshold says.
    is_by_label = labels is not None and (effects is None or "label" in options)
    return _Screen(
        truth=Truth(signal, truth),
        identifiers=identifiers,
        description=_description(declared, len(identifiers), is_by_label, dropped),
        side_tables={
            title: SideTable(side.description, side.values[is_usable])
            for title, side in side_tables.items()
        },
        is_whole=bool(is_usable.all()),
    )


def _read(path: Path, options: TableOptions) -> TextTable:
    if path.suffix.lower() != SUFFIX:
        return read_delimited(path, sep=options.sep)
    if options.sep is not None:
        msg = f"sep={options.sep!r} has no meaning for {path}, a Parquet file. Leave sep out."
        raise RegistryError(msg)
    return read_parquet(path, columns=options.columns)


def _content(
    table: TextTable, declared: TableOptions, options: Mapping[str, Any], problems: Problems
) -> _Content:
    """Which columns are there; an explicitly named column must be."""
    has: dict[str, bool] = {}
    needs: dict[str, bool] = {}
    for option, column in (("effect", declared.effect), ("label", declared.label)):
        has[option] = column is not None and column in table.columns
        needs[option] = has[option] or (column is not None and option in options)
        if column is not None and needs[option]:
            with problems.gathered():
                table.column(column, option)
    return _Content(
        has_effect=has["effect"],
        has_label=has["label"],
        needs_effect=needs["effect"],
        needs_label=needs["label"],
    )


def _check_names(names: Column, name: str, problems: Problems, *, keeps_excel_names: bool) -> None:
    """Look at the names as a family; those of rows that are a problem already are left aside."""
    usable = tuple(names.values[names.is_usable].tolist())
    if len(usable) > 1 or names.is_usable.all():
        with problems.gathered():
            check_identifiers(usable, name)
    if not keeps_excel_names:
        with problems.gathered():
            check_excel_names(usable, name)


def _check_undeclared_labels(
    labels: Labels,
    by_threshold: Labels,
    identifiers: Sequence[str],
    path: Path,
    problems: Problems,
) -> None:
    """Find where a column `label` that nobody declared would overrule the threshold."""
    at = np.flatnonzero(labels != by_threshold)
    if at.size:
        names = listed([identifiers[int(i)] for i in at])
        problems.add(
            f"{path} has a column 'label' that contradicts direction and threshold in {at.size} "
            f"rows: {names}. Say label=label to let it decide which candidates are hits, or "
            "label=null to leave it aside."
        )


def _check_declarations(
    table: TextTable,
    options: TableOptions,
    given: set[str],
    content: _Content,
    problems: Problems,
) -> None:
    """Find declarations that are missing, with the options to add, or have no meaning here.

    An option in `given` was declared, even where its value is a problem of its own.
    """
    columns = table.listing
    missing: list[str] = []
    if content.needs_effect:
        if "direction" not in given:
            missing.append("direction=lower (or higher: which effects are hits)")
        if "threshold" not in given:
            missing.append("threshold=... (the effect beyond which a candidate is a hit)")
        if options.signal is not None:
            problems.add(
                f"signal={options.signal!r} is for tables without effects, but {table.path} has "
                f"the column {options.effect!r}. Leave signal out, or add effect=null."
            )
    elif content.needs_label:
        if {"direction", "threshold"} & given or options.drop_missing:
            problems.add(
                f"direction, threshold and drop_missing need effects, but {table.path} has no "
                f"column {options.effect or 'effect'!r}. {columns} Add effect=..., or leave "
                "them out."
            )
        if "signal" not in given:
            missing.append("signal=(hit, null), u of a hit and of a null such as (1.0, -0.5)")
    else:
        problems.add(
            f"{table.path} has neither a column 'effect' nor a column 'label'. {columns} Add "
            "effect=... with direction=lower (or higher) and threshold=..., or label=...."
            f"{_looks_like(table.path)}"
        )
    if "prior" in given and "prior_direction" not in given:
        missing.append("prior_direction=higher (or lower: which scores are more promising)")
    if "prior" not in given and "prior_direction" in given:
        missing.append("prior=... (the column that prior_direction is about)")
    if missing:
        kind = ""
        if content.needs_effect or content.needs_label:
            kind = f" has {'effects' if content.needs_effect else 'labels alone'};"
        problems.add(f"{table.path}{kind or ':'} still to be declared: {'; '.join(missing)}.")


def _looks_like(path: Path) -> str:
    """The sentence on what a file is, where its layout is a known one; else nothing."""
    layout = next(iter(recognise(path)), None)
    # What another source reads is said of every error of such a file, by who knows its options.
    is_known = layout is not None and layout.source in (None, "table")
    return f" It looks like {layout.title}. {layout.advice}" if layout and is_known else ""


def _without_missing(table: TextTable, column: str) -> tuple[TextTable, int]:
    values = map(number, table.column(column, "effect"))
    kept = [value is None or not math.isnan(value) for value in values]
    return table.keep(kept), kept.count(False)


def _signal(
    effects: Column | None, labels: Column | None, options: TableOptions
) -> Float64s | None:
    """U of each row, NaN where its effect is not usable; None while it is not declared."""
    if effects is not None:
        if options.direction is None or options.threshold is None:
            return None
        threshold = float(options.threshold)
        is_lower = options.direction == "lower"
        u: Float64s = threshold - effects.values if is_lower else effects.values - threshold
        return u + 0.0
    if labels is None or options.signal is None:
        return None
    hit, null = (float(value) for value in options.signal)
    return np.where(labels.values, hit, null)


def _description(options: TableOptions, m: int, has_label: bool, dropped: int) -> str:
    if options.description is not None:
        text = options.description
    elif has_label:
        text = f"A screen of {m:,} candidates. Hits are those that its table labels as hits."
    else:
        side = "below" if options.direction == "lower" else "above"
        text = f"A screen of {m:,} candidates. A hit has an effect {side} {options.threshold:g}."
    if dropped:
        text = f"{text} {dropped:,} candidates without a measured effect were left out."
    return text

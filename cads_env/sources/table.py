"""A registry from a user's own CSV, TSV or Parquet table: one row a candidate.

Which column is what, which direction is a hit and where the threshold lies are declared, never
guessed: a missing declaration is an error that prints the options to add. Nothing that equals the
truth may become a side table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cads_env.errors import RegistryError
from cads_env.registry import Oracle, Registry, SideTable
from cads_env.registry_checks import check_identifiers, listed
from cads_env.sources.declared import (
    check_choice,
    check_flag,
    check_list,
    check_number,
    check_signal,
    refuse,
)
from cads_env.sources.delimited import TextTable, number, read_delimited
from cads_env.sources.layouts import recognise
from cads_env.sources.parquet import SUFFIX, read_parquet
from cads_env.sources.truth import Truth, make_pair

Float64s = NDArray[np.float64]
Labels = NDArray[np.bool_]

DIRECTIONS: Final = ("lower", "higher")
LABELS: Final = {"0": False, "1": True, "false": False, "true": True, "no": False, "yes": True}
"""Spellings of a label, in lower case."""


LONGEST_TEXT: Final = 200
"""Characters of a text in a side table, at most."""


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """What a user declares about a table.

    Attributes:
        sep: Separator; None for that of the file name's ending (.csv comma, .tsv and .txt tab).
        identifier: Column of the candidates' names.
        effect: Column of the effects, or None to leave effects aside.
        label: Column of the labels (0/1, true/false, yes/no), or None to label by the threshold. A
            column `label` that is not declared must agree with the threshold.
        direction: "lower" or "higher": which effects are hits. Needed with effects.
        threshold: Effect beyond which a candidate is a hit. Needed with effects.
        signal: u of a hit (> 0) and of a null (<= 0). Needed, and allowed, only without effects.
        description: What was screened and what a hit is, in words that a proposer reads; None for
            a plain sentence.
        prior: Column of a score, or None.
        prior_direction: "lower" or "higher": which scores are more promising. Needed with `prior`.
        module: Column of group labels, or None.
        features: Further columns to publish as side tables.
        drop_missing: Leave out candidates without an effect, and say so in the description.
    """

    sep: str | None = None
    identifier: str = "identifier"
    effect: str | None = "effect"
    label: str | None = "label"
    direction: str | None = None
    threshold: float | None = None
    signal: Sequence[float] | None = None
    description: str | None = None
    prior: str | None = None
    prior_direction: str | None = None
    module: str | None = None
    features: Sequence[str] = ()
    drop_missing: bool = False

    def __post_init__(self) -> None:
        """Check types and ranges; which options belong together depends on the file."""
        for option in ("identifier", "effect", "label", "description", "prior", "module"):
            value = getattr(self, option)
            if not isinstance(value, str) and (value is not None or option == "identifier"):
                refuse(option, value, "a text")
        for option in ("direction", "prior_direction"):
            check_choice(option, getattr(self, option), DIRECTIONS, optional=True)
        check_number("threshold", self.threshold)
        check_signal(self.signal)
        check_list("features", self.features, "column names")
        check_flag("drop_missing", self.drop_missing)

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is looked at, where it is there."""
        named = (self.identifier, self.effect, self.label, self.prior, self.module, *self.features)
        return tuple(dict.fromkeys(name for name in named if name is not None))


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
    declared = TableOptions(**options)
    table = _read(path, declared)
    has_effect = _has_column(table, declared.effect, "effect", declared="effect" in options)
    has_label = _has_column(table, declared.label, "label", declared="label" in options)
    _check_declarations(table, declared, has_effect=has_effect, has_label=has_label)
    dropped = 0
    if has_effect and declared.drop_missing:
        table, dropped = _without_missing(table, str(declared.effect))
    identifiers = _identifiers(table, declared.identifier)
    check_identifiers(identifiers, name)
    labels = _labels(table, str(declared.label)) if has_label else None
    if labels is None or has_effect:
        signal = _signal_of_effects(table, declared)
    else:
        hit, null = (float(value) for value in declared.signal or ())
        signal = np.where(labels, hit, null)
    truth = signal > 0 if labels is None else labels
    if labels is not None and has_effect and "label" not in options:
        _check_undeclared_labels(labels, signal > 0, identifiers, path)
    return make_pair(
        Truth(signal, truth),
        name=name,
        salt=salt,
        identifiers=identifiers,
        # An undeclared label has just been found to say what the threshold says.
        description=_description(
            declared,
            len(identifiers),
            has_label and (not has_effect or "label" in options),
            dropped,
        ),
        side_tables=_side_tables(table, declared),
    )


def _read(path: Path, options: TableOptions) -> TextTable:
    if path.suffix.lower() != SUFFIX:
        return read_delimited(path, sep=options.sep)
    if options.sep is not None:
        msg = f"sep={options.sep!r} has no meaning for {path}, a Parquet file. Leave sep out."
        raise RegistryError(msg)
    return read_parquet(path, columns=options.columns)


def _check_undeclared_labels(
    labels: Labels, by_threshold: Labels, identifiers: Sequence[str], path: Path
) -> None:
    """Raise when a column `label` that nobody declared would overrule the threshold."""
    at = np.flatnonzero(labels != by_threshold)
    if at.size:
        names = listed([identifiers[int(i)] for i in at])
        msg = (
            f"{path} has a column 'label' that contradicts direction and threshold in {at.size} "
            f"rows: {names}. Say label=label to let it decide which candidates are hits, or "
            "label=null to leave it aside."
        )
        raise RegistryError(msg)


OPTION_NAMES: Final = tuple(field.name for field in fields(TableOptions))
"""Options of `load_table` besides name, path and salt."""


def _has_column(table: TextTable, name: str | None, option: str, *, declared: bool) -> bool:
    """True when the column is there; an explicitly named column must be."""
    if name is None:
        return False
    if declared:
        table.column(name, option)
    return name in table.columns


def _check_declarations(
    table: TextTable, options: TableOptions, *, has_effect: bool, has_label: bool
) -> None:
    """Raise, with the options to add, when a declaration is missing or has no meaning here."""
    columns = table.listing
    if not has_effect and not has_label:
        msg = (
            f"{table.path} has neither a column 'effect' nor a column 'label'. {columns} Add "
            "effect=... with direction=lower (or higher) and threshold=..., or label=...."
            f"{_looks_like(table.path)}"
        )
        raise RegistryError(msg)
    missing: list[str] = []
    if has_effect:
        if options.direction is None:
            missing.append("direction=lower (or higher: which effects are hits)")
        if options.threshold is None:
            missing.append("threshold=... (the effect beyond which a candidate is a hit)")
        if options.signal is not None:
            msg = (
                f"signal={options.signal!r} is for tables without effects, but {table.path} has "
                f"the column {options.effect!r}. Leave signal out, or add effect=null."
            )
            raise RegistryError(msg)
    else:
        idle = (options.direction, options.threshold) != (None, None) or options.drop_missing
        if idle:
            msg = (
                f"direction, threshold and drop_missing need effects, but {table.path} has no "
                f"column {options.effect or 'effect'!r}. {columns} Add effect=..., or leave "
                "them out."
            )
            raise RegistryError(msg)
        if options.signal is None:
            missing.append("signal=(hit, null), u of a hit and of a null such as (1.0, -0.5)")
    if options.prior is not None and options.prior_direction is None:
        missing.append("prior_direction=higher (or lower: which scores are more promising)")
    if options.prior is None and options.prior_direction is not None:
        missing.append("prior=... (the column that prior_direction is about)")
    if missing:
        kind = "effects" if has_effect else "labels alone"
        msg = f"{table.path} has {kind}; still to be declared: {'; '.join(missing)}."
        raise RegistryError(msg)


def _looks_like(path: Path) -> str:
    """The sentence on what a file is, where its layout is a known one; else nothing."""
    layout = next(iter(recognise(path)), None)
    if layout is None:
        return ""
    other = layout.source not in (None, "table")
    reader = f", which the source {layout.source!r} reads" if other else ""
    return f" It looks like {layout.title}{reader}. {layout.advice}"


def _identifiers(table: TextTable, column: str) -> tuple[str, ...]:
    names = table.column(column, "identifier")
    empty = [i for i, name in enumerate(names) if not name]
    if empty:
        msg = (
            f"{table.path}: {len(empty)} rows have no identifier: "
            f"{table.offenders(empty, names)}. Name or remove them."
        )
        raise RegistryError(msg)
    if len(set(names)) != len(names):
        first: dict[str, int] = {}
        again = [i for i, name in enumerate(names) if first.setdefault(name, i) != i]
        shown = [f"{name} (first in row {table.rows[first[name]]})" for name in names]
        msg = (
            f"{table.path}: {len(again)} rows repeat an identifier: "
            f"{table.offenders(again, shown)}. Merge or rename them."
        )
        raise RegistryError(msg)
    return tuple(names)


def _without_missing(table: TextTable, column: str) -> tuple[TextTable, int]:
    values = map(number, table.column(column, "effect"))
    kept = [value is None or not math.isnan(value) for value in values]
    return table.keep(kept), kept.count(False)


def _labels(table: TextTable, column: str) -> Labels:
    texts = table.column(column, "label")
    labels = [LABELS.get(text.lower()) for text in texts]
    bad = [i for i, label in enumerate(labels) if label is None]
    if bad:
        msg = (
            f"{table.path}: {len(bad)} entries of the label column {column!r} are none of "
            f"{', '.join(LABELS)}: {table.offenders(bad, texts)}. Mend or remove those rows."
        )
        raise RegistryError(msg)
    return np.array(labels, dtype=np.bool_)


def _signal_of_effects(table: TextTable, options: TableOptions) -> Float64s:
    effects = _numbers(
        table, str(options.effect), "effect", "Or leave them out with drop_missing=true."
    )
    threshold = float(options.threshold if options.threshold is not None else math.nan)
    signal = threshold - effects if options.direction == "lower" else effects - threshold
    return signal + 0.0


def _numbers(table: TextTable, column: str, option: str, advice: str = "") -> Float64s:
    """A column of finite numbers."""
    texts = table.column(column, option)
    values = [number(text) for text in texts]
    for what, bad in (
        ("are no numbers", [i for i, x in enumerate(values) if x is None]),
        ("are missing", [i for i, x in enumerate(values) if x is not None and math.isnan(x)]),
        ("are infinite", [i for i, x in enumerate(values) if x is not None and math.isinf(x)]),
    ):
        if bad:
            msg = (
                f"{table.path}: {len(bad)} entries of the column {column!r} ({option}=) {what}: "
                f"{table.offenders(bad, texts)}. Mend or remove those rows."
            )
            raise RegistryError(f"{msg} {advice}" if advice and what == "are missing" else msg)
    return np.array(values, dtype=np.float64)


def _side_tables(table: TextTable, options: TableOptions) -> dict[str, SideTable]:
    tables: dict[str, SideTable] = {}
    for option, columns in (("module", [options.module]), ("features", options.features)):
        for column in columns:
            if column is not None and column in (options.effect, options.label):
                msg = (
                    f"{option}= names the column {column!r}, which holds the truth; it would be a "
                    "copy of the truth. Proposers see side tables; leave it out."
                )
                raise RegistryError(msg)
    if options.prior is not None:
        values = _numbers(table, options.prior, "prior")
        sign, order = ("", values) if options.prior_direction == "higher" else ("minus ", -values)
        tables["prior"] = SideTable(
            f"Score: {sign}column {options.prior!r}; higher = more promising.", order + 0.0
        )
    if options.module is not None:
        labels = table.column(options.module, "module")
        pairs = zip(table.rows, labels, strict=True)
        empty = [f"row {row}" for row, label in pairs if not label.strip()]
        if empty:
            msg = (
                f"{table.path}: {len(empty)} entries of column {options.module!r} (module=) are "
                f"missing: {', '.join(empty[:5])}. An empty group would join them; label each."
            )
            raise RegistryError(msg)
        text = _texts(labels, options.module, "module")
        tables["module"] = SideTable(f"Group label: column {options.module!r}.", text)
    for column in options.features:
        if column in tables:
            msg = (
                f"features names the column {column!r}, but a side table of that name is declared "
                f"by {column}= already. Rename the column or leave it out."
            )
            raise RegistryError(msg)
        texts = table.column(column, "features")
        # A column is of numbers when every entry is a number or missing, and at least one is there.
        parsed = [number(text) for text in texts]
        is_numeric = None not in parsed and not all(x is not None and math.isnan(x) for x in parsed)
        if is_numeric:
            values = _numbers(table, column, "features")
        else:
            values = _texts(texts, column, "features")
        tables[column] = SideTable(f"Column {column!r}.", values)
    return tables


def _texts(texts: Sequence[str], column: str, option: str) -> NDArray[Any]:
    """A column of text, of which no entry is so long that all would take its room."""
    longest = max(texts, key=len)
    if len(longest) > LONGEST_TEXT:
        msg = (
            f"{option}= names the column {column!r}, which holds a text of {len(longest):,} "
            f"characters ({longest[:40]!r}...); a side table takes {LONGEST_TEXT} at most."
        )
        raise RegistryError(msg)
    return np.array(texts)


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

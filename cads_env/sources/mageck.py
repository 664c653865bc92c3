"""A registry from the gene summary of MAGeCK: `mageck test` (RRA) or `mageck mle`.

One row a gene. Which direction is a hit and where the limit lies are declared; a gene without the
values that decide is left out and counted in the description. Never reads guides or counts: those
go through MAGeCK first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cads_env.errors import RegistryError, suggest
from cads_env.registry import Oracle, Registry
from cads_env.sources.columns import RowStream, collect, measured, open_rows
from cads_env.sources.declared import (
    check_choice,
    check_fraction,
    check_number,
    check_signal,
    check_texts,
    file_of,
)
from cads_env.sources.delimited import TextTable, describe_columns, fact
from cads_env.sources.truth import check_declared, hits_text, judge, left_out, make_pair

Float64s = NDArray[np.float64]

SIDE_OF: Final = {"neg": "lower", "pos": "higher"}
"""Which effects are hits, by MAGeCK's word for the direction."""

FDR_COLUMNS: Final = ("fdr", "wald-fdr")
"""False discovery rates of `mle`: by permutation, and by the Wald test."""

_BETA: Final = "|beta"
_SIGNATURES: Final[dict[tuple[str, ...], str]] = {
    ("sgrna", "gene", "control_count"): "the sgrna_summary of MAGeCK, one row a guide. Give the "
    "gene_summary.txt that the same `mageck test` run wrote",
    ("sgrna", "gene"): "a table of read counts, one row a guide. Run `mageck test -k COUNTS -t "
    "TREATED -c CONTROL` and give the gene_summary.txt that it writes",
    ("gene", "bf"): "a table of Bayes factors from BAGEL. Load it as a table: identifier=GENE, "
    "effect=BF, direction=higher, threshold=...",
    ("sequence", "gene"): "a table of read counts for BAGEL, one row a guide. Run `BAGEL.py` first "
    "and load the .bf file that it writes as a table",
}
"""Files that are taken for a gene summary, by their first columns in lower case."""


@dataclass(frozen=True, kw_only=True)
class MageckOptions:
    """What a user declares about a gene summary.

    Attributes:
        direction: "neg" (depleted: lower log2 fold change or beta is a hit) or "pos" (enriched).
            Needed.
        condition: Condition of an `mle` summary; needed when it has several, not allowed for RRA.
        threshold: Log2 fold change or beta beyond which u > 0.
        fdr: Makes hits of the genes whose false discovery rate in that direction is below this,
            above 0 and at most 1; None to let the threshold make them. With it, u comes from the
            threshold or from `signal`.
        fdr_column: For `mle`: "fdr" (by permutation) or "wald-fdr".
        signal: (u of a hit > 0, u of a null <= 0); only with `fdr`, instead of a threshold.
        description: What was screened and what a hit is, in words that a proposer reads; None for
            a plain sentence.
    """

    direction: str | None = None
    condition: str | None = None
    threshold: float | None = None
    fdr: float | None = None
    fdr_column: str = "fdr"
    signal: Sequence[float] | None = None
    description: str | None = None

    def __post_init__(self) -> None:
        """Check types, ranges and contradictions."""
        check_texts(condition=self.condition, description=self.description)
        check_choice("direction", self.direction, tuple(SIDE_OF), optional=True)
        check_choice("fdr_column", self.fdr_column, FDR_COLUMNS, optional=False)
        check_number("threshold", self.threshold)
        check_fraction("fdr", self.fdr)
        check_signal(self.signal)
        check_declared(
            threshold=self.threshold,
            signal=self.signal,
            side=None,
            call=None if self.fdr is None else f"fdr={self.fdr:g}",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Columns:
    """The columns of one summary that matter.

    Attributes:
        identifier: Of the genes.
        effect: Of the effect, by direction; None where the file has none.
        fdr: Of the false discovery rate, by direction.
        unit: The effect in words.
        analysis: Command that wrote the file.
    """

    identifier: str
    effect: dict[str, str | None]
    fdr: dict[str, str]
    unit: str
    analysis: str


def load_mageck(
    source: str,
    *,
    name: str,
    path: str | Path | None = None,
    salt: bytes = b"",
    **options: Any,
) -> tuple[Registry, Oracle]:
    """A registry from a gene summary.

    u = threshold - effect (neg) or effect - threshold (pos), the effect being the log2 fold change
    of `mageck test` or the beta score of `mageck mle`. A gene is a hit when u > 0 or, with `fdr`,
    when its false discovery rate in that direction is below it.

    Args:
        source: Name of the source.
        name: What the registry is to be called; the panel in every random key.
        path: The gene_summary.txt.
        salt: Secret of a private panel; changes the random streams.
        **options: See `MageckOptions`.

    Raises:
        RegistryError: The file is no gene summary, a declaration is missing (the message counts
            the hits of some choices) or the data is not usable.
    """
    declared = MageckOptions(**options)
    file = file_of(source, "path", path, "the gene_summary.txt of `mageck test` or `mageck mle`")
    with open_rows(file, sep="\t", is_quoted=False) as stream:
        columns = _columns_of(stream, declared)
        table = collect(stream, _wanted(columns))
    _check_complete(table, columns, declared)
    direction = str(declared.direction)
    effect_column = columns.effect[direction]
    # MAGeCK gives one log2 fold change a gene; constants need none.
    has_effect = effect_column is not None and declared.signal is None
    names = table.column(columns.identifier, "path")
    effects = measured(table, str(effect_column), "direction") if has_effect else None
    fdr = None if declared.fdr is None else measured(table, columns.fdr[direction], "fdr")
    called: NDArray[np.bool_] | None = None
    if fdr is not None and declared.fdr is not None:
        called = fdr < declared.fdr
        if columns.analysis == "mageck mle":  # its rates are two-sided
            beta = measured(table, str(effect_column), "direction")
            called &= (beta < 0) if direction == "neg" else (beta > 0)
            fdr = np.where(np.isnan(beta), np.nan, fdr)
    there = np.ones(len(names), np.bool_)
    for values in (effects, fdr):
        if values is not None:
            there &= ~np.isnan(values)
    kept = [name for name, is_there in zip(names, there, strict=True) if is_there]
    truth = judge(
        effects[there] if effects is not None else None,
        side=SIDE_OF[direction],
        threshold=declared.threshold,
        called=called[there] if called is not None else None,
        signal=declared.signal,
        identifiers=kept,
        what=effect_column or "the effect",
    )
    return make_pair(
        truth,
        name=name,
        salt=salt,
        identifiers=kept,
        description=left_out(
            declared.description or _description(columns, declared, len(kept)),
            {"genes without the values that decide": int(np.count_nonzero(~there))},
        ),
    )


def conditions_of(*, path: str | Path | None = None, **options: Any) -> tuple[str, ...]:
    """Every condition of a summary of `mageck mle`, in its order.

    Args:
        path: The gene_summary.txt.
        **options: Ignored.

    Raises:
        RegistryError: The file has no conditions.
    """
    del options
    file = file_of("mageck", "path", path, "the gene_summary.txt of `mageck mle`")
    with open_rows(file, sep="\t", is_quoted=False) as stream:
        conditions = _conditions(stream.header)
    if not conditions:
        msg = (
            f"{file} has no conditions (columns CONDITION|beta), as only `mageck mle` writes them. "
            "Leave conditions out."
        )
        raise RegistryError(msg)
    return tuple(conditions)


def _conditions(header: Sequence[str]) -> list[str]:
    return [column.removesuffix(_BETA) for column in header if column.endswith(_BETA)]


def _columns_of(stream: RowStream, options: MageckOptions) -> _Columns:
    """The columns of the analysis that the header shows."""
    header, path = stream.header, stream.path
    if {"id", "neg|fdr", "pos|fdr"} <= set(header):
        if options.condition is not None:
            msg = (
                f"condition={options.condition!r} is for summaries of `mageck mle`, but {path} is "
                "of `mageck test`, which has one comparison. Leave condition out."
            )
            raise RegistryError(msg)
        if options.fdr_column != "fdr":
            msg = (
                f"fdr_column={options.fdr_column!r} is for summaries of `mageck mle`, but {path} "
                "is of `mageck test`. Leave fdr_column out."
            )
            raise RegistryError(msg)
        lfc = {d: f"{d}|lfc" if f"{d}|lfc" in header else None for d in SIDE_OF}
        fdr = {d: f"{d}|fdr" for d in SIDE_OF}
        return _Columns(
            identifier="id", effect=lfc, fdr=fdr, unit="log2 fold change", analysis="mageck test"
        )
    conditions = _conditions(header)
    if "Gene" in header and conditions:
        condition = _condition(path, conditions, options.condition)
        fdr_column = f"{condition}|{options.fdr_column}"
        return _Columns(
            identifier="Gene",
            effect=dict.fromkeys(SIDE_OF, condition + _BETA),
            fdr=dict.fromkeys(SIDE_OF, fdr_column),
            unit=f"beta score of condition {fact(condition)!r}",
            analysis="mageck mle",
        )
    first = [column.lower() for column in header]
    for signature, what in _SIGNATURES.items():
        if first[: len(signature)] == list(signature):
            msg = f"{path} is no gene summary of MAGeCK but {what}."
            raise RegistryError(msg)
    msg = (
        f"{path} is no gene summary of MAGeCK: expected tab-separated columns id, neg|fdr, pos|fdr "
        f"(`mageck test`) or Gene and CONDITION|beta (`mageck mle`). {describe_columns(header)}"
    )
    raise RegistryError(msg)


def _condition(path: Path, conditions: Sequence[str], chosen: str | None) -> str:
    if chosen is None and len(conditions) == 1:
        return conditions[0]
    if chosen is None:
        msg = (
            f"{path} has {len(conditions)} conditions; say which with condition=.... "
            f"Available: {', '.join(conditions)}."
        )
        raise RegistryError(msg)
    if chosen not in conditions:
        msg = f"{path} has no condition {chosen!r}. {suggest(chosen, conditions)}"
        raise RegistryError(msg)
    return chosen


def _wanted(columns: _Columns) -> list[str]:
    effects = [column for column in columns.effect.values() if column is not None]
    return list(dict.fromkeys([columns.identifier, *effects, *columns.fdr.values()]))


def _check_complete(table: TextTable, columns: _Columns, options: MageckOptions) -> None:
    """Raise, with the options to add and what they would give, when a declaration is missing."""
    missing: list[str] = []
    if options.direction is None:
        missing.append("direction=neg (depleted genes are hits) or direction=pos (enriched ones)")
    is_open = [options.direction] if options.direction is not None else list(SIDE_OF)
    without = [direction for direction in is_open if columns.effect[direction] is None]
    if without and options.threshold is not None:
        msg = (
            f"{table.path} has no column '{without[0]}|lfc', which threshold= needs (MAGeCK wrote "
            "none in early versions). Say fdr=... and signal=(1.0, -0.5) instead."
        )
        raise RegistryError(msg)
    if options.threshold is None and options.fdr is None:
        missing.append(
            f"threshold=... (the {columns.unit} beyond which a gene is a hit), or fdr=0.05 with "
            "signal=(1.0, -0.5) (hits by false discovery rate, one u for hits, one for nulls)"
        )
    elif options.threshold is None and options.signal is None:
        missing.append(
            f"signal=(1.0, -0.5) (one u for hits, one for nulls), or threshold=... (the "
            f"{columns.unit} beyond which u > 0; no null may pass it)"
        )
    if not missing:
        return
    counts = [
        hits_text(measured(table, column, "path"), column, [SIDE_OF[direction]])
        for direction in is_open
        if (column := columns.effect[direction]) is not None
    ]
    for direction in is_open:
        fdr = columns.fdr[direction]
        if fdr in table.columns:
            count = int(np.count_nonzero(measured(table, fdr, "fdr") < 0.05))
            both = " in either direction" if columns.analysis == "mageck mle" else ""
            counts.append(f"{fdr} < 0.05{both}: {count:,}.")
    msg = (
        f"{table.path} is a gene summary of `{columns.analysis}`; still to be declared: "
        f"{'; '.join(missing)}. {' '.join(dict.fromkeys(counts))}"
    )
    raise RegistryError(msg)


def _description(columns: _Columns, options: MageckOptions, m: int) -> str:
    direction = str(options.direction)
    what = "depleted" if direction == "neg" else "enriched"
    side = "below" if direction == "neg" else "above"
    if options.fdr is None:
        rule = f"a {columns.unit} {side} {options.threshold:g}"
    elif columns.analysis == "mageck test":
        rule = f"a false discovery rate below {options.fdr:g} in that direction"
    else:
        rule = f"a {columns.unit} {side} 0 and a false discovery rate below {options.fdr:g}"
    return (
        f"A pooled CRISPR screen of {m:,} genes, analysed with `{columns.analysis}`. A hit is a "
        f"gene whose guides are {what}: {rule}."
    )

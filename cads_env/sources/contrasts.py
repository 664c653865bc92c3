"""One contrast of differential expression: a perturbation in a condition, gene by gene.

The names of the columns and layers that hold it, the choice of one contrast, and the reading of a
long table row by row. Never holds a whole file and knows no threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cads_env.errors import RegistryError, suggest
from cads_env.registry_checks import listed
from cads_env.sources.columns import RowStream, collect, measured, open_rows
from cads_env.sources.delimited import describe_columns

Float64s = NDArray[np.float64]

TARGET: Final = "target_contrast_gene_name"
CONDITION: Final = "culture_condition"
SYMBOL: Final = "gene_name"
GENE_ID: Final = "gene_ids"
EFFECTS: Final = ("log_fc", "zscore")
ADJUSTED: Final = "adj_p_value"


class Contrast(NamedTuple):
    """One perturbation in one condition.

    Attributes:
        target: The perturbed gene.
        condition: The culture condition.
        symbols: Gene symbols, one a gene.
        ids: Gene ids, one a gene; empty when the file has none.
        effects: Shape (genes,), NaN where missing.
        adjusted: Adjusted p values, shape (genes,), NaN where missing; None when not asked for.
    """

    target: str
    condition: str
    symbols: list[str]
    ids: list[str]
    effects: Float64s
    adjusted: Float64s | None


def choose(
    path: Path, pairs: Sequence[tuple[str, str]], *, target: str | None, condition: str | None
) -> tuple[str, str]:
    """The one (target, condition) that the options name.

    Args:
        path: The file, for messages.
        pairs: Every (target, condition) of the file.
        target: As declared.
        condition: As declared.

    Raises:
        RegistryError: Several fit, or none.
    """
    targets = list(dict.fromkeys(t for t, _ in pairs))
    chosen = _one_of(path, "target", target, targets)
    conditions = list(dict.fromkeys(c for t, c in pairs if t == chosen))
    return chosen, _one_of(path, "condition", condition, conditions, f" of {chosen!r}")


def _one_of(
    path: Path, option: str, word: str | None, values: Sequence[str], whose: str = ""
) -> str:
    if word is None and len(values) == 1:
        return values[0]
    if word is None:
        msg = (
            f"{path} has {len(values):,} {option}s{whose}; say which with {option}=.... "
            f"Available: {listed(values)}."
        )
        raise RegistryError(msg)
    if word not in values:
        near = suggest(word, values)
        if near.startswith("Available"):
            near = f"Available: {listed(values)}."
        msg = f"{path} has no {option} {word!r}{whose}. {near}"
        raise RegistryError(msg)
    return word


def _open_long(path: Path) -> AbstractContextManager[RowStream]:
    return open_rows(path, sep="\t" if path.suffix.lower() in (".tsv", ".txt") else ",")


def read_long(
    path: Path,
    *,
    target: str | None,
    condition: str | None,
    effect: str,
    wants_adjusted: bool,
    needs_adjusted: bool,
) -> Contrast:
    """One contrast of a long table.

    Args:
        path: The file, .csv (comma) or .tsv and .txt (tab).
        target: The perturbed gene; None when there is only one.
        condition: The culture condition; None when the target has only one.
        effect: Column of the effects.
        wants_adjusted: Whether adjusted p values are read, where there are any.
        needs_adjusted: Whether there must be any.

    Raises:
        RegistryError: The file is no such table, or the choice does not name one contrast.
    """
    with _open_long(path) as stream:
        _check_long(stream, effect, needs_adjusted=needs_adjusted)
        at = stream.header.index(TARGET), stream.header.index(CONDITION)
        pairs: dict[tuple[str, str], None] = {}

        def is_wanted(fields: list[str]) -> bool:
            pair = fields[at[0]].strip(), fields[at[1]].strip()
            pairs.setdefault(pair)
            # Without a choice only the first target is kept; were there more, choose() refuses.
            wanted_target = target or next(iter(pairs))[0]
            return pair[0] == wanted_target and condition in (None, pair[1])

        wanted = (CONDITION, SYMBOL, GENE_ID, effect, ADJUSTED)
        table = collect(stream, wanted, is_wanted)
    if not pairs:
        msg = f"{path} has a header and no data rows; expected one row a gene."
        raise RegistryError(msg)
    chosen = choose(path, list(pairs), target=target, condition=condition)
    has_p = wants_adjusted and ADJUSTED in table.columns
    return Contrast(
        *chosen,
        table.columns[SYMBOL],
        table.columns.get(GENE_ID, []),
        measured(table, effect, "effect"),
        measured(table, ADJUSTED, "adj_p") if has_p else None,
    )


def _check_long(stream: RowStream, effect: str, *, needs_adjusted: bool) -> None:
    needed = [TARGET, CONDITION, SYMBOL, effect, *([ADJUSTED] if needs_adjusted else [])]
    absent = [name for name in needed if name not in stream.header]
    if absent:
        msg = (
            f"{stream.path} is no table of differential expression as the source perturbseq reads "
            f"it: it has no column {', '.join(map(repr, absent))}. "
            f"{describe_columns(stream.header)} Rename its columns so, or read one contrast of it "
            "with the source 'table'."
        )
        raise RegistryError(msg)


def contrasts_of_long(path: Path) -> list[tuple[str, str]]:
    """The (target, condition) of every row of a long table.

    Args:
        path: The file.

    Raises:
        RegistryError: The file is no such table.
    """
    with _open_long(path) as stream:
        _check_long(stream, EFFECTS[0], needs_adjusted=False)
        at = stream.header.index(TARGET), stream.header.index(CONDITION)
        pairs = ((fields[at[0]].strip(), fields[at[1]].strip()) for _, fields in stream.rows)
        return list(dict.fromkeys(pairs))

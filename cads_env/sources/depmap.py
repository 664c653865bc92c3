"""A registry from a user's own DepMap download: one cell line of CRISPRGeneEffect.csv.

u = threshold - effect. The prior of a line is made of other lines alone, in exact sums, so that no
bit of it depends on the line itself. Downloads nothing and ships nothing of DepMap's.
"""

from __future__ import annotations

import difflib
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cads_env.errors import RegistryError
from cads_env.registry import Oracle, Registry, SideTable
from cads_env.registry_checks import check_identifiers, listed
from cads_env.sources.decimals import SCALE
from cads_env.sources.declared import check_choice, check_flag, check_list, is_number, refuse
from cads_env.sources.depmap_models import Models, read_models
from cads_env.sources.matrix import Matrix, open_matrix
from cads_env.sources.truth import Truth, make_pair

Float64s = NDArray[np.float64]
Labels = NDArray[np.bool_]

THRESHOLD: Final = -0.5
"""Effect below which a gene is a hit unless said otherwise: half of what a common essential has."""

DEPENDENT: Final = 0.5
"""Probability of dependency above which a gene is a hit."""

_WITH_ENTREZ: Final = re.compile(r"(\S.*?) \(\d+\)")


@dataclass(frozen=True, kw_only=True)
class DepmapOptions:
    """What a user declares about a DepMap file.

    Attributes:
        line: The cell line, such as ACH-000446.
        threshold: Effect below which a gene is a hit.
        dependency: CRISPRGeneDependency.csv, whose probability above 0.5 is then the label, or
            None to label by the threshold.
        model: Model.csv, from which the description takes name, lineage and disease, or None.
        prior: "other-lines" (minus the mean effect over all other lines of the file), "none", or a
            list of lines to take the mean over; the line itself is always left out.
        held_out: Lines that no prior may be made of. Priors over all other lines of a file tell,
            taken together, the effects of each line; the lines of `dev` and `eval` are therefore
            held out wherever a panel file states splits.
        identifiers: "symbol" (`HLA-A`) or "full" (`HLA-A (3105)`).
        drop_missing: Leave out genes without a value and say so in the description; False refuses
            them.
    """

    line: str
    threshold: float = THRESHOLD
    dependency: Path | None = None
    model: Path | None = None
    prior: str | Sequence[str] = "other-lines"
    held_out: Sequence[str] = ()
    identifiers: str = "symbol"
    drop_missing: bool = True

    def __post_init__(self) -> None:
        """Check types and ranges."""
        if not is_number(self.threshold):
            refuse("threshold", self.threshold, "a finite number")
        is_list = isinstance(self.prior, Sequence) and not isinstance(self.prior, str)
        if is_list and not (self.prior and all(isinstance(x, str) for x in self.prior)):
            refuse("prior", self.prior, "a list of at least one cell line")
        if not is_list and self.prior not in ("other-lines", "none"):
            refuse("prior", self.prior, "'other-lines', 'none' or a list of cell lines")
        check_list("held_out", self.held_out, "cell lines")
        check_choice("identifiers", self.identifiers, ("symbol", "full"), optional=False)
        check_flag("drop_missing", self.drop_missing)


def load_depmap(
    source: str,
    *,
    name: str,
    path: Path,
    line: str | None = None,
    salt: bytes = b"",
    **options: Any,
) -> tuple[Registry, Oracle]:
    """One cell line of a matrix of gene effects, and its oracle.

    A gene is a hit when u = threshold - effect is above 0, or, with `dependency`, when the line
    depends on it with a probability above 0.5.

    Args:
        source: Name of the source.
        name: What the registry is to be called; the panel in every random key.
        path: The matrix: lines in rows as DepMap publishes it, or genes in rows.
        line: The cell line.
        salt: Secret of a private panel; changes the random streams.
        **options: See `DepmapOptions`.

    Raises:
        RegistryError: A file is not usable, the line is not in it, or an option contradicts it.
    """
    del source
    matrix = open_matrix(path)
    if line is None:
        msg = f"{path} holds {len(matrix.lines):,} cell lines; say which: line={matrix.lines[0]}."
        raise RegistryError(msg)
    declared = DepmapOptions(line=line, **options)
    models = None if declared.model is None else read_models(declared.model)
    _check_line(matrix, line, models, "line")
    effects = matrix.values(line)
    _check_effects(path, line, effects)
    probabilities = _probabilities(declared, matrix, line)
    kept = ~np.isnan(effects if probabilities is None else effects + probabilities)
    if not kept.all() and not declared.drop_missing:
        names = [matrix.genes[int(i)] for i in np.flatnonzero(~kept)]
        msg = (
            f"{path}: {len(names)} genes have no value in {line}: {listed(names)}. Leave "
            "drop_missing=false out to drop and count them."
        )
        raise RegistryError(msg)
    identifiers = _identifiers(matrix, kept, declared.identifiers, name)
    signal = declared.threshold - effects[kept] + 0.0
    labels = signal > 0
    if probabilities is not None:
        labels = probabilities[kept] > DEPENDENT
        _check_labels(signal, labels, effects[kept], declared.threshold)
    prior = _prior(declared, matrix, line, kept)
    return make_pair(
        Truth(signal, labels),
        name=name,
        salt=salt,
        identifiers=identifiers,
        description=_description(declared, models, identifiers, int(np.count_nonzero(~kept))),
        side_tables={} if prior is None else {"prior": prior},
        advice="Say prior=none to do without.",
    )


def lines_of(*, path: Path, **options: Any) -> tuple[str, ...]:
    """Every cell line of a matrix, in the file's order.

    Args:
        path: The matrix.
        **options: The other options; none of them matters here.

    Raises:
        RegistryError: The file is not usable.
    """
    del options
    return open_matrix(path).lines


def _check_line(matrix: Matrix, line: object, models: Models | None, option: str) -> None:
    """Raise, with the lines that may be meant, unless the matrix has the line."""
    if not isinstance(line, str):
        refuse(option, line, "the name of a cell line, such as ACH-000446")
    if line in matrix.lines:
        return
    known = None if models is None else models.called(str(line))
    if known is not None and known in matrix.lines:
        advice = f"{line!r} is the name of {known}: say {option}={known}."
    elif known is not None:
        advice = (
            f"It is described among the models ({known}) but was not screened in this file; choose "
            "another line."
        )
    else:
        near = difflib.get_close_matches(str(line), matrix.lines, n=3)
        advice = f"Lines are called like {matrix.lines[0]!r}"
        if near:
            advice = f"Did you mean {' or '.join(map(repr, near))}?"
        elif models is None:
            advice += "; model=... with DepMap's Model.csv finds the one of a cell line's name."
        else:
            advice += f", and {models.table.path} names none so."
    count = len(matrix.lines)
    msg = f"{matrix.path} has no cell line {line!r} ({option}=) among its {count:,}. {advice}"
    raise RegistryError(msg)


def _check_effects(path: Path, line: str, effects: Float64s) -> None:
    there = effects[~np.isnan(effects)]
    if not there.size:
        msg = f"{path}: {line} has no value in any gene; choose another line."
        raise RegistryError(msg)
    if there.min() >= 0 and there.max() <= 1:
        msg = (
            f"{path}: every value of {line} lies between 0 and 1, as in CRISPRGeneDependency.csv. "
            "Expected gene effects: give CRISPRGeneEffect.csv as path=, and probabilities as "
            "dependency=."
        )
        raise RegistryError(msg)


def _probabilities(options: DepmapOptions, matrix: Matrix, line: str) -> Float64s | None:
    """Probabilities of dependency in the order of the matrix's genes, NaN where there is none."""
    if options.dependency is None:
        return None
    other = open_matrix(options.dependency)
    if line not in other.lines:
        msg = (
            f"{options.dependency} (dependency=) has no cell line {line!r}, but {matrix.path} has. "
            "Give the file of the same release, or leave dependency= out."
        )
        raise RegistryError(msg)
    values = other.values(line)
    bad = [f"{other.genes[i]}: {values[i]:g}" for i in np.flatnonzero((values < 0) | (values > 1))]
    if bad:
        msg = (
            f"{options.dependency} (dependency=): {len(bad)} values of {line} lie outside 0 to 1: "
            f"{listed(bad)}. Expected probabilities: CRISPRGeneDependency.csv."
        )
        raise RegistryError(msg)
    by_name = dict(zip(other.genes, values.tolist(), strict=True))
    joined = [by_name.get(gene, math.nan) for gene in matrix.genes]
    if all(map(math.isnan, joined)):
        msg = (
            f"{options.dependency} (dependency=) and {matrix.path} share no gene with a value in "
            f"{line}: {listed(other.genes[:2])} against {listed(matrix.genes[:2])}. Give files of "
            "one release."
        )
        raise RegistryError(msg)
    return np.array(joined, np.float64)


def _check_labels(signal: Float64s, labels: Labels, effects: Float64s, threshold: float) -> None:
    """Raise, with the threshold that would do, when a null by probability has u > 0."""
    bad = ~labels & (signal > 0)
    if bad.any():
        lowest = float(effects[~labels].min())
        msg = (
            f"{int(bad.sum())} genes have an effect below threshold={threshold:g} but no "
            f"probability of dependency above {DEPENDENT}. A null needs u = threshold - effect <= "
            f"0: say threshold={lowest!r} (the lowest effect of a null) or less, or leave "
            "dependency= out."
        )
        raise RegistryError(msg)


def _identifiers(matrix: Matrix, kept: Labels, form: str, name: str) -> tuple[str, ...]:
    genes = tuple(compress(matrix.genes, kept.tolist()))
    if form == "full":
        check_identifiers(genes, name)
        return genes
    symbols = tuple(compress(_symbols(matrix.genes), kept.tolist()))
    if len(set(symbols)) != len(symbols):
        count = Counter(symbols)
        twice = [g for g, s in zip(genes, symbols, strict=True) if count[s] > 1]
        msg = (
            f"{matrix.path}: {len(twice)} genes share a symbol: {listed(twice)}. Say "
            "identifiers=full to keep the number in their names, or remove the doubles."
        )
        raise RegistryError(msg)
    check_identifiers(symbols, name)
    return symbols


@lru_cache(maxsize=4)  # the lines of a file share its genes
def _symbols(genes: tuple[str, ...]) -> tuple[str, ...]:
    """The genes without the number in their names."""
    return tuple(m[1] if (m := _WITH_ENTREZ.fullmatch(gene)) else gene for gene in genes)


def _prior(options: DepmapOptions, matrix: Matrix, line: str, kept: Labels) -> SideTable | None:
    """Minus the mean effect over other lines, without a bit of this line's."""
    if options.prior == "none":
        return None
    for option, lines in (("held_out", options.held_out), ("prior", options.prior)):
        for other in () if isinstance(lines, str) else lines:
            _check_line(matrix, other, None, option)
    left_out = {line, *options.held_out}
    if isinstance(options.prior, str):
        others = len(matrix.lines) - len(left_out)
        if not others and not options.held_out:
            return None  # a matrix of one line
        what = f"{others:,} other cell lines of the same file"
        # Whole numbers: taking lines out leaves exactly the sum of the others.
        every, held = matrix.totals(), matrix.totals_of(options.held_out)
        own = matrix.totals_of([line] if line not in options.held_out else [])
        sums = every.sums - held.sums - own.sums
        counts = every.counts - held.counts - own.counts
    else:
        chosen = [other for other in dict.fromkeys(options.prior) if other not in left_out]
        others = len(chosen)
        what = f"{others:,} other cell lines ({', '.join(chosen[:5])}" + (
            ", ...)" if others > 5 else ")"
        )
        sums, counts = matrix.totals_of(chosen)
    if not others:
        msg = (
            f"prior={options.prior!r} leaves no cell line to take the mean over: {line} itself and "
            "lines that are held out tell the truth. Name other lines, or say prior=none."
        )
        raise RegistryError(msg)
    sums, counts = sums[kept], counts[kept]
    empty = int(np.count_nonzero(counts == 0))
    mean = np.where(counts > 0, sums / (np.maximum(counts, 1) * SCALE), 0.0)
    note = f" 0 for {empty:,} genes that none of these has a value for." if empty else ""
    return SideTable(
        f"Minus the mean gene effect over {what}; higher = more promising.{note}", 0.0 - mean
    )


def _description(
    options: DepmapOptions, models: Models | None, identifiers: Sequence[str], dropped: int
) -> str:
    hit = (
        f"to an effect below {options.threshold:g}"
        if options.dependency is None
        else f"with a probability of dependency above {DEPENDENT}"
    )
    line = options.line if models is None else models.words(options.line)
    text = (
        f"A CRISPR knock-out fitness screen of {len(identifiers):,} human genes in the cell line "
        f"{line}. The gene effect is about 0 for a gene without effect and about -1 for a gene "
        f"that nearly all lines need. A hit is a gene whose loss reduces fitness {hit}."
    )
    if dropped:
        text += f" {dropped:,} genes without a measured value were left out."
    return text

"""Synthetic screens with other effect distributions, tuned to published operating points.

Each distribution is the shipped quantile table bent by + - * / and sqrt, so that its bytes are
equal on every CPU. Every screened registry is stratified, so that its operating points carry no
draw noise. Synthetic: no measured value enters, and nothing here may be read as biology.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cads_env.errors import RegistryError
from cads_env.registry import Oracle, Registry, SideTable
from cads_env.sources.modules import symbol_subset
from cads_env.sources.synthetic import (
    COMPANION_LINES,
    MODULE_WORDS,
    THRESHOLD,
    Draw,
    assigned,
    checked_share,
    checked_whole,
    gene_modules,
    line_scores,
    oracle_of,
    shared_scores,
    stratified_quantiles,
)

Float64s = NDArray[np.float64]

M: Final = 6000
"""Candidates of every registry here, as published."""

LINES: Final = range(1, 7)
"""Instance numbers of `synthetic-lines`."""

_CLASS_SIZE: Final = 25
_SYNTHETIC: Final = "This screen is synthetic: plumbing and calibration, not biology."


@dataclass(frozen=True, slots=True)
class Bend:
    """How the effects of `synthetic-depmap` are bent into those of another setting.

    With d > 0 the distance of a hit below the threshold there, and y > 0 that of a null above it:
    d' = linear d + square d^2 + root sqrt(d), y' = null y + null_square y^2. Both are increasing.

    Attributes:
        hit_count: Hits among the `M` candidates.
        linear: Scale of the hits.
        square: Above 0: a heavier far tail.
        root: Above 0: fewer hits close to the threshold.
        null: Below 1: nulls closer to the threshold, and so more false declarations.
        null_square: Above 0: a wider spread of the nulls far from it.
    """

    hit_count: int
    linear: float
    square: float
    root: float
    null: float
    null_square: float


LINE_BENDS: Final[Mapping[int, Bend]] = MappingProxyType(
    {
        1: Bend(560, 0.925, 0.0, 0.0, 0.845, 0.2),
        2: Bend(500, 0.8, 0.2, 0.0, 0.775, 0.2),
        3: Bend(520, 0.8, 0.0, 0.32, 0.65, 0.22),
        4: Bend(480, 0.52, 0.5, 0.175, 0.67, 0.22),
        5: Bend(300, 0.3, 0.9, 0.0, 1.0, 0.0),
        6: Bend(900, 0.2, 0.0, 0.9, 0.9, 0.5),
    }
)
"""Lines 1 to 4 are tuned to the published CADS power and the FDR of naive BH and uncapped LR e-BH
of DepMap 24Q4 ACH-000446, ACH-000662, ACH-000053 and ACH-000622 (CADS paper, Table S2); line 5 has
few hits with a heavy tail, line 6 many with a light one."""

TCELL_BEND: Final = Bend(790, 0.575, 0.0, 0.0, 1.14, 0.3)
"""Tuned to the published figures of the T-cell Perturb-seq screen (CADS paper, Table S2)."""

PRISM_BEND: Final = Bend(815, 0.885, 0.0, 0.885, 1.13, 0.6)
"""Tuned to the published figures of PRISM ACH-000827 (CADS paper, Table S2), the power .127 of
Zhou-Liu evidence at lambda = sqrt(epsilon) / s among them."""

_LINE_TEXT: Final = (
    "A loss-of-function fitness screen of {m:,} human genes in one of six cell lines. A candidate "
    "is a gene, and its effect is the change in fitness when the gene is lost: about 0 for most "
    "genes, strongly negative for genes that the line cannot do without. A hit is a gene whose "
    "loss reduces fitness to an effect below -0.5. " + _SYNTHETIC
)
_TCELL_TEXT: Final = (
    "A screen in T cells in the manner of Perturb-seq: one gene is knocked down, and each of "
    "{m:,} human genes is a candidate, whose effect is the change of its expression. A hit is a "
    "gene whose expression falls to an effect below -0.5. " + _SYNTHETIC
)
_PRISM_TEXT: Final = (
    "A screen of {m:,} compounds in one cell line in the manner of PRISM, under made-up "
    "identifiers. A candidate is a compound, and its effect is the change in the growth of the "
    "line: about 0 for most compounds. A hit is a compound that reduces it to an effect below "
    "-0.5. " + _SYNTHETIC
)
_PRIOR: Final = (
    "Minus the mean effect over five other {others}, this one left out; higher = more promising."
)
_CLASS_WORDS: Final = "Label of the compound's class: 25 compounds of one made-up mechanism."


def load_lines(
    source: str, *, name: str, instance: int = 0, structure: float = 0.4, salt: bytes = b""
) -> tuple[Registry, Oracle]:
    """One of the six lines of `synthetic-lines`, each with its own effect distribution.

    The lines share modules and genes as the lines of a release do; the mean effect of the five
    others is a line's prior.

    Args:
        source: Name of the panel, part of every random key.
        name: What the registry is to be called.
        instance: Number of the line, 1 to 6.
        structure: Share of the copula's variance that is common to a module, in [0, 1).
        salt: Secret of a private panel; changes every number.

    Raises:
        RegistryError: An option is out of range.
    """
    if checked_whole("instance", instance, 0) not in LINES:
        msg = (
            f"{source!r} has the lines 1 to {LINES[-1]}; received instance {instance}. Name one, "
            f"such as {source}/1, or all of them, {source}:all."
        )
        raise RegistryError(msg)
    rho = checked_share("structure", structure)
    draw = Draw(source, 0, salt)
    shared = shared_scores(draw, m=M, rho=rho)
    effects = {
        line: bent_effects(line_scores(draw, shared, line=line, rho=rho), LINE_BENDS[line])
        for line in LINES
    }
    others = [effects[line] for line in LINES if line != instance]
    registry = Registry(
        name=name,
        identifiers=symbol_subset(M),
        description=_LINE_TEXT.format(m=M),
        side_tables={
            "prior": _prior(others, "lines"),
            "module": SideTable(MODULE_WORDS, gene_modules(M)[0]),
        },
    )
    return registry, oracle_of(effects[instance], Draw(source, instance, salt))


def load_tcell(
    source: str, *, name: str, instance: int = 0, structure: float = 0.4, salt: bytes = b""
) -> tuple[Registry, Oracle]:
    """An instance of `synthetic-tcell`: moderate effects, most of them close to the threshold.

    Args:
        source: Name of the panel, part of every random key.
        name: What the registry is to be called.
        instance: Instance number, at least 0; all have the same effects in another order.
        structure: Share of the copula's variance that is common to a module, in [0, 1).
        salt: Secret of a private panel; changes every number.

    Raises:
        RegistryError: An option is out of range.
    """
    draw = Draw(source, checked_whole("instance", instance, 0), salt)
    rho = checked_share("structure", structure)
    effects, others = _with_companions(draw, TCELL_BEND, shared_scores(draw, m=M, rho=rho), rho)
    registry = Registry(
        name=name,
        identifiers=symbol_subset(M),
        description=_TCELL_TEXT.format(m=M),
        side_tables={
            "prior": _prior(others, "knock-downs"),
            "module": SideTable(MODULE_WORDS, gene_modules(M)[0]),
        },
    )
    return registry, oracle_of(effects, draw)


def load_prism(
    source: str, *, name: str, instance: int = 0, structure: float = 0.4, salt: bytes = b""
) -> tuple[Registry, Oracle]:
    """An instance of `synthetic-prism`: compounds under made-up names, with strong effects.

    Args:
        source: Name of the panel, part of every random key.
        name: What the registry is to be called.
        instance: Instance number, at least 0; all have the same effects in another order.
        structure: Share of the copula's variance that is common to a class, in [0, 1).
        salt: Secret of a private panel; changes every number.

    Raises:
        RegistryError: An option is out of range.
    """
    draw = Draw(source, checked_whole("instance", instance, 0), salt)
    rho = checked_share("structure", structure)
    classes = np.arange(M, dtype=np.int64) // _CLASS_SIZE
    shared = shared_scores(draw, m=M, rho=rho, modules=classes)
    effects, others = _with_companions(draw, PRISM_BEND, shared, rho)
    registry = Registry(
        name=name,
        identifiers=tuple(f"CPD{i:05d}" for i in range(1, M + 1)),
        description=_PRISM_TEXT.format(m=M),
        side_tables={
            "prior": _prior(others, "lines"),
            "module": SideTable(
                _CLASS_WORDS, np.array([f"CLASS-{code + 1:03d}" for code in classes.tolist()])
            ),
        },
    )
    return registry, oracle_of(effects, draw)


def bent_effects(scores: Float64s, bend: Bend) -> Float64s:
    """The bent distribution's mid-quantiles, dealt out in the order of the scores.

    Args:
        scores: Shape (m,); the lowest get the strongest effects, ties go by position.
        bend: The distribution; its hits are exactly its `hit_count`.

    Returns:
        Effects rounded to 4 decimals, shape (m,).
    """
    distance = np.abs(stratified_quantiles(scores.size, bend.hit_count) - THRESHOLD)
    is_hit = np.arange(scores.size) < bend.hit_count
    below = bend.linear * distance + bend.square * (distance * distance)
    below = below + bend.root * np.sqrt(distance)
    above = bend.null * distance + bend.null_square * (distance * distance)
    # Adding 0 turns a rounded -0.0 into 0.0.
    bent = np.round(THRESHOLD + np.where(is_hit, -below, above), 4) + 0.0
    return assigned(bent, scores)


def _with_companions(
    draw: Draw, bend: Bend, shared: Float64s, rho: float
) -> tuple[Float64s, list[Float64s]]:
    """Effects of the screened line of a draw, and of its companions."""
    target, *others = (
        bent_effects(line_scores(draw, shared, line=line, rho=rho), bend)
        for line in range(COMPANION_LINES + 1)
    )
    return target, others


def _prior(others: list[Float64s], what: str) -> SideTable:
    total = np.zeros(others[0].size)
    for effects in others:
        total += effects
    return SideTable(_PRIOR.format(others=what), 0.0 - np.round(total / len(others), 4))

"""Synthetic screens for plumbing and calibration, with the effect distribution of a real one.

Effects follow a Gaussian copula over modules, shared between the lines of an instance, mapped
through one shipped quantile table. Every number is a pure function of (panel, instance, salt),
equal in every byte on every CPU. Never uses numpy.random, and never lets a name carry information.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cads_env.errors import RegistryError
from cads_env.registry import Oracle, Registry, SideTable
from cads_env.sources.modules import module_labels, symbol_subset
from cads_env.tape import bits, candidate_words, derive_key, normal_quantile, normals

Float64s = NDArray[np.float64]

HIT_FRACTION: Final = 1822 / 18159
"""h: the share of hits in the effect distribution."""

THRESHOLD: Final = -0.5
"""A candidate is a hit when its effect is below this."""

COMPANION_LINES: Final = 5
"""Other lines of an instance, whose mean effect is its prior."""

GENE_SHARE: Final = 0.27 / 0.60
"""Of the variance that modules leave, the part a gene has in common in all lines."""

LINE_SHARE: Final = 0.33 / 0.60
"""The rest of it: a line's own."""

STEPS_PER_UNIT: Final = 256.0
"""Knots of the quantile table in a unit of the normal score."""

LARGEST_SCALE: Final = 100_000_000

_DESCRIPTION: Final = (
    "A loss-of-function fitness screen of {m:,} human genes in one cell line. A "
    "candidate is a gene, and its effect is the change in fitness when the gene is lost: about 0 "
    "for most genes, about -1 or lower for genes that the line cannot do without. A hit is a gene "
    "whose loss reduces fitness to an effect below -0.5. This screen is synthetic: plumbing and "
    "calibration, not biology."
)
_SCALE_DESCRIPTION: Final = (
    "A made-up loss-of-function fitness screen of {m:,} candidates with meaningless identifiers. A "
    "hit is a candidate whose loss reduces fitness to an effect below -0.5. This screen is "
    "synthetic: plumbing and calibration, not biology."
)
_PRIOR: Final = (
    "Minus the mean effect over five other lines, this one left out; higher = more promising."
)
_MODULE: Final = "Label of the gene's module: up to 25 genes, grouped by symbol family."


@dataclass(frozen=True, slots=True)
class Recipe:
    """Size of a panel's registries, and the exact number of hits of its instance 0."""

    m: int
    hit_count: int


RECIPES: Final = {
    "synthetic-depmap": Recipe(18159, 1822),
    "synthetic-depmap-6000": Recipe(6000, 620),
}
"""Panels of `load_depmap` by name."""


@dataclass(frozen=True, slots=True)
class Draw:
    """Identity of one instance, from which all of its random numbers are keyed."""

    panel: str
    instance: int
    salt: bytes

    def normals(self, stream: str, size: int) -> Float64s:
        """Standard normal numbers of a named stream, shape (size,)."""
        key = derive_key(stream, panel=self.panel, instance=self.instance, salt=self.salt)
        words = candidate_words(np.array([key], np.uint64), np.arange(size, dtype=np.int64))
        return normals(bits(words, np.zeros(size, np.int64), 0))


def load_depmap(
    source: str,
    *,
    name: str,
    instance: int = 0,
    structure: float = 0.4,
    name_information: float = 0.0,
    salt: bytes = b"",
) -> tuple[Registry, Oracle]:
    """One instance of `synthetic-depmap` or `synthetic-depmap-6000`.

    Instance 0 is stratified: its effects are the mid-quantiles of the distribution, so that it has
    exactly 1,822 (620) hits. Every other instance, and every companion line, is a random draw.

    Args:
        source: A key of `RECIPES`.
        name: What the registry is to be called.
        instance: Instance number, at least 0.
        structure: Share rho of the copula's variance that is common to a module, in [0, 1).
        name_information: Only 0: effects tell nothing about names.
        salt: Secret of a private panel; changes every number.

    Returns:
        The registry, with side tables `prior` and `module`, and its oracle with
        u = -effect - 0.5.

    Raises:
        RegistryError: An option is out of range.
    """
    recipe = RECIPES[source]
    draw = Draw(source, _whole("instance", instance, 0), salt)
    rho = _checked_structure(structure)
    if isinstance(name_information, bool) or name_information != 0:
        msg = (
            f"name_information={name_information!r} is not available in this version; expected 0. "
            "Leave the option out."
        )
        raise RegistryError(msg)
    shared = shared_scores(draw, m=recipe.m, rho=rho)
    target = line_scores(draw, shared, line=0, rho=rho)
    effects = stratified_effects(target, recipe.hit_count) if instance == 0 else effects_at(target)
    companions = np.zeros(recipe.m)
    for line in range(1, COMPANION_LINES + 1):
        companions += effects_at(line_scores(draw, shared, line=line, rho=rho))
    prior = 0.0 - np.round(companions / COMPANION_LINES, 4)
    registry = Registry(
        name=name,
        identifiers=symbol_subset(recipe.m),
        description=_DESCRIPTION.format(m=recipe.m),
        side_tables={
            "prior": SideTable(_PRIOR, prior),
            "module": SideTable(_MODULE, _modules(recipe.m)[0]),
        },
    )
    return registry, _oracle(effects, draw)


def load_scale(
    source: str, *, name: str, instance: int = 0, m: int = 1_000_000, salt: bytes = b""
) -> tuple[Registry, Oracle]:
    """A registry of any size with made-up identifiers, independent effects and no side tables.

    Args:
        source: The panel's name, part of every random key.
        name: What the registry is to be called.
        instance: Instance number, at least 0.
        m: Number of candidates, 2 to 100 million.
        salt: Secret of a private panel; changes every number.

    Raises:
        RegistryError: An option is out of range, or so few candidates hold no hit.
    """
    draw = Draw(source, _whole("instance", instance, 0), salt)
    if _whole("m", m, 2) > LARGEST_SCALE:
        msg = f"m={m} is out of range; expected at most {LARGEST_SCALE}."
        raise RegistryError(msg)
    registry = Registry(
        name=name,
        identifiers=tuple(f"G{i:07d}" for i in range(1, m + 1)),
        description=_SCALE_DESCRIPTION.format(m=m),
    )
    return registry, _oracle(effects_at(draw.normals("registry-gene", m)), draw)


def shared_scores(draw: Draw, *, m: int, rho: float) -> Float64s:
    """What all lines of an instance have in common, shape (m,): module and gene.

    sqrt(rho) M_module + sqrt((1 - rho) .27 / .60) G_i, M and G standard normal.
    """
    codes, module_count = _modules(m)[1:]
    module = draw.normals("registry-module", module_count)
    gene = draw.normals("registry-gene", m)
    return math.sqrt(rho) * module[codes] + math.sqrt((1.0 - rho) * GENE_SHARE) * gene


def line_scores(draw: Draw, shared: Float64s, *, line: int, rho: float) -> Float64s:
    """Normal scores g of one line, shape (m,); low = strong effect.

    g_i = shared_i + sqrt((1 - rho) .33 / .60) O_i with O the line's own, of variance 1 in all.

    Args:
        draw: The instance.
        shared: From `shared_scores`.
        line: 0 is the screened line, 1 to `COMPANION_LINES` its companions.
        rho: Structure.
    """
    own = draw.normals(f"registry-line-{line}", shared.size)
    return shared + math.sqrt((1.0 - rho) * LINE_SHARE) * own


def effects_at(scores: Float64s) -> Float64s:
    """The effect at each normal score, by linear interpolation in the shipped quantile table.

    Args:
        scores: Standard normal scores, shape (m,); beyond the table's ends its end values hold.

    Returns:
        Effects rounded to 4 decimals, shape (m,); nondecreasing in the score, and below -0.5 only
        for scores below the quantile of `HIT_FRACTION`.
    """
    first, knots, origin = _quantile_table()
    position = (scores - origin) * STEPS_PER_UNIT
    position = np.clip(position, first, first + knots.size - 1)
    below = np.minimum(np.floor(position), first + knots.size - 2)
    at = below.astype(np.int64) - first
    left = knots[at]
    # Adding 0 turns a rounded -0.0 into 0.0.
    return np.round(left + (position - below) * (knots[at + 1] - left), 4) + 0.0


def stratified_effects(scores: Float64s, hit_count: int) -> Float64s:
    """Effects at the mid-quantiles of the distribution, dealt out in the order of the scores.

    The r-th lowest score, r from 0, gets the effect at probability h (r + 1/2) / H for r < H, else
    h + (1 - h) (r - H + 1/2) / (m - H), so that exactly H candidates are hits.

    Args:
        scores: Shape (m,); ties go by position.
        hit_count: H, between 1 and m - 1.
    """
    m = scores.size
    rank = np.arange(m, dtype=np.float64)
    hit = HIT_FRACTION * (rank + 0.5) / hit_count
    null = HIT_FRACTION + (1.0 - HIT_FRACTION) * (rank - hit_count + 0.5) / (m - hit_count)
    dealt = effects_at(normal_quantile(np.where(rank < hit_count, hit, null)))
    effects = np.empty(m)
    effects[np.argsort(scores, kind="stable")] = dealt
    return effects


@cache
def _quantile_table() -> tuple[int, Float64s, float]:
    """Number of the first knot, the effects at the knots, and the score of knot 0."""
    path = files("cads_env.sources") / "data" / "depmap_effect_quantiles.txt"
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    origin = float(normal_quantile(np.array([HIT_FRACTION]))[0])
    return int(rows[0][0]), np.array([float(effect) for _, effect in rows]), origin


@cache
def _modules(m: int) -> tuple[NDArray[np.str_], NDArray[np.int64], int]:
    """Module label and module number of each candidate, shape (m,) each, and the module count."""
    labels = np.array(module_labels(symbol_subset(m)))
    names, codes = np.unique(labels, return_inverse=True)
    return labels, codes.astype(np.int64), names.size


def _oracle(effects: Float64s, draw: Draw) -> Oracle:
    signal = THRESHOLD - effects
    return Oracle(signal, signal > 0.0, draw.panel, draw.instance, draw.salt)


def _whole(option: str, value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        msg = f"{option}={value!r} is not usable; expected a whole number of at least {least}."
        raise RegistryError(msg)
    return value


def _checked_structure(value: float) -> float:
    # At 1 every line of a module is the same, and the companion lines' mean gives the effect away.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        msg = f"structure={value!r} is out of range; expected a number from 0 to below 1."
        raise RegistryError(msg)
    return float(value)

"""Synthetic screens for plumbing and calibration, with the effect distribution of a real one.

Effects follow a Gaussian copula over modules, shared between the lines of an instance, mapped
through one shipped quantile table. Every number is a pure function of (panel, instance, salt),
equal in every byte on every CPU. Never uses numpy.random, and lets a name carry no more information
than `name_information` says.
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
from cads_env.sources.expectation import expected_scores
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
MODULE_WORDS: Final = "Label of the gene's module: up to 25 genes, grouped by symbol family."
"""What the side table `module` of a registry of genes is."""


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
        name_information: Correlation nu of every line's scores with what the names alone lead one
            to expect, in [0, 1); rho is a share of the rest. At 0 names tell nothing about effects.
        salt: Secret of a private panel; changes every number but what names lead one to expect.

    Returns:
        The registry, with side tables `prior` and `module`, and its oracle with
        u = -effect - 0.5.

    Raises:
        RegistryError: An option is out of range.
    """
    recipe = RECIPES[source]
    draw = Draw(source, checked_whole("instance", instance, 0), salt)
    rho = checked_share("structure", structure)
    nu = checked_share("name_information", name_information)
    shared = shared_scores(draw, m=recipe.m, rho=rho)

    def scores(line: int) -> Float64s:
        return named_scores(line_scores(draw, shared, line=line, rho=rho), source, nu=nu)

    target = scores(0)
    effects = stratified_effects(target, recipe.hit_count) if instance == 0 else effects_at(target)
    companions = np.zeros(recipe.m)
    for line in range(1, COMPANION_LINES + 1):
        companions += effects_at(scores(line))
    prior = 0.0 - np.round(companions / COMPANION_LINES, 4)
    registry = Registry(
        name=name,
        identifiers=symbol_subset(recipe.m),
        description=_DESCRIPTION.format(m=recipe.m),
        side_tables={
            "prior": SideTable(_PRIOR, prior),
            "module": SideTable(MODULE_WORDS, gene_modules(recipe.m)[0]),
        },
    )
    return registry, oracle_of(effects, draw)


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
    draw = Draw(source, checked_whole("instance", instance, 0), salt)
    if checked_whole("m", m, 2) > LARGEST_SCALE:
        msg = f"m={m} is out of range; expected at most {LARGEST_SCALE}."
        raise RegistryError(msg)
    registry = Registry(
        name=name,
        identifiers=tuple(f"G{i:07d}" for i in range(1, m + 1)),
        description=_SCALE_DESCRIPTION.format(m=m),
    )
    return registry, oracle_of(effects_at(draw.normals("registry-gene", m)), draw)


def shared_scores(
    draw: Draw, *, m: int, rho: float, modules: NDArray[np.int64] | None = None
) -> Float64s:
    """What all lines of an instance have in common, shape (m,): module and gene.

    sqrt(rho) M_module + sqrt((1 - rho) .27 / .60) G_i, M and G standard normal.

    Args:
        draw: The instance.
        m: Number of candidates.
        rho: Structure.
        modules: Number of each candidate's module, from 0, shape (m,); None for those of genes.
    """
    codes = gene_modules(m)[1] if modules is None else modules
    module_count = int(codes.max()) + 1
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


def named_scores(scores: Float64s, panel: str, *, nu: float) -> Float64s:
    """A line's scores, correlated with what the names lead one to expect, shape (m,), variance 1.

    nu B_i + sqrt(1 - nu^2) g_i, with B one score a name for every line, instance, seed and salt of
    the panel: what a name leads one to expect is public.

    Args:
        scores: g, from `line_scores`; returned as they are at nu = 0.
        panel: Name of the panel.
        nu: Name information, in [0, 1).
    """
    if nu == 0.0:
        return scores
    expected = expected_scores(panel, scores.size)
    return nu * expected + math.sqrt(1.0 - nu * nu) * scores


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
    return assigned(stratified_quantiles(scores.size, hit_count), scores)


def stratified_quantiles(m: int, hit_count: int) -> Float64s:
    """The mid-quantiles of the distribution with exactly H hits, ascending, shape (m,).

    Args:
        m: Number of candidates.
        hit_count: H, between 1 and m - 1.
    """
    rank = np.arange(m, dtype=np.float64)
    hit = HIT_FRACTION * (rank + 0.5) / hit_count
    null = HIT_FRACTION + (1.0 - HIT_FRACTION) * (rank - hit_count + 0.5) / (m - hit_count)
    return effects_at(normal_quantile(np.where(rank < hit_count, hit, null)))


def assigned(effects: Float64s, scores: Float64s) -> Float64s:
    """Ascending effects dealt out in the order of the scores; ties go by position."""
    dealt = np.empty(scores.size)
    dealt[np.argsort(scores, kind="stable")] = effects
    return dealt


@cache
def _quantile_table() -> tuple[int, Float64s, float]:
    """Number of the first knot, the effects at the knots, and the score of knot 0."""
    path = files("cads_env.sources") / "data" / "depmap_effect_quantiles.txt"
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    origin = float(normal_quantile(np.array([HIT_FRACTION]))[0])
    return int(rows[0][0]), np.array([float(effect) for _, effect in rows]), origin


@cache
def gene_modules(m: int) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
    """Module label and module number of each of m genes, shape (m,) each."""
    labels = np.array(module_labels(symbol_subset(m)))
    codes = np.unique(labels, return_inverse=True)[1]
    return labels, codes.astype(np.int64)


def oracle_of(effects: Float64s, draw: Draw) -> Oracle:
    """The oracle of effects: u = -effect - 0.5, with the random streams of the draw."""
    signal = THRESHOLD - effects
    return Oracle(signal, signal > 0.0, draw.panel, draw.instance, draw.salt)


def checked_whole(option: str, value: int, least: int) -> int:
    """An option that is a whole number of at least `least`.

    Raises:
        RegistryError: It is not.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        msg = f"{option}={value!r} is not usable; expected a whole number of at least {least}."
        raise RegistryError(msg)
    return value


def checked_share(option: str, value: float) -> float:
    """An option that is a share of variance, from 0 to below 1.

    At 1 every line would be the same, and the companion lines' mean would give the effect away.

    Raises:
        RegistryError: It is no number or out of range.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        msg = f"{option}={value!r} is out of range; expected a number from 0 to below 1."
        raise RegistryError(msg)
    return float(value)

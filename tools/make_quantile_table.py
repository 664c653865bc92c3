"""Writes the quantile table from which the synthetic sources take their effects.

The table is shipped, because gamma and normal quantiles differ between machines in their last bits.
Run it only when the recipe changes: a changed table changes every synthetic registry. It must never
be needed at run time.

Usage: python tools/make_quantile_table.py [path]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import gamma, norm

HIT_FRACTION: Final = 1822 / 18159
STEPS_PER_UNIT: Final = 256
LOWEST_SCORE: Final = -6.0
HIGHEST_SCORE: Final = 6.2
THRESHOLD: Final = -0.5
HIT_SHAPE: Final = 1.106
HIT_SCALE: Final = 0.648
BULK_WEIGHT: Final = 0.953
BULK_MEAN: Final = 0.030
BULK_SD: Final = 0.131
TAIL_SD: Final = 0.155
DEFAULT_PATH: Final = (
    Path(__file__).parents[1] / "cads_env" / "sources" / "data" / "depmap_effect_quantiles.txt"
)
HEADER: Final = """\
# Effect as a function of a standard normal score z: the quantile function of the effects of
# synthetic-depmap. Written by tools/make_quantile_table.py; synthetic, no measured data.
# Columns: j, effect at z = z0 + j / 256, where z0 is the normal quantile of h = 1822 / 18159.
# Hits (z < z0): effect = -0.5 - Gamma(shape 1.106, scale 0.648).
# Nulls (z >= z0): 0.953 N(0.030, 0.131) + 0.047 (0.030 - |N(0, 0.155)|), truncated to >= -0.5.
"""


def null_cdf(effect: float) -> float:
    """Distribution function of the null mixture before it is truncated."""
    bulk = norm.cdf(effect, BULK_MEAN, BULK_SD)
    tail = min(1.0, 2.0 * norm.cdf(effect, BULK_MEAN, TAIL_SD))
    return float(BULK_WEIGHT * bulk + (1.0 - BULK_WEIGHT) * tail)


def effect_at(score: float) -> float:
    """The effect at one standard normal score: an increasing function, -0.5 at z0."""
    z0 = float(norm.ppf(HIT_FRACTION))
    if score == z0:
        return THRESHOLD
    if score < z0:
        survival = norm.cdf(score) / HIT_FRACTION
        return THRESHOLD - float(gamma.isf(survival, HIT_SHAPE, scale=HIT_SCALE))
    truncated = null_cdf(THRESHOLD)
    # From the upper end, so that the far right tail keeps its relative precision.
    upper = float(norm.sf(score)) / (1.0 - HIT_FRACTION) * (1.0 - truncated)
    if upper < BULK_WEIGHT / 2.0:
        # Above the mean the tail component is exhausted and the bulk alone is left.
        return BULK_MEAN + BULK_SD * float(norm.isf(upper / BULK_WEIGHT))
    return float(brentq(lambda x: 1.0 - null_cdf(x) - upper, THRESHOLD, BULK_MEAN, xtol=1e-14))


def quantile_table() -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Knot numbers j and the effect at z0 + j / 256, both of shape (knots,)."""
    z0 = float(norm.ppf(HIT_FRACTION))
    first = int(np.floor((LOWEST_SCORE - z0) * STEPS_PER_UNIT))
    last = int(np.ceil((HIGHEST_SCORE - z0) * STEPS_PER_UNIT))
    knots = np.arange(first, last + 1, dtype=np.int64)
    return knots, np.array([effect_at(z0 + int(j) / STEPS_PER_UNIT) for j in knots])


def main(path: Path) -> None:
    """Write the table to `path`."""
    knots, effects = quantile_table()
    rows = "".join(f"{j}\t{effect:.8f}\n" for j, effect in zip(knots, effects, strict=True))
    path.write_text(HEADER + rows, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_PATH)

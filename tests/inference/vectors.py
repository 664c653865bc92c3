"""The frozen statistics vectors, and panels drawn for checks of coverage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "statistics.json").read_text(encoding="utf-8")
)


def draw_panels(
    generator: np.random.Generator,
    *,
    panels: int,
    sizes: list[int],
    between: float,
    is_count: bool = False,
) -> tuple[NDArray[np.float64], list[int], float]:
    """Differences of many panels, shape (panels, sum of sizes), their registries and true mean.

    `between` is the sd of registry effects; seeds have sd 2 (normal) or are differences of Poisson
    counts around exponential registry effects.
    """
    registries = np.repeat(np.arange(len(sizes)), sizes)
    if is_count:
        effects = (generator.exponential(1.0, (panels, len(sizes))) - 1.0) * between + 3.0
        centre = effects[:, registries]
        gained = generator.poisson(np.maximum(centre, 0) + 0.3)
        lost = generator.poisson(np.maximum(-centre, 0) + 0.3)
        return (gained - lost).astype(np.float64), registries.tolist(), 3.0
    effects = between * generator.standard_normal((panels, len(sizes)))
    noise = 2.0 * generator.standard_normal((panels, registries.size))
    return effects[:, registries] + noise, registries.tolist(), 0.0

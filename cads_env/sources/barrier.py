"""The truth barrier of user tables: no public column may be the truth in another dress.

Looks at a registry beside its own signal and labels while it is being made, and at nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from cads_env.errors import RegistryError
from cads_env.registry import Registry
from cads_env.sources.delimited import number

Float64s = NDArray[np.float64]
Labels = NDArray[np.bool_]

COPY_TOLERANCE: Final = 1e-9
"""A side table whose correlation with the truth is this close to 1 in magnitude is a copy of it."""

_RANKED: Final = 20
"""Candidates from which an equal order cannot be chance."""

_MOSTLY: Final = 0.9
"""Share of numbers from which a column of text is looked at as numbers."""


def check_barrier(registry: Registry, signal: Float64s, labels: Labels) -> None:
    """Raise when a side table is the truth in another dress.

    Refused are numbers, also written as text, that are affine in the signal or the labels or rank
    the candidates exactly as the signal does, and texts that spell the labels out.

    Args:
        registry: Holds the side tables.
        signal: u, shape (m,).
        labels: Shape (m,).

    Raises:
        RegistryError: The message names the side table.
    """
    for name, table in registry.side_tables.items():
        for values, there in _as_numbers(table.values):
            if _is_copy(values[there], signal[there], labels[there]):
                msg = (
                    f"Side table {name!r} of {registry.name!r} is a copy of the truth: it follows "
                    "from the effects or the labels. Proposers see side tables; leave it out."
                )
                raise RegistryError(msg)


def _as_numbers(values: NDArray[Any]) -> Iterator[tuple[Float64s, Labels]]:
    """The numbers that a side table can be read as, and where they are."""
    everywhere = np.ones(values.size, np.bool_)
    if values.dtype.kind == "f":
        yield values, everywhere
        return
    folded = np.array([text.strip().casefold() for text in values.tolist()])
    if np.unique(folded).size == 2:
        yield (folded == folded[0]).astype(np.float64), everywhere
    parsed = np.array([number(text) for text in values.tolist()], np.float64)
    is_number = np.isfinite(parsed)
    # A few odd cells do not make a column of effects something else.
    if is_number.mean() > _MOSTLY:
        yield parsed, is_number


def _is_copy(values: Float64s, signal: Float64s, labels: Labels) -> bool:
    if _is_affine(values, signal) or _is_affine(values, labels.astype(np.float64)):
        return True
    # A few candidates may well stand in the same order by chance.
    several = signal.size >= _RANKED and np.unique(signal).size > 2
    return several and _is_affine(rankdata(values), rankdata(signal))


def _is_affine(x: Float64s, y: Float64s) -> bool:
    x, y = _scaled(x), _scaled(y)
    # Not x @ y: BLAS starts threads for it, and those of two processes wait for one another.
    xx, yy, xy = (float((a * b).sum()) for a, b in ((x, x), (y, y), (x, y)))
    scale = math.sqrt(xx * yy)
    return scale > 0.0 and abs(xy) >= scale * (1.0 - COPY_TOLERANCE)


def _scaled(x: Float64s) -> Float64s:
    """X less its mean, at most 1 in magnitude, so that no product over- or underflows."""
    largest = float(np.abs(x).max())
    x = x / largest if largest > 0 else x
    x = x - x.mean()
    largest = float(np.abs(x).max())
    return x / largest if largest > 0 else x

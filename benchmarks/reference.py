"""A sweep campaign as a straightforward programmer writes it in NumPy: one campaign, one cell.

The yardstick of `speed.py`. Independent of the package on purpose: it shares no code with it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

THETA, SD = 0.7, 0.5
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def sweep_campaign(
    signal: Floats,
    seed: int,
    *,
    epsilon: float,
    log_cap: float,
    q: float,
    has_comparators: bool = False,
) -> list[Ints]:
    """Play one campaign of the published sweep and declare at one level.

    Args:
        signal: u of each candidate, shape (m,).
        seed: Of the generator.
        epsilon: Contamination probability.
        log_cap: ln C*.
        q: FDR level.
        has_comparators: Whether the three comparators judge the campaign as well.

    Returns:
        Registry indices declared by CADS, then by naive BH, uncapped e-BH and Zhou-Liu evidence.
    """
    rng = np.random.default_rng(seed)
    m = signal.size
    order = rng.permutation(m)
    sums, counts = np.zeros(m), np.zeros(m)
    capped, uncapped, bounded = np.zeros(m), np.zeros(m), np.zeros(m)
    observed = np.array([], dtype=np.int64)
    for round in range(16):
        reread = np.array([], dtype=np.int64)
        if round > 0:
            means = sums[observed] / counts[observed]
            reread = observed[np.argsort(-means)[: int(0.7 * observed.size)]]
        fresh = order[observed.size : observed.size + 500]
        picked = np.concatenate([reread, fresh])
        reads = signal[picked] + SD * rng.standard_normal(picked.size)
        hit = rng.random(picked.size) < epsilon
        reads[hit] += rng.uniform(2.0, 4.0, hit.sum())
        sums[picked] += reads
        counts[picked] += 1
        log_ratio = (THETA * reads - THETA**2 / 2) / SD**2
        capped[picked] += np.minimum(log_ratio, log_cap)
        if has_comparators:
            uncapped[picked] += log_ratio
            bounded[picked] += bounded_increment(reads, epsilon)
        observed = np.concatenate([observed, fresh])
    if not has_comparators:
        return [e_bh(capped, q)]
    p_values = np.ones(m)
    p_values[observed] = norm.sf(sums[observed] / np.sqrt(counts[observed]) / SD)
    return [e_bh(capped, q), bh(p_values, q), e_bh(uncapped, q), e_bh(bounded, q)]


def bounded_increment(reads: Floats, epsilon: float) -> Floats:
    """The log increment of Zhou and Liu, shape (r,), at the scale sqrt(epsilon) / s."""
    x = np.sqrt(epsilon) / SD * reads
    size = np.minimum(np.abs(x), 1.0)
    return -np.sign(x) * np.log1p(size**2 / 2 - size) - np.log1p(2 * epsilon)


def e_bh(log_e: Floats, q: float) -> Ints:
    """Positions that e-BH declares, ascending."""
    m = log_e.size
    ranking = np.argsort(-log_e)
    passed = log_e[ranking] >= np.log(m / (q * np.arange(1, m + 1)))
    count = np.flatnonzero(passed)[-1] + 1 if passed.any() else 0
    return np.sort(ranking[:count])


def bh(p_values: Floats, q: float) -> Ints:
    """Positions that the Benjamini-Hochberg procedure declares, ascending."""
    m = p_values.size
    ranking = np.argsort(p_values)
    passed = p_values[ranking] <= q * np.arange(1, m + 1) / m
    count = np.flatnonzero(passed)[-1] + 1 if passed.any() else 0
    return np.sort(ranking[:count])

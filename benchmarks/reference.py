"""A sweep campaign as a straightforward programmer writes it in NumPy: one campaign, one cell.

The yardstick of `speed.py`. Independent of the package on purpose: it shares no code with it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

THETA, SD = 0.7, 0.5


def sweep_campaign(
    signal: NDArray[np.float64], seed: int, *, epsilon: float, log_cap: float, q: float
) -> NDArray[np.int64]:
    """Play one campaign of the published sweep and declare at one level.

    Args:
        signal: u of each candidate, shape (m,).
        seed: Of the generator.
        epsilon: Contamination probability.
        log_cap: ln C*.
        q: FDR level.

    Returns:
        Registry indices declared.
    """
    rng = np.random.default_rng(seed)
    m = signal.size
    order = rng.permutation(m)
    sums, counts, log_e = np.zeros(m), np.zeros(m), np.zeros(m)
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
        log_e[picked] += np.minimum((THETA * reads - THETA**2 / 2) / SD**2, log_cap)
        observed = np.concatenate([observed, fresh])
    ranking = np.argsort(-log_e)
    passed = log_e[ranking] >= np.log(m / (q * np.arange(1, m + 1)))
    count = np.flatnonzero(passed)[-1] + 1 if passed.any() else 0
    return np.sort(ranking[:count])

"""Algorithm 2 of Zhou and Liu as a loop over a channel: burn-in, then the most promising arm.

It chooses what it reads, so no record of another loop can stand in for it. The choice after the
burn-in is inferred. Looks into an oracle through the channel alone.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cads_env.certificate import (
    e_bh,
    zhou_liu_burn_in,
    zhou_liu_log_increment,
    zhou_liu_phi,
)
from cads_env.channel import Channel
from cads_env.errors import CertificateError
from cads_env.protocol import Protocol
from cads_env.registry import Oracle


class BanditOutcome(NamedTuple):
    """What Algorithm 2 returns."""

    declared: NDArray[np.int64]
    """Declared registry indices, ascending; empty when the burn-in was not completed."""

    burn_in_complete: bool
    """Whether the budget paid for the burn-in; before its end nothing may be declared."""

    reads: int
    """Reads that were made."""

    pulls: NDArray[np.int64]
    """Reads of each arm, shape (m,)."""


def algorithm_2(
    oracle: Oracle,
    seed: int,
    protocol: Protocol,
    *,
    reads: int,
    epsilon: float,
    q: float,
    s: float = 0.5,
    lam: float | None = None,
) -> BanditOutcome:
    """The robust bandit on one registry, with its literal burn-in.

    Every arm is pulled in turn until each has n_0 = ceil((4 / epsilon) ln(4 m / q^2)) reads; then
    the undeclared arm with the largest robust index is pulled, its evidence updated and e-BH
    applied at q, until the budget is spent or every arm is declared.

    Args:
        oracle: The truth, for the channel.
        seed: Seed of the reads.
        protocol: Gives noise and contamination law; its schedule is not used.
        reads: Budget, >= 0.
        epsilon: Largest share of corrupted reads, in (0, 1].
        q: Level, in (0, 1).
        s: Standard deviation of a clean read, > 0.
        lam: Scale of the increment; None for sqrt(epsilon) / s, which is inferred.

    Returns:
        The declared set, or the empty set with `burn_in_complete` False.

    Raises:
        CertificateError: A parameter is outside its range.

    Source: Zhou and Liu, On the Robustness of Bandit Multiple Testing (AAAI-26), Algorithm 2: the
    burn-in as printed in the CADS paper. Inferred: the increment (see `zhou_liu_log_increment`) and
    the robust index, here the mean of phi(lam y) / lam over an arm's reads, the earlier arm first
    among equals. After a burn-in of hundreds of reads a confidence term would add little.
    """
    if isinstance(reads, bool) or not isinstance(reads, int) or reads < 0:
        msg = f"reads is {reads!r}; expected the budget, a whole number from 0."
        raise CertificateError(msg)
    m = oracle.m
    pulls_needed = zhou_liu_burn_in(m, q, epsilon)
    arms = _Arms(oracle, seed, protocol, epsilon=epsilon, s=s, lam=lam)
    spent = min(reads, m * pulls_needed)
    for first in range(0, spent, m):
        arms.pull(np.arange(min(m, spent - first)))
    if reads < m * pulls_needed:
        return BanditOutcome(np.empty(0, np.int64), False, spent, arms.pulls)
    declared = e_bh(arms.log_e, q, m=m)
    while spent < reads and len(declared) < m:
        index = arms.phi_sum / arms.pulls
        index[declared] = -math.inf
        arms.pull(np.array([int(np.argmax(index))]))
        spent += 1
        declared = e_bh(arms.log_e, q, m=m)
    return BanditOutcome(declared, True, spent, arms.pulls)


class _Arms:
    """What has been read of every arm."""

    def __init__(
        self,
        oracle: Oracle,
        seed: int,
        protocol: Protocol,
        *,
        epsilon: float,
        s: float,
        lam: float | None,
    ) -> None:
        self._epsilon, self._s = epsilon, s
        self._scale = math.sqrt(epsilon) / s if lam is None else lam
        self._candidates = np.arange(oracle.m, dtype=np.int64)[None]
        self._channel = Channel([oracle], [seed], protocol)
        self._channel.admit(self._candidates, 0, oracle.m)
        self._past: list[list[float]] = [[] for _ in range(oracle.m)]
        self._sums = np.zeros(oracle.m)
        self._step = 0
        self.pulls = np.zeros(oracle.m, dtype=np.int64)
        self.phi_sum = np.zeros(oracle.m)
        self.log_e = np.zeros(oracle.m)

    def pull(self, arms: NDArray[np.int64]) -> None:
        """Read each of some different arms once."""
        reads = self._channel.read(
            round=self._step,
            positions=arms,
            visits=self.pulls[arms],
            candidates=self._candidates,
            past_reads=lambda i: np.array(self._past[int(arms[i])]),
            past_sums=self._sums[None],
            past_counts=self.pulls[None],
        )
        self.log_e[arms] += zhou_liu_log_increment(
            reads, epsilon=self._epsilon, lam=self._scale, s=self._s
        )
        self.phi_sum[arms] += zhou_liu_phi(self._scale * reads) / self._scale
        for arm, read in zip(arms.tolist(), reads.tolist(), strict=True):
            self._past[arm].append(read)
        self._sums[arms] += reads
        self.pulls[arms] += 1
        self._step += 1

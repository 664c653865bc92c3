"""The rules that the validity study judges by: the certificate, and ways to break it on purpose.

Each broken rule changes one thing of the certificate and uses its code for the rest. Nothing here
is for judging a screen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from cads_env.certificate import Certificate, bh, e_bh
from cads_env.certificate.cap import working_model
from cads_env.certificate.comparators import naive_p_values
from cads_env.certificate.evidence import capped_log

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A way of judging reads.

    Attributes:
        title: What a table calls it.
        capped: Which reads the cap holds: "all", "none", or "flagged" (those above `flag_at`), a
            cap that is chosen after its read.
        family: What m is: the "registry", or the "observed" candidates alone.
        naive: Whether it is BH on z-test p-values instead.
    """

    title: str
    capped: Literal["all", "none", "flagged"] = "all"
    family: Literal["registry", "observed"] = "registry"
    naive: bool = False

    def evidence(self, reads: Floats, certificate: Certificate, *, flag_at: float) -> Floats:
        """The evidence of each candidate after each number of visits.

        Args:
            reads: From `read_table`, shape (n, m, visits).
            certificate: Its cap and working alternative.
            flag_at: Reads above it are flagged.

        Returns:
            Natural logs, shape (n, m, visits + 1), 0 before the first visit; of 1/p when `naive`.
        """
        n, m, visits = reads.shape
        log_e = np.zeros((n, m, visits + 1))
        if self.naive:
            counts = np.arange(1, visits + 1)
            means = np.cumsum(reads, axis=2) / counts
            flat = naive_p_values(means.reshape(-1), np.tile(counts, n * m), s=certificate.s)
            # A p-value below the smallest double is as good as the smallest.
            log_e[:, :, 1:] = -np.log(np.maximum(flat, np.finfo(float).tiny)).reshape(reads.shape)
            return log_e
        increments = self.log_increments(reads, certificate, flag_at=flag_at)
        np.cumsum(increments, axis=2, out=log_e[:, :, 1:])
        return log_e

    def log_increments(self, reads: Floats, certificate: Certificate, *, flag_at: float) -> Floats:
        """The log evidence of each read under the rule's cap, in the shape of `reads`.

        Args:
            reads: Any shape.
            certificate: Its cap and working alternative.
            flag_at: Reads above it are flagged.
        """
        model = working_model(certificate.theta, certificate.s)
        log_cap = math.inf if self.capped == "none" else certificate.log_cap
        increments = capped_log(reads, model, log_cap=log_cap)
        if self.capped == "flagged":
            free = capped_log(reads, model, log_cap=math.inf)
            increments = np.where(reads > flag_at, increments, free)
        return increments

    def declare(self, log_e: Floats, observed: Ints, m: int, certificate: Certificate) -> Ints:
        """What the rule declares of one campaign.

        Args:
            log_e: Evidence of the observed candidates, shape (K,).
            observed: Their registry indices, shape (K,).
            m: Number of candidates of the registry.
            certificate: Its level.

        Returns:
            Declared registry indices, shape (D,).
        """
        if self.naive:
            return bh(np.exp(-log_e), certificate.q, m=m, indices=observed)
        if self.family == "observed":
            return observed[e_bh(log_e, certificate.q, m=observed.size)]
        return certificate.decide(log_e, observed, m)


RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "cads": Rule(title="CADS"),
        "no-cap": Rule(title="cap removed", capped="none"),
        "observed-family": Rule(title="m = observed candidates", family="observed"),
        "late-cap": Rule(title="cap chosen after the read", capped="flagged"),
        "naive": Rule(title="naive BH", naive=True),
    }
)
"""The rules by name."""

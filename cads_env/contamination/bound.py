"""Whether a contamination law keeps the certificate's conditional bound, as a computed number.

The certificate holds when every null's read is contaminated with probability at most epsilon_bar
given the past. A watch notes the largest such probability in played campaigns, beside the share of
reads that were contaminated. It changes no read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cads_env.contamination.batch import ContaminationLaw, Floats, RatedLaw, ReadBatch
from cads_env.errors import ProtocolError

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCheck:
    """What a law did in some campaigns.

    Attributes:
        epsilon_bar: The bound that it was held against, in [0, 1].
        largest_conditional_rate: Largest probability, given the past, that a null's read was
            contaminated, over all their reads of all campaigns.
        marginal_rate: Share of all reads that were contaminated.
        expected_rate: Mean of the law's probabilities over all reads. Far from `marginal_rate`, the
            law does not do what its rates say.
        reads: Number of reads.
    """

    epsilon_bar: float
    largest_conditional_rate: float
    marginal_rate: float
    expected_rate: float
    reads: int

    @property
    def holds(self) -> bool:
        """Whether no null's read was likelier to be contaminated than epsilon_bar.

        The law's word is taken for it only where as many reads were contaminated as it says.
        """
        return self.largest_conditional_rate <= self.epsilon_bar and self.keeps_its_word

    @property
    def keeps_its_word(self) -> bool:
        """Whether the share of contaminated reads is, within chance, at most what the law says."""
        se = math.sqrt(self.expected_rate * (1.0 - self.expected_rate) / max(self.reads, 1))
        return self.marginal_rate <= self.expected_rate + 5.0 * se + 1e-12


class Watch:
    """A law that is watched, campaign by campaign.

    Attributes:
        largest_rate: Largest probability, given the past, of a null's read, shape (n,).
        contaminated: Number of contaminated reads, shape (n,).
        expected: Sum of the probabilities of all reads, shape (n,).
        reads: Number of reads, shape (n,).
    """

    def __init__(self, law: ContaminationLaw, n: int) -> None:
        """Watch a law in n campaigns.

        Raises:
            ProtocolError: The law does not say how likely contamination is.
        """
        if not isinstance(law, RatedLaw):
            msg = (
                f"Contamination law {type(law).__name__} has no rates(batch); expected the "
                "probability, given the past, that each read is contaminated, shape (r,). Without "
                "it nobody can say whether the conditional bound holds: add the method."
            )
            raise ProtocolError(msg)
        self._law: RatedLaw = law
        self.largest_rate, self.expected = np.zeros(n), np.zeros(n)
        self.contaminated, self.reads = np.zeros(n, np.int64), np.zeros(n, np.int64)

    def contaminate(self, batch: ReadBatch) -> Floats:
        """The law's own reads, shape (r,).

        Raises:
            ProtocolError: The law's rates depend on the clean reads, which no past holds.
        """
        n, rows, clean = self.reads.size, batch.rows, batch.clean.copy()
        rates = self._law.rates(replace(batch, clean=np.full(clean.size, np.nan)))
        if not np.isfinite(rates).all():
            msg = (
                "The contamination law's rates(batch) are not finite when batch.clean is not; "
                "expected probabilities given the past, which does not hold the clean reads."
            )
            raise ProtocolError(msg)
        is_null = batch.signal <= 0
        np.maximum.at(self.largest_rate, rows[is_null], rates[is_null])
        reads = self._law.contaminate(batch)
        self.reads += np.bincount(rows, minlength=n)
        self.expected += np.bincount(rows, weights=rates, minlength=n)
        self.contaminated += np.bincount(rows[reads != clean], minlength=n)
        return reads

"""What a contamination law is given: the context of reads about to pass it, and what it must do.

A law is handed the context of all reads of a round, and may use of it each read's own campaign,
candidate, coin and past: what it takes from another's makes a read depend on what is played beside.
Whatever it draws comes from the tape, so a read stays a function of campaign, candidate, visit and
past.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cads_env.tape import coins, coins_each, scrambled, uniforms

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ReadBatch:
    """The context of r clean reads about to pass a contamination law.

    Attributes:
        round: The round they belong to.
        visits: How often that candidate was read before, shape (r,).
        signal: u of each read's candidate, shape (r,).
        clean: The clean reads, shape (r,).
        coin_bits: First 12 bits of each read's contamination coin, shape (r,).
        states: Tape state of each read, for a law's own draws, shape (r,).
        campaign_words: One random word a campaign, shape (n,).
        past_reads: Earlier reads of read i's own candidate, before this round.
        past_sums: Sum of the earlier reads of a candidate, before this round, by campaign and
            observed position, shape (n, K).
        past_counts: Their number, shape (n, K).
        candidate_table: Registry index by campaign and observed position, shape (n, K).
        positions: Flat position in `candidate_table` of each read, shape (r,).
    """

    round: int
    visits: Ints
    signal: Floats
    clean: Floats
    coin_bits: NDArray[np.uint16]
    states: NDArray[np.uint64]
    campaign_words: NDArray[np.uint64]
    past_reads: Callable[[int], Floats]
    past_sums: Floats
    past_counts: Ints
    candidate_table: Ints
    positions: Ints

    @property
    def rows(self) -> Ints:
        """Campaign of each read, shape (r,)."""
        rows: Ints = self.positions // self.candidate_table.shape[1]
        return rows

    @property
    def candidates(self) -> Ints:
        """Registry index of each read, shape (r,)."""
        return self.candidate_table.reshape(-1).take(self.positions)

    def past_means(self) -> Floats:
        """Mean of the earlier reads of each read's candidate, before this round; NaN without one.

        Returns:
            Shape (r,), a new array.
        """
        sums = self.past_sums.reshape(-1).take(self.positions)
        counts = self.past_counts.reshape(-1).take(self.positions)
        means = np.full(sums.size, np.nan)
        np.divide(sums, counts, out=means, where=counts > 0)
        return means

    def coin(self, probability: float | Floats) -> Ints:
        """Positions of the reads whose own coin falls below their probability, ascending.

        Args:
            probability: In [0, 1]: one for all, or one a read, shape (r,).
        """
        if isinstance(probability, np.ndarray):
            return coins_each(self.coin_bits, self.states, probability)
        return coins(self.coin_bits, self.states, probability)

    def uniform(self, at: Ints, slot: int = 2) -> Floats:
        """A uniform number in [0, 1) for each read in `at`, from tape slot 2 or 3."""
        return uniforms(scrambled(self.states.take(at), slot))


@runtime_checkable
class ContaminationLaw(Protocol):
    """How clean reads become contaminated ones. A pure function of the batch."""

    def contaminate(self, batch: ReadBatch) -> Floats:
        """The reads as delivered, shape (r,). May overwrite `batch.clean` and return it."""
        ...


@runtime_checkable
class RatedLaw(ContaminationLaw, Protocol):
    """A law that says how likely each read is to be contaminated."""

    def rates(self, batch: ReadBatch) -> Floats:
        """Probability, given the past, that each read is contaminated, shape (r,), in [0, 1]."""
        ...

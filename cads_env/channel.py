"""The channel: how (candidate, visit) becomes a read, Y = u + s * z, contaminated under a law.

This and the scorer are the only places that look into an oracle. A law sees a contamination coin's
worth of context and nothing of any other candidate. Nothing here decides what is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from cads_env.errors import ProtocolError, suggest
from cads_env.protocol import Protocol as ScreenProtocol
from cads_env.registry import Oracle
from cads_env.tape import (
    candidate_words,
    coin_bits,
    coins,
    normals,
    scrambled,
    uniforms,
    visit_states,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Reads that pass the channel together: the scratch of a block stays in a core's cache.
_BLOCK: Final = 32768


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

    def coin(self, probability: float) -> Ints:
        """Positions of the reads whose own coin falls below `probability`."""
        return coins(self.coin_bits, self.states, probability)

    def uniform(self, at: Ints, slot: int = 2) -> Floats:
        """A uniform number in [0, 1) for each read in `at`, from tape slot 2 or 3."""
        return uniforms(scrambled(self.states[at], slot))


class ContaminationLaw(Protocol):
    """How clean reads become contaminated ones."""

    def contaminate(self, batch: ReadBatch) -> Floats:
        """The reads as delivered, shape (r,). May overwrite `batch.clean` and return it."""
        ...


class AddedUniform:
    """With probability epsilon, independently for each read, U(low, high) is added to it."""

    def __init__(self, epsilon: float, *, low: float = 2.0, high: float = 4.0) -> None:
        """Check the range.

        Args:
            epsilon: Probability in [0, 1].
            low: Smallest addition, in units of the effect.
            high: Largest addition, not below `low`.

        Raises:
            ProtocolError: The range is empty or not finite.
        """
        for name, bound in (("low", low), ("high", high)):
            number = isinstance(bound, (int, float)) and not isinstance(bound, bool)
            if not number or not math.isfinite(bound):
                msg = f"law_options {name} is {bound!r}; expected a finite number."
                raise ProtocolError(msg)
        if low > high:
            msg = f"law_options low = {low:g} is above high = {high:g}; expected low <= high."
            raise ProtocolError(msg)
        self.epsilon, self.low, self.high = epsilon, float(low), float(high)

    def contaminate(self, batch: ReadBatch) -> Floats:
        """Add to the reads whose coin says so."""
        reads = batch.clean
        if self.epsilon > 0:
            at = batch.coin(self.epsilon)
            reads[at] += self.low + (self.high - self.low) * batch.uniform(at)
        return reads


LAWS: Final[Mapping[str, Callable[..., ContaminationLaw]]] = {"uniform": AddedUniform}
"""Contamination laws by the name that a protocol gives."""


def make_law(name: str, epsilon: float, options: Mapping[str, Any]) -> ContaminationLaw:
    """The law that a protocol names.

    Raises:
        ProtocolError: Unknown law (with a suggestion) or an option that it does not have.
    """
    if name not in LAWS:
        msg = f"Unknown contamination law {name!r}. {suggest(name, LAWS)}"
        raise ProtocolError(msg)
    try:
        return LAWS[name](epsilon, **options)
    except TypeError as error:
        msg = f"Contamination law {name!r} does not accept {dict(options)!r}: {error}."
        raise ProtocolError(msg) from error


def _shifted(past_reads: Callable[[int], Floats], start: int, i: int) -> Floats:
    return past_reads(start + i)


class Channel:
    """The reads of n campaigns of one protocol, each on its own oracle and seed."""

    def __init__(
        self, oracles: Sequence[Oracle], seeds: Sequence[int], protocol: ScreenProtocol
    ) -> None:
        """Open the tapes.

        Args:
            oracles: One a campaign, all of the same size m.
            seeds: One a campaign.
            protocol: Gives noise, law and the plan's size.
        """
        self._oracles = tuple(oracles)
        self._seeds = tuple(seeds)
        self._noise_sd = protocol.noise_sd
        self._law = make_law(protocol.law, protocol.epsilon, protocol.law_options)
        self._tape_keys = self.keys("tape")
        self._campaign_words = self.keys("campaign")
        self._words = np.empty((len(oracles), 0), np.uint64)
        self._signal = np.empty((len(oracles), 0))

    def keys(self, stream: str, **parts: int) -> NDArray[np.uint64]:
        """The key of a named random stream in each campaign, shape (n,)."""
        pairs = zip(self._oracles, self._seeds, strict=True)
        return np.array([oracle.key(stream, seed, **parts) for oracle, seed in pairs], np.uint64)

    def admit(self, candidates: Ints, start: int, capacity: int) -> None:
        """Make ready the candidates that take observed positions `start` onwards.

        Args:
            candidates: Registry indices, shape (n, f).
            start: First observed position that they take.
            capacity: Observed positions that the campaign will have at most.
        """
        if self._words.shape[1] < capacity:
            wider = (candidates.shape[0], capacity)
            words, signal = np.empty(wider, np.uint64), np.empty(wider)
            words[:, :start], signal[:, :start] = self._words[:, :start], self._signal[:, :start]
            self._words, self._signal = words, signal
        stop = start + candidates.shape[1]
        self._words[:, start:stop] = candidate_words(self._tape_keys[:, None], candidates)
        for row, oracle in enumerate(self._oracles):
            self._signal[row, start:stop] = oracle.signal[candidates[row]]

    def read(
        self,
        *,
        round: int,
        positions: Ints,
        visits: Ints,
        candidates: Ints,
        past_reads: Callable[[int], Floats],
    ) -> Floats:
        """The reads of one round.

        Args:
            round: The round.
            positions: Flat position in `candidates` of each read, shape (r,).
            visits: Earlier reads of that candidate, shape (r,).
            candidates: Registry index by campaign and observed position, shape (n, K).
            past_reads: Earlier reads of the candidate of read i, before this round.

        Returns:
            Shape (r,).
        """
        words, signal = self._words.reshape(-1), self._signal.reshape(-1)
        reads = np.empty(positions.size)
        for start in range(0, positions.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            at, seen = positions[block], visits[block]
            states, means = visit_states(words.take(at), seen), signal.take(at)
            random_bits = scrambled(states, 0)
            first_bits = coin_bits(random_bits)
            clean = normals(random_bits, out=reads[block])
            np.multiply(clean, self._noise_sd, out=clean)
            np.add(clean, means, out=clean)
            batch = ReadBatch(
                round=round,
                visits=seen,
                signal=means,
                clean=clean,
                coin_bits=first_bits,
                states=states,
                campaign_words=self._campaign_words,
                past_reads=partial(_shifted, past_reads, start),
                candidate_table=candidates,
                positions=at,
            )
            reads[block] = self._law.contaminate(batch)
        return reads

    def take(self, rows: Ints) -> Channel:
        """The channel of some of the campaigns, in the given order."""
        part = Channel.__new__(Channel)
        part.__dict__ |= self.__dict__
        part._oracles = tuple(self._oracles[row] for row in rows)
        part._seeds = tuple(self._seeds[row] for row in rows)
        for name in ("_tape_keys", "_campaign_words", "_words", "_signal"):
            setattr(part, name, getattr(self, name)[rows].copy())
        return part

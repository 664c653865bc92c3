"""The channel: how (candidate, visit) becomes a read, Y = u + s * z, contaminated under a law.

This and the scorer are the only places that look into an oracle. Nothing here decides what is read,
and which reads are contaminated is the law's to say.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cads_env.contamination import ContaminationLaw, ReadBatch, law_of
from cads_env.protocol import Protocol
from cads_env.registry import Oracle
from cads_env.tape import candidate_words, coin_bits, normals, scrambled, visit_states

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Reads that pass the channel together: the scratch of a block stays in a core's cache.
_BLOCK: Final = 32768


def _shifted(past_reads: Callable[[int], Floats], start: int, i: int) -> Floats:
    return past_reads(start + i)


def _nothing(i: int) -> Floats:
    """Earlier reads of a control: there are none."""
    return np.empty(0)


def audit_reads(oracles: Sequence[Oracle], seeds: Sequence[int], protocol: Protocol) -> Floats:
    """The control reads of n campaigns, which need not be played for them.

    Args:
        oracles: One a campaign, all of the same size.
        seeds: One a campaign.
        protocol: Gives number, timing and contamination of the controls.

    Returns:
        Shape (n, A); see `Channel.audit_reads`.
    """
    return Channel(oracles, seeds, protocol).audit_reads()


class Channel:
    """The reads of n campaigns of one protocol, each on its own oracle and seed."""

    def __init__(self, oracles: Sequence[Oracle], seeds: Sequence[int], protocol: Protocol) -> None:
        """Open the tapes.

        Args:
            oracles: One a campaign, all of the same size m.
            seeds: One a campaign.
            protocol: Gives noise, law and the plan's size.
        """
        self._oracles = tuple(oracles)
        self._seeds = tuple(seeds)
        self._protocol = protocol
        self._noise_sd = protocol.noise_sd
        self.law: ContaminationLaw = law_of(protocol, oracles[0].m)
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
        first = self._oracles[0].signal
        if all(oracle.signal is first for oracle in self._oracles):
            self._signal[:, start:stop] = first.take(candidates)
            return
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
        past_sums: Floats,
        past_counts: Ints,
    ) -> Floats:
        """The reads of one round.

        Args:
            round: The round.
            positions: Flat position in `candidates` of each read, shape (r,).
            visits: Earlier reads of that candidate, shape (r,).
            candidates: Registry index by campaign and observed position, shape (n, K).
            past_reads: Earlier reads of the candidate of read i, before this round.
            past_sums: Their sum by campaign and observed position, shape (n, K).
            past_counts: Their number, shape (n, K).

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
                past_sums=past_sums,
                past_counts=past_counts,
                candidate_table=candidates,
                positions=at,
            )
            delivered = self.law.contaminate(batch)
            if delivered is not clean:
                clean[...] = delivered
        return reads

    def audit_reads(self) -> Floats:
        """The reads of the protocol's blinded controls.

        Control j is a clean N(0, noise_sd^2) read that passes the campaign's own contamination law
        with the probability `audit_epsilon`. Its random numbers are the stream "audit" at
        (candidate j, visit 0), so they depend on nothing that is read or chosen. To a law the
        controls are candidates 0 to A - 1 of signal 0, never read before, in the round at whose end
        they are revealed (round 0 when all of them come before it).

        Returns:
            Shape (n, A), in units of the effect.
        """
        rules, n = self._protocol, len(self._oracles)
        if not rules.audit_controls:
            return np.empty((n, 0))
        epsilon = rules.epsilon if rules.audit_epsilon is None else rules.audit_epsilon
        law = law_of(rules, self._oracles[0].m, epsilon=epsilon)
        count = rules.audit_controls
        table = np.tile(np.arange(count, dtype=np.int64), (n, 1))
        words = candidate_words(self.keys("audit")[:, None], table)
        reads = np.empty((n, count))
        parts = [0, count] if rules.audit_timing == "front" else [*rules.audit_starts, count]
        for round, (start, stop) in enumerate(itertools.pairwise(parts)):
            if start < stop:
                part = words[:, start:stop].reshape(-1)
                at = (np.arange(n)[:, None] * count + np.arange(start, stop)).reshape(-1)
                reads[:, start:stop] = self._controls(law, round, part, table, at).reshape(n, -1)
        return reads

    def _controls(
        self,
        law: ContaminationLaw,
        round: int,
        words: NDArray[np.uint64],
        table: Ints,
        positions: Ints,
    ) -> Floats:
        """The controls of one round, shape (r,)."""
        never = np.zeros(words.size, np.int64)
        states = visit_states(words, never)
        random_bits = scrambled(states, 0)
        first_bits = coin_bits(random_bits)
        clean = normals(random_bits)
        np.multiply(clean, self._noise_sd, out=clean)
        batch = ReadBatch(
            round=round,
            visits=never,
            signal=np.zeros(words.size),
            clean=clean,
            coin_bits=first_bits,
            states=states,
            campaign_words=self._campaign_words,
            past_reads=_nothing,
            past_sums=np.zeros(table.shape),
            past_counts=np.zeros(table.shape, np.int64),
            candidate_table=table,
            positions=positions,
        )
        return law.contaminate(batch)

    def take(self, rows: Ints) -> Channel:
        """The channel of some of the campaigns, in the given order."""
        part = Channel.__new__(Channel)
        part.__dict__ |= self.__dict__
        part._oracles = tuple(self._oracles[row] for row in rows)
        part._seeds = tuple(self._seeds[row] for row in rows)
        for name in ("_tape_keys", "_campaign_words", "_words", "_signal"):
            setattr(part, name, getattr(self, name)[rows].copy())
        return part

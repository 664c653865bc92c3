"""One campaign played slowly, from the written rules: plain loops, dicts and `sorted`.

Takes from the package only the tape's raw numbers, keys and permutation, and the fields of a
protocol. Never imports the schedule, the re-selection, the delivery, the channel or the screen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cads_env.protocol import Protocol
from cads_env.registry import Oracle
from cads_env.tape import (
    bits,
    candidate_words,
    derive_key,
    normals,
    priority,
    uniforms,
)

_VISITS_AT_ONCE = 64


@dataclass
class Played:
    """What one campaign left: reads in time order, and per round the delivery and the lists."""

    candidates: list[int] = field(default_factory=list)
    origins: list[str] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    round_starts: list[int] = field(default_factory=lambda: [0])
    deliveries: list[dict[str, int]] = field(default_factory=list)
    views: list[dict[str, list[str]]] = field(default_factory=list)


class Tape:
    """The raw numbers of one campaign, one (candidate, visit) at a time."""

    def __init__(self, oracle: Oracle, seed: int) -> None:
        self._oracle, self._seed = oracle, seed
        self._orders: dict[int, list[int]] = {}
        self._blocks: dict[tuple[int, int], tuple[list[float], list[int], list[float]]] = {}

    def key(self, stream: str, **parts: int) -> int:
        o, seed = self._oracle, self._seed
        return derive_key(
            stream, panel=o.panel, instance=o.instance, salt=o.salt, seed=seed, **parts
        )

    def read(self, candidate: int, visit: int) -> tuple[float, int, float]:
        """The normal, the coin's 76 bits and the law's uniform number of one read."""
        block = (candidate, visit // _VISITS_AT_ONCE)
        if block not in self._blocks:
            first = block[1] * _VISITS_AT_ONCE
            visits = np.arange(first, first + _VISITS_AT_ONCE)
            words = candidate_words(
                np.array([self.key("tape")], np.uint64), np.full(visits.size, candidate)
            )
            self._blocks[block] = (
                normals(bits(words, visits, 0)).tolist(),
                self._coins(words, visits),
                uniforms(bits(words, visits, 2)).tolist(),
            )
        at = visit % _VISITS_AT_ONCE
        normal, coin, uniform = self._blocks[block]
        return normal[at], coin[at], uniform[at]

    def _coins(self, words: NDArray[np.uint64], visits: NDArray[np.int64]) -> list[int]:
        """76 bits a read: the 12 that its normal leaves over, then the 64 of slot 1."""
        pairs = zip(bits(words, visits, 0).tolist(), bits(words, visits, 1).tolist(), strict=True)
        return [(first % 2**12) * 2**64 + second for first, second in pairs]

    def label(self, stream: str, index: int, round: int) -> int:
        """64 bits of a stream that no effect enters, for one index in one round."""
        words = candidate_words(np.array([self.key(stream)], np.uint64), np.array([index]))
        return int(bits(words, np.array([round]), 0)[0])

    def order(self, key: int, m: int) -> list[int]:
        """The whole fallback order."""
        if key not in self._orders:
            entries = priority(np.array([key], np.uint64), np.arange(m), m)
            self._orders[key] = entries[0].tolist()
        return self._orders[key]


class ReferenceScreen:
    """The state of one campaign; `play` runs it to its end."""

    def __init__(
        self,
        identifiers: Sequence[str],
        oracle: Oracle,
        seed: int,
        protocol: Protocol,
        log_cap: float,
    ) -> None:
        """`log_cap` is ln C* of the protocol's own frozen evidence."""
        self.names = list(identifiers)
        self.m = len(self.names)
        self.index = {name: i for i, name in enumerate(self.names)}
        self.signal = oracle.signal.tolist()
        self.protocol, self.log_cap = protocol, log_cap
        self.tape = Tape(oracle, seed)
        self.reads: dict[int, list[float]] = {}
        self.played = Played()

    def play(self, answers: Sequence[Sequence[str]]) -> Played:
        """Play every round with one list of names a round."""
        for round, answer in enumerate(answers):
            self.played.views.append(self._view(round))
            self._play_round(round, answer)
        self.played.views.append(self._view(len(answers)))
        return self.played

    # What may be seen of the observed candidates, in first-read order.

    def _mean(self, candidate: int) -> float:
        total = 0.0
        for value in self.reads[candidate]:
            total += value
        return total / len(self.reads[candidate])

    def _log_evidence(self, candidate: int) -> float:
        p = self.protocol
        slope = p.rank_theta / (p.rank_s * p.rank_s)
        shift = p.rank_theta * p.rank_theta / (2.0 * (p.rank_s * p.rank_s))
        total = 0.0
        for value in self.reads[candidate]:
            total += min(value * slope - shift, self.log_cap)
        return total

    def _shown(self, feedback: str, round: int) -> list[tuple[float, float]]:
        """(mean, log evidence) that stands at each observed candidate's place."""
        true = [(self._mean(c), self._log_evidence(c)) for c in self.played.candidates]
        if feedback != "permuted":
            return true
        places = range(len(true))
        order = sorted(
            places, key=lambda place: (self.tape.label("permuted-feedback", place, round), place)
        )
        return [true[source] for source in order]

    def _view(self, round: int) -> dict[str, list[str]]:
        names = [self.names[c] for c in self.played.candidates]
        mode = self.protocol.feedback_proposer
        if mode == "none":
            return {"tested": names, "high": [], "low": []}
        high: list[str] = []
        low: list[str] = []
        for name, (mean, _) in zip(names, self._shown(mode, round), strict=True):
            (high if mean > self.protocol.high_above else low).append(name)
        return {"tested": names, "high": high, "low": low}

    # One round.

    def _play_round(self, round: int, answer: Sequence[str]) -> None:
        p, played = self.protocol, self.played
        observed = list(played.candidates)
        due, wanted = 0, p.first_fresh
        if round > 0:
            wanted = p.fresh
            due = p.reread_candidates
            if p.reread_fraction is not None:
                due = int(p.reread_fraction * len(observed))
        while due > len(observed):
            # A re-read that has no candidate becomes fresh slots.
            due -= 1
            wanted += p.reads_each
        fresh_count = min(wanted, self.m - len(observed))
        missing = wanted - fresh_count if p.on_exhausted == "reread" else 0
        ranking = self._ranking(round)
        unspent = 0 if observed else missing
        fresh, delivery = self._fill(round, answer, fresh_count)
        delivery["unspent"] = unspent

        # Every choice above is from the state at the round's start; only now are reads made.
        due_reads: list[int] = list(fresh)
        for place in sorted(ranking[:due]):
            due_reads += [observed[place]] * p.reads_each
        if observed:
            for number in range(missing):
                due_reads.append(observed[ranking[(due + number) % len(observed)]])
        for candidate, origin in fresh.items():
            played.candidates.append(candidate)
            played.origins.append(origin)
        for candidate in due_reads:
            self._read(candidate)
        played.round_starts.append(len(played.values))
        played.deliveries.append(delivery)

    def _ranking(self, round: int) -> list[int]:
        """Places of the observed candidates, best first."""
        p = self.protocol
        places = range(len(self.played.candidates))
        if p.feedback_reselection == "none":
            keys = [
                self.tape.label("blind-reselection", c, round) >> 11 for c in self.played.candidates
            ]
            return sorted(places, key=lambda place: (-keys[place], place))
        shown = self._shown(p.feedback_reselection, round)
        bar = math.log(self.m / p.rank_q)

        def rank(place: int) -> tuple[bool, float, int]:
            mean, log_evidence = shown[place]
            score = log_evidence if p.rank_by == "log_evidence" else mean
            return (p.graduation and log_evidence >= bar, -score, place)

        return sorted(places, key=rank)

    def _fill(
        self, round: int, answer: Sequence[str], fresh_count: int
    ) -> tuple[dict[int, str], dict[str, int]]:
        """The fresh candidates in order with who named them, and the delivery's counts."""
        p = self.protocol
        quota = p.first_quota if round == 0 else p.quota
        slots = fresh_count if quota is None else min(fresh_count, quota)
        count = dict.fromkeys(
            ("invalid", "duplicate", "already_tested", "over_delivered", "accepted"), 0
        )
        fresh: dict[int, str] = {}
        earlier: list[str] = []
        for name in answer:
            if name not in self.index:
                count["invalid"] += 1
            elif name in earlier:
                count["duplicate"] += 1
            elif self.index[name] in self.reads:
                count["already_tested"] += 1
            elif count["accepted"] == slots:
                count["over_delivered"] += 1
            else:
                count["accepted"] += 1
                fresh[self.index[name]] = "proposer"
            earlier.append(name)
        parts = {"round": round} if p.fallback_priority == "round" else {}
        for candidate in self.tape.order(self.tape.key("priority", **parts), self.m):
            if len(fresh) == fresh_count:
                break
            if candidate not in self.reads and candidate not in fresh:
                fresh[candidate] = "fallback"
        count["raw"] = len(answer)
        count["valid"] = count["accepted"] + count["over_delivered"]
        count["fallback"] = fresh_count - count["accepted"]
        count["fresh_slots"], count["proposal_slots"] = fresh_count, slots
        return fresh, count

    def _read(self, candidate: int) -> None:
        p = self.protocol
        visit = len(self.reads.setdefault(candidate, []))
        normal, coin, uniform = self.tape.read(candidate, visit)
        value = normal * p.noise_sd + self.signal[candidate]
        low, high = float(p.law_options["low"]), float(p.law_options["high"])
        if coin < int(p.epsilon * 2**76):
            value += low + (high - low) * uniform
        self.reads[candidate].append(value)
        self.played.slots.append(self.played.candidates.index(candidate))
        self.played.values.append(value)

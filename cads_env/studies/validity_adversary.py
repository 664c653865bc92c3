"""An adversary against the certificate: it reads where luck was, and stops at the worst moment.

It knows the evidence, the labels and the rule, but no read before it is made: all that the
guarantee allows. Deterministic given the reads, campaign by campaign.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cads_env.certificate import Certificate
from cads_env.studies.validity_rules import Rule

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SLACK = 1e-9
"""Keeps a candidate at the very bar in the quick look; the rule itself decides."""


class Outcome(NamedTuple):
    """What one campaign against a rule ended with.

    Attributes:
        false: Declared nulls.
        declared: Declared candidates.
        reads: Reads spent.
    """

    false: int
    declared: int
    reads: int


class _State:
    """Where n campaigns against one rule stand, as flat arrays of n m candidates."""

    def __init__(self, log_e: Floats, scenario: Mapping[str, Any]) -> None:
        self.n, self.m, self._width = log_e.shape
        self.visits = np.zeros(self.n * self.m, np.int64)
        self.log_e = np.zeros(self.n * self.m)
        # Candidates that were never read rank at `-patience`: read ones are given up below it.
        self._rank = np.full((self.n, self.m), -float(scenario["patience"]))
        self._evidence = log_e.reshape(-1)
        ranks = log_e.copy()
        ranks[:, :, -1] = -np.inf
        self._ranks = ranks.reshape(-1)
        self._starts = np.arange(self.n) * self.m
        self._cluster = int(scenario["cluster"])
        self._members = np.arange(self._cluster)[:, None]
        self.false, self.declared = np.zeros(self.n, np.int64), np.zeros(self.n, np.int64)

    def read(self) -> Ints:
        """Read the first-ranked cluster of every campaign that has one left.

        Returns:
            Flat position of the first candidate read, one a campaign that goes on.
        """
        first: Ints = self._starts + self._rank.argmax(axis=1)
        left = self._rank.reshape(-1).take(first) > -np.inf
        if not left.all():
            first = first[left]
        at = first
        if self._cluster > 1:
            # Clusters tile a registry, and so the flat array.
            at = (first // self._cluster * self._cluster + self._members).reshape(-1)
        seen = self.visits.take(at) + 1
        self.visits[at] = seen
        seen += at * self._width
        self.log_e[at] = self._evidence.take(seen)
        self._rank.reshape(-1)[at] = self._ranks.take(seen)
        return first

    def leave(self, row: int, candidates: Ints | slice) -> None:
        """Never read these candidates of a campaign again."""
        self._rank[row, candidates] = -np.inf

    def observed(self, row: int) -> Ints:
        """Candidates of a campaign that were read."""
        return np.flatnonzero(self.visits.reshape(self.n, self.m)[row])

    def settle(self, row: int, found: Ints, null_count: int) -> bool:
        """Note what is declared of a campaign now; whether a null is among it."""
        self.declared[row] = found.size
        self.false[row] = np.count_nonzero(found < null_count)
        return bool(self.false[row])

    def outcomes(self) -> list[Outcome]:
        """One a campaign."""
        reads = self.visits.reshape(self.n, self.m).sum(axis=1)
        counts = zip(self.false.tolist(), self.declared.tolist(), reads.tolist(), strict=True)
        return [Outcome(*each) for each in counts]


def attack(
    log_e: Floats, rule: Rule, certificate: Certificate, scenario: Mapping[str, Any]
) -> list[Outcome]:
    """Play the adversary against a rule.

    It always reads the candidate, or cluster, of the largest evidence that is not declared yet; one
    never read counts as evidence exp(-patience), and the first of equals is taken. With `stops` the
    rule judges after every read and the campaign ends with the first false declaration; else it
    judges once, when all reads are spent.

    Args:
        log_e: From `Rule.evidence`, shape (n, m, visits + 1).
        rule: What judges.
        certificate: Its level.
        scenario: `hits` (the last of the candidates), `cluster`, `patience`, `reads` (steps at
            most, each a candidate or cluster) and `stops`.

    Returns:
        One outcome a campaign.
    """
    state = _State(log_e, scenario)
    null_count = state.m - int(scenario["hits"])
    for _ in range(scenario["reads"]):
        first = state.read()
        if not first.size:
            break
        if scenario["stops"]:
            _look(state, rule, certificate, first, null_count)
    for row in np.flatnonzero(state.false == 0):
        state.settle(int(row), _declared(state, rule, certificate, int(row)), null_count)
    return state.outcomes()


def _look(
    state: _State, rule: Rule, certificate: Certificate, first: Ints, null_count: int
) -> None:
    """Let the rule judge the campaigns whose last read may have changed what it declares."""
    # Only evidence that was just read can have risen, so a declaration is new only if it is among
    # it; and no more than the candidates at 1/q can share a bar, so none is below 1/q.
    lowest = -math.log(certificate.q) - _SLACK
    near = first[state.log_e.take(first) >= lowest]
    if not near.size:
        return
    rows = near // state.m
    sharers = np.count_nonzero(state.log_e.reshape(state.n, state.m)[rows] >= lowest, axis=1)
    # The smallest family that a rule could have: whether it has another is for the rule to say.
    family = np.count_nonzero(state.visits.reshape(state.n, state.m)[rows], axis=1)
    bars = np.log(family / (certificate.q * sharers))
    for row in rows[state.log_e.take(near) >= bars - _SLACK].tolist():
        found = _declared(state, rule, certificate, row)
        is_over = state.settle(row, found, null_count)
        state.leave(row, slice(None) if is_over else found)


def _declared(state: _State, rule: Rule, certificate: Certificate, row: int) -> Ints:
    observed = state.observed(row)
    log_e = state.log_e.reshape(state.n, state.m)[row, observed]
    return rule.declare(log_e, observed, state.m, certificate)

"""Playing many campaigns at once, for the slow tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from cads_env.campaign import open_screen, play
from cads_env.certificate import Certificate
from cads_env.proposer import Proposer, View
from cads_env.protocol import Protocol
from cads_env.record import Record
from cads_env.registry import Oracle, Registry

Pair = tuple[Registry, Oracle]
Make = Callable[[Pair, int], Proposer | None]
CHUNK = 16


def play_many(
    pair_of: Callable[[int], Pair], seeds: Sequence[int], protocol: Protocol, make: Make
) -> list[Record]:
    """The record of each seed, each with its own proposer."""
    records: list[Record] = []
    for start in range(0, len(seeds), CHUNK):
        part = list(seeds[start : start + CHUNK])
        pairs = [pair_of(seed) for seed in part]
        proposers = [make(pair, seed) for pair, seed in zip(pairs, part, strict=True)]
        records.extend(play(open_screen(pairs, part, protocol), proposers))
    return records


def true_counts(
    pair_of: Callable[[int], Pair],
    seeds: Sequence[int],
    records: Sequence[Record],
    certificate: Certificate,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Declared hits and declared nulls of each campaign."""
    true, false = [], []
    for seed, record in zip(seeds, records, strict=True):
        labels = pair_of(seed)[1].labels[certificate.declare(record).indices]
        true.append(int(labels.sum()))
        false.append(int((~labels).sum()))
    return np.array(true), np.array(false)


def nothing(pair: Pair, seed: int) -> None:
    """The proposer-removed loop."""


class Order:
    """Proposes by a fixed order of registry indices, from a given round on."""

    def __init__(self, registry: Registry, order: NDArray[np.int64], first_round: int = 0) -> None:
        self._names = [registry.identifiers[i] for i in order.tolist()]
        self._first_round = first_round

    def propose(self, view: View) -> Sequence[str]:
        if view.round < self._first_round:
            return ()
        tested = set(view.tested)
        names: list[str] = []
        for name in self._names:
            if len(names) == view.slots:
                break
            if name not in tested:
                names.append(name)
        return names

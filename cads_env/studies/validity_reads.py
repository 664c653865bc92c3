"""The reads of registries built against the certificate: every candidate's next read, all at once.

A read is a function of (seed, candidate, visit), so all reads that an adversary could ask for are
laid out before it chooses any. Laws are the channel's own. Never judges or chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cads_env.contamination import RatedLaw, ReadBatch, make_law
from cads_env.tape import (
    candidate_words,
    coin_bits,
    derive_key,
    normals,
    scrambled,
    visit_states,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class ReadTable(NamedTuple):
    """All reads that an adversary could ask for in n campaigns.

    Attributes:
        reads: The reads of each candidate in the order of its visits, shape (n, m, visits).
        largest_rate: The largest probability, given the past, with which a null's read was
            contaminated, shape (n,); NaN where the law does not say.
    """

    reads: Floats
    largest_rate: Floats


def signals(scenario: Mapping[str, Any]) -> Floats:
    """The signal of each candidate: nulls at u = 0, the least favourable, then the hits.

    Args:
        scenario: `candidates`, `hits` and, when there are hits, `hit_signal`.

    Returns:
        Shape (m,).
    """
    u = np.zeros(scenario["candidates"])
    if scenario["hits"]:
        u[-scenario["hits"] :] = scenario["hit_signal"]
    return u


def read_table(scenario: Mapping[str, Any], seeds: Sequence[int]) -> ReadTable:
    """The reads that each candidate gives on its visits.

    Candidates of a cluster share noise, coin and whatever else a law draws, visit by visit: they
    are copies of each other. An adversary reads whole clusters, so that nothing of a read is known
    before it and the declared bound holds given the past.

    Args:
        scenario: `name`, `candidates`, `hits`, `cluster`, `visits`, `s`, `epsilon`, `law` and
            `law_options`.
        seeds: Campaign seeds, n of them.

    Returns:
        The table.

    Raises:
        ProtocolError: The law is unknown, or refuses an option.
    """
    law = make_law(scenario["law"], scenario["epsilon"], scenario["law_options"])
    u = signals(scenario)
    n, m, visits = len(seeds), u.size, scenario["visits"]
    keys = np.array([_key("tape", scenario, seed) for seed in seeds], np.uint64)
    campaign = np.array([_key("campaign", scenario, seed) for seed in seeds], np.uint64)
    table = np.broadcast_to(np.arange(m, dtype=np.int64), (n, m))
    words = candidate_words(keys[:, None], table // scenario["cluster"]).reshape(-1)
    signal = np.broadcast_to(u, (n, m)).reshape(-1)
    positions = np.arange(n * m, dtype=np.int64)
    reads, sums = np.empty((visits, n * m)), np.zeros((n, m))
    largest = np.zeros(n) if isinstance(law, RatedLaw) else np.full(n, np.nan)
    for visit in range(visits):
        seen = np.full(n * m, visit, np.int64)
        states = visit_states(words, seen)
        random_bits = scrambled(states, 0)
        first_bits = coin_bits(random_bits)
        clean = normals(random_bits) * scenario["s"] + signal
        batch = ReadBatch(
            round=visit,
            visits=seen,
            signal=signal,
            clean=clean,
            coin_bits=first_bits,
            states=states,
            campaign_words=campaign,
            past_reads=_past(reads[:visit]),
            past_sums=sums,
            past_counts=seen.reshape(n, m),
            candidate_table=table,
            positions=positions,
        )
        if isinstance(law, RatedLaw):
            rates = np.where(signal <= 0, law.rates(batch), 0.0).reshape(n, m)
            largest = np.maximum(largest, rates.max(axis=1))
        reads[visit] = law.contaminate(batch)
        sums = sums + reads[visit].reshape(n, m)
    return ReadTable(np.ascontiguousarray(reads.T).reshape(n, m, visits), largest)


def _past(reads: Floats) -> Callable[[int], Floats]:
    """Earlier reads of the candidate of read i, from a table of shape (visits, n m)."""
    return partial(_column, reads)


def _column(reads: Floats, i: int) -> Floats:
    return reads[:, i]


def _key(stream: str, scenario: Mapping[str, Any], seed: int) -> int:
    """The key of a stream: of the scenario, not of the rule, which shares its reads."""
    return derive_key(stream, panel=f"validity/{scenario['name']}", seed=seed)

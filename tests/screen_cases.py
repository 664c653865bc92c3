"""Random tiny campaigns, for tests that compare one way of playing them with another."""

from __future__ import annotations

import random
from typing import Any

from cads_env.delivery import Answer, resolve
from cads_env.proposer import Proposal
from cads_env.protocol import Protocol
from cads_env.record import Record
from cads_env.registry import Oracle, Registry
from cads_env.screen import Screen
from cads_env.testing import tiny_protocol, tiny_registry

Pair = tuple[Registry, Oracle]
Names = list[str]

CASES = 64
BATCH = 3


def random_protocol(rng: random.Random) -> Protocol:
    """A tiny protocol with every rule switched at random."""
    by_fraction = rng.random() < 0.3
    fields: dict[str, Any] = {
        "rounds": rng.randint(1, 7),
        "first_fresh": rng.randint(1, 9),
        "fresh": rng.randint(0, 5),
        "reread_candidates": 0 if by_fraction else rng.randint(0, 8),
        "reread_fraction": rng.choice([0.0, 0.3, 0.7, 1.0]) if by_fraction else None,
        "reads_each": rng.choice([1, 1, 2, 4]),
        "on_exhausted": rng.choice(["reread", "stop"]),
        "rank_by": rng.choice(["mean", "log_evidence"]),
        "graduation": rng.random() < 0.5,
        # Half of them graduate after a read or two.
        "rank_q": rng.choice([0.1, 0.9]),
        "feedback_proposer": rng.choice(["full", "none", "permuted"]),
        "feedback_reselection": rng.choice(["full", "none", "permuted"]),
        "quota": rng.choice([None, 0, 1, 3]),
        "first_quota": rng.choice([None, 0, 2]),
        "fallback_priority": rng.choice(["campaign", "campaign", "campaign", "round"]),
        "epsilon": rng.choice([0.0, 0.1, 0.5, 1.0]),
        "noise_sd": rng.choice([0.01, 0.5]),
        "high_above": rng.choice([0.35, -0.2]),
    }
    return tiny_protocol(**fields)


def random_names(rng: random.Random, registry: Registry) -> Names:
    """An answer with duplicates, tested, invalid and surplus entries."""
    pool = [*registry.identifiers, "no such name", "gene001", ""]
    kind = rng.random()
    if kind < 0.15:
        return []
    if kind < 0.5:
        return rng.sample(registry.identifiers, rng.randint(1, registry.m))
    return rng.choices(pool, k=rng.randint(1, 12))


def answer_to(names: Names, registry: Registry) -> Answer:
    return resolve(Proposal(tuple(names)), registry.index)


def random_case(case: int) -> tuple[list[Pair], list[int], Protocol, list[list[Names]]]:
    """Registries, seeds, protocol and one list of answers a round and campaign."""
    rng = random.Random(case)
    protocol = random_protocol(rng)
    m = rng.choice([rng.randint(2, 9), rng.randint(10, 70), rng.randint(30, 70)])
    hits = rng.randint(1, m - 1)
    pairs = [tiny_registry(m, hits, seed=rng.randrange(1000)) for _ in range(BATCH)]
    seeds = [rng.randrange(1000) for _ in range(BATCH)]
    answers = [
        [random_names(rng, registry) for registry, _ in pairs] for _ in range(protocol.rounds)
    ]
    return pairs, seeds, protocol, answers


def step(screen: Screen, names: list[Names]) -> None:
    pairs = zip(names, screen.registries, strict=True)
    screen.step([answer_to(entries, registry) for entries, registry in pairs])


def assert_equal_records(one: Record, other: Record) -> None:
    assert one.sha256 == other.sha256
    assert one.deliveries == other.deliveries

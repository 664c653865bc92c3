"""Scores: identities, a hand-made example, naive BH, the certificate of a run, the twin cache."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cads_env import score as score_module
from cads_env.campaign import open_screen, play
from cads_env.certificate import Certificate
from cads_env.errors import CertificateError, InvariantError
from cads_env.proposer import View
from cads_env.record import FALLBACK, PROPOSER, Delivery, Record
from cads_env.registry import Oracle
from cads_env.score import (
    TwinCache,
    play_reference,
    play_twin,
    resolve_certificate,
    score,
)
from cads_env.testing import tiny_protocol, tiny_registry

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parent / "vectors" / "statistics.json").read_text(encoding="utf-8")
)
# Declares after a read or two, so that tiny campaigns have something to score.
EASY = Certificate(epsilon_bar=0.0, q=0.5)
M = 12


class Guess:
    """Proposes random names, some of them no candidates."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def propose(self, view: View) -> Sequence[str]:
        return self._random.choices([*view.identifiers, "nobody"], k=6)


def handmade(declared: Sequence[int], named: Sequence[int], other: Sequence[int] = ()) -> Record:
    """A record whose `declared` candidates read far above any bar and whose `other` read 0."""
    candidates = [*declared, *other]
    origins = [PROPOSER if c in named else FALLBACK for c in candidates]
    values = [50.0] * len(declared) + [0.0] * len(other)
    return Record(
        m=M,
        candidates=np.array(candidates, np.int64),
        origins=np.array(origins, np.int8),
        slots=np.arange(len(candidates), dtype=np.int32),
        values=np.array(values),
        round_starts=np.array([0, len(candidates)]),
    )


def oracle_of(hits: Sequence[int]) -> Oracle:
    signal = np.full(M, -1.0)
    signal[list(hits)] = 1.0
    return Oracle(signal, signal > 0)


def test_a_hand_made_campaign_is_scored_by_hand() -> None:
    # Hits 0-5. The arm declares 0 1 2 and the null 9, the proposer named 0 and 9 first; its twin
    # declares 1 2 3 4 and the nulls 10 and 11.
    oracle = oracle_of(range(6))
    arm = handmade([0, 1, 2, 9], named=[0, 9, 5], other=[5, 8])
    twin = handmade([1, 2, 3, 4, 10, 11], named=[])
    outcome, declaration, is_hit, in_twin = score(arm, twin, oracle, EASY)
    assert declaration.indices.tolist() == [0, 1, 2, 9]
    assert is_hit.tolist() == [True, True, True, False]
    assert in_twin.tolist() == [False, True, True, False]
    expected = {
        "tested_hits": 4,
        "proposed_hits": 2,
        "declared": 4,
        "true": 3,
        "false": 1,
        "twin_true": 4,
        "twin_false": 2,
        "net": -1,
        "gained": 1,
        "lost": 2,
        "shared": 2,
        "originated": 1,
        "by_fallback": 2,
        "displaced": 2,
        "naive_true": 3,
        "naive_false": 1,
    }
    assert {name: getattr(outcome, name) for name in expected} == expected


def test_displacement_may_be_negative() -> None:
    arm, twin = handmade([0, 1], named=[]), handmade([0], named=[])
    outcome = score(arm, twin, oracle_of([0, 1]), EASY).outcome
    assert (outcome.net, outcome.originated, outcome.displaced) == (1, 0, -1)


@pytest.mark.parametrize("vector", VECTORS["displacement"])
def test_the_published_means_satisfy_the_identity_of_displacement(
    vector: dict[str, float],
) -> None:
    # Means over campaigns: the same counts, a hundred campaigns in one.
    originated, by_fallback, twin = (
        round(20 * vector[k]) for k in ("llm_originated", "fallback_in_full", "no_llm_total")
    )
    m = 400
    signal = np.where(np.arange(m) < 300, 1.0, -1.0)
    oracle = Oracle(signal, signal > 0)

    def record(count: int, named: int) -> Record:
        origins = np.where(np.arange(count) < named, PROPOSER, FALLBACK).astype(np.int8)
        return Record(
            m=m,
            candidates=np.arange(count),
            origins=origins,
            slots=np.arange(count, dtype=np.int32),
            values=np.full(count, 50.0),
            round_starts=np.array([0, count]),
        )

    arm = record(originated + by_fallback, originated)
    outcome = score(arm, record(twin, 0), oracle, EASY).outcome
    assert outcome.displaced / 20 == pytest.approx(vector["displaced"])
    assert outcome.net / 20 == pytest.approx(vector["net"])


@pytest.mark.parametrize("seed", range(12))
def test_the_identities_hold_on_random_campaigns(seed: int) -> None:
    pair = tiny_registry(40, 15, seed=seed)
    protocol = tiny_protocol(
        feedback_reselection=("full", "none", "permuted")[seed % 3], quota=(None, 2)[seed % 2]
    )
    arm = play(open_screen([pair], [seed], protocol), [Guess(seed)])[0]
    twin = play_twin(*pair, protocol, seed)
    o, declaration, is_hit, in_twin = score(arm, twin, pair[1], EASY)
    labels = pair[1].labels
    declared = set(declaration.indices.tolist())
    of_twin = set(EASY.declare(twin).indices.tolist())
    hits, twin_hits = ({i for i in s if labels[i]} for s in (declared, of_twin))
    named = set(arm.candidates[arm.origins == PROPOSER].tolist())
    assert (o.gained, o.lost, o.shared) == (
        len(hits - twin_hits), len(twin_hits - hits), len(hits & twin_hits),
    )  # fmt: skip
    assert set(declaration.indices[is_hit].tolist()) == hits
    assert set(declaration.indices[in_twin].tolist()) == declared & of_twin
    assert o.net == o.gained - o.lost == o.originated - o.displaced == o.true - o.twin_true
    assert (o.true, o.false, o.declared) == (len(hits), len(declared - hits), len(declared))
    assert (o.originated, o.by_fallback) == (len(hits & named), len(hits - named))
    assert o.tested_hits == sum(bool(labels[i]) for i in arm.candidates)
    assert o.proposed_hits == sum(bool(labels[i]) for i in named)
    assert o.declared > 0


def test_a_twin_scored_against_itself_nets_nothing() -> None:
    pair, protocol = tiny_registry(), tiny_protocol()
    twin = play_twin(*pair, protocol, 0)
    outcome = score(twin, twin, pair[1], EASY).outcome
    assert (outcome.net, outcome.gained, outcome.lost, outcome.originated) == (0, 0, 0, 0)
    assert outcome.true == outcome.by_fallback == outcome.twin_true > 0
    assert outcome.displaced == 0


def test_naive_bh_counts_on_the_same_reads_over_the_whole_registry() -> None:
    # One read of 1.4 of sd .5 has p = .0026: below q / m = .0083 alone, and of four below 4 q / m.
    oracle = oracle_of([0, 1, 2])
    record = handmade([], named=[], other=[0, 1, 9, 5])
    reads = Record(
        m=M,
        candidates=record.candidates,
        origins=record.origins,
        slots=record.slots,
        values=np.array([1.4, 1.4, 1.4, -3.0]),
        round_starts=record.round_starts,
    )
    outcome = score(reads, reads, oracle, Certificate()).outcome
    assert (outcome.naive_true, outcome.naive_false) == (2, 1)
    assert outcome.declared == 0


def test_a_broken_identity_is_reported_as_a_bug() -> None:
    bad = Delivery(fresh_slots=4, proposal_slots=4, raw=3, accepted=1, valid=2, fallback=4)
    record = handmade([0], named=[])
    broken = Record(**{n: getattr(record, n) for n in Record.__slots__} | {"deliveries": (bad,)})
    with pytest.raises(InvariantError, match=r"raw = valid .*valid = accepted.*fresh_slots = acc"):
        score(broken, record, oracle_of([0]), EASY)


def test_the_reference_reads_the_hits_first_whatever_binds_the_proposer() -> None:
    registry, oracle = tiny_registry(40, 6)
    protocol = tiny_protocol(quota=1, first_quota=0, feedback_proposer="none")
    record = play_reference(registry, oracle, protocol, 0)
    best = np.argsort(-oracle.signal, kind="stable")
    assert record.candidates.tolist() == best[: record.candidates.size].tolist()
    assert record.origins.all()


def test_a_certificate_is_the_protocols_own_unless_it_is_told() -> None:
    protocol = tiny_protocol(certificate={"q": 0.2, "theta": 0.6})
    assert resolve_certificate(None, protocol) == Certificate(q=0.2, theta=0.6)
    assert resolve_certificate({}, protocol) == Certificate(q=0.2, theta=0.6)
    assert resolve_certificate({"q": 0.3}, protocol) == Certificate(q=0.3, theta=0.6)
    assert resolve_certificate(EASY, protocol) is EASY


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"eps": 0.1}, "Unknown certificate field 'eps'"),
        ({"epsilonbar": 0.1}, "Did you mean 'epsilon_bar'"),
        ({"q": 1.5}, "q is outside its range"),
        ({"q": "x"}, "q"),
        (0.1, "certificate is 0.1; expected a Certificate or a mapping"),
        ("q", "certificate is 'q'; expected a Certificate or a mapping"),
        ([("q", 0.1)], "expected a Certificate or a mapping"),
    ],
)
def test_an_unusable_certificate_is_refused(given: Any, message: str) -> None:
    with pytest.raises(CertificateError, match=message):
        resolve_certificate(given, tiny_protocol())


class Counter:
    """Counts the twins that are really played."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.played = 0
        monkeypatch.setattr(score_module, "play_twin", self)

    def __call__(self, *args: Any) -> Record:
        self.played += 1
        return play_twin(*args)


def test_a_twin_is_played_once_for_all_arms_that_share_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counter, cache = Counter(monkeypatch), TwinCache()
    pair, protocol = tiny_registry(), tiny_protocol()
    first = cache.get(*pair, protocol, 0)
    for same in (
        protocol,
        protocol.override(quota=1, first_quota=0, attempts=9, feedback_proposer="none"),
        protocol.override(certificate={"q": 0.4}),
    ):
        assert cache.get(*tiny_registry(), same, 0) is first
    assert counter.played == 1


def test_a_twin_is_played_anew_for_all_that_can_change_it(monkeypatch: pytest.MonkeyPatch) -> None:
    counter, cache = Counter(monkeypatch), TwinCache()
    (registry, oracle), protocol = tiny_registry(), tiny_protocol()
    other_registry, other_oracle = tiny_registry(seed=1)
    cases = [
        (registry, oracle, protocol, 0),
        (registry, oracle, protocol, 1),
        (registry, other_oracle, protocol, 0),
        (other_registry, oracle, protocol, 0),
        (registry, oracle, protocol.override(rounds=4), 0),
        (registry, oracle, protocol.override(feedback_reselection="none"), 0),
        (registry, Oracle(oracle.signal, oracle.labels, oracle.panel, 0, b"salt"), protocol, 0),
    ]
    records = [cache.get(*case) for case in cases]
    assert counter.played == len(cases)
    assert [cache.get(*case) for case in cases] == records
    assert counter.played == len(cases)


def test_the_least_recently_used_twin_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    pair, protocol = tiny_registry(), tiny_protocol()
    record = play_twin(*pair, protocol, 0)
    arrays = (record.candidates, record.origins, record.slots, record.values)
    size = sum(array.nbytes for array in arrays)
    counter, cache = Counter(monkeypatch), TwinCache(limit_bytes=2 * size + 1)
    for seed in (0, 1, 0, 2):
        cache.get(*pair, protocol, seed)
    assert counter.played == 3
    for seed, played in ((0, 3), (2, 3), (1, 4), (0, 5)):
        cache.get(*pair, protocol, seed)
        assert counter.played == played, seed


def test_a_twin_larger_than_the_cache_is_still_returned() -> None:
    pair, protocol = tiny_registry(), tiny_protocol()
    cache = TwinCache(limit_bytes=1)
    assert cache.get(*pair, protocol, 0) is cache.get(*pair, protocol, 0)

"""The schedule: published counts, exhausted registries, and what a candidate can get at most."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cads_env.errors import ProtocolError
from cads_env.protocol import Protocol, load_protocol
from cads_env.reselection import reread_positions
from cads_env.schedule import RoundPlan, plan_round
from cads_env.testing import tiny_protocol

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parent / "vectors" / "statistics.json").read_text(encoding="utf-8")
)


def totals(protocol: Protocol, m: int) -> tuple[int, int]:
    """Reads and observed candidates of a whole campaign."""
    plans = protocol.plan(m)
    return sum(p.reads for p in plans), sum(p.fresh for p in plans)


def test_the_sweep_spends_what_was_published_in_every_round() -> None:
    vector = VECTORS["schedule_validity"]
    plans = load_protocol("sweep").plan(vector["m"])
    assert [[p.reads, p.rereads, p.fresh] for p in plans] == vector[
        "per_round_total_reobserve_fresh"
    ]
    assert totals(load_protocol("sweep"), vector["m"]) == (45_899, 6_000)
    assert vector["total_reads"] == 45_899


def test_the_published_proposer_protocol_spends_480_reads_over_260_candidates() -> None:
    vector = VECTORS["schedule_llm"]
    protocol = load_protocol("proposer")
    assert totals(protocol, 18_159) == (vector["total_reads"], vector["observed"]) == (480, 260)
    assert protocol.rounds == vector["rounds"]
    assert {p.reads for p in protocol.plan(18_159)} == {vector["batch"]}


def test_a_matched_quota_opens_the_published_number_of_slots() -> None:
    vector = VECTORS["schedule_llm"]
    protocol = load_protocol("proposer", quota=vector["late_quota_K"])
    slots = [protocol.slots_for(t, p.fresh) for t, p in enumerate(protocol.plan(18_159))]
    assert (sum(slots[1:]), sum(slots)) == (vector["late_slots"], vector["slots_with_round0"])


@pytest.mark.parametrize("m", [260, 261, 18_159, 1_000_000])
def test_standard_spends_1140_reads_over_260_candidates(m: int) -> None:
    assert totals(load_protocol("standard"), m) == (1_140, 260)


@pytest.mark.parametrize("m", [60, 61, 100, 149, 259])
def test_standard_spends_all_its_reads_on_an_exhausted_registry_too(m: int) -> None:
    assert totals(load_protocol("standard"), m) == (1_140, m)
    assert all(p.unspent == 0 for p in load_protocol("standard").plan(m))


def test_fewer_observed_than_due_become_fresh_slots() -> None:
    protocol = tiny_protocol(first_fresh=2, fresh=1, reread_candidates=5, reads_each=3)
    # Three re-reads of three reads each have no candidate: nine more fresh slots.
    assert plan_round(protocol, 1, 2, 100) == RoundPlan(2, 10, 2, 3, 0, 0)
    assert plan_round(protocol, 1, 5, 100) == RoundPlan(5, 1, 5, 3, 0, 0)
    assert plan_round(protocol, 1, 2, 6) == RoundPlan(2, 4, 2, 3, 6, 0)


def test_missing_fresh_slots_are_read_again_or_not_at_all() -> None:
    reread = tiny_protocol(reread_candidates=1, reads_each=1)
    stop = reread.override(on_exhausted="stop")
    assert plan_round(reread, 3, 9, 10) == RoundPlan(9, 1, 1, 1, 3, 0)
    assert plan_round(stop, 3, 9, 10) == RoundPlan(9, 1, 1, 1, 0, 0)
    assert plan_round(reread, 3, 10, 10) == RoundPlan(10, 0, 1, 1, 4, 0)


def test_reads_that_no_rule_can_place_are_unspent() -> None:
    # Nothing was read before round 0, so nothing can be read again there.
    assert plan_round(tiny_protocol(first_fresh=30), 0, 0, 12) == RoundPlan(0, 12, 0, 2, 0, 18)
    stop = tiny_protocol(first_fresh=30, on_exhausted="stop")
    assert plan_round(stop, 0, 0, 12).unspent == 0


def test_the_first_round_reads_nothing_again() -> None:
    assert plan_round(tiny_protocol(), 0, 0, 100) == RoundPlan(0, 6, 0, 2, 0, 0)


def test_a_fraction_of_the_observed_is_cut_not_rounded() -> None:
    sweep = load_protocol("sweep")
    assert plan_round(sweep, 5, 5_500, 6_000).rereads == 3_849
    assert [int(0.7 * k) for k in (1, 2, 3)] == [
        plan_round(sweep, 5, k, 6_000).rereads for k in (1, 2, 3)
    ]


def test_the_reads_of_a_round_are_its_parts() -> None:
    assert RoundPlan(9, 4, 3, 2, 5, 1).reads == 4 + 3 * 2 + 5


@pytest.mark.parametrize("m", [2, 5, 12, 13, 40, 1000])
def test_no_round_reads_more_candidates_than_there_are(m: int) -> None:
    rng = random.Random(m)
    for _ in range(50):
        protocol = tiny_protocol(
            rounds=rng.randint(1, 9),
            first_fresh=rng.randint(1, 20),
            fresh=rng.randint(0, 20),
            reread_candidates=rng.randint(0, 20),
            reads_each=rng.randint(1, 3),
            on_exhausted=rng.choice(["reread", "stop"]),
        )
        observed = 0
        for t, spent in enumerate(protocol.plan(m)):
            assert spent.observed == observed
            assert 0 <= spent.rereads <= observed
            assert 0 <= spent.fresh <= m - observed
            if protocol.on_exhausted == "reread":
                due = protocol.first_fresh if t == 0 else protocol.fresh + (
                    protocol.reread_candidates * protocol.reads_each
                )  # fmt: skip
                assert spent.reads + spent.unspent == due
            observed += spent.fresh


@pytest.mark.parametrize("observed", [1, 2, 3, 7])
@pytest.mark.parametrize("reads_each", [1, 3])
def test_the_most_reads_of_one_candidate_in_a_round_are_what_reselection_gives(
    observed: int, reads_each: int
) -> None:
    scores = np.arange(observed, 0, -1, dtype=np.float64)[None]
    for rereads in range(observed + 1):
        for extra in range(3 * observed + 2):
            spent = RoundPlan(observed, 0, rereads, reads_each, extra, 0)
            positions, _ = reread_positions(
                scores, None, rereads=rereads, reads_each=reads_each, extra=extra
            )
            counts = np.bincount(positions[0], minlength=observed)
            assert spent.most_rereads_of_one == counts.max()
            assert spent.reads == counts.sum()


def test_the_most_reads_of_a_candidate_fall_with_the_round_of_its_first_read() -> None:
    standard, proposer = load_protocol("standard"), load_protocol("proposer")
    assert [standard.most_reads(t, 18_159) for t in range(12)] == [
        1 + 4 * (11 - t) for t in range(12)
    ]
    assert [proposer.most_reads(t, 18_159) for t in range(12)] == [12 - t for t in range(12)]


def test_the_batch_is_the_largest_number_of_fresh_slots() -> None:
    assert load_protocol("standard").batch(18_159) == 40
    assert load_protocol("standard").batch(12) == 12
    assert tiny_protocol(first_fresh=2, fresh=1, reread_candidates=5).batch(100) == 7
    assert tiny_protocol(first_fresh=9, fresh=0, rounds=1).batch(4) == 4


@pytest.mark.parametrize(
    ("quota", "first_quota", "expected"),
    [(None, None, [6, 4]), (3, None, [6, 3]), (3, 1, [1, 3]), (0, 0, [0, 0]), (9, 9, [6, 4])],
)
def test_a_quota_caps_the_fresh_slots(
    quota: int | None, first_quota: int | None, expected: list[int]
) -> None:
    protocol = tiny_protocol(quota=quota, first_quota=first_quota)
    assert [protocol.slots_for(0, 6), protocol.slots_for(1, 4)] == expected


def test_a_plan_beyond_two_thousand_million_reads_is_refused_as_a_mistake() -> None:
    protocol = tiny_protocol(rounds=100_000, reread_candidates=10_000, reads_each=10_000)
    with pytest.raises(ProtocolError, match="more than 2,000,000,000 reads"):
        protocol.plan(100_000)

"""The screen beside a slow reference, in batches, in parts, and across an arm and its twin."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from cads_env.campaign import open_screen, play
from cads_env.certificate import Certificate
from cads_env.proposer import Nothing, View
from cads_env.record import ORIGINS, Record
from cads_env.registry import Oracle
from cads_env.score import play_twin
from cads_env.screen import Screen
from cads_env.testing import tiny_protocol, tiny_registry
from tests.reference_screen import Played, ReferenceScreen
from tests.screen_cases import CASES, assert_equal_records, random_case, step

TINY_CAP = Certificate().log_cap


def assert_same_record(record: Record, played: Played) -> None:
    assert record.candidates.tolist() == played.candidates
    assert [ORIGINS[code] for code in record.origins] == played.origins
    assert record.slots.tolist() == played.slots
    assert record.values.tobytes() == np.array(played.values, np.float64).tobytes()
    assert record.round_starts.tolist() == played.round_starts
    counts = [{k: v for k, v in d.counts().items() if k != "attempts"} for d in record.deliveries]
    assert counts == played.deliveries


@pytest.mark.parametrize("case", range(CASES))
def test_the_screen_reads_what_the_slow_reference_reads(case: int) -> None:
    pairs, seeds, protocol, answers = random_case(case)
    screen = open_screen(pairs, seeds, protocol)
    views: list[list[View]] = []
    for names in answers:
        views.append(screen.views())
        step(screen, names)
    views.append(screen.views())
    for row, record in enumerate(screen.records()):
        registry, oracle = pairs[row]
        reference = ReferenceScreen(registry.identifiers, oracle, seeds[row], protocol, TINY_CAP)
        played = reference.play([names[row] for names in answers])
        assert_same_record(record, played)
        for view, shown in zip((v[row] for v in views), played.views, strict=True):
            assert {k: list(getattr(view, k)) for k in shown} == shown


def test_the_random_cases_reach_every_rule() -> None:
    # The comparison above says nothing of a rule that no case exercises.
    reached: set[str] = set()
    for case in range(CASES):
        pairs, seeds, protocol, answers = random_case(case)
        screen = open_screen(pairs, seeds, protocol)
        reached |= {f"{plan.extra > plan.observed=}" for plan in screen.plans if plan.extra}
        reached |= {"unspent" for plan in screen.plans if plan.unspent}
        reached |= {"stop" for plan in screen.plans if protocol.on_exhausted == "stop"}
        for names in answers:
            graduated = screen._scores()[1] if screen.round else None
            if graduated is not None and graduated.any() and not graduated.all():
                reached.add("graduated")
            step(screen, names)
        for record in screen.records():
            for delivery in record.deliveries:
                reached |= {name for name, count in delivery.counts().items() if count}
    assert {
        "plan.extra > plan.observed=True",
        "plan.extra > plan.observed=False",
        "unspent",
        "stop",
        "graduated",
        "invalid",
        "duplicate",
        "already_tested",
        "over_delivered",
        "accepted",
        "fallback",
    } <= reached


@pytest.mark.parametrize("case", range(0, CASES, 4))
def test_a_batch_equals_its_single_campaigns_byte_for_byte(case: int) -> None:
    pairs, seeds, protocol, answers = random_case(case)
    batch = open_screen(pairs, seeds, protocol)
    for names in answers:
        step(batch, names)
    for row, record in enumerate(batch.records()):
        single = open_screen([pairs[row]], [seeds[row]], protocol)
        for names in answers:
            step(single, [names[row]])
        assert_equal_records(single.records()[0], record)


@pytest.mark.parametrize("case", range(1, CASES, 8))
@pytest.mark.parametrize(
    "cut",
    [
        lambda screen: screen.take(np.array([2, 0])),
        lambda screen: pickle.loads(pickle.dumps(screen)).take(np.array([2, 0])),
        lambda screen: pickle.loads(pickle.dumps(screen.take(np.array([2, 0])))),
    ],
    ids=["take", "pickle, take", "take, pickle"],
)
def test_campaigns_taken_out_midway_play_on_as_if_nothing_happened(
    case: int, cut: Callable[[Screen], Screen]
) -> None:
    pairs, seeds, protocol, answers = random_case(case)
    whole = open_screen(pairs, seeds, protocol)
    middle = protocol.rounds // 2
    for names in answers[:middle]:
        step(whole, names)
    part = cut(whole)
    assert [view.tested for view in part.views()] == [whole.views()[row].tested for row in (2, 0)]
    # The whole screen moves on first, so that shared state would show in the part.
    for names in answers[middle:]:
        step(whole, names)
    records = whole.records()
    for names in answers[middle:]:
        step(part, [names[2], names[0]])
    for taken, row in zip(part.records(), (2, 0), strict=True):
        assert_equal_records(taken, records[row])


def reads_by_visit(record: Record) -> dict[tuple[int, int], float]:
    """Each read by (candidate, earlier reads of it)."""
    seen: dict[int, int] = {}
    reads: dict[tuple[int, int], float] = {}
    for slot, value in zip(record.slots.tolist(), record.values.tolist(), strict=True):
        candidate = int(record.candidates[slot])
        reads[candidate, seen.get(candidate, 0)] = value
        seen[candidate] = seen.get(candidate, 0) + 1
    return reads


@pytest.mark.parametrize("case", range(0, CASES, 5))
def test_an_arm_and_its_twin_share_every_read_of_equal_candidate_and_visit(case: int) -> None:
    pairs, seeds, protocol, answers = random_case(case)
    screen = open_screen(pairs, seeds, protocol)
    for names in answers:
        step(screen, names)
    shared = 0
    for row, record in enumerate(screen.records()):
        twin = reads_by_visit(play_twin(*pairs[row], protocol, seeds[row]))
        arm = reads_by_visit(record)
        assert {key: arm[key] for key in arm.keys() & twin.keys()} == {
            key: twin[key] for key in arm.keys() & twin.keys()
        }
        shared += len(arm.keys() & twin.keys())
    assert shared > 0


@pytest.mark.parametrize(
    "changes",
    [
        {"quota": 0},
        {"quota": 2, "first_quota": 1},
        {"attempts": 8},
        {"feedback_proposer": "permuted"},
        {"feedback_proposer": "none"},
        {"certificate": {"q": 0.3}},
    ],
)
def test_the_twin_does_not_depend_on_what_binds_only_the_proposer(
    changes: Mapping[str, Any],
) -> None:
    pair, protocol = tiny_registry(), tiny_protocol(fallback_priority="round")
    twin = play_twin(*pair, protocol, 3)
    assert play_twin(*pair, protocol.override(**changes), 3).sha256 == twin.sha256


def test_a_proposer_that_proposes_nothing_is_its_own_twin() -> None:
    pair, protocol = tiny_registry(), tiny_protocol()
    record = play(open_screen([pair], [5], protocol), [Nothing()])[0]
    assert record.sha256 == play_twin(*pair, protocol, 5).sha256


def test_another_seed_or_instance_or_salt_reads_other_numbers() -> None:
    (registry, oracle), protocol = tiny_registry(), tiny_protocol()
    hashes = {
        play_twin(registry, other, protocol, seed).sha256
        for other, seed in (
            (oracle, 0),
            (oracle, 1),
            (Oracle(oracle.signal, oracle.labels, oracle.panel, 1), 0),
            (Oracle(oracle.signal, oracle.labels, "other", 0), 0),
            (Oracle(oracle.signal, oracle.labels, oracle.panel, 0, b"salt"), 0),
        )
    }
    assert len(hashes) == 5


def test_a_seed_of_numpy_plays_the_campaign_of_the_same_number() -> None:
    pair, protocol = tiny_registry(), tiny_protocol()
    by_numpy = play(open_screen([pair], [np.int64(4)], protocol), [None])[0]  # type: ignore[list-item]
    assert by_numpy.sha256 == play_twin(*pair, protocol, 4).sha256


def test_fallback_alone_reads_the_whole_registry_once_before_it_is_exhausted() -> None:
    for m in (2, 3, 17, 64, 65):
        protocol = tiny_protocol(rounds=m, first_fresh=1, fresh=1, reread_candidates=0)
        record = play_twin(*tiny_registry(m, 1), protocol, 0)
        assert sorted(record.candidates.tolist()) == list(range(m))

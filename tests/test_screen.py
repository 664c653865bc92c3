"""The screen beside a slow reference, in batches, in parts, across arms, and behind its barrier."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from cads_env import channel as channel_module
from cads_env.campaign import open_screen, play
from cads_env.certificate import Certificate
from cads_env.channel import LAWS, ReadBatch
from cads_env.delivery import Answer, resolve
from cads_env.errors import ActionError, RegistryError
from cads_env.proposer import Nothing, Proposal, View
from cads_env.protocol import Protocol
from cads_env.record import ORIGINS, Record
from cads_env.registry import Oracle, Registry
from cads_env.score import play_twin
from cads_env.screen import HIGH, LOW, TESTED, UNSEEN, Screen
from cads_env.testing import tiny_protocol, tiny_registry
from tests.reference_screen import Played, ReferenceScreen

Pair = tuple[Registry, Oracle]
Names = list[str]

CASES = 64
BATCH = 3
TINY_CAP = Certificate().log_cap


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


def assert_same_record(record: Record, played: Played) -> None:
    assert record.candidates.tolist() == played.candidates
    assert [ORIGINS[code] for code in record.origins] == played.origins
    assert record.slots.tolist() == played.slots
    assert record.values.tobytes() == np.array(played.values, np.float64).tobytes()
    assert record.round_starts.tolist() == played.round_starts
    counts = [{k: v for k, v in d.counts().items() if k != "attempts"} for d in record.deliveries]
    assert counts == played.deliveries


def assert_equal_records(one: Record, other: Record) -> None:
    assert one.sha256 == other.sha256
    assert one.deliveries == other.deliveries


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


# -- what a law may know ---------------------------------------------------------------------------


class Told(NamedTuple):
    """What a law was told of one read."""

    round: int
    row: int
    candidate: int
    visit: int
    signal: float
    clean: float
    past: list[float]
    campaign_words: tuple[int, ...]


class Probe:
    """A law that changes nothing and writes down what it was told."""

    seen: ClassVar[list[Told]] = []

    def __init__(self, epsilon: float) -> None:
        Probe.seen = []

    def contaminate(self, batch: ReadBatch) -> NDArray[np.float64]:
        words = tuple(batch.campaign_words.tolist())
        Probe.seen += [
            Told(
                batch.round,
                int(batch.rows[i]),
                int(batch.candidates[i]),
                int(batch.visits[i]),
                float(batch.signal[i]),
                float(batch.clean[i]),
                batch.past_reads(i).tolist(),
                words,
            )
            for i in range(batch.clean.size)
        ]
        return batch.clean


@pytest.mark.parametrize("case", [2, 7, 11, 16])
@pytest.mark.parametrize("block", [5, 10_000])
def test_a_law_is_told_its_own_candidate_visit_and_past_reads(
    case: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_module, "LAWS", {**LAWS, "probe": Probe})
    monkeypatch.setattr(channel_module, "_BLOCK", block)
    pairs, seeds, protocol, answers = random_case(case)
    protocol = protocol.override(law="probe", law_options={}, reads_each=2, rounds=4)
    screen = open_screen(pairs, seeds, protocol)
    for names in (answers * 4)[:4]:
        step(screen, names)
    told = Probe.seen
    assert len(set(told[0].campaign_words)) == BATCH
    for row, record in enumerate(screen.records()):
        before: dict[int, list[float]] = {}
        for round in range(4):
            mine = [read for read in told if (read.row, read.round) == (row, round)]
            start, stop = record.round_starts[round : round + 2].tolist()
            this_round: dict[int, list[float]] = {}
            for read, at in zip(mine, range(start, stop), strict=True):
                candidate = int(record.candidates[record.slots[at]])
                past, new = before.get(candidate, []), this_round.setdefault(candidate, [])
                assert read.candidate == candidate
                assert read.signal == pairs[row][1].signal[candidate]
                assert read.past == past
                assert read.visit == len(past) + len(new)
                assert read.clean == record.values[at]
                new.append(read.clean)
            for candidate, new in this_round.items():
                before[candidate] = before.get(candidate, []) + new


def test_reads_do_not_depend_on_how_many_pass_the_channel_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pairs, protocol = [tiny_registry(seed=i) for i in range(3)], tiny_protocol(epsilon=0.5)
    whole = play(open_screen(pairs, [0, 1, 2], protocol), [None] * 3)
    monkeypatch.setattr(channel_module, "_BLOCK", 7)
    parts = play(open_screen(pairs, [0, 1, 2], protocol), [None] * 3)
    assert whole.values.tobytes() == parts.values.tobytes()


# -- the barrier -----------------------------------------------------------------------------------


def test_the_signal_of_unread_candidates_changes_nothing_that_a_proposer_sees() -> None:
    (registry, oracle), protocol = tiny_registry(), tiny_protocol()
    names = [list(registry.identifiers[6 * t : 6 * t + 3]) for t in range(protocol.rounds)]
    first = open_screen([(registry, oracle)], [1], protocol)
    for entries in names:
        step(first, [entries])
    read = first.records()[0].candidates
    moved = np.where(oracle.labels, 7.0, -3.0)
    moved[read] = oracle.signal[read]
    changed = Oracle(moved, oracle.labels, oracle.panel, oracle.instance)
    assert not np.array_equal(changed.signal, oracle.signal)
    one, other = (open_screen([(registry, o)], [1], protocol) for o in (oracle, changed))
    for entries in names:
        assert pickle.dumps(one.views()) == pickle.dumps(other.views())
        step(one, [entries])
        step(other, [entries])
    assert pickle.dumps(one.views()) == pickle.dumps(other.views())


def test_a_view_holds_no_number_but_round_rounds_and_slots() -> None:
    screen = open_screen([tiny_registry()], [0], tiny_protocol())
    step(screen, [["GENE001"]])
    view = screen.views()[0]
    numbers = {name: v for name in View.__slots__ if isinstance(v := getattr(view, name), int)}
    assert numbers == {"round": 1, "rounds": 5, "slots": 4}
    others = {name for name in View.__slots__ if name not in numbers}
    assert others - {"side_tables", "description"} == {
        "identifiers", "high", "low", "tested", "accepted", "refused",
    }  # fmt: skip


def test_statuses_are_the_lists_of_the_view_in_another_form() -> None:
    for mode in ("full", "none", "permuted"):
        screen = open_screen([tiny_registry()], [2], tiny_protocol(feedback_proposer=mode))
        step(screen, [["GENE001", "GENE002"]])
        view, status = screen.views()[0], screen.statuses()[0]
        by_code = {
            code: {view.identifiers[i] for i in np.flatnonzero(status == code)}
            for code in (UNSEEN, TESTED, LOW, HIGH)
        }
        assert by_code[HIGH] == set(view.high)
        assert by_code[LOW] == set(view.low)
        assert by_code[UNSEEN] == set(view.identifiers) - set(view.tested)
        assert by_code[TESTED] == (set(view.tested) if mode == "none" else set())


def test_what_a_screen_hands_out_is_never_its_own_state() -> None:
    pair = tiny_registry()
    screen, untouched = (open_screen([pair], [0], tiny_protocol()) for _ in range(2))
    for round in range(5):
        status, batch = screen.statuses(), screen.records()
        status[:] = 3
        for array in (batch.candidates, batch.values, batch.slots, batch.round_starts):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
        view = screen.views()[0]
        assert view == untouched.views()[0]
        assert view.side_tables is not screen.registries[0].side_tables
        with pytest.raises(TypeError):
            view.side_tables["prior"] = 1  # type: ignore[index]
        with pytest.raises(ValueError, match="read-only"):
            view.side_tables["prior"].values[0] = 9.0
        with pytest.raises(ValueError, match="cannot set WRITEABLE"):
            view.side_tables["prior"].values.setflags(write=True)
        step(screen, [[f"GENE{round + 1:03d}"]])
        step(untouched, [[f"GENE{round + 1:03d}"]])
    assert_equal_records(screen.records()[0], untouched.records()[0])


def test_a_record_taken_midway_does_not_grow() -> None:
    screen = open_screen([tiny_registry()], [0], tiny_protocol())
    step(screen, [[]])
    record = screen.records()[0]
    before = record.sha256, record.deliveries
    step(screen, [["GENE001"]])
    assert (record.sha256, record.deliveries) == before
    assert record.read_count == screen.plans[0].reads


# -- the last round's answer -----------------------------------------------------------------------


def test_the_view_tells_what_became_of_the_last_answer() -> None:
    screen = open_screen([tiny_registry()], [0], tiny_protocol(first_quota=2))
    step(screen, [["GENE005", "nobody", "GENE005", "GENE009", "GENE010"]])
    view = screen.views()[0]
    assert view.accepted == ("GENE005", "GENE009")
    assert [tuple(r) for r in view.refused] == [
        ("nobody", "invalid"),
        ("GENE005", "duplicate"),
        ("GENE010", "over_delivered"),
    ]
    step(screen, [[]])
    assert screen.views()[0].accepted == ()
    assert screen.views()[0].refused == ()


def test_an_accepted_name_is_whole_and_listed_however_late_it_stands() -> None:
    long_name = "X" * 500
    registry, oracle = tiny_registry()
    renamed = Registry("long", (long_name, *registry.identifiers[1:]))
    screen = open_screen([(renamed, oracle)], [0], tiny_protocol())
    step(screen, [["nobody"] * 20_000 + [long_name, "GENE007"]])
    assert screen.views()[0].accepted == (long_name, "GENE007")


# -- misuse ----------------------------------------------------------------------------------------


def test_a_step_after_the_last_round_is_refused() -> None:
    screen = open_screen([tiny_registry()], [0], tiny_protocol(rounds=1))
    assert not screen.is_done
    screen.step([None])
    assert screen.is_done
    assert (screen.fresh_slots, screen.proposal_slots) == (0, 0)
    with pytest.raises(ActionError, match="All 1 rounds were played"):
        screen.step([None])


def test_the_number_of_answers_must_be_the_number_of_campaigns() -> None:
    screen = open_screen([tiny_registry()], [0], tiny_protocol())
    with pytest.raises(ActionError, match="Received 2 answers for 1 campaigns"):
        screen.step([None, None])
    assert screen.round == 0


def test_registries_of_two_sizes_are_refused() -> None:
    with pytest.raises(RegistryError, match=r"sizes \[20, 30\]"):
        open_screen([tiny_registry(20, 3), tiny_registry(30, 3)], [0, 1], tiny_protocol())
    with pytest.raises(RegistryError, match="1 registries and 2 seeds"):
        open_screen([tiny_registry(20, 3)], [0, 1], tiny_protocol())


def test_fallback_alone_reads_the_whole_registry_once_before_it_is_exhausted() -> None:
    for m in (2, 3, 17, 64, 65):
        protocol = tiny_protocol(rounds=m, first_fresh=1, fresh=1, reread_candidates=0)
        record = play_twin(*tiny_registry(m, 1), protocol, 0)
        assert sorted(record.candidates.tolist()) == list(range(m))

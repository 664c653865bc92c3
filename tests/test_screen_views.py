"""What a screen tells a law and a proposer, what it hands out, and what it refuses."""

from __future__ import annotations

import pickle
from typing import ClassVar, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from cads_env import channel as channel_module
from cads_env.campaign import open_screen, play
from cads_env.contamination import LAWS, ReadBatch, making
from cads_env.errors import ActionError, RegistryError
from cads_env.proposer import View
from cads_env.registry import Oracle, Registry
from cads_env.screen import HIGH, LOW, TESTED, UNSEEN
from cads_env.testing import tiny_protocol, tiny_registry
from tests.screen_cases import BATCH, assert_equal_records, random_case, step


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
    monkeypatch.setattr(making, "LAWS", {**LAWS, "probe": Probe})
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


def test_a_view_holds_no_number_but_round_rounds_slots_and_attempts() -> None:
    screen = open_screen([tiny_registry()], [0], tiny_protocol())
    step(screen, [["GENE001"]])
    view = screen.views()[0]
    numbers = {name: v for name in View.__slots__ if isinstance(v := getattr(view, name), int)}
    assert numbers == {"round": 1, "rounds": 5, "slots": 4, "attempts": screen.protocol.attempts}
    others = {name for name in View.__slots__ if name not in numbers}
    assert others - {"side_tables", "description", "assay", "high_means"} == {
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

"""Accounting for one proposal: precedence, slots, identities, and answers of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cads_env.campaign import open_screen
from cads_env.delivery import LISTED_CHARACTERS, LISTED_ENTRIES, Answer, account, resolve
from cads_env.proposer import Proposal
from cads_env.record import Delivery
from cads_env.testing import tiny_protocol, tiny_registry

INDEX = {name: i for i, name in enumerate("ABCDEFGH")}


def deliver(
    names: str | list[str], *, tested: str = "", fresh: int = 3, slots: int = 3, **extra: Any
) -> tuple[list[int], Delivery]:
    observed = np.zeros(len(INDEX), np.bool_)
    observed[[INDEX[name] for name in tested]] = True
    answer = resolve(Proposal(tuple(names), **extra), INDEX)
    return account(answer, observed, fresh_slots=fresh, proposal_slots=slots, unspent=0)


def test_every_entry_is_told_what_became_of_it() -> None:
    accepted, delivery = deliver("AxABCxCDE", tested="B", fresh=2, slots=2)
    assert accepted == [INDEX["A"], INDEX["C"]]
    assert delivery.entries == (
        ("A", "accepted"),
        ("x", "invalid"),
        ("A", "duplicate"),
        ("B", "already_tested"),
        ("C", "accepted"),
        ("x", "invalid"),
        ("C", "duplicate"),
        ("D", "over_delivered"),
        ("E", "over_delivered"),
    )
    assert delivery.counts() == {
        "fresh_slots": 2,
        "proposal_slots": 2,
        "raw": 9,
        "valid": 4,
        "invalid": 2,
        "duplicate": 2,
        "already_tested": 1,
        "over_delivered": 2,
        "accepted": 2,
        "fallback": 0,
        "unspent": 0,
        "attempts": 1,
    }


def test_an_entry_is_a_duplicate_before_it_is_tested_or_too_many() -> None:
    assert [what for _, what in deliver("BB", tested="B")[1].entries] == [
        "already_tested",
        "duplicate",
    ]
    assert [what for _, what in deliver("ABB", slots=1)[1].entries] == [
        "accepted",
        "over_delivered",
        "duplicate",
    ]


def test_slots_go_to_the_first_valid_entries_in_generation_order() -> None:
    assert deliver("HGFEDCBA")[0] == [7, 6, 5]
    assert deliver("xHBGA", tested="B", slots=2)[0] == [7, 6]


def test_a_quota_leaves_the_other_fresh_slots_to_the_fallback() -> None:
    accepted, delivery = deliver("ABCD", fresh=3, slots=1)
    assert accepted == [0]
    assert (delivery.accepted, delivery.over_delivered, delivery.fallback) == (1, 3, 2)
    assert deliver("ABCD", fresh=3, slots=0)[1].fallback == 3


def test_spelling_must_match_exactly() -> None:
    assert [what for _, what in deliver(["a", " A", "A ", "A"])[1].entries] == [
        "invalid", "invalid", "invalid", "accepted",
    ]  # fmt: skip


@given(
    st.lists(st.sampled_from("ABCDEFGHxyz"), max_size=20),
    st.sets(st.sampled_from("ABCDEFGH")),
    st.integers(0, 8),
    st.data(),
)
def test_the_identities_hold_for_every_answer(
    names: list[str], tested: set[str], fresh: int, data: st.DataObject
) -> None:
    slots = data.draw(st.integers(0, fresh))
    accepted, d = deliver(names, tested="".join(tested), fresh=fresh, slots=slots)
    assert d.raw == d.valid + d.invalid + d.duplicate + d.already_tested == len(names)
    assert d.valid == d.accepted + d.over_delivered
    assert d.fresh_slots == d.accepted + d.fallback
    assert d.accepted == len(accepted) == min(slots, d.valid)
    assert len(set(accepted)) == len(accepted)
    untested = set(names) & set(INDEX) - tested
    assert d.valid == len(untested)
    assert {name for name, what in d.entries if what == "accepted"} <= untested


def test_what_the_proposer_says_of_itself_is_kept_and_never_counted() -> None:
    _, delivery = deliver("A", raw="I suggest A", attempts=3, usage={"tokens": 12, "cost": 0.5})
    assert (delivery.text, delivery.attempts) == ("I suggest A", 3)
    assert delivery.usage == {"tokens": 12, "cost": 0.5}
    assert deliver("A")[1].usage is None


def test_a_hundred_thousand_entries_are_counted_and_the_first_ten_thousand_listed() -> None:
    registry, oracle = tiny_registry()
    screen = open_screen([(registry, oracle)], [0], tiny_protocol())
    names = ["nobody"] * 99_998 + ["GENE007", "GENE007"]
    screen.step([resolve(Proposal(tuple(names)), registry.index)])
    delivery = screen.records()[0].deliveries[0]
    assert (delivery.raw, delivery.invalid) == (100_000, 99_998)
    assert (delivery.accepted, delivery.duplicate) == (1, 1)
    assert len(delivery.entries) == LISTED_ENTRIES == 10_000
    assert int(screen.records()[0].candidates[0]) == registry.index["GENE007"]


def test_an_identifier_of_a_megabyte_is_counted_and_its_start_listed() -> None:
    accepted, delivery = deliver(["x" * 1_000_000, "A", "\ud800" * 300])
    assert accepted == [0]
    assert delivery.invalid == 2
    assert [len(name) for name, _ in delivery.entries] == [
        LISTED_CHARACTERS, 1, LISTED_CHARACTERS,
    ]  # fmt: skip
    assert LISTED_CHARACTERS == 200


def test_indices_without_a_registry_are_accounted_for_alike() -> None:
    # An environment's actions come as indices; -1 names no candidate.
    answer = Answer([3, -1, 3, 0], ["D", "?", "D", "A"])
    observed = np.zeros(8, np.bool_)
    accepted, delivery = account(answer, observed, fresh_slots=4, proposal_slots=4, unspent=2)
    assert accepted == [3, 0]
    assert (delivery.invalid, delivery.duplicate, delivery.unspent) == (1, 1, 2)


@pytest.mark.parametrize("names", [[], ["x"], ["A", "A"]])
def test_the_state_of_the_screen_is_never_changed_by_accounting(names: list[str]) -> None:
    observed = np.zeros(8, np.bool_)
    account(
        resolve(Proposal(tuple(names)), INDEX),
        observed,
        fresh_slots=2,
        proposal_slots=2,
        unspent=0,
    )
    assert not observed.any()

"""Views and proposals: what is accepted as an answer, what is refused, and what can be pickled."""

from __future__ import annotations

import dataclasses
import pickle
from collections import deque
from typing import Any

import numpy as np
import pytest

from cads_env.campaign import open_screen
from cads_env.errors import CadsError, ProposalError
from cads_env.proposer import Nothing, Proposal, Proposer, ProposerFailed, View, as_proposal
from cads_env.testing import tiny_protocol, tiny_registry


class Loud(str):
    """A text with behaviour of its own."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __str__(self) -> str:
        return "shouted"


@pytest.mark.parametrize(
    "answer",
    [
        ["A", "B"],
        ("A", "B"),
        np.array(["A", "B"]),
        np.array(["A", "B"], dtype=object),
        deque(["A", "B"]),
        Proposal(("A", "B")),
        Proposal(["A", "B"]),  # type: ignore[arg-type]
    ],
)
def test_any_sequence_of_names_is_a_proposal(answer: object) -> None:
    proposal = as_proposal(answer)
    assert proposal.identifiers == ("A", "B")
    assert (proposal.raw, proposal.attempts, dict(proposal.usage)) == ("", 1, {})


@pytest.mark.parametrize("answer", [[], (), np.array([])])
def test_an_empty_sequence_proposes_nothing(answer: object) -> None:
    assert as_proposal(answer).identifiers == ()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("GENE1, GENE2", "received the text 'GENE1, GENE2'.*parse_proposal"),
        (b"GENE1", "received the text b'GENE1'"),
        ("x" * 500, "received the text 'x{80}'"),
        (None, "received a NoneType. Return \\[\\] to propose nothing"),
        (3, "received a int"),
        ({"A", "B"}, "received a set"),
        ({"A": 1}, "received a dict"),
        ((name for name in "AB"), "received a generator"),
        ([1, 2], "Entry 0 of the proposal is 1, a int"),
        (["A", None], "Entry 1 of the proposal is None, a NoneType"),
        (["A", b"B"], "Entry 1 of the proposal is b'B', a bytes"),
        ([["A"]], "Entry 0 of the proposal is \\['A'\\], a list"),
        (np.array([0, 1]), "Entry 0 of the proposal is 0, a int"),
    ],
)
def test_what_is_no_list_of_names_is_refused_with_what_it_is(answer: object, message: str) -> None:
    with pytest.raises(ProposalError, match=message):
        as_proposal(answer)
    with pytest.raises(ProposalError, match=message):
        Proposal(answer)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"raw": None}, "raw is a NoneType"),
        ({"raw": b"x"}, "raw is a bytes"),
        ({"attempts": 0}, "attempts is 0; expected a whole number from 1"),
        ({"attempts": 1.0}, "attempts is 1.0"),
        ({"attempts": True}, "attempts is True"),
        ({"usage": [1]}, "usage is a list"),
        ({"usage": {"tokens": "12"}}, "usage has 'tokens': '12'"),
        ({"usage": {"tokens": True}}, "usage has 'tokens': True"),
        ({"usage": {"tokens": float("nan")}}, "usage has 'tokens': nan"),
        ({"usage": {"tokens": float("inf")}}, "usage has 'tokens': inf"),
        ({"usage": {"tokens": 10**400}}, "usage has 'tokens': 1000"),
        ({"usage": {3: 1}}, "usage has 3: 1"),
    ],
)
def test_a_proposal_checks_what_comes_beside_the_names(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(ProposalError, match=message):
        Proposal(("A",), **fields)


def test_a_text_with_behaviour_is_kept_as_plain_text() -> None:
    name = as_proposal([Loud("GENE1")]).identifiers[0]
    assert type(name) is str
    assert name == "GENE1"
    assert name != "GENE2"


def test_a_proposal_does_not_change_with_what_it_was_made_from() -> None:
    names, usage = ["A"], {"tokens": 1.0}
    proposal = Proposal(names, usage=usage)  # type: ignore[arg-type]
    names.append("B")
    usage["tokens"] = 2.0
    assert proposal.identifiers == ("A",)
    assert proposal.usage == {"tokens": 1.0}
    with pytest.raises(dataclasses.FrozenInstanceError):
        proposal.raw = "x"  # type: ignore[misc]


def test_a_view_cannot_be_changed_and_survives_pickling() -> None:
    screen = open_screen([tiny_registry()], [0], tiny_protocol())
    screen.step([None])
    view = screen.views()[0]
    with pytest.raises(dataclasses.FrozenInstanceError):
        view.slots = 100  # type: ignore[misc]
    copy = pickle.loads(pickle.dumps(view))
    for name in set(View.__slots__) - {"side_tables"}:
        assert getattr(copy, name) == getattr(view, name)
    for name, table in view.side_tables.items():
        np.testing.assert_array_equal(copy.side_tables[name].values, table.values)
        with pytest.raises(ValueError, match="read-only"):
            copy.side_tables[name].values[0] = table.values[1]
    with pytest.raises(TypeError):
        copy.side_tables["prior"] = None


def test_a_proposer_is_anything_with_a_propose_method() -> None:
    assert isinstance(Nothing(), Proposer)
    assert not isinstance(object(), Proposer)
    assert Nothing().propose(View(identifiers=("A", "B"), description="", side_tables={})) == ()


def test_a_broken_infrastructure_is_no_mistake_of_this_package() -> None:
    assert not issubclass(ProposerFailed, CadsError)

"""Accounting for one proposal: which entries get a slot, and why the others do not.

Delivery is data, counted here and nowhere else, whatever the proposer says of itself. Works on
registry indices; never sees a read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cads_env.proposer import Proposal
from cads_env.record import Delivery
from cads_env.values import plain_text

ACCEPTED: Final = "accepted"
INVALID: Final = "invalid"
DUPLICATE: Final = "duplicate"
ALREADY_TESTED: Final = "already_tested"
OVER_DELIVERED: Final = "over_delivered"

LISTED_ENTRIES: Final = 10_000
"""Entries of an answer that a record lists; all of them are counted."""
LISTED_TEXT: Final = 200_000
"""Characters of an answer's text that a record keeps."""
LISTED_CHARACTERS: Final = 200
"""Characters of an entry that a record keeps."""


class Answer(NamedTuple):
    """A proposal resolved to registry indices.

    Attributes:
        indices: Registry index of each entry, -1 for an entry that names no candidate.
        names: The entries as proposed.
        attempts: Tries that the answer took.
        usage: Counts that the proposer reported.
        text: Raw text of the answer.
    """

    indices: Sequence[int]
    names: Sequence[str]
    attempts: int = 1
    usage: Mapping[str, float] | None = None
    text: str = ""


def resolve(proposal: Proposal, index: Mapping[str, int]) -> Answer:
    """A proposal's identifiers as registry indices; spelling must match exactly."""
    return Answer(
        [index.get(name, -1) for name in proposal.identifiers],
        proposal.identifiers,
        proposal.attempts,
        dict(proposal.usage) or None,
        # A lone surrogate, as in a cut answer of a server, is nothing that a data frame can hold.
        plain_text(proposal.raw, LISTED_TEXT),
    )


def account(
    answer: Answer,
    observed: NDArray[np.bool_],
    *,
    fresh_slots: int,
    proposal_slots: int,
    unspent: int,
) -> tuple[list[int], Delivery]:
    """Fill slots with the first valid entries, in generation order, and count the rest.

    An entry is, in this order of precedence: invalid, a duplicate of an earlier entry, already
    tested in an earlier round, over-delivered, or accepted.

    Args:
        answer: The resolved proposal.
        observed: Whether each candidate was read before this round, shape (m,).
        fresh_slots: Fresh slots of the round.
        proposal_slots: How many of them the proposer may fill.
        unspent: Reads of the round that no rule can place.

    Returns:
        Registry indices accepted, in order, and the round's delivery.
    """
    accepted: list[int] = []
    seen: set[int] = set()
    counts = dict.fromkeys((INVALID, DUPLICATE, ALREADY_TESTED, OVER_DELIVERED), 0)
    outcomes: list[str] = []
    for index in answer.indices:
        if index < 0:
            outcome = INVALID
        elif index in seen:
            outcome = DUPLICATE
        elif observed[index]:
            outcome = ALREADY_TESTED
        elif len(accepted) >= proposal_slots:
            outcome = OVER_DELIVERED
        else:
            outcome = ACCEPTED
            accepted.append(index)
        if outcome is not ACCEPTED:
            counts[outcome] += 1
        seen.add(index)
        outcomes.append(outcome)
    entries = zip(answer.names[:LISTED_ENTRIES], outcomes[:LISTED_ENTRIES], strict=True)
    delivery = Delivery(
        fresh_slots=fresh_slots,
        proposal_slots=proposal_slots,
        raw=len(outcomes),
        valid=len(accepted) + counts[OVER_DELIVERED],
        accepted=len(accepted),
        fallback=fresh_slots - len(accepted),
        unspent=unspent,
        attempts=answer.attempts,
        entries=tuple((name[:LISTED_CHARACTERS], outcome) for name, outcome in entries),
        usage=answer.usage,
        text=answer.text,
        **counts,
    )
    return accepted, delivery

"""The proposer's side of a screen: what it sees (a view) and what it answers (a proposal).

A view holds names, public side tables and high/low lists; never a value, an effect, a label, a seed
or an instance number. Never imports a channel, a screen or an oracle.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import numpy as np

from cads_env.errors import ProposalError
from cads_env.registry import SideTable

MOST_ATTEMPTS: Final = 1_000_000
"""More tries than this in one round are a mistake."""


class ProposerFailed(Exception):
    """Raised by a proposer whose infrastructure broke: the campaign fails, never averaged in."""


class Refusal(NamedTuple):
    """An entry of the last proposal that got no slot.

    Attributes:
        identifier: The entry as proposed.
        reason: "invalid", "duplicate", "already_tested" or "over_delivered".
    """

    identifier: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All that a proposer may know at the start of a round.

    Attributes:
        identifiers: Every candidate of the registry, in index order.
        description: What is screened and what a hit is.
        side_tables: Public columns by name, aligned with `identifiers`.
        high: Tested candidates that read high so far, in first-read order.
        low: Tested candidates that read low so far, in first-read order.
        tested: Every candidate read so far, in first-read order. Under feedback "none" `high` and
            `low` are empty.
        round: This round, counting from 0.
        rounds: Rounds of the campaign.
        slots: Proposals that this round accepts.
        accepted: What the last round accepted of this proposer's answer.
        refused: What the last round refused, with reasons.
        attempts: Tries that the protocol allows for one round's answer.
        assay: How a candidate is measured; may be empty.
        high_means: What it means that a candidate reads high; may be empty.
    """

    identifiers: tuple[str, ...] = field(repr=False)
    description: str
    side_tables: Mapping[str, SideTable] = field(repr=False)
    high: tuple[str, ...] = ()
    low: tuple[str, ...] = ()
    tested: tuple[str, ...] = ()
    round: int = 0
    rounds: int = 1
    slots: int = 0
    accepted: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()
    attempts: int = 1
    assay: str = ""
    high_means: str = ""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the fields (a mapping proxy cannot be pickled)."""
        values = {name: getattr(self, name) for name in self.__slots__}
        values["side_tables"] = dict(self.side_tables)
        return (_view, (values,))


def _view(values: dict[str, Any]) -> View:
    return View(**(values | {"side_tables": MappingProxyType(values["side_tables"])}))


@dataclass(frozen=True, slots=True)
class Proposal:
    """An answer to a view.

    Attributes:
        identifiers: Candidates in order of preference; the first valid ones fill the slots.
        raw: The text that the identifiers were read from, if any.
        attempts: Tries that the answer took, at least 1.
        usage: Counts such as tokens, by name.
    """

    identifiers: tuple[str, ...]
    raw: str = ""
    attempts: int = 1
    usage: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check types.

        Raises:
            ProposalError: Something is not of the stated type.
        """
        object.__setattr__(self, "identifiers", _names(self.identifiers))
        if not isinstance(self.raw, str):
            msg = f"Proposal.raw is a {type(self.raw).__name__}; expected the answer's text."
            raise ProposalError(msg)
        attempts: object = self.attempts
        if type(attempts) is not int or not 1 <= attempts <= MOST_ATTEMPTS:
            # A whole number of thousands of digits has no repr.
            is_short = type(attempts) is not int or abs(attempts) < 10**12
            shown = f"{attempts!r:.80}" if is_short else "a very large number"
            msg = (
                f"Proposal.attempts is {shown}; expected a whole number from 1 to "
                f"{MOST_ATTEMPTS:,}."
            )
            raise ProposalError(msg)
        object.__setattr__(self, "raw", str.__str__(self.raw))
        object.__setattr__(self, "usage", _usage(self.usage))


def _names(value: object) -> tuple[str, ...]:
    if isinstance(value, (str, bytes)):
        msg = (
            f"A proposal is a list of identifiers; received the text {value[:80]!r}. "
            "Read identifiers from text with cads_env.parse_proposal."
        )
        raise ProposalError(msg)
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = value.tolist()
    if not isinstance(value, Sequence):
        msg = (
            f"A proposal is a Proposal or a sequence of identifiers; received a "
            f"{type(value).__name__}. Return [] to propose nothing."
        )
        raise ProposalError(msg)
    for position, entry in enumerate(value):
        if not isinstance(entry, str):
            msg = (
                f"Entry {position} of the proposal is {entry!r:.80}, a {type(entry).__name__}; "
                "expected identifiers as text, as in view.identifiers."
            )
            raise ProposalError(msg)
    # str(): a subclass of str could carry behaviour into the record.
    return tuple(str.__str__(entry) for entry in value)


def _usage(value: object) -> Mapping[str, float]:
    if not isinstance(value, Mapping):
        msg = f"Proposal.usage is a {type(value).__name__}; expected a mapping of numbers by name."
        raise ProposalError(msg)
    for name, number in value.items():
        plain = isinstance(number, (int, float)) and not isinstance(number, bool)
        # A comparison rather than isfinite, which fails on whole numbers beyond 64 bits.
        if not isinstance(name, str) or not plain or not abs(number) <= sys.float_info.max:
            msg = f"Proposal.usage has {name!r}: {number!r}; expected finite numbers by name."
            raise ProposalError(msg)
    # Numbers and names of subclasses could carry behaviour into the record.
    return {
        str.__str__(name): int(number) if isinstance(number, int) else float(number)
        for name, number in value.items()
    }


@runtime_checkable
class Proposer(Protocol):
    """Anything that answers a view. One instance plays one campaign."""

    def propose(self, view: View) -> Proposal | Sequence[str]:
        """The candidates to read for the first time in this round, best first.

        Args:
            view: The state of the screen, as far as a proposer may know it.

        Returns:
            A `Proposal`, or a bare sequence of identifiers. At most `view.slots` are accepted.

        Raises:
            ProposerFailed: Infrastructure broke; the campaign is then failed, not scored.
        """
        ...


class Journal(Protocol):
    """What a proposer asked of the world outside in its campaign, and what came back.

    A run hands one to every factory that takes `journal=`; it knows the campaign, the proposer does
    not. What goes through it survives a kill, is not asked twice, and can be replayed without the
    world outside.
    """

    def exchange(
        self, request: Mapping[str, Any], answer: Callable[[], Mapping[str, Any]]
    ) -> Mapping[str, Any]:
        """The answer to a request: as recorded, where it was answered before; else asked for now.

        Args:
            request: All that decides the answer, JSON values. A campaign that is played again asks
                the same in the same order.
            answer: Asks the world outside; gives JSON values. Numbers under its key `usage`
                (`tokens_in`, `tokens_out`, `tokens_cached`, `cost`) count against a run's limits.

        Returns:
            The answer as JSON values.

        Raises:
            ProposerFailed: `answer` raised it, now or when it was recorded.
            ReplayError: The record holds another request here, or none when nothing may be asked.
        """
        ...


class Unrecorded:
    """The journal of a proposer that plays outside a run: it asks and keeps nothing."""

    def exchange(
        self, request: Mapping[str, Any], answer: Callable[[], Mapping[str, Any]]
    ) -> Mapping[str, Any]:
        """The answer, asked for now."""
        return answer()


class Nothing:
    """The proposer that proposes nothing: an arm with it is its own twin."""

    def propose(self, view: View) -> Sequence[str]:
        """An empty proposal."""
        return ()


def as_proposal(answer: object) -> Proposal:
    """A proposer's answer as a `Proposal` of plain values.

    Checked once more and copied, since an agent may have changed what it built.

    Raises:
        ProposalError: The answer is neither a `Proposal` nor a sequence of text.
    """
    if isinstance(answer, Proposal):
        return Proposal(answer.identifiers, answer.raw, answer.attempts, answer.usage)
    return Proposal(_names(answer))

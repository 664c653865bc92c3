"""The schedule: what each round spends, as a function of (round, observed, m).

Fallback fills every fresh slot, so the number observed depends on the round alone and the whole
plan of a campaign is known before its first read. Pure arithmetic: never looks at a read or a
candidate.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple, Protocol

from cads_env.errors import ProtocolError

MOST_READS: Final = 2_000_000_000
"""A plan with more reads than this is refused as a mistake."""


class Spending(Protocol):
    """The fields of a protocol that decide what is spent; see `cads_env.protocol.Protocol`."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def rounds(self) -> int: ...  # noqa: D102
    @property
    def first_fresh(self) -> int: ...  # noqa: D102
    @property
    def fresh(self) -> int: ...  # noqa: D102
    @property
    def reread_candidates(self) -> int: ...  # noqa: D102
    @property
    def reread_fraction(self) -> float | None: ...  # noqa: D102
    @property
    def reads_each(self) -> int: ...  # noqa: D102
    @property
    def on_exhausted(self) -> str: ...  # noqa: D102


class RoundPlan(NamedTuple):
    """What one round spends.

    Attributes:
        observed: Candidates read before the round.
        fresh: Candidates read for the first time.
        rereads: Top-ranked observed candidates that are read again.
        reads_each: Reads that each of them gets.
        extra: Further single reads of the next-ranked observed candidates, cycling.
        unspent: Reads that no rule can place.
    """

    observed: int
    fresh: int
    rereads: int
    reads_each: int
    extra: int
    unspent: int

    @property
    def reads(self) -> int:
        """Reads of the round."""
        return self.fresh + self.rereads * self.reads_each + self.extra

    @property
    def most_rereads_of_one(self) -> int:
        """The most reads that one already observed candidate can get in the round."""
        if not self.observed:
            return 0
        # The extra reads begin after the top ones and cycle; the first-ranked gets the most.
        cycles = (self.rereads + self.extra - 1) // self.observed
        return self.reads_each + cycles if self.rereads else cycles + 1


def plan_round(protocol: Spending, round: int, observed: int, m: int) -> RoundPlan:
    """What `round` spends when `observed` of `m` candidates have been read before it."""
    unseen = m - observed
    if round == 0:
        due, wanted = 0, protocol.first_fresh
    else:
        due, wanted = protocol.reread_candidates, protocol.fresh
        if protocol.reread_fraction is not None:
            # int, not round: at 5,500 observed 0.7 * 5500 is 3849.999..., and 3849 is the rule.
            due = int(protocol.reread_fraction * observed)
    rereads = min(due, observed)
    wanted += (due - rereads) * protocol.reads_each
    fresh = min(wanted, unseen)
    missing = wanted - fresh if protocol.on_exhausted == "reread" else 0
    extra = missing if observed else 0
    return RoundPlan(observed, fresh, rereads, protocol.reads_each, extra, missing - extra)


class _Fields(NamedTuple):
    """The spending fields as a value that can be a cache's key."""

    name: str
    rounds: int
    first_fresh: int
    fresh: int
    reread_candidates: int
    reread_fraction: float | None
    reads_each: int
    on_exhausted: str


def plan(protocol: Spending, m: int) -> tuple[RoundPlan, ...]:
    """The plan of a whole campaign.

    Args:
        protocol: Its schedule fields are used.
        m: Registry size.

    Returns:
        One entry a round.

    Raises:
        ProtocolError: The plan has more than `MOST_READS` reads.
    """
    return _plan(_Fields(*(getattr(protocol, name) for name in _Fields._fields)), m)


@lru_cache(maxsize=64)
def _plan(protocol: _Fields, m: int) -> tuple[RoundPlan, ...]:
    rounds: list[RoundPlan] = []
    observed = reads = 0
    for round in range(protocol.rounds):
        spent = plan_round(protocol, round, observed, m)
        observed += spent.fresh
        reads += spent.reads
        if reads > MOST_READS:
            msg = (
                f"Protocol {protocol.name!r} plans more than {MOST_READS:,} reads a campaign on "
                f"{m:,} candidates (reached in round {round}); use fewer rounds or smaller batches."
            )
            raise ProtocolError(msg)
        rounds.append(spent)
    return tuple(rounds)

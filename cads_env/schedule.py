"""The schedule: what each round spends, as a function of (round, observed, m).

Fallback fills every fresh slot, so the number observed depends on the round alone and the whole
plan of a campaign is known before its first read. Pure arithmetic: never looks at a read or a
candidate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from cads_env.errors import ProtocolError

if TYPE_CHECKING:
    from cads_env.protocol import Protocol

MOST_READS: Final = 2_000_000_000
"""A plan with more reads than this is refused as a mistake."""


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


def plan_round(protocol: Protocol, round: int, observed: int, m: int) -> RoundPlan:
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


def plan(protocol: Protocol, m: int) -> tuple[RoundPlan, ...]:
    """The plan of a whole campaign.

    Args:
        protocol: Its schedule fields are used.
        m: Registry size.

    Returns:
        One entry a round.

    Raises:
        ProtocolError: The plan has more than `MOST_READS` reads.
    """
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


def problems_of(protocol: Protocol) -> list[str]:
    """Everything that is wrong with a protocol's fields, one sentence each; empty when valid."""
    return [*_count_problems(protocol), *_number_problems(protocol), *_choice_problems(protocol)]


def _count_problems(p: Protocol) -> Iterator[str]:
    counts: dict[str, tuple[object, int, int]] = {
        "rounds": (p.rounds, 1, 100_000),
        "first_fresh": (p.first_fresh, 1, 10_000_000),
        "fresh": (p.fresh, 0, 10_000_000),
        "reread_candidates": (p.reread_candidates, 0, 10_000_000),
        "reads_each": (p.reads_each, 1, 10_000),
        "attempts": (p.attempts, 1, 1_000),
    }
    for name, quota in (("quota", p.quota), ("first_quota", p.first_quota)):
        if quota is not None:
            counts[name] = (quota, 0, 10_000_000)
    for name, (value, low, high) in counts.items():
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            yield f"{name} is {value!r}; expected a whole number from {low} to {high:,}."


def _number_problems(p: Protocol) -> Iterator[str]:
    positive, level = (0.0, math.inf), (0.0, 1.0)
    ranges: dict[str, tuple[object, tuple[float, float], bool]] = {
        "noise_sd": (p.noise_sd, positive, False),
        "epsilon": (p.epsilon, level, True),
        "rank_epsilon_bar": (p.rank_epsilon_bar, level, True),
        "rank_theta": (p.rank_theta, positive, False),
        "rank_s": (p.rank_s, positive, False),
        "rank_q": (p.rank_q, level, False),
        "high_above": (p.high_above, (-math.inf, math.inf), False),
        "certificate epsilon_bar": (p.certificate.epsilon_bar, level, True),
        "certificate theta": (p.certificate.theta, positive, False),
        "certificate s": (p.certificate.s, positive, False),
        "certificate q": (p.certificate.q, level, False),
    }
    if p.reread_fraction is not None:
        ranges["reread_fraction"] = (p.reread_fraction, level, True)
    for name, (value, (low, high), closed) in ranges.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not _inside(float(value), low, high, closed):  # type: ignore[arg-type]
            brackets = "[]" if closed else "()"
            yield (
                f"{name} is {value!r}; expected a number in "
                f"{brackets[0]}{low:g}, {high:g}{brackets[1]}."
            )


def _inside(value: float, low: float, high: float, closed: bool) -> bool:
    if not math.isfinite(value):
        return False
    return low <= value <= high if closed else low < value < high


def _choice_problems(p: Protocol) -> Iterator[str]:
    feedback = ("full", "none", "permuted")
    choices: dict[str, tuple[object, tuple[object, ...]]] = {
        "on_exhausted": (p.on_exhausted, ("reread", "stop")),
        "rank_by": (p.rank_by, ("mean", "log_evidence")),
        "graduation": (p.graduation, (True, False)),
        "feedback_proposer": (p.feedback_proposer, feedback),
        "feedback_reselection": (p.feedback_reselection, feedback),
        "fallback_priority": (p.fallback_priority, ("campaign", "round")),
    }
    for name, (value, allowed) in choices.items():
        if not any(value is option or value == option for option in allowed) or (
            name == "graduation" and not isinstance(value, bool)
        ):
            yield f"{name} is {value!r}; expected one of {', '.join(map(str, allowed))}."
    for name, text in (("name", p.name), ("law", p.law)):
        if not isinstance(text, str) or not text.strip():
            yield f"{name} is {text!r}; expected a non-empty text."
    if p.reread_fraction is not None and p.reread_candidates:
        yield "reread_fraction and reread_candidates are both set; expected one of them."

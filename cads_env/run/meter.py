"""What a run has asked of the world outside: requests, tokens, cost; and the limits that stop it.

Sums over threads and over earlier attempts. Knows no price and no model: it adds what answers say
of themselves, and never decides what a campaign is.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cads_env.errors import RunError, quoted
from cads_env.run.executors.stopping import RunStopped

_COUNTED: Final = ("tokens_in", "tokens_out", "tokens_cached", "cost")
_MOST: Final = 2**63
"""A larger count of tokens, or cost, is none."""


class Spent(NamedTuple):
    """What was asked and what it took.

    Attributes:
        requests: Exchanges that were answered.
        tokens_in: Tokens of the prompts, cached ones included.
        tokens_out: Tokens of the answers.
        tokens_cached: Tokens of the prompts that a server had cached.
        cost: In the currency of the price table; 0 where none is known.
        retries: Tries that failed before an answer came.
        failed: Exchanges that failed for good.
        rounds: Rounds of campaigns in which something was asked.
    """

    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost: float = 0.0
    retries: int = 0
    failed: int = 0
    rounds: int = 0

    @property
    def tokens(self) -> int:
        """Tokens in and out."""
        return self.tokens_in + self.tokens_out

    def plus(self, other: Spent) -> Spent:
        """The sum of two."""
        return Spent._make(one + two for one, two in zip(self, other, strict=True))


NOTHING_SPENT: Final = Spent()


def spent_of(answer: Mapping[str, Any] | None, *, is_new_round: bool) -> Spent:
    """What one exchange adds.

    Args:
        answer: Its answer; None when it failed for good.
        is_new_round: Whether it is the first of its round.
    """
    rounds = int(is_new_round)
    if answer is None:
        return Spent(failed=1, rounds=rounds)
    usage, retries = answer.get("usage"), answer.get("retries")
    counts = {name: _count(usage, name) for name in _COUNTED}
    return Spent(
        requests=1,
        tokens_in=int(counts["tokens_in"]),
        tokens_out=int(counts["tokens_out"]),
        tokens_cached=int(counts["tokens_cached"]),
        cost=float(counts["cost"]),
        retries=len(retries) if isinstance(retries, list) else 0,
        rounds=rounds,
    )


def _count(usage: object, name: str) -> float:
    value = usage.get(name, 0) if isinstance(usage, Mapping) else 0
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    # A comparison, since isfinite fails on whole numbers beyond what a float holds.
    return value if is_number and 0 < value <= _MOST else 0


class Meter:
    """Sums of a run or of several that share their limits; safe under threads.

    Attributes:
        max_cost: Cost at which nothing more is asked; None for no limit.
        max_tokens: The same for tokens in and out.
    """

    def __init__(self, *, max_cost: float | None = None, max_tokens: int | None = None) -> None:
        """Start at nothing.

        Raises:
            RunError: A limit is no positive number.
        """
        self.max_cost = _limit(max_cost, "max_cost")
        self.max_tokens = _limit(max_tokens, "max_tokens")
        self._lock = threading.Lock()
        self._earlier = self._now = NOTHING_SPENT

    @property
    def now(self) -> Spent:
        """What this attempt has spent."""
        with self._lock:
            return self._now

    @property
    def total(self) -> Spent:
        """What this and earlier attempts have spent."""
        with self._lock:
            return self._earlier.plus(self._now)

    def add(self, spent: Spent) -> None:
        """Count an exchange of this attempt."""
        with self._lock:
            self._now = self._now.plus(spent)

    def add_earlier(self, spent: Spent) -> None:
        """Count what an earlier attempt recorded."""
        with self._lock:
            self._earlier = self._earlier.plus(spent)

    def check(self) -> None:
        """Raise when a limit is reached.

        Raises:
            RunStopped: Names the limit and what was spent.
        """
        spent = self.total
        for name, limit, value in (
            ("max_cost", self.max_cost, spent.cost),
            ("max_tokens", self.max_tokens, spent.tokens),
        ):
            if limit is not None and value >= limit:
                msg = (
                    f"the limit {name} = {limit:,} is reached: {spent.requests:,} requests took "
                    f"{spent.tokens:,} tokens and cost {spent.cost:,.4f}. The same command with a "
                    "higher limit goes on and asks nothing twice"
                )
                raise RunStopped(msg)


def _limit(value: Any, name: str) -> Any:
    if value is None:
        return None
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 < value <= sys.float_info.max:
        msg = f"{name}={quoted(value)} is no limit; expected a number above 0, or None for none."
        raise RunError(msg)
    return value

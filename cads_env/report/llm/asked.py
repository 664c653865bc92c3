"""What a run's traces say of each exchange with the world outside.

Reads trace files a campaign at a time and keeps counts, never the messages or answers themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from cads_env.run.rows import Key, planned_keys
from cads_env.run.traces import Exchange, read_trace, trace_files, trace_path
from cads_env.values import plain_text

RETRIES: Final = ("timeout", "connection", "rate_limit", "server", "malformed")
"""Kinds of failures after which a request is tried again."""

LARGEST: Final = 2.0**53
"""No count of tokens and no cost is as large; what a server says beyond it counts 0."""

NO_ROUND: Final = -1
"""Stands for the round of a request that names none."""


class Asked(NamedTuple):
    """One request and what became of it.

    Attributes:
        round: Round that the request names, or `NO_ROUND`.
        attempt: Attempt that it names, counted as the agent counts.
        is_failed: Whether infrastructure broke for good.
        is_overflow: Whether the request was too long for the model and was not answered.
        is_blank: Whether the answer holds no text.
        is_cut: Whether the answer ended at the most tokens allowed.
        finish_reason: As the server said; empty where it said nothing.
        model: As the server reported it.
        fingerprint: Of the server.
        tokens_in: Tokens of the request.
        tokens_out: Tokens of the answer.
        tokens_cached: Tokens of the request that the server had in its cache.
        is_uncounted: It was answered, and nobody counted its tokens: they stand as 0.
        is_unpriced: It was answered, and no price is known: its cost stands as 0.
        cost: By the price table of the run.
        seconds: From request to answer, waits included.
        retries: Retries by kind, in the order of `RETRIES`.
    """

    round: int
    attempt: int
    is_failed: bool
    is_overflow: bool
    is_blank: bool
    is_cut: bool
    finish_reason: str
    model: str
    fingerprint: str
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    cost: float
    is_uncounted: bool
    is_unpriced: bool
    seconds: float
    retries: tuple[int, ...]


def has_traces(folder: str | Path | None) -> bool:
    """Whether a run's folder holds any trace."""
    return folder is not None and bool(trace_files(Path(folder)))


def asked_of(
    folder: str | Path, config: Mapping[str, Any]
) -> Iterator[tuple[Key, tuple[Asked, ...]]]:
    """The exchanges of every campaign that has a trace, in the order of the campaigns.

    Args:
        folder: Of the run.
        config: The part `config` of its manifest.

    Raises:
        RunError: A file cannot be read.
        RecordError: A line is no exchange; the message names file and line.
    """
    for key in planned_keys(config):
        found = tuple(map(_asked, read_trace(trace_path(Path(folder), key))))
        if found:
            yield key, found


def _asked(exchange: Exchange) -> Asked:
    request, is_failed = exchange.request, exchange.failed is not None
    answer = exchange.answer or {}
    usage = answer.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    tries = exchange.errors if is_failed else answer.get("retries")
    finish = _name(answer.get("finish_reason"))
    is_overflow = bool(answer.get("overflow"))
    return Asked(
        round=_position(request.get("round")),
        attempt=_position(request.get("attempt")),
        is_failed=is_failed,
        is_overflow=is_overflow,
        is_blank=not is_failed and not is_overflow and not _text(answer.get("text")).strip(),
        is_cut=finish == "length",
        finish_reason=finish,
        model=_name(answer.get("model")),
        fingerprint=_name(answer.get("fingerprint")),
        tokens_in=_count(usage.get("tokens_in")),
        tokens_out=_count(usage.get("tokens_out")),
        tokens_cached=_count(usage.get("tokens_cached")),
        cost=_amount(usage.get("cost")),
        is_uncounted=answer.get("usage_missing") is True,
        is_unpriced=answer.get("price_unknown") is True,
        seconds=_amount(exchange.seconds),
        retries=_retries(tries),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _name(value: Any) -> str:
    """A server's text as a table holds it, which takes no lone surrogate."""
    return plain_text(_text(value))


def _position(value: Any) -> int:
    is_whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
    return value if is_whole else NO_ROUND


def _count(value: Any) -> int:
    return int(_amount(value))


def _amount(value: Any) -> float:
    """A number that counts; what a server made up of it (text, negative, endless) counts 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0.0
    return float(value) if 0 < value < LARGEST else 0.0


def _retries(tries: Any) -> tuple[int, ...]:
    entries = tries if isinstance(tries, (list, tuple)) else ()
    kinds = [entry.get("error") for entry in entries if isinstance(entry, Mapping)]
    return tuple(kinds.count(kind) for kind in RETRIES)

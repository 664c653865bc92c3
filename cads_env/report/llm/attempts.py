"""Delivery by attempt: what each try of an answer held, cost and took.

Counted again from the rows of a run and its traces, whatever an agent says of itself. One row a
try, so that sums over rows are sums over the run. Never holds a time of day.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from cads_env.delivery import (
    ACCEPTED,
    ALREADY_TESTED,
    DUPLICATE,
    INVALID,
    LISTED_CHARACTERS,
    OVER_DELIVERED,
)
from cads_env.errors import RecordError
from cads_env.report.llm.asked import RETRIES, Asked, asked_of
from cads_env.run.load import load_run
from cads_env.run.result import RunResult
from cads_env.run.rows import Key

SCORED, FAILED, UNFINISHED = "scored", "failed", "unfinished"
"""What became of an attempt's campaign. The entries of one that was not scored are not counted."""

_OUTCOMES: Final = (ACCEPTED, INVALID, DUPLICATE, ALREADY_TESTED, OVER_DELIVERED)

DELIVERY_COUNTS: Final = (
    "requested", "raw", "valid", "accepted", "invalid", "duplicate", "already_tested",
    "over_delivered", "unparsed", "empty", "cut", "overflows", "fallback",
)  # fmt: skip
RETRY_COUNTS: Final = tuple(f"retries_{kind}" for kind in RETRIES)
SPENT_COUNTS: Final = (
    "requests", "failed_requests", *RETRY_COUNTS, "tokens_in", "tokens_out",
    "tokens_cached", "uncounted", "unpriced",
)  # fmt: skip
ATTEMPT_COLUMNS: Final = [
    "arm", "registry", "seed", "status", "round", "attempt", *DELIVERY_COUNTS, *SPENT_COUNTS,
    "latency_s", "cost", "finish_reason", "model", "fingerprint",
]  # fmt: skip


def attempts_of(run: str | Path | RunResult) -> pd.DataFrame:
    """One row a try of an answer.

    An agent that reports how many entries each try held (`names_1`, `names_2`, ... in its usage)
    has them told apart; of others, all entries of a round stand on its last try.

    Args:
        run: A run's folder, or a result that has one.

    Returns:
        Columns `ATTEMPT_COLUMNS`. `round` counts from 0 and is -1 for requests that name none;
        `attempt` counts from 1. `requested` is the slots still to be filled; `valid` = `accepted` +
        `over_delivered`; `unparsed`, `empty` and `cut` are 1 for an answer with text but no entry,
        without text, and ended at the most tokens. `fallback` stands on the last try of its round.
        `requests` counts exchanges of the trace, `failed_requests` those that broke for good, and
        `overflows` those that were too long for the model; `uncounted` and `unpriced` those whose
        tokens or price nobody knows, which stand as 0. `latency_s` is in seconds with waits;
        `cost` is by the price table of the run.

    Raises:
        RunError: There is no run in the folder.
        RecordError: A row or a line of a trace is damaged.
    """
    result = run if isinstance(run, RunResult) else load_run(run)
    traces: dict[Key, tuple[Asked, ...]] = {}
    if result.folder is not None:
        traces = dict(asked_of(result.folder, result.manifest["config"]))
    rows = list(_scored_rows(result, traces))
    done = {Key(row["arm"], row["registry"], row["seed"]) for row in rows}
    failed = {Key(f.arm, f.registry, f.seed) for f in result.failures}
    for key, exchanges in traces.items():
        if key not in done:
            rows += _unscored_rows(key, FAILED if key in failed else UNFINISHED, exchanges)
    return pd.DataFrame(rows, columns=ATTEMPT_COLUMNS)


def delivery_of(attempts: pd.DataFrame) -> pd.DataFrame:
    """The sums of each arm.

    Args:
        attempts: From `attempts_of`.

    Returns:
        One row an arm, in order: `arm`; `campaigns`, `rounds` and `attempts` of scored campaigns;
        `slots`, open to the proposer in them; every one of `DELIVERY_COUNTS` but `requested`, over
        scored campaigns; the sums of `SPENT_COUNTS`, `latency_s` and `cost` over all of them, since
        failed campaigns cost as well.
    """
    rows = []
    for arm, mine in attempts.groupby("arm", sort=False):
        # Requests that name no round have no slots and no entries; they only cost.
        scored = mine[(mine["status"] == SCORED) & (mine["round"] >= 0)]
        first = scored[scored["attempt"] == 1]
        rows.append(
            {
                "arm": arm,
                "campaigns": len(scored[["registry", "seed"]].drop_duplicates()),
                "rounds": len(first),
                "attempts": len(scored),
                "slots": int(first["requested"].sum()),
                **{name: int(scored[name].sum()) for name in DELIVERY_COUNTS[1:]},
                **{name: int(mine[name].sum()) for name in SPENT_COUNTS},
                "latency_s": float(mine["latency_s"].sum()),
                "cost": float(mine["cost"].sum()),
            }
        )
    columns = ["arm", "campaigns", "rounds", "attempts", "slots", *DELIVERY_COUNTS[1:]]
    return pd.DataFrame(rows, columns=[*columns, *SPENT_COUNTS, "latency_s", "cost"])


def _scored_rows(
    result: RunResult, traces: Mapping[Key, tuple[Asked, ...]]
) -> Iterator[dict[str, Any]]:
    by_round: dict[Key, dict[int, list[Asked]]] = {}
    for row in result.rounds.to_dict("records"):
        key = Key(str(row["arm"]), str(row["registry"]), int(row["seed"]))
        if key not in by_round:
            by_round[key] = _by_round(traces.get(key, ()))
            # What names no round of the campaign is not lost: it stands before the first.
            for other in [r for r in by_round[key] if r < 0]:
                yield from _spent_rows(key, SCORED, other, by_round[key][other])
        exchanges = by_round[key].get(int(row["round"]), [])
        yield from _round_rows(key, {str(name): value for name, value in row.items()}, exchanges)


def _unscored_rows(key: Key, status: str, exchanges: Sequence[Asked]) -> Iterator[dict[str, Any]]:
    for round, mine in _by_round(exchanges).items():
        yield from _spent_rows(key, status, round, mine)


def _spent_rows(
    key: Key, status: str, round: int, exchanges: Sequence[Asked]
) -> Iterator[dict[str, Any]]:
    """Rows of attempts whose entries are not known."""
    for number, tries in enumerate(_by_attempt(exchanges), start=1):
        answers = {
            "empty": sum(e.is_blank for e in tries),
            "cut": sum(e.is_cut for e in tries),
            "overflows": sum(e.is_overflow for e in tries),
        }
        head = {**key._asdict(), "status": status, "round": round, "attempt": number}
        yield {**head, **dict.fromkeys(DELIVERY_COUNTS, 0), **answers, **_spent(tries)}


def _by_round(exchanges: Sequence[Asked]) -> dict[int, list[Asked]]:
    found: dict[int, list[Asked]] = {}
    for exchange in exchanges:
        found.setdefault(exchange.round, []).append(exchange)
    return found


def _by_attempt(exchanges: Sequence[Asked]) -> list[list[Asked]]:
    """Exchanges of one round by the attempt that they name, whichever number an agent begins at."""
    found: dict[int, list[Asked]] = {}
    for exchange in exchanges:
        found.setdefault(exchange.attempt, []).append(exchange)
    return [found[number] for number in sorted(found)]


def _round_rows(
    key: Key, row: Mapping[str, Any], exchanges: Sequence[Asked]
) -> Iterator[dict[str, Any]]:
    """The attempts of one round of a scored campaign."""
    tries = _by_attempt(exchanges)
    named = sizes_of(row)
    count = max(len(tries), len(named), 1)
    sizes = [*named, *[0] * (count - len(named))] if named else [*[0] * (count - 1), row["raw"]]
    counts = _split(row, sizes)
    left = int(row["proposal_slots"])
    for i in range(count):
        mine = tries[i] if i < len(tries) else []
        found = counts[i]
        is_read = bool(named) or i == count - 1
        answered = [e for e in mine if not (e.is_failed or e.is_overflow)]
        blank = bool(answered) and answered[-1].is_blank
        delivered = {
            "requested": left,
            "raw": int(sizes[i]),
            "valid": found[ACCEPTED] + found[OVER_DELIVERED],
            **found,
            "unparsed": int(bool(answered) and is_read and not blank and not sizes[i]),
            "empty": int(blank),
            "cut": sum(e.is_cut for e in answered),
            "overflows": sum(e.is_overflow for e in mine),
            "fallback": int(row["fallback"]) if i == count - 1 else 0,
        }
        left -= found[ACCEPTED]
        head = {**key._asdict(), "status": SCORED, "round": int(row["round"]), "attempt": i + 1}
        yield {**head, **delivered, **_spent(mine)}


def sizes_of(row: Mapping[str, Any]) -> list[int]:
    """Entries of each attempt as the agent reported them; nothing where they do not add up."""
    usage = row["usage"]
    found: list[int] = []
    while isinstance(count := usage.get(f"names_{len(found) + 1}"), int) and count >= 0:
        found.append(count)
    return found if sum(found) == row["raw"] else []


def _split(row: Mapping[str, Any], sizes: Sequence[int]) -> list[dict[str, int]]:
    """The outcomes of a round's entries by attempt.

    A record lists the first entries of an answer only; what the round counts beyond them stands on
    the last attempt that has entries.
    """
    outcomes = outcomes_of(row)
    counts = []
    start = 0
    for size in sizes:
        part = outcomes[start : start + size]
        counts.append({what: part.count(what) for what in _OUTCOMES})
        start += size
    last = max((i for i, size in enumerate(sizes) if size), default=len(sizes) - 1)
    for what in _OUTCOMES:
        counts[last][what] += int(row[what]) - outcomes.count(what)
    return counts


def outcomes_of(row: Mapping[str, Any]) -> list[str]:
    """What became of each listed entry, in generation order.

    Raises:
        RecordError: Entries, accepted and refused ones do not fit together.
    """
    left = {name[:LISTED_CHARACTERS] for name in row["accepted_identifiers"]}
    refused = iter(row["refused"])
    found = []
    for entry in row["proposed"]:
        # A candidate is accepted where it is named first; named again, it is a duplicate.
        if entry in left:
            left.remove(entry)
            found.append(ACCEPTED)
            continue
        name, what = next(refused, (None, ""))
        if name != entry:
            msg = (
                f"Round {row['round']} of arm {row['arm']!r}, seed {row['seed']}: the entries in "
                "rounds.jsonl are not the accepted and refused ones. The file was changed after it "
                "was written: put back a copy."
            )
            raise RecordError(msg)
        found.append(what)
    return found


def _spent(tries: Sequence[Asked]) -> dict[str, Any]:
    """What the exchanges of one attempt cost, and how the last one ended."""
    answered = [e for e in tries if not e.is_failed]
    last = answered[-1] if answered else None
    retries = [sum(e.retries[i] for e in tries) for i in range(len(RETRIES))]
    return {
        "requests": len(tries),
        "failed_requests": sum(e.is_failed for e in tries),
        **dict(zip(RETRY_COUNTS, retries, strict=True)),
        "tokens_in": sum(e.tokens_in for e in tries),
        "tokens_out": sum(e.tokens_out for e in tries),
        "tokens_cached": sum(e.tokens_cached for e in tries),
        "uncounted": sum(e.is_uncounted for e in tries),
        "unpriced": sum(e.is_unpriced for e in tries),
        "latency_s": sum(e.seconds for e in tries),
        "cost": sum(e.cost for e in tries),
        "finish_reason": last.finish_reason if last else "",
        "model": last.model if last else "",
        "fingerprint": last.fingerprint if last else "",
    }

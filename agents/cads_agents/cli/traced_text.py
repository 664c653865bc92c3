"""How exchanges read in a terminal. Whatever a model or a server wrote is shown, never interpreted.

Formats what a run kept; counts nothing anew.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pandas as pd
from rich import box
from rich.table import Table
from rich.text import Text

from cads_agents.cli.traced import Place, Traced
from cads_env.delivery import ACCEPTED, ALREADY_TESTED, DUPLICATE, INVALID, OVER_DELIVERED
from cads_env.report.wording import visible
from cads_env.run.rows import Key

LONGEST_LINE: Final = 20_000
"""Characters of one line of a prompt or an answer that are shown."""
REASONS: Final = {
    ACCEPTED: "accepted",
    INVALID: "refused: names no candidate",
    DUPLICATE: "refused: named before in this answer",
    ALREADY_TESTED: "refused: tested in an earlier round",
    OVER_DELIVERED: "refused: the slots were full",
}
LEGEND: Final = (
    "open: slots left to fill; raw: names read; ok = accepted + over; inv: name no candidate; "
    "dup: named before; old: already tested; over: beyond the slots; bad: text without a name, or "
    "no text; retry: requests asked again after a fault; fall: slots filled by fallback; in, "
    "cached, out: tokens; s: seconds with waits; $: by the run's price table."
)
COLUMNS: Final = (
    "round", "try", "open", "raw", "ok", "inv", "dup", "old", "over", "bad", "retry", "fall", "in",
    "cached", "out", "s", "$", "end",
)  # fmt: skip


def lines_visible(text: str) -> str:
    """Somebody's text over several lines, with what cannot be seen written out."""
    return "\n".join(visible(line, LONGEST_LINE) for line in text.split("\n"))


def heading(place: Place, key: Key) -> str:
    """What names a campaign."""
    setting = f"{visible(place.setting)}: " if place.setting else ""
    return f"{setting}{visible(key.arm)} on {visible(key.registry)}, seed {key.seed}"


def exchange_text(traced: Traced) -> Iterator[str]:
    """An exchange as lines: what was asked, what came back, what became of each name."""
    exchange = traced.exchange
    request, answer = exchange.request, exchange.answer or {}
    yield f"== round {traced.round}, attempt {traced.attempt}: {_facts(traced)}"
    for retry in _list(answer.get("retries")) or list(exchange.errors):
        yield f"asked again after: {_short(retry)}"
    yield f"sampling: {_short(request.get('sampling'))}"
    if "guided" in request:
        yield f"guided: {_short(request['guided'])}"
    for message in _list(request.get("messages")):
        role = message.get("role") if isinstance(message, Mapping) else "?"
        content = message.get("content") if isinstance(message, Mapping) else message
        yield f"-- {visible(str(role))}"
        yield lines_visible(str(content))
    if exchange.failed is not None:
        yield f"-- failed for good: {visible(exchange.failed, LONGEST_LINE)}"
        return
    if answer.get("thinking"):
        yield "-- thinking"
        yield lines_visible(str(answer["thinking"]))
    yield "-- too long for the model; asked again" if answer.get("overflow") else "-- answer"
    yield lines_visible(str(answer.get("text", "")))
    yield from _names(traced)


def round_text(row: Mapping[str, Any] | None) -> str:
    """How a round ended."""
    if row is None:
        return "The campaign was not scored: what became of the names is not known."
    return (
        f"== round {row['round']}: the proposer filled {row['accepted']} of "
        f"{row['proposal_slots']} slots, fallback {row['fallback']} of {row['fresh_slots']} fresh "
        "ones"
    )


def attempts_view(table: pd.DataFrame, title: str) -> Table:
    """Delivery of one campaign as a table.

    Args:
        table: Rows of `cads_env.report.llm.attempts_of`.
        title: What names the campaign.
    """
    shown = Table(
        title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 0), pad_edge=False
    )
    for column in COLUMNS:
        shown.add_column(column, justify="left" if column == "end" else "right", no_wrap=True)
    for row in table.to_dict("records"):
        shown.add_row(*map(Text, _cells({str(k): v for k, v in row.items()})))
    return shown


def as_json(place: Place, key: Key, traced: Traced) -> str:
    """An exchange as one line of JSON, ASCII only."""
    exchange = traced.exchange._asdict()
    names = None
    if traced.entries is not None:
        names = [list(entry) for entry in traced.entries]
    head = {"setting": place.setting} if place.setting else {}
    row = {**head, **key._asdict(), "round": traced.round, "attempt": traced.attempt}
    return json.dumps({**row, **exchange, "names": names}, ensure_ascii=True)


def _cells(row: Mapping[str, Any]) -> list[str]:
    retries = sum(int(v) for k, v in row.items() if k.startswith("retries_"))
    counts = [
        row["requested"], row["raw"], row["valid"], row["invalid"], row["duplicate"],
        row["already_tested"], row["over_delivered"], row["unparsed"] + row["empty"], retries,
        row["fallback"], row["tokens_in"], row["tokens_cached"], row["tokens_out"],
    ]  # fmt: skip
    end = visible(str(row["finish_reason"]), 20)
    if row["failed_requests"]:
        end = "FAILED"
    money = f"{row['cost']:.4f}" if row["cost"] else "0"
    round = "-" if row["round"] < 0 else str(row["round"])
    return [
        round, str(row["attempt"]), *(f"{int(x)}" for x in counts), f"{row['latency_s']:.2f}",
        money, end,
    ]  # fmt: skip


def _facts(traced: Traced) -> str:
    exchange = traced.exchange
    answer = exchange.answer or {}
    told = answer.get("usage")
    usage: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
    parts = [f"asked {visible(exchange.started)}, {exchange.seconds:.2f} s"]
    if exchange.answer is not None:
        parts += [
            f"{_short(usage.get('tokens_in', 0))} tokens in "
            f"({_short(usage.get('tokens_cached', 0))} cached), "
            f"{_short(usage.get('tokens_out', 0))} out",
            f"cost ${_short(usage.get('cost', 0))}",
            f"ended by {_short(answer.get('finish_reason', 'unknown'))}",
        ]
    said = [str(answer[name]) for name in ("model", "revision", "fingerprint") if answer.get(name)]
    return "; ".join([*parts, *([visible(", ".join(said), 200)] if said else [])])


def _names(traced: Traced) -> Iterator[str]:
    if traced.entries is None:
        return
    counts = Counter(entry.outcome for entry in traced.entries)
    told = ", ".join(f"{n} {visible(outcome)}" for outcome, n in counts.items())
    yield f"-- names: {len(traced.entries)}{f' ({told})' if told else ''}"
    width = min(40, max((len(visible(e.name)) for e in traced.entries), default=0))
    for entry in traced.entries:
        outcome = REASONS.get(entry.outcome, f"refused: {visible(entry.outcome)}")
        yield f"{visible(entry.name):<{width}}  {outcome}"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return visible(text, 400)

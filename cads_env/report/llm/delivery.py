"""Tables of what models delivered and what it cost, and of campaigns that failed.

Formats the sums of `attempts`; what a server or a model said is shown as text and cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import pandas as pd

from cads_env.report.content import Block, Paragraph, Table
from cads_env.report.llm.arms import SettingRun, arms_of
from cads_env.report.llm.asked import RETRIES
from cads_env.report.llm.attempts import RETRY_COUNTS
from cads_env.report.wording import UNDEFINED, counted, listed, number, visible

REASONS_LISTED: Final = 20
"""Reasons of failed campaigns that are listed, the most frequent first."""

_ENTRIES: Final = (
    ("raw", "entries"),
    ("valid", "valid"),
    ("accepted", "accepted"),
    ("over_delivered", "surplus"),
    ("invalid", "unknown"),
    ("duplicate", "repeated"),
    ("already_tested", "tested before"),
    ("fallback", "fallback"),
)
_ANSWERS: Final = (
    ("empty", "empty"),
    ("unparsed", "no entry read"),
    ("cut", "cut"),
    ("overflows", "too long"),
)


def delivery_table(frames: Mapping[str, pd.DataFrame], *, several: bool) -> Table:
    """Slots, entries and answers of every arm, means a campaign.

    Args:
        frames: `delivery_of` by setting.
        several: Whether the setting is worth a column.
    """
    rows = []
    for setting, frame in frames.items():
        for row in frame.to_dict("records"):
            n = row["campaigns"]
            if not n:
                continue
            means = [row["slots"], *(row[name] for name, _ in _ENTRIES)]
            means += [row["attempts"], *(row[name] for name, _ in _ANSWERS)]
            head = (visible(setting),) if several else ()
            cells = (number(value / n, 1) for value in means)
            rows.append((visible(str(row["arm"])), *head, f"{n:,}", *cells))
    columns = ("slots", *(title for _, title in _ENTRIES), "attempts")
    return Table(
        caption=f"Delivery{' in the other settings' if several else ''}, means a campaign",
        columns=(
            "arm",
            *(("setting",) if several else ()),
            "campaigns",
            *columns,
            *(title for _, title in _ANSWERS),
        ),
        rows=tuple(rows),
        words=(1,) if several else (),
        note=(
            "slots: open to the proposer; valid = accepted + surplus; unknown: names no candidate. "
            "Of the answers: empty, with text but no entry, cut at the most tokens, and requests "
            "too long for the model. Failed campaigns are not in it."
        ),
        folded=several,
    )


def by_attempt_table(attempts: pd.DataFrame) -> Table | None:
    """What a further try brings: valid names by attempt; None where no round has two.

    Args:
        attempts: From `attempts_of`, of one setting.
    """
    scored = attempts[(attempts["status"] == "scored") & (attempts["round"] >= 0)]
    rows = []
    for arm, mine in scored.groupby("arm", sort=False):
        if mine["attempt"].max() < 2:
            continue
        for attempt, part in mine.groupby("attempt", sort=True):
            counts = [int(part[c].sum()) for c in ("requested", "raw", "accepted")]
            refused = int(part[["invalid", "duplicate", "already_tested"]].sum().sum())
            share = counts[2] / counts[0] if counts[0] else float("nan")
            rows.append(
                (
                    visible(str(arm)),
                    str(attempt),
                    f"{len(part):,}",
                    *(f"{c:,}" for c in counts),
                    f"{refused:,}",
                    number(share),
                )
            )
    if not rows:
        return None
    return Table(
        caption="By attempt, all scored campaigns together",
        columns=(
            "arm", "attempt", "tries", "slots left", "entries", "accepted", "refused",
            "share of slots left",
        ),
        rows=tuple(rows),
        note="slots left: still to be filled when the try began.",
        folded=True,
    )  # fmt: skip


def spend_table(frames: Mapping[str, pd.DataFrame], *, several: bool) -> Table | None:
    """Requests, retries, tokens, time and cost of every arm in all; None without a request.

    Args:
        frames: `delivery_of` by setting.
        several: Whether the setting is worth a column.
    """
    rows = []
    for setting, frame in frames.items():
        for row in frame.to_dict("records"):
            if not row["requests"]:
                continue
            head = (visible(setting),) if several else ()
            share = row["tokens_cached"] / row["tokens_in"] if row["tokens_in"] else float("nan")
            rows.append(
                (
                    visible(str(row["arm"])),
                    *head,
                    f"{row['requests']:,}",
                    *(f"{row[name]:,}" for name in RETRY_COUNTS),
                    f"{row['failed_requests']:,}",
                    f"{row['tokens_in']:,}",
                    f"{row['tokens_out']:,}",
                    number(share),
                    number(row["latency_s"] / row["requests"]),
                    number(row["cost"], 4),
                )
            )
    if not rows:
        return None
    return Table(
        caption=f"Requests, tokens and cost{' by setting' if several else ' in all'}",
        columns=(
            "arm",
            *(("setting",) if several else ()),
            "requests",
            *(f"retries: {kind.replace('_', ' ')}" for kind in RETRIES),
            "failed",
            "tokens in",
            "tokens out",
            "share cached",
            "seconds a request",
            "cost",
        ),
        rows=tuple(rows),
        words=(1,) if several else (),
        note=(
            "Of all campaigns, failed ones as well, counted from the traces. cost: by the price "
            "table of the run; 0 where no price is known. Seconds hold retries and waits."
            f"{_unknown(pd.concat([*frames.values()]))}"
        ),
        folded=several,
    )


def answered_by(attempts: Mapping[str, pd.DataFrame]) -> Block | None:
    """Which models and servers answered, by their own report; None where nothing was asked."""
    said: dict[str, set[tuple[str, str]]] = {}
    for frame in attempts.values():
        asked = frame[
            (frame["requests"] > 0) & ((frame["model"] != "") | (frame["fingerprint"] != ""))
        ]
        for arm, model, mark in asked[["arm", "model", "fingerprint"]].itertuples(index=False):
            said.setdefault(str(arm), set()).add((str(model), str(mark)))
    if not said:
        return None
    parts = []
    for arm, found in said.items():
        names = [
            f"{visible(model)} ({visible(mark) or 'no fingerprint'})"
            for model, mark in sorted(found)
        ]
        several = " More than one: the arm is no single model." if len(found) > 1 else ""
        parts.append(f"{visible(arm)}: answered by {listed(names)}.{several}")
    return Paragraph(" ".join(parts))


def mixed_arms(attempts: Mapping[str, pd.DataFrame]) -> list[str]:
    """Arms whose answers came from more than one model or server."""
    found: dict[str, set[tuple[str, str]]] = {}
    for frame in attempts.values():
        asked = frame[frame["model"] != ""]
        for arm, model, mark in asked[["arm", "model", "fingerprint"]].itertuples(index=False):
            found.setdefault(str(arm), set()).add((str(model), str(mark)))
    return [arm for arm, said in found.items() if len(said) > 1]


def failures_table(settings: Sequence[SettingRun], *, several: bool) -> Table | None:
    """Failed campaigns by arm and reason; None where none failed.

    Args:
        settings: The runs.
        several: Whether the setting is worth a column.
    """
    counts: Counter[tuple[str, str, str]] = Counter(
        (s.name, f.arm, visible(f.reason, 300)) for s in settings for f in s.run.failures
    )
    if not counts:
        return None
    rows = []
    for (setting, arm, reason), count in counts.most_common(REASONS_LISTED):
        head = (visible(setting),) if several else ()
        rows.append((visible(arm), *head, f"{count:,}", reason))
    note = ""
    if len(counts) > REASONS_LISTED:
        note = f"The most frequent of {len(counts):,} reasons; all are in failures.jsonl."
    return Table(
        caption="Failed campaigns by reason",
        columns=("arm", *(("setting",) if several else ()), "campaigns", "reason"),
        rows=tuple(rows),
        words=(1, 3) if several else (2,),
        note=note,
    )


def guided_note(settings: Sequence[SettingRun]) -> str:
    """That some arms were guided, by name; empty where none was."""
    names = dict.fromkeys(
        arm.name for s in settings for arm in arms_of(s.run).values() if arm.is_guided
    )
    if not names:
        return ""
    arms = "arm" if len(names) == 1 else "arms"
    return (
        f"Guided {arms}: {listed([visible(name) for name in names])}. A grammar forced the "
        "answers to be names of candidates, so delivery is not the model's own merit there."
    )


def failed_words(settings: Sequence[SettingRun]) -> str:
    """How many campaigns failed, of how many that were planned."""
    failed = sum(len(s.run.failures) for s in settings)
    planned = sum(s.run.planned for s in settings)
    if not failed:
        return f"None of {counted(planned, 'campaign')}."
    return f"{failed:,} of {counted(planned, 'campaign')}, left out of every mean; reasons below."


def spent_words(total: pd.DataFrame) -> str:
    """Requests, tokens and cost; '-' where nothing was asked.

    Args:
        total: From `delivery_of`.
    """
    requests = int(total["requests"].sum())
    if not requests:
        return UNDEFINED
    tokens = [int(total[c].sum()) for c in ("tokens_in", "tokens_out", "tokens_cached")]
    return (
        f"{counted(requests, 'request')}, {tokens[0]:,} tokens in ({tokens[2]:,} cached), "
        f"{tokens[1]:,} out, cost {number(float(total['cost'].sum()), 2)}.{_unknown(total)}"
    )


def _unknown(total: pd.DataFrame) -> str:
    """What the sums leave out, in words; empty where they are whole."""
    uncounted, unpriced = (int(total[name].sum()) for name in ("uncounted", "unpriced"))
    parts = []
    if uncounted:
        parts.append(f"the tokens of {counted(uncounted, 'answer')}, which the server did not tell")
    if unpriced:
        parts.append(f"the cost of {counted(unpriced, 'answer')}, for which no price is known")
    return f" Left out: {'; '.join(parts)}." if parts else ""

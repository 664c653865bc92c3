"""A run over its rounds: delivery, budget, and when certified candidates were first read.

Sums the rows of rounds and declarations by arm and round; decides nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import pandas as pd

from cads_env.report.content import Block, Figure, Paragraph, Section, Table
from cads_env.report.figures.rounds import RoundMeans, draw_rounds
from cads_env.report.wording import UNDEFINED, last_rounds, number, visible
from cads_env.run.result import RunResult

ARMS_DRAWN: Final = 12
ROUNDS_LISTED: Final = 400
USAGE_LISTED: Final = 8
"""Kinds of usage (tokens and the like) that get a column."""

_DELIVERY: Final = ("proposal_slots", "valid", "accepted", "fallback")
_BUDGET: Final = (
    ("reads", "reads"),
    ("observed", "candidates read"),
    ("fresh_slots", "fresh slots"),
    ("proposal_slots", "proposal slots"),
    ("raw", "entries"),
    ("valid", "valid"),
    ("accepted", "accepted"),
    ("over_delivered", "surplus"),
    ("invalid", "unknown"),
    ("duplicate", "repeated"),
    ("already_tested", "tested before"),
    ("fallback", "fallback"),
    ("unspent", "unspent reads"),
    ("attempts", "attempts"),
)


def round_means(result: RunResult) -> dict[str, tuple[RoundMeans, ...]]:
    """What each round of each arm held per campaign; arms without campaigns are left out."""
    if not len(result.rounds):
        return {}
    counts = result.campaigns.groupby("arm", sort=False).size()
    sums = result.rounds.groupby(["arm", "round"], sort=True)[list(_DELIVERY)].sum()
    hits = result.declarations[result.declarations["is_hit"].astype(bool)]
    by_round = hits.groupby(["arm", "first_round"]).size().to_dict()
    mine = hits[hits["origin"] == "proposer"]
    originated = mine.groupby(["arm", "first_round"]).size().to_dict()
    found: dict[str, tuple[RoundMeans, ...]] = {}
    for name in result.arms:
        if name not in counts.index:
            continue
        n = float(counts.loc[name])
        rows = sums.loc[name]
        found[name] = tuple(
            RoundMeans(
                round=int(number_of),
                slots=float(rows.loc[number_of, "proposal_slots"]) / n,
                proposed=float(rows.loc[number_of, "valid"]) / n,
                accepted=float(rows.loc[number_of, "accepted"]) / n,
                fallback=float(rows.loc[number_of, "fallback"]) / n,
                certified=by_round.get((name, number_of), 0) / n,
                by_proposer=originated.get((name, number_of), 0) / n,
            )
            for number_of in rows.index.tolist()
        )
    return found


def rounds_section(result: RunResult) -> Section:
    """Slots and certified hits by round, with the reach."""
    means = round_means(result)
    drawings = tuple(
        draw_rounds(name, rounds, list(result.arms[name].reach.values()))
        for name, rounds in list(means.items())[:ARMS_DRAWN]
    )
    words = Paragraph(
        "What is first read after the reach comes too late: it cannot gather enough reads to be "
        "certified beside as many others as the reference certifies."
    )
    figure = Figure(
        caption=(
            "Above: fresh slots filled so far, a campaign. Below: certified hits by the round in "
            "which they were first read. The broken line marks the reach."
        ),
        drawings=drawings,
        data=_round_table(means),
        key=(("arm", "named by the proposer"), ("fallback", "drawn by the fallback")),
    )
    return Section(
        key="rounds", title="Delivery and certified hits by round", blocks=(words, figure)
    )


def _round_table(means: Mapping[str, Sequence[RoundMeans]]) -> Table:
    rows = [
        (
            visible(name),
            str(r.round),
            number(r.slots, 1),
            number(r.proposed, 1),
            number(r.accepted, 1),
            number(r.fallback, 1),
            number(r.certified),
            number(r.by_proposer),
        )
        for name, rounds in means.items()
        for r in rounds
    ]
    note = ""
    if len(rows) > ROUNDS_LISTED:
        note = f"The first {ROUNDS_LISTED} of {len(rows):,} rows; all follow from rounds.jsonl."
    return Table(
        caption="Means a campaign by round",
        columns=(
            "arm", "round", "proposal slots", "valid proposals", "accepted", "fallback",
            "certified hits first read", "of these by the proposer",
        ),
        rows=tuple(rows[:ROUNDS_LISTED]),
        note=note,
        folded=True,
    )  # fmt: skip


def budget_section(result: RunResult) -> Section:
    """What a campaign spent: reads, slots, entries, attempts, usage; and the reach."""
    blocks: list[Block] = [_budget_table(result), _reach_table(result)]
    usage = _usage_table(result)
    if usage is not None:
        blocks.append(usage)
    return Section(key="budget", title="Budget and delivery", blocks=tuple(blocks))


def _budget_table(result: RunResult) -> Table:
    groups = dict(tuple(result.campaigns.groupby("arm", sort=False)))
    rows = tuple(
        (
            visible(name),
            *(
                number(float(groups[name][column].mean()), 1) if name in groups else UNDEFINED
                for column, _ in _BUDGET
            ),
        )
        for name in result.arms
    )
    return Table(
        caption="Means a campaign",
        columns=("arm", *(title for _, title in _BUDGET)),
        rows=rows,
        note=(
            "entries = valid + unknown + repeated + tested before; valid = accepted + surplus; "
            "fresh slots = accepted + fallback."
        ),
    )


def _reach_table(result: RunResult) -> Table:
    rows = []
    for name, arm in result.arms.items():
        rows.append(
            (
                visible(name),
                last_rounds(arm.reach.values()),
                number(arm.slots, 1),
                number(arm.slots_in_reach, 1),
                number(arm.filled, 1),
                number(arm.filled_in_reach, 1),
            )
        )
    return Table(
        caption="Reach, means a campaign",
        columns=(
            "arm", "last round in reach", "proposal slots", "in reach", "filled by the proposer",
            "in reach and filled",
        ),
        rows=tuple(rows),
    )  # fmt: skip


def usage_sums(rounds: pd.DataFrame) -> dict[str, Counter[str]]:
    """Sums of what proposers reported as usage, by arm and kind."""
    sums: dict[str, Counter[str]] = {}
    for arm, usage in zip(rounds["arm"], rounds["usage"], strict=True):
        if usage:
            mine = sums.setdefault(str(arm), Counter())
            for kind, value in usage.items():
                mine[str(kind)] += value
    return sums


def _usage_table(result: RunResult) -> Table | None:
    sums = usage_sums(result.rounds)
    kinds = sorted({kind for mine in sums.values() for kind in mine})
    if not kinds:
        return None
    shown = kinds[:USAGE_LISTED]
    rows = tuple(
        (
            visible(name),
            *(
                f"{number(sums[name][k], 0)} ({number(sums[name][k] / arm.n, 1)})"
                if name in sums
                else UNDEFINED
                for k in shown
            ),
        )
        for name, arm in result.arms.items()
    )
    note = "Sum over scored campaigns, and in brackets the mean a campaign."
    if len(kinds) > len(shown):
        note += f" The first {len(shown)} of {len(kinds):,} kinds; all are in rounds.jsonl."
    return Table(
        caption="Usage that the proposers reported",
        columns=("arm", *(visible(kind, 40) for kind in shown)),
        rows=rows,
        note=note,
    )

"""A campaign over its rounds: how slots were filled, and when certified candidates were first read.

Both panels share the axis of rounds, and both mark the reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cads_env.report.content import Drawing, Element
from cads_env.report.figures.marks import Scale, label, line, scale_over, y_axis
from cads_env.report.wording import last_rounds, number, visible

_LEFT, _RIGHT = 11.0, 98.0
_TOP = 34.0
_PANEL = 120.0
_GAP = 34.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundMeans:
    """What one round of an arm held, per campaign.

    Attributes:
        round: Its number, from 0.
        slots: Proposal slots.
        proposed: Valid entries of the answers.
        accepted: Slots filled by the proposer.
        fallback: Fresh slots filled by the fallback.
        certified: Declared hits first read in it.
        by_proposer: Those of them that the proposer named first.
    """

    round: int
    slots: float
    proposed: float
    accepted: float
    fallback: float
    certified: float
    by_proposer: float


def draw_rounds(arm: str, rounds: Sequence[RoundMeans], reach: Sequence[int]) -> Drawing:
    """Cumulative slots above, certified hits by round of first read below.

    Args:
        arm: Name of the arm.
        rounds: One entry a round, in order, at least one.
        reach: Last round in reach, one entry a registry size; the smallest and largest are marked.
    """
    count = len(rounds)
    width = (_RIGHT - _LEFT) / count
    sums = _cumulate(rounds)
    top = scale_over([a + f for a, f, _ in sums], start=_TOP + _PANEL, end=_TOP)
    low = _TOP + 2 * _PANEL + _GAP
    bottom = scale_over([r.certified for r in rounds], start=low, end=low - _PANEL)
    marks = [
        label(_LEFT, 12, "fresh slots filled so far", "axis"),
        *y_axis(top, left=_LEFT, right=_RIGHT, count=3),
        label(_LEFT, _TOP + _PANEL + _GAP - 8, "certified, by round of first read", "axis"),
        *y_axis(bottom, left=_LEFT, right=_RIGHT, count=3),
    ]
    for i, (entry, (accepted, fallback, _)) in enumerate(zip(rounds, sums, strict=True)):
        left = _LEFT + (i + 0.12) * width
        right = _LEFT + (i + 0.88) * width
        marks.append(_column(left, right, top(accepted), top(0), "arm"))
        marks.append(_column(left, right, top(accepted + fallback), top(accepted), "fallback"))
        mine = bottom(entry.by_proposer)
        marks.append(_column(left, right, mine, bottom(0), "arm"))
        marks.append(_column(left, right, bottom(entry.certified), mine, "fallback"))
    marks += _rounds_axis(count, width, low)
    marks += _reach_marks(reach, count, width, top, low)
    name = visible(arm, 40)
    filled, spare, proposed = sums[-1]
    ends = sorted({min(reach), max(reach)}) if reach else []
    said = last_rounds(ends) if ends else "unknown"
    late = sum(r.certified for r in rounds if ends and r.round > ends[0])
    return Drawing(
        heading=name,
        title=f"Delivery and certified hits by round: {name}",
        description=(
            f"{name}: after {count} rounds {number(proposed, 1)} valid proposals a campaign, "
            f"{number(filled, 1)} slots filled by the proposer and {number(spare, 1)} by the "
            f"fallback. Last round in reach: {said}. Certified hits first read after it: "
            f"{number(late)} a campaign."
        ),
        height=low + 40,
        marks=tuple(marks),
    )


def _cumulate(rounds: Sequence[RoundMeans]) -> list[tuple[float, float, float]]:
    """Accepted, fallback and proposed up to each round."""
    sums, accepted, fallback, proposed = [], 0.0, 0.0, 0.0
    for entry in rounds:
        accepted += entry.accepted
        fallback += entry.fallback
        proposed += entry.proposed
        sums.append((accepted, fallback, proposed))
    return sums


def _column(left: float, right: float, top: float, bottom: float, kind: str) -> Element:
    return Element(
        "rect",
        (
            ("class", kind),
            ("x", f"{left:.2f}%"),
            ("y", top),
            ("width", f"{right - left:.2f}%"),
            ("height", max(0.0, bottom - top)),
        ),
    )


def _rounds_axis(count: int, width: float, y: float) -> list[Element]:
    every = max(1, -(-count // 12))
    marks = [
        label(_LEFT + (i + 0.5) * width, y + 15, str(i), "tick", "middle")
        for i in range(0, count, every)
    ]
    return [*marks, label((_LEFT + _RIGHT) / 2, y + 33, "round", "axis", "middle")]


def _reach_marks(
    reach: Sequence[int], count: int, width: float, top: Scale, bottom: float
) -> list[Element]:
    marks: list[Element] = []
    for last in sorted({min(reach), max(reach)}) if reach else []:
        if last + 1 >= count:
            continue
        x = _LEFT + (last + 1) * width
        marks.append(line(x, top.end - 4, x, bottom, "reach"))
        anchor = "start" if x < 60 else "end"
        aside = x + 1 if anchor == "start" else x - 1
        said = f"reach: {f'round {last}' if last >= 0 else 'none'}"
        marks.append(label(aside, 27, said, "axis strong halo", anchor))
    return marks

"""The chain in one picture: hits read, certified, the twin's, and what is left as net."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cads_env.report.content import Drawing, Element
from cads_env.report.figures.marks import bar, label, line, scale_over, whisker, x_axis
from cads_env.report.wording import counted, interval, number, signed, visible
from cads_env.run.result import ArmResult

_LEFT, _RIGHT = 24.0, 82.0
_COMMON = 4.0
"""Arms whose largest numbers differ by a larger factor get an axis each."""
_ROW = 34.0
_BAR = 16.0


def draw_chain(arms: Sequence[ArmResult]) -> tuple[Drawing, ...]:
    """One picture an arm that has scored campaigns, on one axis or on an axis each.

    Args:
        arms: Summaries.
    """
    shown = [arm for arm in arms if arm.n]
    ends = {arm.arm: _ends(arm) for arm in shown}
    every = [v for values in ends.values() for v in values]
    together = has_common_axis(arms)
    return tuple(_draw(arm, every if together else ends[arm.arm]) for arm in shown)


def has_common_axis(arms: Sequence[ArmResult]) -> bool:
    """Whether the pictures share one axis: their largest numbers are within a factor of 4."""
    largest = [max(_ends(arm)) for arm in arms if arm.n]
    return not largest or max(largest) <= _COMMON * min(largest)


def _ends(arm: ArmResult) -> list[float]:
    values = (arm.raw_hits, arm.true, arm.twin, *_net_ends(arm))
    return [v for v in values if math.isfinite(v)]


def _net_ends(arm: ArmResult) -> tuple[float, float]:
    return arm.twin + arm.net.low, arm.twin + arm.net.high


def _draw(arm: ArmResult, ends: Sequence[float]) -> Drawing:
    x = scale_over(ends, start=_LEFT, end=_RIGHT)
    rows = (
        ("hits read", arm.raw_hits, "raw"),
        ("certified", arm.true, "arm"),
        ("its twin", arm.twin, "twin"),
    )
    bottom = 4 * _ROW + 8
    marks: list[Element] = x_axis(x, top=4, bottom=bottom, title="hits a campaign")
    # The net is what lies between the ends of these two bars.
    for value, first in ((arm.true, 1), (arm.twin, 2)):
        top = 8 + first * _ROW + _BAR
        marks.append(line(x(value), top, x(value), 8 + 3 * _ROW + _BAR, "guide"))
    for i, (name, value, kind) in enumerate(rows):
        y = 8 + i * _ROW
        marks.append(label(_LEFT - 2, y + 13, name, "label", "end"))
        marks.append(bar(x(0), y, x(value), _BAR, kind))
        marks.append(label(x(value) + 1.5, y + 13, _short(value), "value halo"))
    y = 8 + 3 * _ROW
    marks.append(label(_LEFT - 2, y + 13, "net", "label strong", "end"))
    marks.append(bar(x(arm.twin), y, x(arm.true), _BAR, "gain" if arm.net.mean >= 0 else "loss"))
    low, high = _net_ends(arm)
    right = x(max(arm.true, arm.twin))
    if not math.isnan(low):
        marks += whisker(x(low), x(high), y + _BAR / 2)
        right = max(right, x(high))
    marks.append(
        label(right + 1.5, y + 13, signed(arm.net.mean, _digits(arm.net.mean)), "value strong")
    )
    name = visible(arm.arm, 40)
    return Drawing(
        heading=name,
        title=f"From hits read to net: {name}",
        description=(
            f"{name}, means over {counted(arm.n, 'campaign')}: {number(arm.raw_hits)} hits read, "
            f"{number(arm.true)} of them certified, its twin certifies {number(arm.twin)}, net "
            f"{signed(arm.net.mean)} {interval(arm.net.low, arm.net.high)}."
        ),
        height=bottom + 40,
        marks=tuple(marks),
    )


def _digits(value: float) -> int:
    """Digits after the point that leave a number short enough to stand beside its bar."""
    return 2 if abs(value) < 1000 else 0


def _short(value: float) -> str:
    return number(value, _digits(value))

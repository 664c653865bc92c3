"""Net by campaign: one stack of dots a value, one row an arm or a registry, on one axis.

Beyond a few hundred campaigns a row's dots become bars of counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from cads_env.inference import Estimate
from cads_env.report.content import Drawing, Element
from cads_env.report.figures.marks import (
    Scale,
    bar,
    dot,
    label,
    line,
    scale_over,
    whisker,
    x_axis,
)
from cads_env.report.wording import counted, interval, shortened, signed, visible

_LEFT, _RIGHT = 3.0, 97.0
_DOTS = 7
"""Dots stacked on one place; a higher stack is drawn as bars."""
_STEP = 7.0
_BINS = 60
_BODY = _DOTS * _STEP


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the picture.

    Attributes:
        name: What it is called.
        values: Net of each campaign.
        estimate: Their mean and interval.
    """

    name: str
    values: Sequence[float]
    estimate: Estimate


def draw_strip(rows: Sequence[Row], *, title: str, heading: str = "") -> Drawing:
    """The rows under one another.

    Args:
        rows: At least one, each with at least one value.
        title: Name of the picture.
        heading: Words above it.
    """
    every = [v for row in rows for v in (*row.values, row.estimate.low, row.estimate.high)]
    x = scale_over(every, start=_LEFT, end=_RIGHT)
    marks: list[Element] = []
    y = 0.0
    bodies: list[Element] = []
    for row in rows:
        drawn, height = _row(row, x, y)
        bodies += drawn
        y += height
    marks += x_axis(x, top=4, bottom=y, title="net (certified hits more than the twin)", count=6)
    said = "; ".join(
        f"{visible(row.name, 40)}: mean {signed(row.estimate.mean)} "
        f"{interval(row.estimate.low, row.estimate.high)} over "
        f"{counted(len(row.values), 'campaign')}, from {signed(min(row.values), 0)} to "
        f"{signed(max(row.values), 0)}"
        for row in rows
    )
    return Drawing(
        heading=heading,
        title=title,
        description=f"{said}.",
        height=y + 40,
        marks=(*marks, *bodies),
    )


def _row(row: Row, x: Scale, top: float) -> tuple[list[Element], float]:
    """The marks of one row that starts at `top`, and its height."""
    width = (x.high - x.low) / _BINS
    bins = Counter(math.floor((v - x.low) / width) for v in row.values)
    highest = max(bins.values())
    values = sorted(row.values)
    is_dots = highest <= _DOTS
    body = _STEP * min(highest, _DOTS) if is_dots else _BODY
    base = top + 30 + body
    marks = [label(_LEFT, top + 18, shortened(row.name, 20), "label strong halo")]
    if is_dots:
        stacked: Counter[int] = Counter()
        for value in values:
            place = math.floor((value - x.low) / width)
            marks.append(dot(x(value), base - 4 - _STEP * stacked[place], 3.2, "dot"))
            stacked[place] += 1
    else:
        half = (_RIGHT - _LEFT) / _BINS / 2
        for place, count in sorted(bins.items()):
            high = body * count / highest
            middle = x(_middle(place, values, x, width))
            marks.append(bar(middle - half, base - high, middle + half, high, "dot"))
    estimate = row.estimate
    y = base + 9
    if not math.isnan(estimate.low):
        marks += whisker(x(estimate.low), x(estimate.high), y)
    marks.append(dot(x(estimate.mean), y, 4.5, "mean"))
    said = f"{signed(estimate.mean)} {interval(estimate.low, estimate.high)}".removesuffix(" -")
    marks.append(label(_RIGHT, top + 18, said, "value halo", "end"))
    marks.append(line(_LEFT, base + 20, _RIGHT, base + 20, "grid"))
    return marks, base + 20 - top


def _middle(place: int, values: Sequence[float], x: Scale, width: float) -> float:
    """Where a bin's bar stands: on the mean of its values, so that a single value is not moved."""
    inside = [v for v in values if math.floor((v - x.low) / width) == place]
    return sum(inside) / len(inside)

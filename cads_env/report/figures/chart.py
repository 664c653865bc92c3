"""A chart of a study: one line a series over a common axis, with its error bars and its key.

Series differ in dash and fill as well as in colour. Words on the axis of categories stand below one
another where they would collide. Never computes what it shows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from cads_env.report.content import Drawing, Element, Figure, Table
from cads_env.report.figures.marks import (
    DIAMONDS,
    Scale,
    diamond,
    dot,
    label,
    line,
    scale_over,
    x_axis,
    y_axis,
)
from cads_env.report.wording import UNDEFINED, number, plain, shortened
from cads_env.studies.tables import Chart, Series

STYLES: Final = 6
"""Kinds of lines; with more series they are used again."""

_LEFT, _RIGHT = 8.0, 97.0
_TOP, _BOTTOM = 26.0, 286.0
_LEVELS: Final = 3
"""Heights at which words of an axis of categories stand in turn."""


def draw_chart(chart: Chart) -> Figure:
    """The picture of a chart and the table of its numbers.

    Args:
        chart: What is drawn; a series may be shorter than the others or hold NaN.
    """
    categories = _categories(chart)
    places = [_places(s, categories) for s in chart.series]
    x = _x_scale(places, categories)
    y = _y_scale(chart)
    marks: list[Element] = y_axis(y, left=_LEFT, right=_RIGHT, count=5)
    marks.append(label(_LEFT, 13, chart.y_label, "axis"))
    bottom = _BOTTOM
    if categories:
        marks += _words(categories, x)
        bottom += 15 * (min(_LEVELS, len(categories)) - 1)
        marks.append(label((_LEFT + _RIGHT) / 2, bottom + 33, chart.x_label, "axis", "middle"))
    else:
        marks += x_axis(x, top=_TOP, bottom=_BOTTOM, title=chart.x_label, count=6, zero=False)
    key: list[tuple[str, str]] = []
    for i, (series, at) in enumerate(zip(chart.series, places, strict=True)):
        kind = "reference" if series.is_reference else f"s{i % STYLES}"
        marks += _line(series, at, x, y, kind, joined=not categories or series.is_reference)
        is_line = not categories or series.is_reference
        key.append((f"{kind}-line" if is_line else f"{kind}-dot", series.name))
    drawing = Drawing(
        heading="",
        title=chart.title,
        description=_said(chart),
        height=bottom + 42,
        marks=tuple(marks),
    )
    return Figure(
        caption=chart.caption,
        drawings=(drawing,),
        data=_data(chart, categories),
        key=tuple(key),
        is_wide=True,
    )


def _categories(chart: Chart) -> list[str]:
    """The words of the axis, in order; empty for an axis of numbers."""
    words = [x for s in chart.series for x in s.x if isinstance(x, str)]
    return list(dict.fromkeys(words))


def _places(series: Series, categories: Sequence[str]) -> list[float]:
    if categories:
        return [float(categories.index(str(x))) for x in series.x]
    return [float(x) for x in series.x]


def _x_scale(places: Sequence[Sequence[float]], categories: Sequence[str]) -> Scale:
    if categories:
        return Scale(low=-0.5, high=len(categories) - 0.5, start=_LEFT, end=_RIGHT)
    every = [p for at in places for p in at] or [0.0, 1.0]
    # Tick labels of the ends stand inside the picture.
    return scale_over(every, start=_LEFT, end=_RIGHT - 1.5, include=())


def _y_scale(chart: Chart) -> Scale:
    if chart.y_range is not None:
        low, high = chart.y_range
        return Scale(low=low, high=high, start=_BOTTOM, end=_TOP)
    every = [v for s in chart.series for v in _reach(s)]
    return scale_over(every, start=_BOTTOM, end=_TOP)


def _reach(series: Series) -> list[float]:
    error = series.error or [0.0] * len(series.y)
    ends = [v + s * e for v, e in zip(series.y, error, strict=True) for s in (-1, 1)]
    return [v for v in ends if math.isfinite(v)]


def _words(categories: Sequence[str], x: Scale) -> list[Element]:
    room = int((_RIGHT - _LEFT) / len(categories) * _LEVELS * 1.05)
    marks = []
    for i, word in enumerate(categories):
        # Words at the ends grow inwards, so that a narrow page does not cut them.
        at, anchor = x(float(i)), "middle"
        if i == len(categories) - 1:
            at, anchor = _RIGHT, "end"
        elif i == 0:
            at, anchor = _LEFT, "start"
        text = shortened(word, max(8, room))
        marks.append(label(at, _BOTTOM + 17 + 15 * (i % _LEVELS), text, "tick", anchor))
    return marks


def _line(
    series: Series, at: Sequence[float], x: Scale, y: Scale, kind: str, *, joined: bool
) -> list[Element]:
    marks: list[Element] = []
    points = [(x(a), y(v)) for a, v in zip(at, series.y, strict=True) if math.isfinite(v)]
    if joined:
        for (x1, y1), (x2, y2) in pairwise(points):
            marks.append(line(x1, y1, x2, y2, f"{kind}-line"))
    if series.is_reference:
        return marks
    for i, (a, v) in enumerate(zip(at, series.y, strict=True)):
        if not math.isfinite(v):
            continue
        if series.error is not None and math.isfinite(series.error[i]):
            low, high = y(v - series.error[i]), y(v + series.error[i])
            marks.append(line(x(a), low, x(a), high, f"{kind}-bar"))
        drawn = diamond(x(a), y(v), 5.5, f"{kind}-dot") if kind in DIAMONDS else None
        marks.append(drawn or dot(x(a), y(v), 4.0, f"{kind}-dot"))
    return marks


def _said(chart: Chart) -> str:
    parts = []
    for series in chart.series:
        places: list[float | str] = list(series.x)
        said = [f"{_x_text(x)}: {_value(v)}" for x, v in zip(places, series.y, strict=True)]
        parts.append(f"{series.name}: {', '.join(said)}")
    return f"{chart.y_label} by {chart.x_label}. {'; '.join(parts)}."


def _x_text(x: float | str) -> str:
    return x if isinstance(x, str) else plain(x)


def _value(value: float) -> str:
    if not math.isfinite(value):
        return UNDEFINED
    return number(value, 4) if abs(value) < 10 else number(value, 2)


def _data(chart: Chart, categories: Sequence[str]) -> Table:
    """The numbers of a chart: a row a position, a column a series."""
    positions: list[float | str] = (
        list(categories) if categories else sorted({float(x) for s in chart.series for x in s.x})
    )
    values = [dict(zip(map(_x_text, s.x), s.y, strict=True)) for s in chart.series]
    rows = tuple(
        (_x_text(p), *(_value(v.get(_x_text(p), math.nan)) for v in values)) for p in positions
    )
    return Table(
        caption=f"{chart.title}: the numbers",
        columns=(chart.x_label, *(s.name for s in chart.series)),
        rows=rows,
        folded=True,
    )

"""The marks of every picture: scales, axes, bars, lines, dots and labels.

Horizontal positions are percentages of the picture's width and vertical ones are pixels, so that a
picture fills a phone and a page alike without stretching its text. Colours are class names; the
page's style sheet gives them per theme. Never makes markup: that is the renderer's work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cads_env.report.content import Element
from cads_env.report.wording import plain

DIAMONDS: Final = ("s2", "s3")
"""Series of a chart whose points are diamonds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A linear map from values to positions.

    Attributes:
        low: Value at `start`.
        high: Value at `end`; above `low`.
        start: Position of `low`.
        end: Position of `high`; smaller than `start` for an axis that points up.
    """

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The position of a value; values outside the range are moved to its edge."""
        inside = min(max(value, self.low), self.high)
        return self.start + (inside - self.low) / (self.high - self.low) * (self.end - self.start)


def scale_over(
    values: Sequence[float], *, start: float, end: float, include: Sequence[float] = (0.0,)
) -> Scale:
    """A scale that holds all values, with its ends on round numbers.

    Args:
        values: What is to be drawn; not finite ones are left out.
        start: Position of the low end.
        end: Position of the high end.
        include: Values that the axis must show too.
    """
    known = [v for v in (*values, *include) if math.isfinite(v)] or [0.0]
    low, high = min(known), max(known)
    if high - low < 1e-12:
        low, high = low - 1.0, high + 1.0
    step = _step(high - low, 4)
    return Scale(
        low=math.floor(low / step + 1e-9) * step,
        high=math.ceil(high / step - 1e-9) * step,
        start=start,
        end=end,
    )


def ticks(scale: Scale, count: int = 4) -> list[float]:
    """Round numbers inside a scale, about `count` of them."""
    step = _step(scale.high - scale.low, count)
    first = math.ceil(scale.low / step - 1e-9)
    last = math.floor(scale.high / step + 1e-9)
    return [n * step for n in range(first, last + 1)]


def _step(width: float, count: int) -> float:
    """The largest of 1, 2, 5 times a power of ten that gives at least about `count` steps."""
    rough = width / count
    power = 10.0 ** math.floor(math.log10(rough))
    return max(m * power for m in (1.0, 2.0, 5.0) if m * power <= rough * (1 + 1e-9))


def _percent(x: float) -> str:
    return f"{x:.2f}%"


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Element:
    """A straight line; x in percent, y in pixels."""
    return Element(
        "line",
        (("class", kind), ("x1", _percent(x1)), ("y1", y1), ("x2", _percent(x2)), ("y2", y2)),
    )


def bar(x1: float, y: float, x2: float, height: float, kind: str) -> Element:
    """A rectangle between two horizontal positions."""
    low, width = min(x1, x2), abs(x2 - x1)
    return Element(
        "rect",
        (
            ("class", kind),
            ("x", _percent(low)),
            ("y", y),
            ("width", _percent(width)),
            ("height", height),
        ),
    )


def dot(x: float, y: float, radius: float, kind: str) -> Element:
    """A circle."""
    return Element("circle", (("class", kind), ("cx", _percent(x)), ("cy", y), ("r", radius)))


def diamond(x: float, y: float, radius: float, kind: str) -> Element:
    """A diamond."""
    # A nested picture, since only that can be moved by percent and pixels at once.
    shape = Element(
        "path", (("class", kind), ("d", f"M0 {-radius}L{radius} 0L0 {radius}L{-radius} 0Z"))
    )
    place = (("class", "mark"), ("aria-hidden", "true"), ("x", _percent(x)), ("y", y))
    return Element("svg", (*place, ("width", 1.0), ("height", 1.0)), (shape,))


def label(x: float, y: float, text: str, kind: str = "label", anchor: str = "start") -> Element:
    """Text on a baseline; `anchor` is start, middle or end."""
    return Element("text", (("class", f"{kind} {anchor}"), ("x", _percent(x)), ("y", y)), (text,))


def whisker(low: float, high: float, y: float, kind: str = "whisker") -> list[Element]:
    """An interval as a line with ends."""
    return [
        line(low, y, high, y, kind),
        line(low, y - 4, low, y + 4, kind),
        line(high, y - 4, high, y + 4, kind),
    ]


def x_axis(
    scale: Scale, *, top: float, bottom: float, title: str, count: int = 4, zero: bool = True
) -> list[Element]:
    """Vertical grid lines with their numbers below, and what the axis measures."""
    marks: list[Element] = []
    for value in ticks(scale, count):
        is_zero = zero and abs(value) < 1e-9
        marks.append(line(scale(value), top, scale(value), bottom, "zero" if is_zero else "grid"))
        marks.append(label(scale(value), bottom + 15, plain(round(value, 9)), "tick", "middle"))
    if title:
        marks.append(label((scale.start + scale.end) / 2, bottom + 33, title, "axis", "middle"))
    return marks


def y_axis(scale: Scale, *, left: float, right: float, count: int = 4) -> list[Element]:
    """Horizontal grid lines with their numbers to the left."""
    marks: list[Element] = []
    for value in ticks(scale, count):
        y = scale(value)
        marks.append(line(left, y, right, y, "zero" if abs(value) < 1e-9 else "grid"))
        marks.append(label(left - 1.2, y + 4, plain(round(value, 9)), "tick", "end"))
    return marks

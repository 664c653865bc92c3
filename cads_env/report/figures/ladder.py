"""The e-value ladder: evidence in order of size against the line that e-BH draws."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cads_env.report.content import Drawing, Element
from cads_env.report.figures.marks import Scale, dot, label, line, scale_over, y_axis
from cads_env.report.wording import counted, number, shortened, visible

_LEFT, _RIGHT = 9.0, 97.0
_TOP, _BOTTOM = 24.0, 234.0
LOWEST = -2.0
"""Log evidence below this is not drawn."""
_POINTS = 240
"""Points drawn; of a longer ladder those beyond the declared ones are thinned."""


def draw_ladder(
    arm: str,
    log_e: Sequence[float],
    *,
    declared: int,
    m: int,
    q: float,
    registry: str,
    seed: int,
) -> Drawing:
    """Sorted log evidence by rank on a log axis, with the line ln(m / (q k)).

    Args:
        arm: Name of the arm.
        log_e: Log evidence, largest first, at least one.
        declared: How many were declared.
        m: Registry size.
        q: Level.
        registry: Registry of the campaign, for the words.
        seed: Its seed.
    """
    shown = [(k, v) for k, v in enumerate(log_e, 1) if v >= LOWEST]
    last = max(shown[-1][0] if shown else 1, declared, 10)
    bars = [math.log(m / (q * k)) for k in (1, last)]
    finite = [v for _, v in shown if math.isfinite(v)]
    y = scale_over([*finite, *bars], start=_BOTTOM, end=_TOP)
    x = Scale(low=0.0, high=math.log10(last), start=_LEFT, end=_RIGHT)
    marks: list[Element] = y_axis(y, left=_LEFT, right=_RIGHT, count=4)
    for power in range(math.floor(x.high) + 1):
        for k in (1, 2, 5):
            if (rank := k * 10**power) <= last:
                at = x(math.log10(rank))
                marks.append(line(at, _BOTTOM, at, _BOTTOM + 4, "zero"))
                marks.append(label(at, _BOTTOM + 17, f"{rank:,}", "tick", "middle"))
    marks.append(label((_LEFT + _RIGHT) / 2, _BOTTOM + 35, "rank k (log axis)", "axis", "middle"))
    marks.append(label(_LEFT, 12, f"log evidence; {shortened(registry, 20)}, seed {seed}", "axis"))
    # In the rank's log the line is straight.
    marks.append(line(x(0), y(bars[0]), x(x.high), y(bars[1]), "bar-line"))
    step = max(1, -(-(len(shown) - declared) // _POINTS))
    for k, value in shown:
        if k <= declared:
            marks.append(dot(x(math.log10(k)), y(value), 3.4, "declared"))
        elif (k - declared - 1) % step == 0:
            marks.append(dot(x(math.log10(k)), y(value), 3.0, "not-declared"))
    name = visible(arm, 40)
    return Drawing(
        heading=name,
        title=f"E-values against the e-BH line: {name}",
        description=(
            f"{name} on {visible(registry, 60)}, seed {seed}: {counted(declared, 'candidate')} "
            f"of m = {m:,} declared at q = {q:g}; largest log evidence {number(log_e[0])}, "
            f"the line starts at {number(bars[0])} for k = 1."
        ),
        height=_BOTTOM + 42,
        marks=tuple(marks),
    )

"""The interval of a net against zero, small enough for a card."""

from __future__ import annotations

import math

from cads_env.inference import Estimate
from cads_env.report.content import Drawing
from cads_env.report.figures.marks import bar, dot, scale_over, whisker, x_axis
from cads_env.report.wording import interval, signed, visible

_LEFT, _RIGHT = 6.0, 94.0


def draw_answer(arm: str, estimate: Estimate, *, margin: float) -> Drawing:
    """Mean and interval on an axis through zero, of the arm's own.

    A card answers for one arm; an axis over all arms would squash a small net beside a large one.

    Args:
        arm: Name of the arm.
        estimate: Its net, with at least one campaign.
        margin: The axis reaches at least so far to both sides, so that next to nothing looks it.
    """
    shown = (estimate.mean, estimate.low, estimate.high)
    x = scale_over(shown, start=_LEFT, end=_RIGHT, include=(-margin, 0.0, margin))
    marks = x_axis(x, top=4, bottom=30, title="")
    mean = estimate.mean
    marks.append(bar(x(0), 13, x(mean), 8, "gain" if mean >= 0 else "loss"))
    if not math.isnan(estimate.low):
        marks += whisker(x(estimate.low), x(estimate.high), 17)
    marks.append(dot(x(mean), 17, 4.5, "mean"))
    name = visible(arm, 40)
    said = f"{signed(mean)} {interval(estimate.low, estimate.high)}"
    return Drawing(
        heading="",
        title=f"Net of {name} against zero",
        description=f"{name}: net {said} on an axis through zero.",
        height=50,
        marks=tuple(marks),
    )

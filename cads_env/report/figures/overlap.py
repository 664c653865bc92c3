"""What an arm and its twin certify: two bars that lie over each other where they share."""

from __future__ import annotations

from cads_env.report.content import Drawing, Element
from cads_env.report.figures.marks import bar, label, line, scale_over, x_axis
from cads_env.report.wording import number, visible

_LEFT, _RIGHT = 20.0, 95.0


def draw_overlap(arm: str, *, gained: float, shared: float, lost: float, largest: float) -> Drawing:
    """The arm's bar above the twin's, lined up on what they share.

    Args:
        arm: Name of the arm.
        gained: Mean hits that it alone certifies.
        shared: Mean hits that both certify.
        lost: Mean hits that its twin alone certifies.
        largest: Largest sum of the three among the arms, so that all have one scale.
    """
    x = scale_over([largest], start=_LEFT, end=_RIGHT)
    first, second = gained, gained + shared
    end = second + lost
    marks: list[Element] = x_axis(x, top=20, bottom=84, title="hits a campaign")
    marks += [
        label(_LEFT - 2, 42, "arm", "label", "end"),
        bar(x(0), 28, x(second), 18, "arm"),
        label(_LEFT - 2, 68, "twin", "label", "end"),
        bar(x(first), 54, x(end), 18, "twin"),
        line(x(first), 22, x(first), 78, "guide"),
        line(x(second), 22, x(second), 78, "guide"),
    ]
    name = visible(arm, 40)
    said = f"{number(gained)} gained, {number(shared)} shared, {number(lost)} lost"
    return Drawing(
        heading=name,
        title=f"Gained, shared and lost: {name}",
        description=f"{name}, mean hits a campaign: {said}.",
        height=124,
        marks=(label(_LEFT, 13, said, "value"), *marks),
    )

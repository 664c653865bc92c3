"""Pictures: marks stand where the numbers say."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cads_env import RunResult
from cads_env.inference import paired_t
from cads_env.report.content import Drawing, Element
from cads_env.report.figures.chain import draw_chain
from cads_env.report.figures.ladder import draw_ladder
from cads_env.report.figures.marks import Scale, scale_over, ticks
from cads_env.report.figures.overlap import draw_overlap
from cads_env.report.figures.strip import Row, draw_strip

VALUES = st.floats(-1e6, 1e6, allow_nan=False)


@given(st.lists(VALUES, max_size=20))
def test_a_scale_holds_every_value_and_zero(values: list[float]) -> None:
    x = scale_over(values, start=10.0, end=90.0)
    rounding = 1e-8 * (x.high - x.low)
    assert x.low <= min([*values, 0.0]) + rounding
    assert x.high >= max([*values, 0.0]) - rounding
    assert all(10.0 <= x(v) <= 90.0 for v in values)
    assert 2 <= len(ticks(x)) <= 14


def test_a_scale_leaves_out_what_is_not_finite() -> None:
    x = scale_over([math.nan, math.inf, 4.0], start=0.0, end=100.0)
    assert (x.low, x.high) == (0.0, 4.0)


def test_ticks_are_round_numbers() -> None:
    assert ticks(Scale(low=-20.0, high=70.0, start=0, end=1)) == [-20, 0, 20, 40, 60]
    assert ticks(Scale(low=0.0, high=1.0, start=0, end=1)) == pytest.approx(
        [0, 0.2, 0.4, 0.6, 0.8, 1]
    )


def marks(drawing: Drawing, kind: str, tag: str) -> list[dict[str, float]]:
    found = []
    for mark in drawing.marks:
        attributes = dict(mark.attributes)
        if mark.tag == tag and attributes["class"] == kind:
            found.append(
                {k: float(str(v).rstrip("%")) for k, v in attributes.items() if k != "class"}
            )
    return found


def test_the_bars_of_the_chain_are_as_long_as_their_means(run: RunResult) -> None:
    arms = [run.arms["prior"]]
    (drawing,) = draw_chain(arms)
    lengths = {kind: marks(drawing, kind, "rect")[0]["width"] for kind in ("raw", "arm", "twin")}
    arm = arms[0]
    assert lengths["arm"] / lengths["raw"] == pytest.approx(arm.true / arm.raw_hits, abs=0.01)
    assert lengths["twin"] / lengths["raw"] == pytest.approx(arm.twin / arm.raw_hits, abs=0.01)


def test_every_campaign_is_a_dot_at_its_net() -> None:
    nets = [3.0, -2.0, 3.0, 10.0, 0.0]
    drawing = draw_strip([Row(name="a", values=nets, estimate=paired_t(nets))], title="t")
    places = sorted(mark["cx"] for mark in marks(drawing, "dot", "circle"))
    x = scale_over([*nets, *paired_t(nets)[1:3]], start=3.0, end=97.0)
    assert places == pytest.approx(sorted(x(v) for v in nets), abs=0.01)


def test_many_campaigns_become_bars_of_their_counts() -> None:
    nets = [0.0] * 30 + [5.0] * 15
    drawing = draw_strip([Row(name="a", values=nets, estimate=paired_t(nets))], title="t")
    assert marks(drawing, "dot", "circle") == []
    first, second = sorted(marks(drawing, "dot", "rect"), key=lambda m: m["x"])
    assert second["height"] == pytest.approx(first["height"] / 2)
    assert second["y"] - first["y"] == pytest.approx(first["height"] / 2)


def test_the_two_bars_overlap_by_what_is_shared() -> None:
    drawing = draw_overlap("a", gained=6.0, shared=2.0, lost=4.0, largest=12.0)
    (arm,), (twin,) = (marks(drawing, kind, "rect") for kind in ("arm", "twin"))
    unit = arm["width"] / 8
    assert twin["width"] == pytest.approx(6 * unit, abs=0.05)
    assert arm["x"] + arm["width"] - twin["x"] == pytest.approx(2 * unit, abs=0.05)


def test_declared_dots_are_filled_and_lie_on_or_above_the_line() -> None:
    log_e = [12.0, 9.5, 9.4, 1.0, 0.5, -1.0]
    drawing = draw_ladder("a", log_e, declared=3, m=1000, q=0.1, registry="r", seed=0)
    declared = marks(drawing, "declared", "circle")
    assert len(declared) == 3
    assert len(marks(drawing, "not-declared", "circle")) == 3
    (bar,) = marks(drawing, "bar-line", "line")
    for mark in declared:
        share = (mark["cx"] - bar["x1"]) / (bar["x2"] - bar["x1"])
        assert mark["cy"] <= bar["y1"] + share * (bar["y2"] - bar["y1"]) + 0.01


def test_a_long_ladder_is_thinned_below_the_declared_alone() -> None:
    log_e = [12.0] * 50 + [5.0 - k / 1000 for k in range(5000)]
    drawing = draw_ladder("a", log_e, declared=50, m=10**5, q=0.1, registry="r", seed=0)
    assert len(marks(drawing, "declared", "circle")) == 50
    assert len(marks(drawing, "not-declared", "circle")) <= 240


def test_no_position_is_undefined(run: RunResult) -> None:
    from cads_env.report.assemble import build_report

    report = build_report(run)
    drawn = [c.drawing for c in report.cards if c.drawing]
    for section in report.sections:
        for block in section.blocks:
            drawn += list(getattr(block, "drawings", ()))
    assert len(drawn) > 10
    for drawing in drawn:
        for mark in drawing.marks:
            assert isinstance(mark, Element)
            assert "nan" not in str(mark.attributes)
            assert "inf" not in str(mark.attributes)

"""Charts of studies: curves and categories, with the numbers beside them."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import pytest

from cads_env.report.figures.chart import draw_chart
from cads_env.report.html import standalone_svg
from cads_env.studies.tables import Chart, Series

CURVES = Chart(
    title="FDR & <power>",
    x_label="epsilon",
    y_label="FDR",
    series=[
        Series(name="naive", x=[0.0, 0.1, 0.3], y=[0.0, 0.38, 0.8], error=[0.0, 0.01, math.nan]),
        Series(name="cads", x=[0.0, 0.1], y=[0.0, math.nan]),
        Series(name="q", x=[0.0, 0.3], y=[0.1, 0.1], is_reference=True),
    ],
)


def test_numbers_of_a_chart_stand_in_its_table() -> None:
    figure = draw_chart(CURVES)
    assert figure.data.columns == ("epsilon", "naive", "cads", "q")
    assert figure.data.rows == (
        ("0", "0.0000", "0.0000", "0.1000"),
        ("0.1", "0.3800", "-", "-"),
        ("0.3", "0.8000", "-", "0.1000"),
    )
    assert [kind for kind, _ in figure.key] == ["s0-line", "s1-line", "reference-line"]


def test_a_chart_of_words_is_not_joined() -> None:
    names = ["DepMap", "T cell", "PRISM", "a name far too long for the room that it has here"]
    chart = Chart(
        title="t", x_label="screen", y_label="power",
        series=[Series(name="cads", x=names, y=[0.1, 0.2, 0.3, 0.4])],
    )  # fmt: skip
    figure = draw_chart(chart)
    kinds = [dict(mark.attributes).get("class") for mark in figure.drawings[0].marks]
    assert "s0-line" not in kinds
    assert kinds.count("s0-dot") == 4
    assert figure.key == (("s0-dot", "cads"),)


@pytest.mark.parametrize("values", [[math.nan, math.nan], [0.5, 0.5], [-3.0, 1e6]])
def test_odd_values_are_drawn_without_a_fault(values: list[float]) -> None:
    chart = Chart(
        title="t", x_label="x", y_label="y", series=[Series(name="s", x=[0.0, 1.0], y=values)]
    )
    assert draw_chart(chart).drawings[0].height > 0


def test_an_svg_file_is_well_formed_and_holds_no_foreign_markup() -> None:
    text = standalone_svg(draw_chart(CURVES))
    root = ET.fromstring(text)
    assert root.tag.endswith("svg")
    assert "<power>" not in text
    assert not any(element.tag.endswith("script") for element in root.iter())

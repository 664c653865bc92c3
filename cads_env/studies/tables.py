"""Tables and charts as data: our figure beside the published one, and the verdict that follows.

A verdict is computed from the figure, its Monte Carlo error and what is expected; nobody types it.
Never formats for a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

Verdict = Literal["within", "noise", "off", "explained", "no figure"]

NOISE_SE: Final = 3.0
"""Monte Carlo standard errors that a mean may lie outside its range and still agree with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One figure of a table.

    Attributes:
        row: What row of the table it belongs to, one text a label column.
        measure: What was measured ("power", "FDR", ...).
        ours: Our figure.
        mc_se: Its Monte Carlo standard error; None when it is exact.
        published: The published figure; None where none was published.
        expected: Lowest and highest figure that agrees; None where nothing is expected.
        note: What the published text leaves open, where we differ; or a remark.
        is_open: Whether the note says why a difference is to be expected.
        is_own: Whether it is of the reader's own files, and shown wherever there is room for few.
    """

    row: tuple[str, ...]
    measure: str
    ours: float
    mc_se: float | None = None
    published: float | None = None
    expected: tuple[float, float] | None = None
    note: str = ""
    is_open: bool = False
    is_own: bool = False

    @property
    def difference(self) -> float | None:
        """Ours minus the published figure; None where none was published."""
        return None if self.published is None else self.ours - self.published

    @property
    def verdict(self) -> Verdict:
        """Whether the figure agrees.

        "within": inside the expected range. "noise": outside, by less than three Monte Carlo
        standard errors. "explained": further outside, and the note says what the published text
        leaves open. "off": further outside. "no figure": nothing is expected.
        """
        if self.expected is None:
            return "no figure"
        low, high = self.expected
        if low <= self.ours <= high:
            return "within"
        slack = NOISE_SE * (self.mc_se or 0.0)
        if low - slack <= self.ours <= high + slack:
            return "noise"
        return "explained" if self.is_open and self.note else "off"


def near(published: float, tolerance: float) -> tuple[float, float]:
    """The range within a tolerance of a published figure."""
    return published - tolerance, published + tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of figures.

    Attributes:
        title: Its heading.
        label_columns: What the labels of its entries are.
        entries: Its figures, in order.
        caption: What a reader must know; "" for nothing.
    """

    title: str
    label_columns: tuple[str, ...]
    entries: Sequence[Entry]
    caption: str = ""

    def __post_init__(self) -> None:
        """Refuse entries whose labels do not fit."""
        for entry in self.entries:
            if len(entry.row) != len(self.label_columns):
                msg = f"Entry {entry.row} of {self.title!r} does not fit {self.label_columns}."
                raise ValueError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line, or row of points, of a chart.

    Attributes:
        name: What it is.
        x: Positions: numbers, or words for a chart of categories.
        y: Values, one a position.
        error: Half width of the bar around each value; None for no bars.
        is_reference: Drawn faint and dashed: a level or published curve to compare with.
    """

    name: str
    x: Sequence[float] | Sequence[str]
    y: Sequence[float]
    error: Sequence[float] | None = None
    is_reference: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A figure: values over a common axis.

    Attributes:
        title: Its heading.
        x_label: What the positions are.
        y_label: What the values are.
        series: What is drawn.
        caption: What a reader must know; "" for nothing.
        y_range: Lowest and highest value of the axis; None to fit the values.
    """

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    caption: str = ""
    y_range: tuple[float, float] | None = None

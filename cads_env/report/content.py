"""What a report says, before anybody decides how it looks: sections of text, tables and figures.

Two renderers turn it into HTML and Markdown. All text in it is plain and unescaped: escaping is the
renderers' work, so that nothing in it can be markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Answer = Literal["yes", "yes-small", "harm", "harm-small", "no", "open", "unknown"]


@dataclass(frozen=True, slots=True)
class Element:
    """A node of a drawing.

    Attributes:
        tag: Name of an SVG element.
        attributes: Names and values; numbers are written with at most two decimals.
        children: Elements and text.
    """

    tag: str
    attributes: tuple[tuple[str, str | float], ...] = ()
    children: tuple[Element | str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """One picture. Horizontal positions are percentages, so that text keeps its size.

    Attributes:
        heading: Words above it; empty for none.
        title: Its name for a screen reader.
        description: What it shows, with the numbers that matter.
        height: In pixels.
        marks: What is drawn.
    """

    heading: str
    title: str
    description: str
    height: float
    marks: tuple[Element, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of text under named columns; the first cell of a row names it.

    Attributes:
        caption: What the table holds.
        columns: Names, the first one of the row names.
        rows: One text a column.
        words: Positions of columns that hold words; all but these and the first hold numbers.
        note: A remark below it; empty for none.
        folded: Whether a page shows it closed.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[int, ...] = ()
    note: str = ""
    folded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Drawings of one kind with the numbers that they show.

    Attributes:
        caption: How to read the pictures; where there are none, it is left out.
        drawings: The pictures; none where there is nothing to draw.
        data: The numbers.
        key: Names of marks: (class of the sample, text).
        is_wide: Whether each drawing takes the whole width.
    """

    caption: str
    drawings: tuple[Drawing, ...]
    data: Table
    key: tuple[tuple[str, str], ...] = ()
    is_wide: bool = False


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text."""

    text: str


@dataclass(frozen=True, slots=True)
class Listing:
    """Short statements, one a line."""

    entries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Terms:
    """Words or names with what there is to say of them."""

    entries: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Text to be copied as it is.

    Attributes:
        text: The text.
        language: What it is written in, as Markdown calls it.
    """

    text: str
    language: str = "sh"


Block = Paragraph | Listing | Terms | Code | Table | Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a report.

    Attributes:
        key: Short name, unique in the report; letters and hyphens.
        title: Its heading.
        blocks: What it holds, in order.
    """

    key: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The answer for one arm.

    Attributes:
        arm: Its name.
        answer: The kind of answer.
        word: The answer in a word or two.
        figure: The net with its sign.
        measure: What the figure is, with its interval.
        sentence: The answer in a sentence.
        facts: How sure, what is false, at what n, what would change it: (name, text).
        drawing: The interval against zero; None without one.
    """

    arm: str
    answer: Answer
    word: str
    figure: str
    measure: str
    sentence: str
    facts: tuple[tuple[str, str], ...]
    drawing: Drawing | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole report.

    Attributes:
        title: Its heading, a question.
        lead: What was run, in one line.
        warnings: What a reader must know before the figures.
        cards: The answers, at most as many as a page shows well.
        key: What the words and numbers of the cards mean, (word, meaning).
        summary: All arms in one table; None where the cards say it all.
        beside: A second table of the arms; None where there is no more to say.
        sections: The rest.
        kicker: What kind of page it is.
        footer: What the figures follow from.
    """

    title: str
    lead: str
    warnings: tuple[str, ...]
    cards: tuple[Card, ...]
    key: tuple[tuple[str, str], ...]
    summary: Table | None
    sections: tuple[Section, ...]
    beside: Table | None = None
    kicker: str = "cads-env report"
    footer: str = (
        "Every number here follows from the files of the run. The same tables stand in report.md, "
        "and what is known of the registries in datasheet.md."
    )


def capped(
    rows: Sequence[tuple[str, ...]], limit: int, where: str
) -> tuple[tuple[tuple[str, ...], ...], str]:
    """The first rows of a long table, and the remark that says so.

    Args:
        rows: All rows.
        limit: Most rows that are shown.
        where: Where all of them are.

    Returns:
        Rows shown, and a remark, empty when nothing was left out.
    """
    if len(rows) <= limit:
        return tuple(rows), ""
    return tuple(rows[:limit]), f"The first {limit:,} of {len(rows):,} rows; all are in {where}."

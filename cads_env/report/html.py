"""The HTML form of a report: one file that needs no network, no script and no font of its own.

Escapes all text; the content security policy allows the style sheet and nothing else. Decides
nothing about the content.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterator
from importlib import resources
from itertools import count

from cads_env.report.content import (
    Block,
    Card,
    Code,
    Drawing,
    Element,
    Figure,
    Listing,
    Paragraph,
    Report,
    Section,
    Table,
    Terms,
)
from cads_env.report.figures.marks import DIAMONDS
from cads_env.report.wording import visible


def html_page(report: Report, *, title: str) -> str:
    """The whole report as one HTML document.

    Args:
        report: What it says.
        title: Title of the window.
    """
    return _Page().page(report, title)


def standalone_svg(figure: Figure, *, width: int = 760) -> str:
    """The first drawing of a figure as an SVG document of its own, with its key above.

    Args:
        figure: Holds at least one drawing.
        width: In pixels; positions in percent are of it.
    """
    drawing = figure.drawings[0]
    rows: list[str] = []
    for i, (kind, text) in enumerate(figure.key):
        at, y = 20 + (i % 3) * (width - 40) / 3, 37 + 20 * (i // 3)
        rows.append(
            f'<svg x="{at:.0f}" y="{y}" width="22" height="14">{_mark_of(kind)}</svg>'
            f'<text class="label start" x="{at + 31:.0f}" y="{y + 11}">{_text(text)}</text>'
        )
    top = 52 + 20 * (-(-len(figure.key) // 3))
    marks = "".join(_element(mark) for mark in drawing.marks)
    height = top + drawing.height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" '
        f'height="{height:.0f}" viewBox="0 0 {width} {height:.0f}">'
        f"<title>{_text(drawing.title)}</title><desc>{_text(drawing.description)}</desc>"
        f"<style>{html.escape(style_sheet(), quote=False)}"
        "text { font-family: system-ui, sans-serif; } .ground { fill: var(--page); }</style>"
        f'<rect class="ground" width="{width}" height="{height:.0f}"></rect>'
        f'<text class="label strong start" x="20" y="22">{_text(drawing.title)}</text>'
        f'{"".join(rows)}<svg y="{top}" width="{width}" height="{drawing.height:.0f}">{marks}</svg>'
        "</svg>\n"
    )


def style_sheet() -> str:
    """The style sheet of every report."""
    return (resources.files("cads_env.report") / "report.css").read_text("utf-8")


def _text(text: str) -> str:
    # A number and its per cent sign stay on one line.
    return html.escape(text.replace(" %", "\u00a0%"), quote=True)


class _Page:
    """One document; gives its elements unique names."""

    def __init__(self) -> None:
        self._numbers: Iterator[int] = count(1)

    def page(self, report: Report, title: str) -> str:
        style = style_sheet()
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'"
        policy += "; form-action 'none'"
        links = "".join(
            f'<li><a href="#{s.key}">{_text(s.title)}</a></li>' for s in report.sections
        )
        warnings = "".join(f"<li>{_text(text)}</li>" for text in report.warnings)
        notes = f'<ul class="notes" aria-label="Read this first">{warnings}</ul>'
        tables = [table for table in (report.summary, report.beside) if table is not None]
        summary = "".join(self.table(table) for table in tables)
        cards = "".join(self.card(card) for card in report.cards)
        key = "".join(
            f"<div><dt>{_text(word)}</dt> <dd>{_text(text)}</dd></div>" for word, text in report.key
        )
        sections = "\n".join(self.section(s) for s in report.sections)
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{_text(policy)}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n'
            '<meta name="referrer" content="no-referrer">\n'
            f"<title>{_text(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
            '<a class="skip" href="#answers">Skip to the answers</a>\n'
            f"{_PATTERNS}\n"
            f'<header><p class="kicker">{_text(report.kicker)}</p><h1>{_text(report.title)}</h1>'
            f'<p class="lead">{_text(report.lead)}</p></header>\n'
            f'<main>\n<section id="answers" aria-labelledby="answers-title">'
            f'<h2 id="answers-title" class="unseen">Answers</h2>\n'
            f'{summary}<div class="cards">{cards}</div>\n'
            f'<dl class="meanings">{key}</dl>\n'
            f"{notes if warnings else ''}</section>\n"
            f'<nav aria-label="Contents"><ul>{links}</ul></nav>\n{sections}\n</main>\n'
            f"<footer><p>{_text(report.footer)}</p></footer>\n</body>\n</html>\n"
        )

    def card(self, card: Card) -> str:
        name = f"card-{next(self._numbers)}"
        facts = "".join(
            f"<div><dt>{_text(term)}</dt> <dd>{_text(text)}</dd></div>" for term, text in card.facts
        )
        drawing = self.drawing(card.drawing) if card.drawing else ""
        return (
            f'<article class="card {card.answer}" aria-labelledby="{name}">'
            f'<h3 id="{name}">{_text(visible(card.arm))}</h3>'
            f'<p class="word">{_text(card.word)}</p>'
            f'<p class="net"><strong>{_text(card.figure)}</strong> '
            f"<span>{_text(card.measure)}</span></p>"
            f"{drawing}<p>{_text(card.sentence)}</p><dl>{facts}</dl></article>\n"
        )

    def section(self, section: Section) -> str:
        blocks = "\n".join(self.block(block) for block in section.blocks)
        return (
            f'<section id="{section.key}" aria-labelledby="{section.key}-title">'
            f'<h2 id="{section.key}-title">{_text(section.title)}</h2>\n{blocks}\n</section>'
        )

    def block(self, block: Block) -> str:
        match block:
            case Paragraph(text):
                return f"<p>{_text(text)}</p>"
            case Listing(entries):
                return f"<ul>{''.join(f'<li>{_text(e)}</li>' for e in entries)}</ul>"
            case Terms(entries):
                pairs = "".join(
                    f"<div><dt>{_text(term)}</dt><dd>{_text(text)}</dd></div>"
                    for term, text in entries
                )
                return f'<dl class="terms">{pairs}</dl>'
            case Code(text):
                # Scrolls sideways, so the keyboard must be able to reach it.
                return (
                    '<pre tabindex="0" role="group" aria-label="Command">'
                    f"<code>{_text(text)}</code></pre>"
                )
            case Figure():
                return self.figure(block)
            case Table():
                return self.table(block)

    def figure(self, figure: Figure) -> str:
        pictures = "".join(self.panel(d) for d in figure.drawings)
        kind = "panels wide" if figure.is_wide else "panels"
        key = "".join(f"<li>{_sample(k)} {_text(t)}</li>" for k, t in figure.key)
        drawn = f'<div class="{kind}">{pictures}</div>' if pictures else ""
        legend = f'<ul class="key" aria-label="Key">{key}</ul>' if key and pictures else ""
        caption = f"<figcaption>{_text(figure.caption)}</figcaption>"
        pictured = f"<figure>{legend}{drawn}{caption}</figure>" if pictures else ""
        return f"{pictured}{self.table(figure.data)}"

    def panel(self, drawing: Drawing) -> str:
        heading = f"<h3>{_text(drawing.heading)}</h3>" if drawing.heading else ""
        return f'<div class="panel">{heading}{self.drawing(drawing)}</div>'

    def drawing(self, drawing: Drawing) -> str:
        name = f"drawing-{next(self._numbers)}"
        marks = "".join(_element(mark) for mark in drawing.marks)
        return (
            f'<svg role="img" aria-labelledby="{name}-title {name}-desc" width="100%" '
            f'height="{drawing.height:.0f}"><title id="{name}-title">{_text(drawing.title)}'
            f'</title><desc id="{name}-desc">{_text(drawing.description)}</desc>{marks}</svg>'
        )

    def table(self, table: Table) -> str:
        if not table.rows:
            return ""
        kinds = ["word" if i == 0 or i in table.words else "n" for i in range(len(table.columns))]
        head = "".join(
            f'<th scope="col" class="{k}">{_text(c)}</th>'
            for c, k in zip(table.columns, kinds, strict=True)
        )
        body = "".join(
            f'<tr><th scope="row">{_text(row[0])}</th>'
            + "".join(
                f'<td class="{k}">{_text(cell)}</td>'
                for cell, k in zip(row[1:], kinds[1:], strict=True)
            )
            + "</tr>"
            for row in table.rows
        )
        note = f'<p class="note">{_text(table.note)}</p>' if table.note else ""
        name = f"table-{next(self._numbers)}"
        # Scrolls by itself where it is wider than the page, so the keyboard must reach it.
        inner = (
            f'<div class="scroll" tabindex="0" role="group" aria-labelledby="{name}">'
            f'<table><caption id="{name}">{_text(table.caption)}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{note}"
        )
        if not table.folded:
            return inner
        rows = f"{len(table.rows):,} row{'' if len(table.rows) == 1 else 's'}"
        return f"<details><summary>{_text(table.caption)} ({rows})</summary>{inner}</details>"


def _element(element: Element) -> str:
    """An SVG element as markup."""
    attributes = "".join(f' {name}="{_value(value)}"' for name, value in element.attributes)
    inner = "".join(
        _text(child) if isinstance(child, str) else _element(child) for child in element.children
    )
    return f"<{element.tag}{attributes}>{inner}</{element.tag}>"


def _value(value: str | float) -> str:
    return _text(value) if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


def _sample(kind: str) -> str:
    """A small sample of a mark for a key."""
    return f'<svg aria-hidden="true" class="sample" width="22" height="14">{_mark_of(kind)}</svg>'


def _mark_of(kind: str) -> str:
    """A mark in a box of 22 by 14 pixels."""
    if kind.endswith("line"):
        return f'<line class="{kind}" x1="0" y1="7" x2="22" y2="7"></line>'
    if kind.removesuffix("-dot") in DIAMONDS:
        return f'<path class="{kind}" d="M11 1.5L16.5 7L11 12.5L5.5 7Z"></path>'
    if kind in ("declared", "not-declared") or kind.endswith("-dot"):
        return f'<circle class="{kind}" cx="11" cy="7" r="4"></circle>'
    return f'<rect class="{kind}" x="1" y="2" width="20" height="10"></rect>'


_PATTERNS = (
    '<svg aria-hidden="true" class="patterns" width="0" height="0"><defs>'
    '<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect class="hatch-ground" width="6" height="6"></rect>'
    '<line class="hatch-line" x1="0" y1="0" x2="0" y2="6"></line></pattern>'
    '<pattern id="speckle" width="5" height="5" patternUnits="userSpaceOnUse">'
    '<rect class="speckle-ground" width="5" height="5"></rect>'
    '<circle class="speckle-dot" cx="2.5" cy="2.5" r="1.1"></circle></pattern>'
    "</defs></svg>"
)

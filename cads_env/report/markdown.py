"""The Markdown form of a report: its tables and words, without the pictures.

Escapes all text so that it reads as it is on GitHub; decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from cads_env.report.content import (
    Block,
    Card,
    Code,
    Figure,
    Listing,
    Paragraph,
    Report,
    Section,
    Table,
    Terms,
)
from cads_env.report.wording import visible

# What Markdown, HTML or mathematics inside it could take for markup, and only where it could: an
# underscore not between letters, a bracket that ends the words of a link or begins a footnote, the
# start of a tag or an entity, a colon of an address or an emoji.
_SPECIAL: Final = re.compile(
    r"([`*|~$]|\\(?![A-Za-z0-9])|(?<![^\W_])_|_(?![^\W_])|\](?=[(\[:])|\[(?=[\^!])"
    r"|<(?=[A-Za-z/!?])|&(?=[#A-Za-z0-9]+;)|:(?=//|[A-Za-z0-9_+-]+:))"
)
_BLOCK_START: Final = re.compile(r"^([-=+#>\[]|\d+(?=[.)]\s))")


def markdown(report: Report) -> str:
    """The whole report as GitHub-flavoured Markdown.

    Args:
        report: What it says.
    """
    parts = [f"# {escape(report.title)}", escape_block(report.lead)]
    parts += [f"> {escape_block(text)}" for text in report.warnings]
    if report.summary is not None:
        parts.append(_table(report.summary))
    if report.beside is not None:
        parts.append(_table(report.beside))
    parts += [_card(card) for card in report.cards]
    parts.append("\n".join(f"- **{escape(word)}**: {escape(text)}" for word, text in report.key))
    parts += [_section(section, 2) for section in report.sections]
    return _joined(parts)


def markdown_sections(title: str, lead: str, sections: Sequence[Section]) -> str:
    """A document of sections alone.

    Args:
        title: Its heading.
        lead: A line below it.
        sections: The rest.
    """
    return _joined([f"# {escape(title)}", escape_block(lead), *(_section(s, 2) for s in sections)])


def escape(text: str) -> str:
    """Text that reads as it is within a line or a table cell."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def escape_block(text: str) -> str:
    """Text that reads as it is at the start of a line too."""
    flat = escape(text)
    found = _BLOCK_START.match(flat)
    if found is None:
        return flat
    mark = found[1]
    return f"{mark}\\{flat[len(mark) :]}" if mark.isdigit() else f"\\{flat}"


def _joined(parts: Sequence[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


def _card(card: Card) -> str:
    facts = "\n".join(f"- **{escape(name)}.** {escape(text)}" for name, text in card.facts)
    answer = f"**{escape(card.word)}: {escape(card.figure)}** {escape(card.measure)}."
    return f"### {escape(visible(card.arm))}\n\n{answer} {escape(card.sentence)}\n\n{facts}"


def _section(section: Section, level: int) -> str:
    return _joined(
        [f"{'#' * level} {escape(section.title)}", *(_block(b) for b in section.blocks)]
    ).rstrip("\n")


def _block(block: Block) -> str:
    match block:
        case Paragraph(text):
            return escape_block(text)
        case Listing(entries):
            return "\n".join(f"- {escape_block(entry)}" for entry in entries)
        case Terms(entries):
            return "\n".join(f"- **{escape(name)}**: {escape(text)}" for name, text in entries)
        case Code(text, language):
            longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
            fence = "`" * max(3, longest + 1)
            return f"{fence}{language}\n{text}\n{fence}"
        case Figure():
            # The caption says how to read pictures, which are not here.
            return _table(block.data)
        case Table():
            return _table(block)


def _table(table: Table) -> str:
    if not table.rows:
        return ""
    rules = ["---" if i == 0 or i in table.words else "---:" for i in range(len(table.columns))]
    lines = [f"| {' | '.join(map(escape, row))} |" for row in (table.columns, *table.rows)]
    lines.insert(1, f"| {' | '.join(rules)} |")
    parts = [f"**{escape(table.caption)}**", "\n".join(lines), escape_block(table.note)]
    return _joined(parts).rstrip("\n")

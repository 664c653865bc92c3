"""Markup in answers: HTML, XML, LaTeX and web links made plain before lists are looked for.

`without_markup` turns layout into lines and table rows and drops emphasis; `element_lists` reads
names that XML elements hold. Never drops a tag whose word is an identifier.
"""

from __future__ import annotations

import html
import re

from cads_env.parsing.entries import entries_of
from cads_env.parsing.names import Entry, Lookup

_ATTRIBUTES = r"(?:\s[^<>\n]{0,300})?"
_EMPHASIS_TAG = re.compile(
    rf"</?(?:b|strong|i|em|code|u|s|mark|span|tt|kbd|a|font|small|big|var){_ATTRIBUTES}>",
    re.IGNORECASE,
)
_SUPERSCRIPT = re.compile(r"<sup>[^<>]{0,20}</sup>", re.IGNORECASE)
_ROW_TAG = re.compile(rf"<tr{_ATTRIBUTES}>", re.IGNORECASE)
_ROW_END = re.compile(r"</(?:tr|table|tbody|thead)\s?>", re.IGNORECASE)
_CELL_END = re.compile(r"</t[dh]\s?>", re.IGNORECASE)
_TAG = re.compile(rf"<[/?!]?(?P<name>[A-Za-z][\w:.-]{{0,40}}){_ATTRIBUTES}/?>")
_ELEMENT = re.compile(rf"<([A-Za-z][\w:.-]{{0,40}}){_ATTRIBUTES}>([^<>\n]{{1,400}})</\1\s?>")
_EMPTY_ELEMENT = re.compile(r"<([A-Za-z][\w:.-]{0,40})\s([^<>\n]{1,300})/>")
_ATTRIBUTE = re.compile(r"([\w:.-]{1,40})\s?=\s?\"([^\"<>]{1,200})\"")
_NO_LIST = frozenset("p div h1 h2 h3 h4 h5 h6 td th title pre".split())

_WEB_LINK = re.compile(
    r"\[([^\[\]\n]{1,300})\]\((?:https?:|www\.|mailto:|#[a-z]|(?:link|url)\))[^()\s]*\)?"
)
_REFERENCE = re.compile(r"\[\[([^\[\]\n]{1,300})\]\]")
_LATEX = re.compile(
    r"\\(?:text(?:bf|it|tt|rm|sf|sc)?|math(?:rm|bf|it|sf|tt)|emph|underline|f?boxed|fbox)\s?"
    r"\{([^{}]*)\}"
)
_LATEX_LINE = re.compile(
    r"\\(?:begin|end)\{[^{}\n]{1,40}\}(?:[\[{][^\[\]{}\n]{0,40}[\]}])?|\\hline"
)
_MATHS = re.compile(r"\$([^$\n]{1,200})\$")
_HIGHLIGHT = re.compile(r"==([^=\n]{1,200})==")
_STRUCK_OUT = re.compile(r"~~([^~\n]{1,200})~~")
_ENTITY = re.compile(r"&#?\w{2,8};")
_NESTED_LATEX = 4
"""Commands inside commands that are undone, as in `$\\boxed{\\textbf{TP53}}$`."""


def without_markup(text: str, lookup: Lookup) -> str:
    """The text with tags and commands of layout as line breaks or nothing, and links as words.

    Args:
        text: The answer, thinking removed.
        lookup: The identifiers: what is one of them stays.

    Returns:
        Plain text with Markdown in it.
    """
    if "<" in text:
        text = _EMPHASIS_TAG.sub("", _SUPERSCRIPT.sub("", text))
        text = _with_rows(text)
        text = _TAG.sub(lambda tag: tag[0] if lookup.whole(tag["name"]) else "\n", text)
    if "](" in text or "[[" in text:
        text = _REFERENCE.sub(r"\1", _WEB_LINK.sub(r"\1", text))
    if "\\" in text:
        for _ in range(_NESTED_LATEX):
            text, count = _LATEX.subn(r"\1", text)
            if not count:
                break
        text = _LATEX_LINE.sub("\n", text)
        if "\n" not in text.strip() and not lookup.has_backslashes:
            text = text.replace("\\n", "\n")
    if "~~" in text:
        text = _STRUCK_OUT.sub("", text)
    if "$" in text:
        text = _MATHS.sub(r"\1", text)
    if "==" in text:
        text = _HIGHLIGHT.sub(r"\1", text)
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    return text


def _with_rows(text: str) -> str:
    """The rows of HTML tables as `| a | b |`."""
    first, *rows = _ROW_TAG.split(text)
    lines = [first]
    for row in rows:
        end = _ROW_END.search(row)
        cells = row[: end.start()] if end else row
        if _CELL_END.search(cells):
            flat = " ".join(_TAG.sub(" ", _CELL_END.sub("|", cells)).split())
            lines.append(f"\n| {flat}\n{row[end.end() :] if end else ''}")
        else:
            lines.append("\n" + row)
    return "".join(lines)


def element_lists(text: str, lookup: Lookup) -> dict[str, list[Entry]]:
    """The entries of XML elements of one name, of every name that comes at least twice.

    `<gene>TP53</gene>`, `<gene_1>TP53</gene_1>` and `<gene symbol="TP53"/>` are read.

    Args:
        text: The answer, thinking removed.
        lookup: The identifiers.

    Returns:
        Element name, without a number at its end -> entries in order.
    """
    if "</" not in text and "/>" not in text:
        return {}
    read: dict[str, list[list[Entry]]] = {}
    plain = _EMPHASIS_TAG.sub("", text)
    for element in _ELEMENT.finditer(plain):
        name = element[1].lower().rstrip("0123456789_-")
        if name not in _NO_LIST:
            read.setdefault(name, []).append(entries_of(html.unescape(element[2]), lookup))
    for element in _EMPTY_ELEMENT.finditer(plain):
        values = {found[1].lower(): found[2] for found in _ATTRIBUTE.finditer(element[2])}
        named = [value for value in values.values() if lookup.whole(value)]
        named = named or [values[key] for key in ("symbol", "gene", "name", "id") if key in values]
        if named:
            read.setdefault(element[1].lower(), []).append(entries_of(named[0], lookup))
    return {
        name: [entry for entries in groups for entry in entries]
        for name, groups in read.items()
        if len(groups) > 1
    }

"""Numbered and bulleted lists, tables and plain separated lists in an answer.

`list_parts` walks over the lines once and returns every list it finds, with what is needed to
choose between them; the choice is made in `parsing.py`. Never decides which list is the answer, and
never reads a sentence as a list.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from cads_env.parsing_names import Entry, Lookup, as_list, entries_of, heads_of, is_name_like

_ITEM = re.compile(
    r"(?P<indent>[ \t]*)[*_]{0,3}(?:(?P<bullet>[-+*•‣◦▪●○►➤·–—])[ \t]+"
    r"|#(?P<hash>\d{1,6})[.):]?[ \t]+"
    r"|[(\[]?(?P<number>\d{1,6})[.):\]、．](?:[ \t]+|(?=[^\d\s]))|(?P<letter>[A-Za-z])\)[ \t]+)"
    r"(?P<body>\S.*)"
)
_ASIDE = re.compile(
    r"\b(?:rejected|excluded|avoid(?:ed)?|discarded|ruled out|considered|drafts?|initial|already"
    r"|not (?:selected|chosen|proposed|included)|first (?:ideas?|pass|thoughts?)|alternatives?"
    r"|runners?-up|backups?|previous(?:ly)?|(?:low|high|tested) (?:genes|candidates|results))\b",
    re.IGNORECASE,
)
_ASIDE_WORDS: Final = 6
"""A longer heading is a sentence, whose words do not say what the list is."""
_ANSWER_LABEL = re.compile(
    r"[^:]{0,40}\b(?:genes?|answers?|proposals?|picks?|candidates?|selections?|symbols?|compounds?|drugs?|list)\b"
    r"[^:]{0,20}",
    re.IGNORECASE,
)
_NAME_HEADER = re.compile(
    r"(?:gene|symbol|candidate|identifier|id|name|compound|drug|target|smiles|molecule)s?"
    r"(?:[ _](?:name|symbol|id))?",
    re.IGNORECASE,
)
_NUMBER_INSIDE = re.compile(r"\s\(?(\d{1,6})[.):]\s+(?=\S)")
_RULE_CELL = re.compile(r":?-+:?")
_EXPLAINED = re.compile(r"\S+(?::| -| –| —) ")


@dataclass(slots=True, kw_only=True)
class Part:
    """One list of an answer.

    Attributes:
        entries: Its entries, in order.
        level: Depth of indentation; 0 is the outermost.
        is_aside: Whether its heading says that it is not the answer (`Rejected:`, `Draft:`).
        is_plain: Whether it is a separated list or one name a line, without markers.
    """

    entries: list[Entry] = field(default_factory=list)
    level: int = 0
    is_aside: bool = False
    is_plain: bool = False

    def valid_count(self) -> int:
        """Number of distinct identifiers among the entries."""
        return len({entry.identifier for entry in self.entries if entry.identifier is not None})

    def is_of_names(self) -> bool:
        """Whether at least half of the entries are one or two words, as names are."""
        short = sum(len(entry.text.split(None, 2)) <= 2 for entry in self.entries)
        return bool(self.entries) and 2 * short >= len(self.entries)


class _Collector:
    """The lists found so far, and the state of the walk over the lines."""

    def __init__(self, lookup: Lookup) -> None:
        self.lookup = lookup
        self.parts: list[Part] = []
        self.has_prose = False
        self._open: dict[tuple[str, int, bool], tuple[Part, int, int]] = {}
        self._heading_is_aside = False
        self._text_lines = 0
        self._rows: list[list[str]] = []
        self._free: list[str] = []

    def line(self, line: str) -> None:
        """Take the next line."""
        stripped = line.strip()
        if not stripped or stripped.startswith(("```", "~~~")) or set(stripped) <= set("-=*_"):
            return
        is_name = self.lookup.exact(stripped) is not None
        item = None if is_name else _ITEM.match(line)
        if item is not None:
            self.flush()
            for each in _items_on_one_line(item, self.lookup):
                self._item(each)
        elif "|" in stripped and not is_name:
            self._flush_free()
            self._rows.append([cell.strip() for cell in stripped.strip("|").split("|")])
        elif not is_name and _is_heading(stripped):
            self.flush()
            if self._named_heading(stripped):
                return
            words = stripped.split(None, _ASIDE_WORDS)
            self._heading_is_aside = len(words) <= _ASIDE_WORDS and bool(_ASIDE.search(stripped))
            self._text_lines += 1
        else:
            self._flush_rows()
            self._free.append(line)
            self._text_lines += not line[0].isspace()

    def flush(self) -> None:
        """End the table or the run of free lines at hand."""
        self._flush_rows()
        self._flush_free()

    def _add(self, entries: list[Entry], *, is_plain: bool) -> None:
        if entries:
            aside = self._heading_is_aside
            self.parts.append(Part(entries=entries, is_aside=aside, is_plain=is_plain))

    def _item(self, item: re.Match[str]) -> None:
        bullet = item["bullet"]
        number = item["number"] or item["hash"]
        indent = len(item["indent"].expandtabs(4))
        # Right-aligned numbers are indented by one or two columns without being nested.
        level = indent // 2 if bullet else indent // 3
        key = (bullet or ("letter" if item["letter"] else "number"), level, self._heading_is_aside)
        count = int(number) if number else 0
        part, last, seen = self._open.get(key, (None, 0, 0))
        restarts = bool(number) and level == 0 and count <= last and self._text_lines > seen
        if part is None or restarts:
            part = Part(level=level, is_aside=self._heading_is_aside)
            self.parts.append(part)
        part.entries.extend(entries_of(item["body"], self.lookup))
        self._open[key] = (part, count, self._text_lines)

    def _named_heading(self, line: str) -> bool:
        """Take `### TP53` or `**TP53**` as an item of the list of such headings, if it is one."""
        if not line.startswith(("#", "**")) or line.endswith((":", "：")):
            return False
        entries = entries_of(line.lstrip("# "), self.lookup)
        if all(entry.identifier is None for entry in entries):
            return False
        part, _, _ = self._open.get(("heading", 0, False), (None, 0, 0))
        if part is None:
            part = Part()
            self.parts.append(part)
        part.entries.extend(entries)
        self._open[("heading", 0, False)] = (part, 0, 0)
        return True

    def _flush_rows(self) -> None:
        rows, self._rows = self._rows, []
        if len(rows) == 1:
            self._plain(["; ".join(rows[0])])
            return
        rules = [i for i, row in enumerate(rows) if all(_RULE_CELL.fullmatch(cell) for cell in row)]
        header = rows[rules[0] - 1] if rules and rules[0] > 0 else None
        body = [row for i, row in enumerate(rows) if i not in set(rules) and row is not header]
        if body:
            self._add(self._column(body, header=header), is_plain=False)

    def _column(self, rows: list[list[str]], *, header: list[str] | None) -> list[Entry]:
        """The entries of the column headed as names, else of the one with most identifiers."""
        columns: dict[int, list[Entry]] = {}
        counts: dict[int, int] = {}
        for row in rows:
            for j, cell in enumerate(row):
                entries = entries_of(cell, self.lookup)
                columns.setdefault(j, []).extend(entries)
                counts[j] = counts.get(j, 0) + any(entry.identifier for entry in entries)
        named = [
            j
            for j, title in enumerate(header or [])
            if _NAME_HEADER.fullmatch(title.strip(" *_`"))
            and (counts.get(j) or not any(counts.values()))
        ]
        best = named[0] if named else max(columns, key=lambda j: (counts[j], -j))
        return columns[best]

    def _flush_free(self) -> None:
        lines, self._free = self._free, []
        if not self._separated_table(lines):
            self._plain(lines)

    def _separated_table(self, lines: list[str]) -> bool:
        """Take tab or comma rows with one column of names beside numbers or explanations.

        Returns:
            False, and takes nothing, when the lines are no such table.
        """
        separator = "\t" if any("\t" in line.strip() for line in lines) else ","
        rows = [
            [c.strip() for c in line.split(separator)]
            for line in lines
            if separator in line.strip()
        ]
        if len(rows) < 2:
            return False
        valid: dict[int, int] = {}
        other = 0
        for row in rows:
            for j, cell in enumerate(row):
                is_valid = self.lookup.whole(cell) is not None
                valid[j] = valid.get(j, 0) + is_valid
                other += not is_valid and (" " in cell or cell.replace(".", "", 1).isdigit())
        full = [j for j, count in valid.items() if 2 * count >= len(rows)]
        if len(full) != 1 or 2 * other < len(rows):
            return False
        column = [row[full[0]] for row in rows if len(row) > full[0]]
        if _NAME_HEADER.fullmatch(column[0]) and self.lookup.whole(column[0]) is None:
            del column[0]
        self._add([e for cell in column for e in entries_of(cell, self.lookup)], is_plain=False)
        return True

    def _plain(self, lines: list[str]) -> None:
        """Take the runs of lines that are nothing but names."""
        run: list[Entry] = []
        for line in lines:
            text = (
                " ".join(line.split())
                if "\t" not in line.strip()
                else line.strip().replace("\t", ", ")
            )
            entries = _entries_of_line(text.strip("`*_ "), self.lookup, follows_names=bool(run))
            if entries is None:
                self.has_prose = True
                self._add(run, is_plain=True)
                run = []
            else:
                run.extend(entries)
        self._add(run, is_plain=True)


def _items_on_one_line(item: re.Match[str], lookup: Lookup) -> list[re.Match[str]]:
    """The items of `1. TP53 2. MYC`: one, unless counting on inside the line names identifiers."""
    line = item.string
    if not item["number"]:
        return [item]
    start, number = item.start(), int(item["number"])
    texts: list[str] = []
    for found in _NUMBER_INSIDE.finditer(line, item.start("body")):
        if int(found[1]) == number + 1:
            texts.append(line[start : found.start()])
            start, number = found.start() + 1, number + 1
    texts.append(line[start:])
    items = [each for each in map(_ITEM.match, texts) if each is not None]
    later = (entry for each in items[1:] for entry in entries_of(each["body"], lookup))
    return items if any(entry.identifier for entry in later) else [item]


def _is_heading(line: str) -> bool:
    bare = line.strip("*_ ")
    return (
        bare.endswith((":", "："))
        or line.startswith("#")
        or (len(line) > 4 and line[:2] == line[-2:] == "**")
    )


def _entries_of_line(line: str, lookup: Lookup, *, follows_names: bool) -> list[Entry] | None:
    """The entries of a line without a marker that is nothing but (explained) names, else None."""
    found = lookup.whole(line)
    if found is not None:
        return [Entry(line, found)]
    listed = as_list(line, lookup)
    if listed is not None:
        return listed
    for head in heads_of(line, lookup):
        found = lookup.whole(head)
        if found is not None:
            return [Entry(head, found)]
    label, colon, rest = line.replace("：", ": ", 1).partition(": ")
    if colon and rest:
        found = lookup.whole(rest)
        entries = [Entry(rest, found)] if found is not None else as_list(rest, lookup)
        is_answer = _ANSWER_LABEL.fullmatch(label) is not None
        if entries and (is_answer or any(entry.identifier for entry in entries)):
            return entries
    if is_name_like(line) and not line.endswith((".", "!", "?", "…")):
        return entries_of(line, lookup)
    if follows_names and _EXPLAINED.match(line):
        return entries_of(line, lookup)
    return None


def list_parts(text: str, lookup: Lookup) -> tuple[list[Part], bool]:
    """Every list of the text in order, and whether there is prose beside them.

    Items with the same marker and indentation are one list, also across headings (groups are one
    answer), unless a numbered list starts again after a line of text. Items of deeper levels are
    lists of their own.

    Args:
        text: The answer, thinking removed.
        lookup: The identifiers.

    Returns:
        The lists, and True when some line is neither a list, nor a heading, nor a table.
    """
    collector = _Collector(lookup)
    for line in text.splitlines():
        collector.line(line)
    collector.flush()
    return collector.parts, collector.has_prose

"""Numbered and bulleted lists, tables and plain separated lists in an answer.

`list_parts` walks over the lines once and returns every list it finds, with what is needed to
choose between them; the choice is made in `parsing.py`. Never decides which list is the answer, and
never reads a sentence as a list.
"""

from __future__ import annotations

import re

from cads_env.parsing.entries import entries_of
from cads_env.parsing.labels import is_attribute
from cads_env.parsing.lines import Item, field_of, is_aside, is_heading, items_of, names_on
from cads_env.parsing.names import Entry, Lookup
from cads_env.parsing.parts import Neighbours, Part, with_one_bullet
from cads_env.parsing.tables import entries_of_lines, entries_of_rows

_QUOTED = re.compile(r"(?: {0,3}>(?![>=]) ?){1,4}")
_CONNECTOR = re.compile(r"(?:and|or|then|followed by)[,:]?|[^\w|]+", re.IGNORECASE)
_BARE_NUMBER = re.compile(r"[(\[]?\d{1,6}[.):\]]")
_OPEN_END = re.compile(r"\s*(?:[-=]{1,2}>|[→⇒>&+]|\band)$|^([^|]+)\|$")
_OPEN_ENDS = (">", "→", "⇒", "&", "+", "and", "|")
# A list under such a heading is another one than the numbered list before it; lists under other
# headings (`Tier 2`, `DNA repair`) are groups of one answer.
_ANEW = re.compile(
    r"final|revis|updat|correct|select|chosen|choice|recommend|propos|answer|pick|decision|decid"
    r"|conclusion|summar|result|round|batch|iteration|attempt|version|analy|candidates|rank|top",
    re.IGNORECASE,
)


class _Collector:
    """The lists found so far, and the state of the walk over the lines."""

    def __init__(self, lookup: Lookup) -> None:
        self.lookup = lookup
        self.parts: list[Part] = []
        self.has_prose = False
        self._open: dict[tuple[str, int, bool], tuple[Part, int, int]] = {}
        self._heading_is_aside = False
        self._is_group = False
        self._is_gap = False
        self._text_lines = 0
        self._sections = 0
        self._rows: list[list[str]] = []
        self._free: list[str] = []
        self._block: list[Item] = []
        self._above: list[tuple[int, Part]] = []
        # What touches a block of items: the part of the line before, the part of the last item.
        self._lead: Part | None = None
        self._last: Part | None = None
        self._neighbours = Neighbours(lookup)

    def line(self, line: str) -> None:
        """Take the next line."""
        stripped = line.strip()
        is_name = self.lookup.exact(stripped) is not None
        if not is_name:
            line = _QUOTED.sub("", line, count=1) if _QUOTED.match(line) else line
            line = line.rstrip()
            if line.endswith(_OPEN_ENDS):
                line = _OPEN_END.sub(r"\1", line)
            stripped = line.strip()
        if not stripped or stripped.startswith(("```", "~~~")):
            self._is_gap = True
            return
        is_number = not self.lookup.has_numbers and _BARE_NUMBER.fullmatch(stripped) is not None
        if not is_name and (is_number or _CONNECTOR.fullmatch(stripped)):
            return
        items = [] if is_name else items_of(line, self.lookup)
        label, value = ("", "") if is_name or items else field_of(line, self.lookup)
        if items:
            self._flush_rows()
            if self._free:
                self._lead = self._flush_free()
                self._neighbours.add_title(self._lead, section=self._sections)
            self._lead = None if self._is_gap else self._lead
            self._block.extend(items)
        elif "|" in stripped and not is_name:
            self._flush_block()
            self._flush_free()
            self._rows.append([cell.strip() for cell in stripped.strip("|").split("|")])
        elif label:
            self.flush()
            self._named("field " + label, value)
        elif not is_name and is_heading(stripped, self.lookup) and not self._continues(stripped):
            self.flush()
            self._heading(stripped)
        else:
            self._flush_rows()
            if not self._free:
                self._flush_block()
                self._last = None if self._is_gap or line[0].isspace() else self._last
            self._free.append(line)
            self._text_lines += not line[0].isspace()
        self._is_gap = False

    def flush(self) -> None:
        """End the table, the block of items or the run of free lines at hand."""
        self._flush_rows()
        self._flush_block()
        self._flush_free()
        self._lead = self._last = None

    def finish(self) -> None:
        """Join what stands in adjacent lines, and names that are titles of paragraphs."""
        self.flush()
        self._neighbours.join()
        self.parts = [part for part in self.parts if part.entries]

    def _continues(self, line: str) -> bool:
        """Whether `**TP53**` is one more line of a run of names, not a heading."""
        if not self._free or self._is_gap or self.lookup.exact(line.strip("*_ ")) is None:
            return False
        return self.lookup.whole(self._free[-1].strip()) is not None

    def _heading(self, line: str) -> None:
        bare = line.strip("#*_: ：")
        is_marked = line.startswith(("#", "**"))
        is_label = line.rstrip("*_ ").endswith((":", "："))
        if self.lookup.exact(bare) is not None or (is_marked and not is_label):
            entries = entries_of(line.strip("#* "), self.lookup)
            if any(entry.identifier for entry in entries):
                self._lead = self._named("heading", line.strip("#* "))
                return
        self._heading_is_aside = is_aside(line)
        self._is_group = is_marked and not _ANEW.search(line)
        self._text_lines += 1
        self._sections += 1

    def _named(self, kind: str, text: str) -> Part:
        """Take `### TP53` or `Gene: TP53` as one more entry of the list of such lines."""
        key = (kind, 0, False)
        part, _, _ = self._open.get(key, (None, 0, 0))
        if part is None:
            # Of two names in a record (`Gene: TP53`, `Target: MDM2`) the first is meant.
            level = sum(other.startswith("field") for other, _, _ in self._open)
            part = Part(level=level if kind != "heading" else 0, is_plain=kind != "heading")
            self.parts.append(part)
        part.entries.extend(entries_of(text, self.lookup))
        part.texts.append(text)
        self._open[key] = (part, 0, 0)
        return part

    def _flush_block(self) -> None:
        block, self._block = self._block, []
        lead, self._lead = self._lead, None
        for i, item in enumerate(with_one_bullet(block, self.lookup)):
            if is_attribute(item.body, self.lookup):
                continue
            part, at = self._place(item)
            if lead is not None and i == 0:
                self._neighbours.add_before(lead, part, at)
            self._last = part

    def _place(self, item: Item) -> tuple[Part, int]:
        """Add the item to its list, and tell the list and where its entries begin in it."""
        key = (item.marker, item.level, self._heading_is_aside)
        part, last, seen = self._open.get(key, (None, 0, 0))
        restarts = bool(item.number) and item.level == 0 and item.number <= last
        if part is None or (restarts and self._text_lines > seen and not self._is_group):
            part = Part(level=item.level, is_aside=self._heading_is_aside)
            self.parts.append(part)
        while self._above and self._above[-1][0] >= item.level:
            self._above.pop()
        if self._above and part.parent is None:
            part.parent = self._above[-1][1]
        self._above.append((item.level, part))
        at = len(part.entries)
        part.entries.extend(entries_of(item.body, self.lookup))
        part.texts.append(item.body)
        self._open[key] = (part, item.number, self._text_lines)
        self._is_group = False
        return part, at

    def _flush_rows(self) -> None:
        rows, self._rows = self._rows, []
        if len(rows) == 1:
            self._plain(["; ".join(rows[0])])
        elif rows:
            self._add(entries_of_rows(rows, self.lookup), is_plain=False)

    def _flush_free(self) -> Part | None:
        """Take the free lines, and tell the part of the last line if it is a line of names."""
        lines, self._free = self._free, []
        last, self._last = self._last, None
        if not lines:
            return None
        in_rows = entries_of_lines(lines, self.lookup)
        if in_rows is not None:
            self._add(in_rows, is_plain=False)
            return None
        return self._plain(lines, after=last)

    def _plain(self, lines: list[str], *, after: Part | None = None) -> Part | None:
        """Take the runs of lines that are nothing but names.

        Args:
            lines: Free lines without a gap between them.
            after: The list whose last item stands in the line before.

        Returns:
            The part of the last line, if it is a line of names.
        """
        part: Part | None = None
        for i, line in enumerate(lines):
            text = " ".join(line.split())
            if "\t" in line.strip():
                text = line.strip().replace("\t", ", ")
            text = text.replace("**", "").strip("`*_ ")
            if is_attribute(text, self.lookup):
                self.has_prose = True
                continue
            entries, label = names_on(text, self.lookup, follows_names=part is not None)
            if entries is None:
                self.has_prose = True
                self._neighbours.add_title(part, section=self._sections)
                part = None
                continue
            aside = self._heading_is_aside or is_aside(label)
            if part is None or part.is_aside != aside:
                part = self._add([], is_plain=True)
                part.is_aside = aside
                if i == 0 and after is not None:
                    self._neighbours.add_after(part, after)
            part.entries.extend(entries)
            part.texts.append(text)
        return part

    def _add(self, entries: list[Entry], *, is_plain: bool) -> Part:
        part = Part(entries=entries, is_aside=self._heading_is_aside, is_plain=is_plain)
        self.parts.append(part)
        return part


def list_parts(text: str, lookup: Lookup) -> tuple[list[Part], bool]:
    """Every list of the text in order, and whether there is prose beside them.

    Items with the same marker and indentation are one list, also across headings (groups are one
    answer), unless a numbered list starts again after a line of text. Adjacent lines that are
    entries are one list whatever their markers. Items of deeper levels are lists of their own.

    Args:
        text: The answer, thinking removed and markup made plain.
        lookup: The identifiers.

    Returns:
        The lists, and True when some line is neither a list, nor a heading, nor a table.
    """
    collector = _Collector(lookup)
    for line in text.splitlines():
        collector.line(line)
    collector.finish()
    return collector.parts, collector.has_prose

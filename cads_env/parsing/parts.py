"""The lists of an answer as parts, and the joining of parts that stand side by side.

`Neighbours` keeps what the walk over the lines saw next to each other and joins it at the end, when
it is known which lists hold names. Never looks at the lines themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cads_env.parsing.entries import is_firm
from cads_env.parsing.lines import Item
from cads_env.parsing.names import Entry, Lookup, is_name_like


@dataclass(slots=True, kw_only=True, eq=False)
class Part:
    """One list of an answer.

    Attributes:
        entries: Its entries, in order.
        texts: The items or lines that they come from.
        level: Depth of indentation; 0 is the outermost.
        is_aside: Whether its heading says that it is not the answer (`Rejected:`, `Draft:`).
        is_plain: Whether it is a separated list or one name a line, without markers.
        parent: The list that this one is nested in.
    """

    entries: list[Entry] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    level: int = 0
    is_aside: bool = False
    is_plain: bool = False
    parent: Part | None = None

    def valid_count(self) -> int:
        """Number of distinct identifiers among the entries."""
        return len({entry.identifier for entry in self.entries if entry.identifier is not None})

    def is_of_names(self) -> bool:
        """Whether at least half of the entries are one or two words, as names are."""
        short = sum(len(entry.text.split(None, 2)) <= 2 for entry in self.entries)
        return bool(self.entries) and 2 * short >= len(self.entries)

    def is_naming(self, lookup: Lookup) -> bool:
        """Whether at least half of its items are names, or names with an explanation."""
        return 0 < len(self.texts) <= 2 * sum(is_firm(text, lookup) for text in self.texts)


class Neighbours:
    """Runs of names that touch lists, and names that are titles of paragraphs or lists."""

    def __init__(self, lookup: Lookup) -> None:
        """Start with nothing seen.

        Args:
            lookup: The identifiers.
        """
        self._lookup = lookup
        self._before: list[tuple[Part, Part, int]] = []
        self._after: list[tuple[Part, Part, int]] = []
        self._titles: dict[int, list[Part]] = {}
        self._naming: dict[int, bool] = {}
        self._joined: set[int] = set()

    def add_before(self, run: Part, part: Part, at: int) -> None:
        """Note that a run ends in the line before the item whose entries begin at `at`."""
        self._before.append((run, part, at))

    def add_after(self, run: Part, part: Part) -> None:
        """Note that a run begins in the line after the last item, so far, of a list."""
        self._after.append((run, part, len(part.entries)))

    def add_title(self, part: Part | None, *, section: int) -> None:
        """Note the run before a text if it is one name alone on its line.

        Args:
            part: The run, or None for no run.
            section: Number of the section; titles of one section are one list.
        """
        if part is None or not part.is_plain or not len(part.texts) == len(part.entries) == 1:
            return
        if self._lookup.exact(part.texts[0].strip(":")) is not None:
            self._titles.setdefault(section, []).append(part)

    def join(self) -> None:
        """Join titles of one section; then runs with the lists that they touch.

        What is joined elsewhere is left without entries.
        """
        touching = {
            id(run) for run, part, _ in self._after if self._is_naming(part) and run is not part
        }
        for titles in self._titles.values():
            names = [title for title in titles if id(title) not in touching]
            if len(names) > 1:
                self._join_titles(names)
        insertions: dict[int, tuple[Part, list[tuple[int, Part]]]] = {}
        for run, part, at in (*self._after, *self._before):
            if id(run) in self._joined or run is part:
                continue
            if not run.is_plain and len(run.texts) > 1:
                part.parent = run
            elif self._is_naming(part) and part.is_aside == run.is_aside:
                insertions.setdefault(id(part), (part, []))[1].append((at, run))
                self._joined.add(id(run))
        for part, runs in insertions.values():
            _insert(part, sorted(runs, key=lambda each: each[0]))

    def _is_naming(self, part: Part) -> bool:
        if id(part) not in self._naming:
            self._naming[id(part)] = part.is_naming(self._lookup)
        return self._naming[id(part)]

    def _join_titles(self, titles: list[Part]) -> None:
        last = titles[-1]
        last.entries = [entry for title in titles for entry in title.entries]
        last.texts = [text for title in titles for text in title.texts]
        for title in titles[:-1]:
            title.entries = []
        ids = {id(title) for title in titles}
        self._joined |= ids
        for run, part, _ in self._before:
            part.parent = last if id(run) in ids else part.parent


def _insert(part: Part, runs: list[tuple[int, Part]]) -> None:
    entries: list[Entry] = []
    start = 0
    for at, run in runs:
        entries += part.entries[start:at] + run.entries
        start, run.entries = at, []
    part.entries = entries + part.entries[start:]


def with_one_bullet(items: list[Item], lookup: Lookup) -> list[Item]:
    """The items of adjacent lines with one marker for all whose items are mostly names.

    Bullets of several characters are then one list. A number joins them only if it is alone, since
    bullets below several numbers are about the numbered entries; those come one level deeper.

    Args:
        items: Items without any other line between them.
        lookup: The identifiers.

    Returns:
        The items with new markers and levels.
    """
    groups: dict[tuple[int, str], list[Item]] = {}
    for item in items:
        groups.setdefault((item.level, item.marker), []).append(item)
    if len(groups) < 2:
        return items
    first: dict[int, str] = {}
    marker_of: dict[tuple[int, str], str] = {}
    for (level, marker), group in groups.items():
        names = sum(is_firm(item.body, lookup) or is_name_like(item.body) for item in group)
        if 2 * names >= len(group) and (marker != "number" or len(group) == 1):
            marker_of[level, marker] = first.setdefault(level, marker)
    numbered = {level for level, marker in groups if marker == "number"}
    numbered &= {level for level in numbered if len(groups[level, "number"]) > 1}
    is_below = items[0].marker == "number"
    return [
        item._replace(
            marker=marker_of.get((item.level, item.marker), item.marker),
            level=item.level + (is_below and item.marker != "number" and item.level in numbered),
        )
        for item in items
    ]

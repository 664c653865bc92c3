"""What one line of an answer is: list items, a heading, a field or free text with names.

Never looks at the lines around it; `parsing_lists.py` puts the lines together.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final, NamedTuple

from cads_env.parsing.entries import as_list, entries_of, head_entry, heads_of, is_firm
from cads_env.parsing.labels import (
    ANSWER_WORD,
    NAME_WORD,
    RANKED,
    SIGNS,
    ordinal_of,
    split_heading,
)
from cads_env.parsing.names import ALPHANUMERIC, Entry, Lookup, is_name_like

# Any sign that is neither a letter, nor a quote, nor punctuation can be a bullet: • → ✓ ★ – and so
# on, also without a space after it; ASCII signs only with a space.
_SIGN = (
    r"[^\w\s!-~\u00a1\u00a7\u00ab\u00b0-\u00b6\u00b8-\u00bf\u2116\u2018-\u201f\u2020\u2021\u2026\u2030-\u203a"
    r"\u3000-\u303f\uff00-\uffef][\ufe0f\u200d\u20e3]*"
)
_ITEM = re.compile(
    r"(?P<indent>[ \t]*)[*_]{0,3}"
    r"(?:(?P<bullet>(?:-{1,3}|[+*~»])(?=[ \t])|[-=]{1,2}>|>>|\\item\b|\[[ xX]\](?=[ \t])"
    rf"|{_SIGN})[ \t]*"
    r"|#[ ]?(?P<hash>\d{1,6})[.):]?[ \t]+"
    r"|[(\[]?(?P<number>\d{1,6})(?:\\?[.):\]、．][.)]?-?(?:[*_]{0,3}[ \t]+|(?=[^\d\s]))"
    r"|[ \t]+[-–—][ \t]+|\ufe0f?\u20e3[ \t]*)"
    r"|(?P<circled>[①-⑳])[ \t]*"
    r"|\(?(?P<letter>[A-Za-z]|[ivx]{2,4})\)[ \t]+)"
    r"[*_]{0,3}(?P<body>[^\s*_].*)"
)
_COUNT = re.compile(
    rf"(?<![\w.\-])[*_#]{{0,3}}(?:(?:{RANKED}[ _]?)?#[ ]?(?P<hash>\d{{1,4}})[*_]{{0,3}}"
    r"(?:[.):]?(?=\s)|[ ]?=|[ ]+[-–—→](?=\s))"
    rf"|(?:{RANKED}[ _]?|[(\[])?(?P<number>\d{{1,4}})[*_]{{0,3}}"
    r"(?:\\?[.):\]、．][.)]?-?|[ ]?=|[ ]+[-–—→](?=\s))"
    r"|(?P<circled>[①-⑳])|\(?(?P<letter>[A-Za-z]|[ivx]{2,4})\)(?=\s))"
    r"[*_]{0,3}(?:\s+(?=[\w*_`\"'“‘(\[])|(?=[^\W\d]|[*_`\"'“‘\[]))",
    re.IGNORECASE,
)
_COUNT_SIGN = re.compile(
    r"\d[*_]{0,3}(?:\\?[.):\]、．]|\s|=)|[①-⑳]|(?<![^\W_])[A-Za-z]\)|[ivx]{2,4}\)"
)
_ASIDE = re.compile(
    r"\b(?:rejected|excluded|avoid(?:ed)?|discarded|ruled out|considered|drafts?|initial|already"
    r"|not (?:selected|chosen|proposed|included)|first (?:ideas?|pass|thoughts?)|alternatives?"
    r"|runners?-up|backups?|previous(?:ly)?|(?:tested|read|seen) so far"
    r"|(?:low|high|tested) (?:genes|candidates|results))\b"
    r"|^\W*tested\W*$",
    re.IGNORECASE,
)
_ASIDE_WORDS: Final = 6
"""A longer heading is a sentence, whose words do not say what the list is."""

_ANSWER_LABEL = re.compile(
    r"[^:]{0,40}\b(?:genes?|answers?|proposals?|picks?|candidates?|selections?|symbols?|compounds?|drugs?|list)\b"
    r"[^:]{0,20}",
    re.IGNORECASE,
)
_BARE_HEADING = re.compile(
    r"[\[(]?(?:(?:my|the|our|proposed|selected|chosen|final|next|top|ranked|gene) ){0,3}"
    rf"(?:{NAME_WORD}|{ANSWER_WORD})(?: (?:is|are|list|\d{{1,4}}))?[\])]? ?=?",
    re.IGNORECASE,
)
_FIELD = re.compile(
    r"\s*[*_]{0,3}(?P<label>(?:gene|symbol|candidate|identifier|name|compound|drug|smiles|molecule)"
    r"(?:[ _-]?(?:name|symbol|id|identifier))?)[*_]{0,3} ?[:：=] ?[*_]{0,3} ?(?P<value>\S.*)",
    re.IGNORECASE,
)
_EXPLAINED = re.compile(r"\S+?(?:[:：][*_]{0,3}| [-=]?>| //| #)(?: |$)|[^\s:：]{1,40}:\w")


_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")


class Item(NamedTuple):
    """One list item.

    Attributes:
        marker: The bullet character, or `number` or `letter`.
        level: Depth of indentation; 0 is the outermost.
        number: The number before it, 0 without one.
        body: The text after the marker.
    """

    marker: str
    level: int
    number: int
    body: str


def items_of(line: str, lookup: Lookup) -> list[Item]:
    """The list items on a line: none, one, or several that count on (`1. TP53 2. MYC`)."""
    several = _counted(line, lookup)
    if several:
        return several
    item = _ITEM.match(line)
    indent = len(line) - len(line.lstrip())
    if item is None:
        ordinal = ordinal_of(line.lstrip("*_ \t"), lookup)
        body = ordinal.string[ordinal.end() :].strip() if ordinal else ""
        count = int(ordinal["rank"] or 0) if ordinal else 0
        return [Item("number", indent // 3, count, body)] if body else []
    number = item["number"] or item["hash"]
    indent = len(item["indent"].expandtabs(4))
    marker = item["bullet"] or ("letter" if item["letter"] else "number")
    if lookup.has_numbers and number and lookup.exact(number) is not None:
        if not any(entry.identifier for entry in entries_of(item["body"], lookup)):
            return []
    # Right-aligned numbers are indented by one or two columns without being nested.
    level = indent // 2 if item["bullet"] else indent // 3
    return [Item(marker, level, int(number) if number else 0, item["body"])]


def _counted(line: str, lookup: Lookup) -> list[Item]:
    """The items of a line that counts 1, 2, ... before names; none when it does not."""
    if len(list(islice(_COUNT_SIGN.finditer(line), 2))) < 2:
        return []  # most lines, at little cost
    first = _COUNT.search(line)
    if first is None or not _may_count_on(line, first):
        return []
    start = expected = 0
    is_letter = False
    counts: list[int] = []
    bodies: list[str] = []
    prefix = ""
    for found in _COUNT.finditer(line):
        if lookup.exact(found.group().strip(SIGNS)) is not None:
            continue
        count, letter = _count_of(found)
        if (not counts and (count == 1 or not line[: found.start()].strip())) or (
            count == 1 and len(counts) == 1 and counts[0] != 1
        ):
            counts.clear()  # Top 3: 1. TP53 ...
            prefix = line[: found.start()]
        elif not counts or count != expected or letter != is_letter:
            continue
        else:
            bodies.append(line[start : found.start()])
        counts.append(count)
        start, expected, is_letter = found.end(), count + 1, letter
    if len(counts) < 2:
        return []
    bodies.append(line[start:])
    prefix = prefix.strip("*_ \t")
    if prefix and lookup.whole(prefix) is not None:
        return []  # TP53 (1), MYC (2)
    valid = [any(entry.identifier for entry in entries_of(body, lookup)) for body in bodies]
    firm = [is_firm(body, lookup) or is_name_like(body.strip()) for body in bodies if prefix]
    if not any(valid[1:]) or not all(firm):
        return []
    marker = "letter" if is_letter else "number"
    level = (len(line) - len(line.lstrip())) // 3
    return [
        Item(marker, level, count, body.strip())
        for count, body in zip(counts, bodies, strict=True)
        if ALPHANUMERIC.search(body)
    ]


def _may_count_on(line: str, first: re.Match[str]) -> bool:
    """Whether a second count can follow; rules out most lines at little cost."""
    if first["letter"] or first["circled"]:
        return True
    for number in (str(_count_of(first)[0] + 1), "2"):
        at = line.find(number, first.end())
        while at >= 0:
            end = at + len(number)
            if not line[at - 1].isalnum() and not line[end : end + 1].isalnum():
                return True
            at = line.find(number, end)
    return False


def _count_of(found: re.Match[str]) -> tuple[int, bool]:
    if found["letter"] in _ROMAN:
        return _ROMAN.index(found["letter"]) + 1, True
    if found["letter"]:
        return ord(found["letter"].lower()) - ord("a") + 1, True
    if found["circled"]:
        return ord(found["circled"]) - ord("①") + 1, False
    return int(found["number"] or found["hash"]), False


def is_heading(line: str, lookup: Lookup) -> bool:
    """Whether the line announces what follows: `Genes:`, `## Genes`, `**Genes**` or `Genes`."""
    bare = line.strip("*_ ")
    return (
        bare.endswith((":", "："))
        or line.startswith("#")
        or (len(line) > 4 and line[:2] == line[-2:] == "**" and "**" not in line[2:-2])
        or (_BARE_HEADING.fullmatch(bare) is not None and lookup.whole(bare) is None)
    )


def is_aside(heading: str) -> bool:
    """Whether a heading says that its list is not the answer (`Rejected:`, `Draft`)."""
    words = heading.split(None, _ASIDE_WORDS)
    return len(words) <= _ASIDE_WORDS and _ASIDE.search(heading) is not None


def field_of(line: str, lookup: Lookup) -> tuple[str, str]:
    """Label and value of a line such as `Gene: TP53`; two empty strings if it is none."""
    found = _FIELD.fullmatch(line)
    if found is None or lookup.whole(line) is not None:
        return "", ""
    return found["label"].lower(), found["value"]


def names_on(line: str, lookup: Lookup, *, follows_names: bool) -> tuple[list[Entry] | None, str]:
    """The entries of a line without a marker that is nothing but (explained) names.

    Args:
        line: The line, without emphasis around it.
        lookup: The identifiers.
        follows_names: Whether the line before it was a line of names.

    Returns:
        The entries, or None if the line is prose, and the label before them, or "".
    """
    found = lookup.whole(line)
    if found is not None:
        return [Entry(line, found)], ""
    label, rest = split_heading(line, lookup)
    if label and rest:
        entries = _after_label(rest, lookup)
        if entries:
            return entries, label
    listed = as_list(line, lookup)
    if listed and any(entry.identifier for entry in listed):
        return listed, ""
    label, colon, rest = line.replace("：", ": ", 1).partition(": ")
    entries = _after_label(rest, lookup) if colon and rest else None
    is_valid = any(entry.identifier for entry in entries or ())
    if entries and len(entries) > 1 and is_valid and lookup.exact(label) is None:
        return entries, label
    head = head_entry(line, lookup)
    if head is not None:
        return [head], ""
    if entries and (is_valid or _ANSWER_LABEL.fullmatch(label)):
        return entries, label
    listed = listed or as_list(line, lookup, is_lenient=True)
    if listed is not None:
        return listed, ""
    if is_name_like(line) and not line.endswith((".", "!", "?", "…")):
        return entries_of(line, lookup), ""
    if follows_names:
        heads = heads_of(line, lookup)
        if _EXPLAINED.match(line) or (heads and is_name_like(heads[-1])):
            return entries_of(line, lookup), ""
        if is_name_like(line):
            return [], ""
    return None, ""


def _after_label(rest: str, lookup: Lookup) -> list[Entry] | None:
    """The entries after a label; None unless they are all that follows it."""
    rest = rest.strip("*_ ")
    found = lookup.whole(rest)
    if found is not None:
        return [Entry(rest, found)]
    return as_list(rest, lookup) or (entries_of(rest, lookup) if is_firm(rest, lookup) else None)

"""JSON as language models write it, and the entries that it proposes.

`json_parts` finds arrays and objects anywhere in a text, reads them with every common mistake
(trailing commas, single or typographic quotes, comments, bare words, a missing end) and returns
their entries. Never raises, never recurses deeper than `MAX_DEPTH`, and reads each character a
bounded number of times.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, TypeAlias

from cads_env.parsing_names import Entry, Lookup, entries_of, is_name_like

Json: TypeAlias = "str | list[Json] | dict[str, Json]"

MAX_DEPTH: Final = 32
"""Arrays and objects deeper than this are read as if they began there."""

# Only the innermost brackets of a very deep nest are tried, and only braces that a key may follow.
_OPENING = re.compile(rf"\[(?!\[{{{MAX_DEPTH}}})|\{{(?=\s*[\w\"'“‘`/#}}])")
_SKIPPED = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*|/\*[^*]*\*/)*")
_SKIPPED_WITH_COMMAS = re.compile(r"(?:[\s,]+|//[^\n]*|#[^\n]*|/\*[^*]*\*/)*")
_STOP = re.compile(r"[\\\n\"'”’`]")
_AFTER_STRING = re.compile(r"\s*(?:[,\]}:\"'“‘`#]|//|/\*|$|\n)")
_BARE = re.compile(r"[^,\[\]{}:\"\n]{1,300}")
_BARE_KEY = re.compile(r"\w[\w .\-]{0,60}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CLOSING_QUOTE = {'"': '"', "'": "'", "“": "”", "‘": "’", "`": "`"}
_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    '"': '"',
    "'": "'",
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
}

_NAME_KEY = re.compile(
    r"(?:gene|symbol|candidate|identifier|id|name|compound|drug|target|smiles|molecule|perturbation)s?"
    r"(?:[_ -]?(?:name|symbol|id|identifier)s?)?",
    re.IGNORECASE,
)
_ANSWER_KEY = re.compile(
    r"final|answer|propos|select|chosen|choice|pick|recommend|genes$|identifiers$", re.IGNORECASE
)
_ASIDE_KEY = re.compile(
    r"reject|exclud|avoid|discard|skip|ignor|consider|alternativ|backup|tested|previous|already|reason|rational|why"
    r"|thought|note|explan|analysis|evidence|comment|descri|warning|justif|not_",
    re.IGNORECASE,
)


class JsonParts(NamedTuple):
    """The JSON parts of a text.

    Attributes:
        parts: One list of entries a part, in order; an empty list is an explicit empty answer.
        readable_end: Where a string begins that the end of the text cuts off, else the length of
            the text. What stands in it may be half a name and must not be read in any other way.
    """

    parts: list[list[Entry]]
    readable_end: int


class _Reader:
    """Reads one array or object of a text; `is_broken` says that it had no proper end."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at
        self.is_broken = False
        self.has_quotes = False
        self.readable_end = len(text)

    def value(self, depth: int) -> Json | None:
        """The value at the position; None, with `is_broken` set, when incomplete or no JSON."""
        character = self._skip(_SKIPPED)
        if character in ("[", "{") and depth >= MAX_DEPTH:
            self.is_broken = True
            return None
        if character == "[":
            return self._array(depth)
        if character == "{":
            return self._object(depth)
        if character in _CLOSING_QUOTE:
            return self._string(character)
        return self._bare()

    def _skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.text[self.at : self.at + 1]

    def _array(self, depth: int) -> list[Json]:
        self.at += 1
        items: list[Json] = []
        while True:
            character = self._skip(_SKIPPED_WITH_COMMAS)
            if character == "]":
                self.at += 1
                return items
            if character in ("", "}"):
                self.is_broken = True
                return items
            item = self.value(depth + 1)
            if item is not None:
                items.append(item)
            if self.is_broken:
                return items

    def _object(self, depth: int) -> Json:
        self.at += 1
        fields: dict[str, Json] = {}
        singles: list[Json] = []
        while True:
            character = self._skip(_SKIPPED_WITH_COMMAS)
            if character == "}":
                self.at += 1
                break
            key = self._key(character)
            if key is None:
                break
            after = self._skip(_SKIPPED)
            if after == ":":
                self.at += 1
                value = self.value(depth + 1)
                if value is not None:
                    fields[key] = value
            elif after in (",", "}") and after:
                singles.append(key)  # a set, {"TP53", "MYC"}
            else:
                self.is_broken = True
            if self.is_broken:
                break
        if self.is_broken:
            # Of an incomplete record only lists are kept: a name whose record is cut off is not a
            # complete element.
            fields = {key: value for key, value in fields.items() if not isinstance(value, str)}
        return singles if singles and not fields else fields

    def _key(self, character: str) -> str | None:
        if character in _CLOSING_QUOTE:
            return self._string(character)
        found = _BARE_KEY.match(self.text, self.at)
        if found is None:
            self.is_broken = True
            return None
        self.at = found.end()
        return found.group().strip()

    def _string(self, quote: str) -> str | None:
        self.has_quotes = True
        closing = _CLOSING_QUOTE[quote]
        parts: list[str] = []
        self.at += 1
        start = self.at
        for found in _STOP.finditer(self.text, self.at):
            if found.start() < start:
                continue  # the character after a backslash
            character = found.group()
            if character == "\n":
                self.at = found.start()
                self.is_broken = True
                return None
            if character == "\\":
                parts.append(self.text[start : found.start()])
                decoded, start = self._escape(found.start())
                parts.append(decoded)
            elif character == closing and _AFTER_STRING.match(self.text, found.end()):
                parts.append(self.text[start : found.start()])
                self.at = found.end()
                return _with_pairs_joined("".join(parts))
        self.readable_end = self.at - 1
        self.at = len(self.text)
        self.is_broken = True
        return None

    def _escape(self, at: int) -> tuple[str, int]:
        letter = self.text[at + 1 : at + 2]
        digits = self.text[at + 2 : at + 6]
        if (
            letter == "u"
            and len(digits) == 4
            and all(d in "0123456789abcdefABCDEF" for d in digits)
        ):
            return chr(int(digits, 16)), at + 6
        # An unknown escape keeps its backslash: models write SMILES such as C/C=C\C without
        # doubling it.
        return _ESCAPES.get(letter, "\\" + letter), at + 2

    def _bare(self) -> str | None:
        found = _BARE.match(self.text, self.at)
        end = found.end() if found else self.at
        if found is None or self.text[end : end + 1] not in (",", "]", "}", "\n"):
            self.at = end
            self.is_broken = True
            return None
        self.at = end
        return found.group().strip()


def _with_pairs_joined(text: str) -> str:
    r"""The text with the two halves of an escaped character such as `\ud83d\ude00` made one."""
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def json_parts(text: str, lookup: Lookup) -> JsonParts:
    """The entries of every JSON array or object in the text, in order.

    Records with only white space and commas between them (JSON lines) are one part. An array
    without any quoted string (`[1]`, `[see below]`) is not taken for JSON, except an empty one; an
    object without any list or name is none either.

    Args:
        text: The answer, thinking removed.
        lookup: The identifiers.

    Returns:
        The parts, and where the text ends for other readings.
    """
    parts: list[list[Entry]] = []
    record_end = -1
    readable_end = len(text)
    at = 0
    while (found := _OPENING.search(text, at)) is not None:
        start = found.start()
        reader = _Reader(text, start)
        value = reader.value(0)
        at = max(reader.at, start + 1)
        readable_end = min(readable_end, reader.readable_end)
        is_empty_list = value == [] and not reader.is_broken and not _is_check_box(text, start)
        if value is None or not (reader.has_quotes or is_empty_list):
            continue
        entries = _entries_of_value(value, lookup)
        if entries is None or (not entries and reader.is_broken):
            continue
        is_record = isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
        if is_record and record_end >= 0 and not text[record_end:start].strip(" \t\r\n,"):
            parts[-1].extend(entries)
        else:
            parts.append(entries)
        record_end = at if is_record else -1
    return JsonParts(parts, readable_end)


def _is_check_box(text: str, start: int) -> bool:
    before = text[max(0, start - 2) : start]
    return before[:1] in ("-", "*", "+") or before[-1:].isalnum()


def _entries_of_value(value: Json, lookup: Lookup) -> list[Entry] | None:
    """The entries of a whole JSON value; None when it holds neither a list nor a name."""
    if isinstance(value, str):
        return None
    if isinstance(value, list):
        return [entry for item in value for entry in _entries_of_item(item, lookup)]
    keys = [lookup.exact(key) for key in value]
    if value and 2 * sum(key is not None for key in keys) > len(keys):
        return [Entry(key, found) for key, found in zip(value, keys, strict=True)]
    entries = _entries_of_fields(value, lookup)
    return _entries_of_record(value, lookup) if entries is None else entries


def _entries_of_item(item: Json, lookup: Lookup) -> list[Entry]:
    if isinstance(item, str):
        is_null = item in ("null", "None") and lookup.whole(item) is None
        return [] if is_null else entries_of(item, lookup)
    if isinstance(item, list):
        # A row with exactly one identifier is a record such as ["TP53", 0.9, "why"].
        cells = [cell for cell in item if isinstance(cell, str)]
        names = [Entry(cell, name) for cell in cells if (name := lookup.whole(cell)) is not None]
        return names if len(names) == 1 else _entries_of_value(item, lookup) or []
    return _entries_of_value(item, lookup) or []


def _entries_of_fields(fields: dict[str, Json], lookup: Lookup) -> list[Entry] | None:
    """The entries of the list-valued fields; None when there is none, or a string is the name.

    Fields set aside by their name (`rejected`, `reasoning`) count only alone. A field whose name
    says that it is the answer wins; otherwise every field with an identifier in it counts, in
    order, since groups are one answer.
    """
    names = [v for k, v in fields.items() if isinstance(v, str) and _NAME_KEY.fullmatch(k)]
    nested = {key: value for key, value in fields.items() if not isinstance(value, str)}
    kept = {key: value for key, value in nested.items() if not _ASIDE_KEY.search(key)}
    if any(lookup.whole(name) for name in names) or (names and not kept):
        return None
    kept = kept or nested
    read: dict[str, list[Entry]] = {}
    for key, value in kept.items():
        entries = _entries_of_value(value, lookup)
        if entries is not None:
            read[key] = entries
    valid = {key: e for key, e in read.items() if any(entry.identifier for entry in e)}
    for key, entries in valid.items():
        if _ANSWER_KEY.search(key):
            return entries
    chosen = (valid or read).values()
    return [entry for entries in chosen for entry in entries] if read else None


def _entries_of_record(fields: dict[str, Json], lookup: Lookup) -> list[Entry] | None:
    """The entry of a record such as {"gene": "TP53", "reason": "..."}; None when it has no name."""
    texts = {key: value for key, value in fields.items() if isinstance(value, str)}
    if len(texts) > 1 and all(key[-1:].isdigit() for key in texts):
        return [entry for value in texts.values() for entry in entries_of(value, lookup)]
    named = [value for key, value in texts.items() if _NAME_KEY.fullmatch(key)]
    others = [value for key, value in texts.items() if not _ASIDE_KEY.search(key)]
    for value in (*named, *others):
        found = lookup.whole(value)
        if found is not None:
            return [Entry(value, found)]
    answers = [value for key, value in texts.items() if _ANSWER_KEY.search(key)]
    for value in (*named, *answers):
        entries = entries_of(value, lookup)
        if any(entry.identifier for entry in entries):
            return entries
    for value in (*named, *answers):
        if is_name_like(value):
            return entries_of(value, lookup)
    return entries_of(named[0], lookup) if named else None

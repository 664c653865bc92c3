"""JSON as language models write it.

`Reader` reads one array or object with every common mistake: trailing commas, single or typographic
quotes, comments, bare words, tuples, a missing end. Never raises, never recurses deeper than
`MAX_DEPTH`, and reads each character a bounded number of times.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

Json: TypeAlias = "str | list[Json] | dict[str, Json]"

MAX_DEPTH: Final = 32
"""Arrays and objects deeper than this are read as if they began there."""

OPENING = re.compile(rf"\[(?!\[{{{MAX_DEPTH}}})|\{{(?=\s*[\w\"'“‘`/#}}])")
"""Where an array or object may begin.

Only the innermost brackets of a very deep nest count, and only braces that a key may follow.
"""

_TUPLE = re.compile(r"\((?=\s*(?:[\"'“‘`]|-?\d[\d.]{0,20}\s*,))")
# White space may be escaped, as in an answer that was quoted once too often.
_SKIPPED = re.compile(r"(?:\s+|\\[nrt]|//[^\n]*|#[^\n]*|/\*[^*]*\*/)*")
_SKIPPED_WITH_COMMAS = re.compile(r"(?:[\s,]+|\\[nrt]|//[^\n]*|#[^\n]*|/\*[^*]*\*/)*")
_STOP = re.compile(r"[\\\n\"'”’`]")
_AFTER_STRING = re.compile(r"\s*(?:[,\]}:\"'“‘`#]|//|/\*|$|\n)")
_AFTER_STRING_IN_TUPLE = re.compile(r"\s*(?:[,\]}):\"'“‘`#]|//|/\*|$|\n)")
_BARE = re.compile(r"[^,\[\]{}:\"\n]{1,300}")
_BARE_IN_TUPLE = re.compile(r"[^,()\[\]{}:\"\n]{1,300}")
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


class Reader:
    """Reads one array or object of a text.

    Attributes:
        at: The position, after `value` where the value ends.
        is_broken: Whether the value had no proper end.
        has_quotes: Whether any string in it is quoted.
        readable_end: Where a string begins that the end of the text cuts off, else the length of
            the text.
    """

    def __init__(self, text: str, at: int) -> None:
        """Start at the opening bracket.

        Args:
            text: The text with the value in it.
            at: Position of the bracket.
        """
        self.text = text
        self.at = at
        self.is_broken = False
        self.has_quotes = False
        self.readable_end = len(text)
        self._closing = ""

    def value(self, depth: int) -> Json | None:
        """The value at the position; None, with `is_broken` set, when incomplete or no JSON."""
        character = self._skip(_SKIPPED)
        is_tuple = depth > 0 and _TUPLE.match(self.text, self.at) is not None
        if (character in ("[", "{") or is_tuple) and depth >= MAX_DEPTH:
            self.is_broken = True
            return None
        if character == "[":
            return self._array(depth, "]")
        if character == "{":
            return self._object(depth)
        if is_tuple:
            return self._array(depth, ")")
        if character in _CLOSING_QUOTE:
            return self._string(character)
        return self._bare()

    def _skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.text[self.at : self.at + 1]

    def _array(self, depth: int, closing: str) -> list[Json]:
        self.at += 1
        outer, self._closing = self._closing, closing
        items: list[Json] = []
        while not self.is_broken:
            character = self._skip(_SKIPPED_WITH_COMMAS)
            if character == closing:
                self.at += 1
                break
            if character in ("", "}", "]"):
                self.is_broken = True
                break
            item = self.value(depth + 1)
            if item is not None:
                items.append(item)
        self._closing = outer
        return items

    def _object(self, depth: int) -> Json:
        self.at += 1
        outer, self._closing = self._closing, "}"
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
        self._closing = outer
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
        after = _AFTER_STRING_IN_TUPLE if self._closing == ")" else _AFTER_STRING
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
            elif character == closing and after.match(self.text, found.end()):
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
        in_tuple = self._closing == ")"
        found = (_BARE_IN_TUPLE if in_tuple else _BARE).match(self.text, self.at)
        end = found.end() if found else self.at
        ends = (",", ")") if in_tuple else (",", "]", "}", "\n")
        if found is None or self.text[end : end + 1] not in ends:
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

"""From one entry of an answer to identifiers of a registry.

An entry is what one place of a list holds: a JSON string, the text after a bullet, a table cell.
`Lookup` knows the identifiers; `entries_of` strips decoration and splits an entry only where the
whole is no identifier. Never guesses: a name that is close to an identifier, but not one, is
invalid.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

_ODD = str.maketrans(
    {**dict.fromkeys("‐‑‒–—―−", "-"), **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff", None)}
)
_WRAPPING = "*_`~\"'“”„‘’«» \t"
_PUNCTUATION = _WRAPPING + ".,;:!?。，；：、！？-•"
_BRACKETS = _PUNCTUATION + "()[]{}<>（）【】「」"

_MARKER = re.compile(
    r"(?:[-*+•‣◦▪●○►➤·–—] +|\[[ xX]\] +|#\d{1,6}[.):]? +|[(\[]?\d{1,6}[.):\]、．] ?(?=[^\d\s]))"
)
_LABEL = re.compile(
    r"(?:gene|symbol|candidate|identifier|id|name|compound|drug|target|smiles|answer|proposal|pick)s?"
    r"(?: (?:name|symbol|id|identifier)s?)? ?[:=：] ?",
    re.IGNORECASE,
)
# Where a name may end and its explanation begin. A parenthesis without a space before it belongs to
# the name (SMILES), unless there is a space inside it, which no SMILES has.
_CUT = re.compile(r" [-–—−:=|>→]+ |[:：](?: |$)| [(\[{]|（|\((?=[^() ]* )|—|→|\. ")
_PARENTHESIS = re.compile(r" \(|（|\((?=[^() ]* )")
_STRUCTURE = re.compile(r"[()\[\]{}（）]|[,;，、；|]| [>→] ")
_JOINERS = re.compile(r" ?[,;，、；|&+/] ?| and ", re.IGNORECASE)
_NAME_ONLY = re.compile(r"[\w.\-]+")
_AND = re.compile(r"(?:and|or|&) ", re.IGNORECASE)
_SEPARATOR = re.compile(r"[,;，、；|&+/]| and | [>→] ", re.IGNORECASE)
UNSPACED_CHARACTERS = r"\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Ranges of scripts that are written without spaces or join particles to foreign words."""

_UNSPACED = re.compile(f"[{UNSPACED_CHARACTERS}]")
_ALPHANUMERIC = re.compile(r"[^\W_]")

_CUT_LIMIT = 8
"""Explanations begin early; the limit keeps a line of parentheses linear."""


class Entry(NamedTuple):
    """One entry of an answer: the words found, and the identifier they name, or None."""

    text: str
    identifier: str | None


def normal_form(text: str) -> str:
    """The text with compatibility forms, dashes and white space made plain; letter case is kept."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_ODD)).translate(_ODD)
    return " ".join(text.split())


class Lookup:
    """The identifiers of one registry, ready to be recognised.

    Attributes:
        longest: Length of the longest identifier, in characters of its normal form.
        separators: Largest number of list separators inside one identifier.
        spans: For identifiers of several words: first word -> numbers of words, largest first.
    """

    __slots__ = ("_exact", "_folded", "longest", "separators", "spans")

    def __init__(self, identifiers: tuple[str, ...]) -> None:
        """Index the identifiers once; see `lookup_for` for the cached way.

        Args:
            identifiers: Every identifier of the registry, in its spelling.
        """
        self._exact: dict[str, str | None] = {}
        self._folded: dict[str, str | None] = {}
        self.longest = 0
        self.separators = 0
        spans: dict[str, set[int]] = {}
        for identifier in dict.fromkeys(identifiers):
            form = normal_form(identifier)
            self._add(self._exact, form, identifier)
            self._add(self._folded, form.casefold(), identifier)
            self.longest = max(self.longest, len(form))
            if not form.isalnum():
                self.separators = max(self.separators, len(_SEPARATOR.findall(form)))
                words = form.split(" ")
                if len(words) > 1:
                    spans.setdefault(words[0], set()).add(len(words))
        self._exact.update((identifier, identifier) for identifier in identifiers)
        self._exact.pop("", None)
        self.spans = {word: tuple(sorted(sizes, reverse=True)) for word, sizes in spans.items()}

    @staticmethod
    def _add(table: dict[str, str | None], key: str, identifier: str) -> None:
        # Two identifiers with one key: the key names neither of them.
        table[key] = None if key in table else identifier

    def exact(self, text: str) -> str | None:
        """The identifier that the text is, letter case included; None when it is none."""
        if text in self._exact:
            return self._exact[text]
        form = normal_form(text)
        return self._exact.get(form) if form != text else None

    def whole(self, text: str) -> str | None:
        """The identifier that the undecorated text is, in any letter case if that is unique."""
        if text in self._exact:
            return self._exact[text]
        forms = [text.strip()]
        for decoration in (_WRAPPING, _PUNCTUATION, _BRACKETS):
            bare = text.strip(decoration)
            if bare and bare != forms[-1]:
                forms.append(bare)
        if len(forms[-1]) > 4 * self.longest + 16:
            return None
        plain = [normal_form(form) for form in forms]
        for form in (*forms, *plain):
            found = self._exact.get(form)
            if found is not None:
                return found
        for form in plain:
            found = self._folded.get(form.casefold())
            if found is not None and form:
                return found
        return None


@lru_cache(maxsize=8)
def lookup_for(identifiers: tuple[str, ...]) -> Lookup:
    """The `Lookup` of these identifiers, built once for the registries in use."""
    return Lookup(identifiers)


def is_name_like(text: str) -> bool:
    """Whether the text could be a name: one word with a letter or digit in it.

    Scripts that are written without spaces do not count: there, one word may be a sentence.
    """
    if " " in text or _ALPHANUMERIC.search(text) is None:
        return False
    return text.isascii() or _UNSPACED.search(text) is None


def without_marker(text: str) -> str:
    """The entry on one line, without list markers, check box and label (`Gene:`) before it."""
    body = " ".join(text.replace("\t", " | ").split())
    for pattern in (_MARKER, _MARKER, _LABEL):
        found = pattern.match(body.lstrip("*_"))
        if found:
            body = body.lstrip("*_")[found.end() :]
    return body


def pieces_of(text: str, lookup: Lookup, *, pattern: re.Pattern[str]) -> list[str]:
    """The text split at the pattern, except where neighbours joined again are an identifier."""
    bounds = [(found.start(), found.end()) for found in pattern.finditer(text)]
    return _joined(text, bounds, lookup)


def _joined(text: str, bounds: list[tuple[int, int]], lookup: Lookup) -> list[str]:
    starts = [0, *(end for _, end in bounds)]
    ends = [*(start for start, _ in bounds), len(text)]
    pieces = []
    at = 0
    while at < len(starts):
        size = min(lookup.separators + 1, len(starts) - at)
        while size > 1 and lookup.whole(text[starts[at] : ends[at + size - 1]]) is None:
            size -= 1
        pieces.append(text[starts[at] : ends[at + size - 1]])
        at += size
    return pieces


def _top_level_pieces(text: str, lookup: Lookup) -> list[str]:
    """The text split at separators outside brackets, or at all when brackets do not balance."""
    depth = 0
    outside, everywhere = [], []
    for found in _STRUCTURE.finditer(text):
        character = found.group()
        if character in "([{（":
            depth += 1
        elif character in ")]}）":
            depth = max(depth - 1, 0)
        else:
            everywhere.append(found.span())
            if depth == 0:
                outside.append(found.span())
    return _joined(text, everywhere if depth else outside, lookup)


def as_list(text: str, lookup: Lookup) -> list[Entry] | None:
    """The entries of a text that is nothing but a separated list, else None.

    Every piece must be an identifier (an explanation in parentheses may follow it) or one word; at
    least two pieces.
    """
    if text[:1] in "[({" and text[-1:] in "])}":
        text = text[1:-1]
    pieces = _top_level_pieces(text, lookup)
    if len(pieces) < 2:
        return None
    entries = []
    for piece in pieces:
        name = piece.strip()
        found = lookup.whole(name)
        if found is None and _AND.match(name):
            name = _AND.sub("", name, count=1)
            found = lookup.whole(name)
        if found is None:
            if _ALPHANUMERIC.search(name) is None:
                continue
            explanation = _PARENTHESIS.search(name)
            head = name[: explanation.start()] if explanation else name
            found = lookup.whole(head) if explanation else None
            if found is None and not is_name_like(head):
                return None
            name = head
        entries.append(Entry(name.strip(_PUNCTUATION) or name, found))
    return entries


def heads_of(body: str, lookup: Lookup) -> list[str]:
    """What may be the name at the beginning of an explained entry, longest first."""
    cuts = []
    for found in _CUT.finditer(body, 0, min(len(body), lookup.longest + 64)):
        if found.start() > 0:
            cuts.append(body[: found.start()])
        if len(cuts) == _CUT_LIMIT:
            break
    return cuts[::-1]


def _split_head(head: str, lookup: Lookup) -> list[Entry]:
    """The names in `TP53/MYC` or `TP53, MYC and others`: at least one identifier, else nothing."""
    if len(head) > 40 * (lookup.longest + 4) or _SEPARATOR.search(head) is None:
        return []
    pieces = [piece.strip() for piece in pieces_of(head, lookup, pattern=_JOINERS)]
    # Pieces of a SMILES that is not in the registry must not pass for molecules of their own.
    joined_tightly = any(character in head for character in "/+&")
    if joined_tightly and not all(_NAME_ONLY.fullmatch(p.strip(_PUNCTUATION)) for p in pieces):
        pieces = [piece for piece in pieces if " " in head and lookup.whole(piece)]
    found = [Entry(p.strip(_PUNCTUATION), lookup.whole(p)) for p in pieces]
    if len(found) < 2 or all(entry.identifier is None for entry in found):
        return []
    return [entry for entry in found if entry.identifier or is_name_like(entry.text)]


def entries_of(text: str, lookup: Lookup) -> list[Entry]:
    """The entries in one place of a list: several when it joins names, none without a letter.

    The order of attempts is the rule: the whole text; the text without marker and label; a
    separated list; the longest beginning before an explanation; names joined by `/`, `&`, `and`; a
    list after a group's name and a colon; a first word that is an identifier to the letter. What is
    left is one invalid entry: the shortest beginning.

    Args:
        text: The text of one JSON string, list item or table cell.
        lookup: The identifiers.

    Returns:
        Entries in the order in which they stand.
    """
    found = lookup.whole(text)
    if found is not None:
        return [Entry(text.strip(), found)]
    if _ALPHANUMERIC.search(text) is None:
        return []
    body = without_marker(text)
    found = lookup.whole(body) if body != text else None
    if found is not None or _NAME_ONLY.fullmatch(body):
        return [Entry(body.strip(_PUNCTUATION) or body, found)]
    listed = as_list(body, lookup)
    if listed and any(entry.identifier for entry in listed):
        return listed
    heads = heads_of(body, lookup)
    for head in heads:
        found = lookup.whole(head)
        if found is not None:
            return [Entry(head, found)]
    shortest = heads[-1] if heads else body
    several = _split_head(shortest, lookup)
    if several:
        return several
    label, colon, rest = body.partition(": ")
    if colon and label == shortest:
        listed = as_list(rest, lookup) or []
        found = lookup.whole(rest)
        if found is not None:
            return [Entry(rest, found)]
        if any(entry.identifier for entry in listed):
            return listed
    first = body.split(" ", 1)[0]
    found = lookup.exact(first) or lookup.exact(first.strip(_PUNCTUATION))
    if found is not None:
        return [Entry(first, found)]
    several = _split_head(first, lookup) if first != shortest else []
    if several:
        return several
    return [Entry(shortest.strip(_PUNCTUATION) or body, None)]

"""Names in answers: the lookup of identifiers, and what a name looks like.

`Lookup` recognises an identifier under decoration and in other letter case. Never guesses: a name
that is close to an identifier, but not one, is no identifier.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from itertools import pairwise
from typing import Final, NamedTuple

from cads_env.errors import ProposalError

_ODD = str.maketrans(
    {**dict.fromkeys("‐‑‒–—―−", "-"), **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff", None)}
)
_WRAPPING = "*_`~\"'“”„‘’«» \t"
PUNCTUATION = _WRAPPING + ".,;:!?。，；：、！？-–—+•‣◦▪●○►➤·"
"""Characters that may surround a name without belonging to it."""

_BRACKETS = PUNCTUATION + "()[]{}<>（）【】「」"
# Footnotes and signs after a name: `TP53[1]`, `TP53[^1]`, `TP53^1`, `TP53†`.
_MARKS = re.compile(r"(?:\[\^?\d{1,3}\]|\^\d{1,3}|[¹²³⁰⁴-⁹†‡§]){1,4}$")
_MARK_ENDS = frozenset("]0123456789¹²³⁰⁴⁵⁶⁷⁸⁹†‡§")
NUMBER = r"[-+~≈<>=±]{0,2} ?\d{1,20}(?:[.,]\d{1,20}){0,3}(?:[eE][-+]?\d{1,3})? ?%?"
"""A plain number, such as a score or a rank beside a name."""

_NUMBER = re.compile(NUMBER)
SEPARATOR = re.compile(r"[,;，、；|&+/·•\n]| and |[-=]{1,2}>| ?[>→⇒➔➜≻≥»]{1,2}=? ?", re.IGNORECASE)
"""What may stand between two names of a list."""

UNSPACED_CHARACTERS = r"\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Ranges of scripts that are written without spaces or join particles to foreign words."""

_UNSPACED = re.compile(f"[{UNSPACED_CHARACTERS}]")
ALPHANUMERIC = re.compile(r"[^\W_]")
RUN = re.compile(r"[^\W_]+")
"""Letters and digits without anything between them."""

_MEMO_TEXT: Final = 40
_MEMO_KEPT: Final = 4_096
"""Characters of a text that a lookup remembers, and how many of them: at most about 1 MB."""

_LOOKUPS_KEPT: Final = 8
_TUPLES_KEPT: Final = 64
"""Tuples recognised by identity; the views of one registry share one."""


class Entry(NamedTuple):
    """One entry of an answer: the words found, and the identifier they name, or None."""

    text: str
    identifier: str | None


def normal_form(text: str) -> str:
    """The text with compatibility forms, dashes and white space made plain; letter case is kept."""
    if text.isascii():
        if text.isalnum():
            return text
    else:
        text = unicodedata.normalize("NFKC", text.translate(_ODD)).translate(_ODD)
    return " ".join(text.split())


class Lookup:
    """The identifiers of one registry, ready to be recognised.

    Attributes:
        has_numbers: Whether some identifier is a plain number.
        has_backslashes: Whether a backslash belongs to some identifier.
        longest: Length of the longest identifier, in characters of its normal form.
        separators: Largest number of list separators inside one identifier.
        pairs: Neighbouring runs of letters and digits inside identifiers with separators.
        spans: For identifiers of several words: first word -> numbers of words, largest first.
    """

    __slots__ = (
        "_exact",
        "_folded",
        "_memo",
        "has_backslashes",
        "has_numbers",
        "longest",
        "pairs",
        "separators",
        "spans",
    )

    def __init__(self, identifiers: tuple[str, ...]) -> None:
        """Index the identifiers once; see `lookup_for` for the cached way.

        Args:
            identifiers: Every identifier of the registry, in its spelling.
        """
        self._memo: dict[str, str | None] = {}
        self._exact: dict[str, str | None] = {}
        self._folded: dict[str, str | None] = {}
        self.has_backslashes = False
        self.has_numbers = False
        self.longest = 0
        self.separators = 0
        self.pairs: set[tuple[str, str]] = set()
        spans: dict[str, set[int]] = {}
        for identifier in dict.fromkeys(identifiers):
            form = normal_form(identifier)
            self._add(self._exact, form, identifier)
            self._add(self._folded, form.casefold(), identifier)
            self.longest = max(self.longest, len(form))
            self.has_numbers = self.has_numbers or _NUMBER.fullmatch(form) is not None
            if not form.isalnum():
                self.has_backslashes = self.has_backslashes or "\\" in form
                separators = len(SEPARATOR.findall(form))
                if separators:
                    self.separators = max(self.separators, separators)
                    self.pairs.update(pairwise(RUN.findall(form.casefold())))
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

    def knows(self, text: str) -> bool:
        """Whether the text is an identifier in some letter case, or several of them."""
        return text in self._exact or normal_form(text).casefold() in self._folded

    def whole(self, text: str) -> str | None:
        """The identifier that the undecorated text is, in any letter case if that is unique."""
        if text in self._exact:
            return self._exact[text]
        if len(text) > _MEMO_TEXT:
            return self._whole(text)
        # Readings that are tried one after the other, and floods, ask for the same piece again.
        # One dictionary for all threads: the answer depends on the text alone.
        memo = self._memo
        try:
            return memo[text]
        except KeyError:
            found = self._whole(text)
        if len(memo) >= _MEMO_KEPT:
            self._memo = {}
        else:
            memo[text] = found
        return found

    def _whole(self, text: str) -> str | None:
        forms = [text.strip()]
        for decoration in (_WRAPPING, PUNCTUATION, _BRACKETS):
            bare = text.strip(decoration)
            if bare and bare != forms[-1]:
                forms.append(bare)
        if len(forms[-1]) > 4 * self.longest + 16:
            return None
        if forms[-1][-1:] in _MARK_ENDS or text[-1:] in _MARK_ENDS:
            forms.extend(_MARKS.sub("", form).strip(PUNCTUATION) for form in forms[:2])
        if not self.spans:
            forms = [form for form in forms if " " not in form]
        for form in forms:
            found = self._exact.get(form)
            if found is not None:
                return found
        plain = [normal_form(form) for form in forms]
        for form in plain if plain != forms else ():
            found = self._exact.get(form)
            if found is not None:
                return found
        for form in plain:
            found = self._folded.get(form.casefold())
            if found is not None and form:
                return found
        return None


_lock = threading.Lock()
_by_identity: dict[int, tuple[tuple[str, ...], Lookup]] = {}
_by_content: dict[tuple[str, ...], Lookup] = {}


def lookup_for(identifiers: tuple[str, ...]) -> Lookup:
    """The `Lookup` of these identifiers, built once for the registries in use, by any thread.

    The same tuple again costs nothing, an equal one a hash of all names.

    Raises:
        ProposalError: An identifier is no text.
    """
    # The entry holds the tuple, so that its id cannot belong to another one meanwhile.
    held = _by_identity.get(id(identifiers))
    if held is not None and held[0] is identifiers:
        return held[1]
    odd = next((name for name in identifiers if not isinstance(name, str)), "")
    if not isinstance(odd, str):
        msg = f"identifiers holds {odd!r:.80}, a {type(odd).__name__}; expected text alone."
        raise ProposalError(msg)
    with _lock:
        lookup = _by_content.pop(identifiers, None) or Lookup(identifiers)
        _by_content[identifiers] = lookup  # last in order: used last
        _by_identity[id(identifiers)] = (identifiers, lookup)
        while len(_by_content) > _LOOKUPS_KEPT:
            del _by_content[next(iter(_by_content))]
        while len(_by_identity) > _TUPLES_KEPT:
            del _by_identity[next(iter(_by_identity))]
    return lookup


def is_number(text: str) -> bool:
    """Whether the text is a plain number."""
    return _NUMBER.fullmatch(text.strip(_BRACKETS)) is not None


def is_score(text: str, lookup: Lookup) -> bool:
    """Whether the text is a plain number, and numbers are no names in this registry."""
    return not lookup.has_numbers and is_number(text)


def is_name_like(text: str) -> bool:
    """Whether the text could be a name: one word with a letter or digit in it.

    Scripts that are written without spaces do not count: there, one word may be a sentence.
    """
    if " " in text or ALPHANUMERIC.search(text) is None:
        return False
    return text.isascii() or _UNSPACED.search(text) is None

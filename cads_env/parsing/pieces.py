"""Splitting a line at its separators, but never inside an identifier that holds separators.

`2,4-dinitrophenol, imatinib` has two pieces. The work is bounded by what may meet inside
identifiers, so that a long line costs no more in a registry of systematic names than in one of
genes.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from cads_env.parsing.labels import ordinal_of, split_heading
from cads_env.parsing.names import NUMBER, RUN, Lookup, normal_form

SCORED = re.compile(rf"(\S.{{0,200}}?) ?(?:[:=] ?(?=[-+]?\d){NUMBER}|\({NUMBER}\))")
"""A name and its score, all of the text: `TP53: 0.9` or `TP53 (0.9)`."""

_LABEL_SIGN = re.compile(r"[:：=→>.)\]]|\s[–—-]")
_SCORE_SIGN = re.compile(r"[:=(]")
_AND = re.compile(r"(?:(?:and|or|&|then|followed by|finally|plus) )+", re.IGNORECASE)
_LAST_RUN = re.compile(r"[^\W_]+(?=[\W_]*\Z)")
_SEPARATORS_IN_SCORE: Final = 3


def pieces_of(text: str, lookup: Lookup, *, pattern: re.Pattern[str]) -> list[str]:
    """The text split at the pattern, except where neighbours joined again are an identifier."""
    bounds = [(found.start(), found.end()) for found in pattern.finditer(text)]
    return joined(text, bounds, lookup)


def joined(text: str, bounds: list[tuple[int, int]], lookup: Lookup) -> list[str]:
    """The text split at the bounds, except where neighbours joined again are an identifier.

    Args:
        text: What is split.
        bounds: Start and end of each separator, in order.
        lookup: The identifiers.

    Returns:
        The pieces in order, separators left out unless they are inside an identifier.
    """
    starts = [0, *(end for _, end in bounds)]
    ends = [*(start for start, _ in bounds), len(text)]
    if not lookup.separators:
        return [text[start:end] for start, end in zip(starts, ends, strict=True)]
    reach = _reach(text, starts, ends, lookup)
    pieces = []
    at = 0
    while at < len(starts):
        size = min(lookup.separators + 1, reach[at])
        while size > 1 and not _is_named(text[starts[at] : ends[at + size - 1]], lookup):
            size -= 1
        pieces.append(text[starts[at] : ends[at + size - 1]])
        at += size
    return pieces


def _reach(text: str, starts: list[int], ends: list[int], lookup: Lookup) -> list[int]:
    """How many pieces from each one on may be one identifier, by what meets at their bounds.

    Without it a long line in a registry of systematic names costs a look-up for each piece and each
    number of pieces.
    """
    reach = [1] * len(starts)
    near = lookup.longest + 1
    digits = 0
    for j in range(len(starts) - 2, -1, -1):
        before = _LAST_RUN.search(text, max(starts[j], ends[j] - near), ends[j])
        after = RUN.search(text, ends[j], min(ends[j + 1], starts[j + 1] + near))
        if before and after:
            pair = (_plain(before.group()), _plain(after.group()))
            # Digits on both sides may belong to a score, `0,9`, which has few separators.
            digits = digits + 1 if pair[0].isdigit() and pair[1].isdigit() else 0
            is_joint = pair in lookup.pairs or 0 < digits <= _SEPARATORS_IN_SCORE
        else:
            is_joint = bool(before or after)
        if is_joint:
            # What follows lies inside an identifier only if the whole next piece does.
            is_inner = reach[j + 1] > 1 and _is_inner(text[starts[j + 1] : ends[j + 1]], lookup)
            reach[j] = reach[j + 1] + 1 if is_inner else 2
    return reach


def _is_inner(piece: str, lookup: Lookup) -> bool:
    if len(piece) > lookup.longest:
        return False
    return all(pair in lookup.pairs for pair in pairwise(RUN.findall(_plain(piece))))


def _plain(text: str) -> str:
    return normal_form(text).casefold()


def _is_named(piece: str, lookup: Lookup) -> bool:
    if len(piece) >= lookup.longest + 64:
        return lookup.whole(piece) is not None
    return lookup.whole(bare_name(piece, lookup)) is not None


def bare_name(piece: str, lookup: Lookup) -> str:
    """The piece of a list without `and`, counting label or heading, and score, as far as needed."""
    name = piece.strip()
    if lookup.whole(name) is not None:
        return name
    for shorten in (_without_and, _without_label, _without_score):
        shorter = shorten(name, lookup)
        if shorter != name:
            name = shorter
            if lookup.whole(name) is not None:
                break
    return name


def _without_and(name: str, _: Lookup) -> str:
    return _AND.sub("", name, count=1) if _AND.match(name) else name


def _without_label(name: str, lookup: Lookup) -> str:
    if _LABEL_SIGN.search(name) is None:
        return name
    ordinal = ordinal_of(name.lstrip("*_"), lookup)
    return ordinal.string[ordinal.end() :] if ordinal else split_heading(name, lookup)[1]


def _without_score(name: str, lookup: Lookup) -> str:
    scored = SCORED.fullmatch(name) if _SCORE_SIGN.search(name) else None
    if scored is None or (lookup.has_numbers and lookup.whole(scored[1]) is None):
        return name
    return scored[1]

"""What stands before the names of an entry: list markers, counting labels, headings, properties.

Never strips what is an identifier itself: in a registry of `gene_1`, `gene_1: strong` has no label.
"""

from __future__ import annotations

import re

from cads_env.parsing.names import PUNCTUATION, Entry, Lookup

NAME_WORD = (
    r"(?:gene|symbol|candidate|identifier|id|name|compound|drug|target|smiles|molecule"
    r"|perturbation)s?"
)
ANSWER_WORD = (
    r"(?:answer|proposal|pick|selection|choice|ranking|list|shortlist|batch|result|output|response"
    r"|suggestion|recommendation|hit|nomination|order)s?|proposed?|test|query|selected|chosen|final"
    r"|priority|priorities|next|action|top"
)
RANKED = (
    rf"(?:(?:{NAME_WORD}|rank|pick|choice|option|hit|hypothesis|top|priority|selection|suggestion"
    r"|proposal|item|entry|round|experiment|query|test|guess|no\.?|nr\.?|number|№)"
    r"(?: (?:gene|candidate|choice|pick)(?= ))?)"
)
ORDINAL = (
    rf"(?:{RANKED}[ _]?(?:# ?)?(?P<rank>\d{{1,4}})"
    r"|(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|\d{1,3}(?:st|nd|rd|th))"
    r"(?: (?:gene|choice|pick|candidate|priority|place|rank))?)"
    r"[*_]{0,3}(?: ?[:.)\]=：] ?| [-–—→] | -> )[*_]{0,3} ?"
)
"""A label that counts, such as `Rank 1:`, `Gene #1:`, `gene_1=` or `First:`."""

SIGNS = PUNCTUATION + "=>→()[]"
"""Characters between a counting label and its entry."""

_ORDINAL = re.compile(ORDINAL, re.IGNORECASE)
_MARKER = re.compile(
    r"(?:[-*+•‣◦▪●○►➤·–—→] +|\[[ xX]\] +|#\d{1,6}[.):]? +"
    r"|[(\[]?\d{1,6}(?:[.):\]、．]{1,2}-? ?(?=[^\d\s])|[.)] ))"
)
HEADING = re.compile(
    r"(?P<label>(?:[\w'’-]{1,30} ){0,6}?"
    rf"(?:{NAME_WORD}|{ANSWER_WORD})\b[*_]{{0,3}}(?: [\w'’-]{{1,30}}){{0,4}}"
    r"(?: ?[(\[][^()\[\]\n]{0,40}[)\]])?)[*_]{0,3}"
    r"(?:\s?(?:[:：]|=(?![=>])|[-=]{1,2}>|→)\s?|\s[-–—]\s)[*_]{0,3}\s?",
    re.IGNORECASE,
)
"""A heading before the first name on its line, such as `Genes:`, `My picks -` or `answer =`."""

NAME_LABEL = re.compile(rf"{NAME_WORD}[*_]{{0,3}} ?[:：=] ?", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    r"[*_]{0,3}(?:reasons?|reasoning|rationale|justification|explanation|evidence|why|notes?|comments?"
    r"|scores?|confidence|probability|likelihood|rank|priority|roles?|functions?|pathways?|mechanisms?"
    r"|description|summary|categor(?:y|ies)|type|class|source|expected(?: [a-z]{1,20})?|effects?)"
    r"[*_]{0,3} ?[:：=][*_]{0,3}(?= |$)",
    re.IGNORECASE,
)


def ordinal_of(text: str, lookup: Lookup) -> re.Match[str] | None:
    """The counting label before the entry, unless it is an identifier (`gene_1: strong`)."""
    found = _ORDINAL.match(text)
    if found is None or lookup.whole(found.group().rstrip(SIGNS)) is not None:
        return None
    if found["rank"] and lookup.exact(found["rank"]) is not None:
        return None
    return found


def without_marker(text: str, lookup: Lookup) -> str:
    """The entry on one line, without list markers, check box and counting label before it."""
    body = " ".join(text.replace("\t", " | ").replace("**", "").split())
    for _ in range(2):
        bare = body.lstrip("*_")
        found = _MARKER.match(bare) or ordinal_of(bare, lookup)
        # In a registry of numbers, `7157: strong` is no item 7157.
        if found and (not lookup.has_numbers or lookup.exact(found.group().strip(SIGNS)) is None):
            body = bare[found.end() :].lstrip("*_ ")
    return body


def is_attribute(text: str, lookup: Lookup) -> bool:
    """Whether the text is a property of another entry, such as `Reason: ...` or `Score: 0.9`."""
    found = _ATTRIBUTE.match(text)
    return found is not None and lookup.exact(found.group().strip(PUNCTUATION + "=")) is None


def split_heading(text: str, lookup: Lookup) -> tuple[str, str]:
    """The heading before the entries on this line, and the rest; no heading gives `("", text)`."""
    bare = text.lstrip("*_# ")
    found = HEADING.match(bare)
    if found is None or lookup.whole(text) is not None:
        return "", text
    words = found["label"].split() + found["label"].replace("(", " ").replace(")", " ").split()
    if any(leading_name(words[i:], lookup) for i in range(len(words))):
        return "", text
    return found["label"], bare[found.end() :].strip()


def leading_name(words: list[str], lookup: Lookup) -> Entry | None:
    """The identifier that the first words are to the letter, the longest one; else None."""
    for size in (*lookup.spans.get(words[0].lstrip(PUNCTUATION), ()), 1):
        text = " ".join(words[:size])
        found = lookup.exact(text) or lookup.exact(text.strip(PUNCTUATION))
        if found is not None:
            return Entry(text, found)
    return None

"""From one entry of an answer to the identifiers that it names.

An entry is what one place of a list holds: a JSON string, the text after a bullet, a table cell.
`entries_of` strips markers, labels and explanations, and splits an entry only where the whole is no
identifier. Never looks beyond the one entry.
"""

from __future__ import annotations

import re

from cads_env.parsing.labels import (
    NAME_LABEL,
    leading_name,
    split_heading,
    without_marker,
)
from cads_env.parsing.names import (
    ALPHANUMERIC,
    NUMBER,
    PUNCTUATION,
    SEPARATOR,
    Entry,
    Lookup,
    is_name_like,
    is_score,
)
from cads_env.parsing.pieces import SCORED, bare_name, joined, pieces_of

_LEAD = re.compile(
    r"(?:(?:the|a|human|mouse|genes?|symbol|candidate|compound|drug|target|test|try|perturb|knock"
    r"|out|down|ko|kd|of|propose|select|choose|pick|inhibit|screen|query|read|add|crispr) ){1,4}",
    re.IGNORECASE,
)
_FILLER = re.compile(
    r"(?:and|or|then|next|also|first(?:ly)?|second(?:ly)?|third(?:ly)?|fourth|fifth|finally|lastly|etc"
    r"|ok|okay|sure|yes|well|so|(?:and |among )?(?:many )?(?:others?|more)|and so on)[.…]*",
    re.IGNORECASE,
)
_CALL = re.compile(
    r"(?:[\w.]{1,40}[._])?(?:propose|test|query|select|submit|pick|choose|answer|genes?|screen|perturb)"
    r"\w{0,20}[(\[]([^()]*)[)\]][;,]?"
)
_SCORE = re.compile(rf"\({NUMBER}\)|(?<=\s){NUMBER}(?=\s|$)")

# Where a name may end and its explanation begin. A parenthesis without a space before it belongs to
# the name (SMILES), unless there is a space inside it, which no SMILES has.
_CUT = re.compile(r" [-–—−:=|>→]+ |[:：](?: |$)| [(\[{]|（|\((?=[^() ]* )|—|→|\. ")
_GLUED_LABEL = re.compile(r"[^\s:：]{1,80}(?=[:：]\S)")
_PARENTHESIS = re.compile(r" \(|（|\((?=[^() ]* )")
_ARROW = r"[-=]{1,2}>|[→⇒➔➜≻≥»>]{1,2}=?|[·•]+"
_STRUCTURE = re.compile(rf"[()\[\]{{}}（）]|[,;，、；|]|{_ARROW}")
_BETWEEN = re.compile(r"[,;，、；|→⇒➔➜≻≥»>·•]")
_ARROW_SIGN = re.compile(r"[→⇒➔➜≻≥»>·•]")
_IS_ARROW = re.compile(_ARROW)
# These join names, but also end them, as the arrows do.
_LINK = re.compile(r" [-–—=~≈:\\/*+&]{1,2} | (?:and|or|vs\.?|then|and then) ", re.IGNORECASE)
_JOINERS = re.compile(r" ?[,;，、；|&+/] ?| and ", re.IGNORECASE)
_NAME_ONLY = re.compile(r"[\w.\-]+")


_LONG_PHRASE = 80
"""Characters, beyond a few names, before the first separator of what is surely no list."""

_CUT_LIMIT = 8
"""Explanations begin early; the limit keeps a line of parentheses linear."""


def _top_level_pieces(text: str, lookup: Lookup) -> tuple[list[str], bool]:
    """The text split at separators outside brackets, or at all when brackets do not balance.

    Returns:
        The pieces, and whether an arrow is among the separators.
    """
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
    bounds = everywhere if depth else outside
    has_arrow = any(_IS_ARROW.fullmatch(text, *bound) for bound in bounds)
    return joined(text, bounds, lookup), has_arrow


def _piece(text: str, lookup: Lookup) -> list[Entry] | None:
    """The entry of one piece of a list, none if it is no name at all; None if it is a phrase."""
    piece = text.strip()
    found = lookup.whole(piece)
    if found is None:
        if ALPHANUMERIC.search(piece) is None or is_score(piece, lookup):
            return []
        if _NAME_ONLY.fullmatch(piece):
            return [] if _FILLER.fullmatch(piece) else [Entry(piece.strip(PUNCTUATION), None)]
        name = bare_name(piece, lookup)
        found = lookup.whole(name)
        linked = _linked(piece, lookup) if found is None else None
        if linked is not None:
            return linked
        explanation = _PARENTHESIS.search(name) if found is None else None
        name = name[: explanation.start()] if explanation else name
        found = lookup.whole(name) if explanation else found
        if found is None and _FILLER.fullmatch(name):
            return []
        if found is None and not is_name_like(name):
            return None
        piece = name
    return [Entry(piece.strip(PUNCTUATION) or piece, found)]


def as_list(text: str, lookup: Lookup, *, is_lenient: bool = False) -> list[Entry] | None:
    """The entries of a text that is nothing but a separated list, else None.

    Every piece must be an identifier (an explanation in parentheses may follow it) or one word; at
    least two pieces. Numbers beside names are scores. Arrows (`TP53 > KRAS`) separate names only
    where more than half of the pieces are identifiers, since an explanation may follow an arrow;
    so do dashes, `=`, `/` and `and`. Two names must be spelled in one letter case.

    Args:
        text: What may be a list.
        lookup: The identifiers.
        is_lenient: Take three or more words between arrows for names when one is an identifier.

    Returns:
        At least one entry, or None.
    """
    call = _CALL.fullmatch(text)
    if call is not None:
        text = call[1]
    elif text[:1] in "[({" and text[-1:] in "])}":
        text = text[1:-1]
    first = _BETWEEN.search(text)
    is_phrase = first is not None and first.start() > 4 * lookup.longest + _LONG_PHRASE
    if is_lenient and _ARROW_SIGN.search(text) is None:
        return None
    is_whole = first is None or is_phrase
    pieces, has_arrow = ([], False) if is_whole else _top_level_pieces(text, lookup)
    if len(pieces) < 2:
        found = lookup.whole(text) if call else None
        return [Entry(text, found)] if found else _linked(text, lookup)
    entries: list[Entry] = []
    for piece in pieces:
        entry = _piece(piece, lookup)
        if entry is None:
            return _linked(text, lookup)
        entries.extend(entry)
    if has_arrow:
        valid = [entry for entry in entries if entry.identifier]
        enough = len(entries) if not (is_lenient and len(entries) > 2) else 1
        if 2 * len(valid) <= enough or (len(entries) == 2 and not _is_of_one_case(valid, lookup)):
            return None
    return entries or None


def _is_of_one_case(entries: list[Entry], lookup: Lookup) -> bool:
    """Whether all entries are spelled as in the registry, or none: not `TP53 -> rest`."""
    return len({lookup.exact(entry.text) is not None for entry in entries}) <= 1


def _linked(text: str, lookup: Lookup) -> list[Entry] | None:
    """The entries of `TP53 - KRAS - BRAF`, `TP53 and KRAS` or `TP53 (0.9) KRAS (0.8)`."""
    if len(text) > 40 * (lookup.longest + 4):
        return None
    first, last = text.split(" ", 1)[0], text.rsplit(" ", 1)[-1]
    # A last word of letters is no score, and most often a word of an explanation.
    is_plain = last.isalpha() and lookup.exact(last) is None
    if not is_plain and lookup.exact(first.strip(PUNCTUATION)) is not None:
        named = _all_names(_SCORE.sub(" ", text).split(), lookup)
        if len(named) > 1:
            return named
    # In a registry of single words, the first word must be linked to the next one.
    found_at = _LINK.search(text) if lookup.spans else _LINK.match(text, text.find(" "))
    if found_at is None or " " not in text:
        return None
    entries = []
    for piece in pieces_of(text, lookup, pattern=_LINK):
        found = lookup.whole(piece)
        name = piece.strip(PUNCTUATION)
        if found is None and not (is_name_like(name) and not is_score(name, lookup)):
            return None
        entries.append(Entry(name, found))
    valid = sum(entry.identifier is not None for entry in entries)
    if len(entries) > 2:
        return entries if 2 * valid > len(entries) else None
    return entries if valid == 2 and _is_of_one_case(entries, lookup) else None


def _all_names(words: list[str], lookup: Lookup) -> list[Entry]:
    """The words as entries if each is an identifier to the letter, else nothing."""
    entries = []
    for word in words:
        found = lookup.exact(word.strip(PUNCTUATION))
        if found is None:
            return []
        entries.append(Entry(word, found))
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


def head_entry(body: str, lookup: Lookup) -> Entry | None:
    """The identifier at the beginning of an explained entry, or None."""
    for head in heads_of(body, lookup):
        found = lookup.whole(head)
        if found is not None:
            return Entry(head, found)
    glued = _GLUED_LABEL.match(body) or SCORED.fullmatch(body)
    name = (glued[1] if glued.lastindex else glued.group()) if glued else ""
    found = lookup.exact(name.strip(PUNCTUATION))
    return Entry(name, found) if found is not None else None


def is_firm(text: str, lookup: Lookup) -> bool:
    """Whether the text is a name, a list of names or a name with an explanation, all of it."""
    body = without_marker(text, lookup)
    return (
        lookup.whole(body) is not None
        or any(entry.identifier for entry in as_list(body, lookup) or ())
        or head_entry(body, lookup) is not None
    )


def _split_head(head: str, lookup: Lookup) -> list[Entry]:
    """The names in `TP53/MYC` or `TP53, MYC and others`: at least one identifier, else nothing."""
    if len(head) > 40 * (lookup.longest + 4) or SEPARATOR.search(head) is None:
        return []
    pieces = [piece.strip() for piece in pieces_of(head, lookup, pattern=_JOINERS)]
    # Pieces of a SMILES that is not in the registry must not pass for molecules of their own.
    joined_tightly = any(character in head for character in "/+&")
    if joined_tightly and not all(_NAME_ONLY.fullmatch(p.strip(PUNCTUATION)) for p in pieces):
        pieces = [piece for piece in pieces if " " in head and lookup.whole(piece)]
    found = [Entry(p.strip(PUNCTUATION), lookup.whole(p)) for p in pieces]
    if len(found) < 2 or all(entry.identifier is None for entry in found):
        return []
    return [
        entry
        for entry in found
        if entry.identifier
        or (
            is_name_like(entry.text)
            and not is_score(entry.text, lookup)
            and _FILLER.fullmatch(entry.text) is None
        )
    ]


def entries_of(text: str, lookup: Lookup) -> list[Entry]:
    """The entries in one place of a list: several when it joins names, none without a letter.

    The order of attempts is the rule: the whole text; the text without marker and label; a
    separated list; the longest beginning before an explanation; names joined by `/`, `&`, `and`; a
    list after a group's name and a colon; identifiers to the letter: most words, the first word, or
    the words after `the`, `gene`, `test` and the like. What is left is one invalid entry: the
    shortest beginning. A text of several lines is read line by line.

    Args:
        text: The text of one JSON string, list item or table cell.
        lookup: The identifiers.

    Returns:
        Entries in the order in which they stand.
    """
    found = lookup.whole(text)
    if found is not None:
        return [Entry(text.strip(), found)]
    lines = text.splitlines()
    if len(lines) < 2:
        return _entries_of_line(text, lookup)
    read = [_entries_of_line(line, lookup) for line in lines]
    names = [e for e in read if any(entry.identifier for entry in e)]
    alone = [e for e in read if e in names or all(is_name_like(entry.text) for entry in e)]
    return [entry for e in (alone if names else read) for entry in e]


def _entries_of_line(text: str, lookup: Lookup) -> list[Entry]:
    if ALPHANUMERIC.search(text) is None:
        return []
    body = without_marker(text, lookup)
    found = lookup.whole(body)
    if found is not None or _NAME_ONLY.fullmatch(body):
        return [Entry(body.strip(PUNCTUATION) or body, found)]
    listed = _headed(body, lookup) or as_list(body, lookup)
    if listed and any(entry.identifier for entry in listed):
        return listed
    head = head_entry(body, lookup)
    if head is not None:
        return [head]
    name_label = NAME_LABEL.match(body)
    if name_label is not None and name_label.end() < len(body):
        body = body[name_label.end() :].lstrip("*_ ")
    heads = heads_of(body, lookup)
    shortest = heads[-1] if heads else body
    several = as_list(body, lookup, is_lenient=True) or _split_head(shortest, lookup)
    if any(entry.identifier for entry in several):
        return several
    label, colon, rest = body.partition(": ")
    if colon and label == shortest:
        found = lookup.whole(rest)
        if found is not None:
            return [Entry(rest, found)]
        listed = as_list(rest, lookup) or []
        if any(entry.identifier for entry in listed):
            return listed
    return _words(body, lookup, shortest=shortest)


def _headed(body: str, lookup: Lookup) -> list[Entry] | None:
    """The entries after a heading such as `Genes:` on the same line; None when there are none."""
    heading, rest = split_heading(body, lookup)
    if not heading or not rest:
        return None
    found = lookup.whole(rest)
    if found is not None:
        return [Entry(rest, found)]
    head = head_entry(rest, lookup)
    return as_list(rest, lookup) or ([head] if head else None)


def _words(body: str, lookup: Lookup, *, shortest: str) -> list[Entry]:
    """The words of the entry that are identifiers to the letter, where the rule trusts them."""
    words = body.split(" ")
    first = words[0]
    leading = leading_name(words, lookup)
    if leading is not None:
        read = [(word, lookup.exact(word.strip(PUNCTUATION))) for word in words[1:]]
        names = [Entry(word, name) for word, name in read if name is not None]
        return [leading, *(names if 2 * (len(names) + 1) > len(words) else ())]
    several = _split_head(first, lookup) if first != shortest else []
    if several:
        return several
    lead = _LEAD.match(body)
    leading = leading_name(body[lead.end() :].split(" "), lookup) if lead else None
    if leading is not None:
        return [leading]
    return [Entry(shortest.strip(PUNCTUATION) or body, None)]

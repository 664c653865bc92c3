"""From the text of an answer to the identifiers that it proposes.

`parse_proposal` is the one reading of text in cads-env: agents, text environments and verifiers
share it, so an answer means the same everywhere. It accepts any text and counts what it could not
use; it never raises for what a model wrote and never proposes what stands only in the model's
thinking.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from cads_env.errors import ProposalError
from cads_env.parsing.aliases import alias_index
from cads_env.parsing.lists import list_parts
from cads_env.parsing.markup import element_lists, without_markup
from cads_env.parsing.names import UNSPACED_CHARACTERS, Entry, Lookup, lookup_for
from cads_env.parsing.parts import Part
from cads_env.parsing.records import is_aside_key, json_parts
from cads_env.parsing.turns import own_turn

MAX_ENTRY_LENGTH: Final = 200
"""Characters kept of an invalid entry, so that a record stays readable."""

_THINK_TAG = re.compile(r"<(/?)(think|thinking|reasoning)(?:[\s/][^<>]*)?>", re.IGNORECASE)
_FINAL = re.compile(
    r"^[ \t#>*_-]*(?:(?:so|thus|therefore|hence|here|here's|this|is|are|and|my|the|our),? ){0,5}"
    r"final (?:answer|list|selection|proposal|ranking|choice|picks?|genes|candidates)\b"
    r"(?: (?:is|are)\b)?(?:[ \t]+[-–—=][ \t]+|[^\n:：]{0,80}[:：])?",
    re.IGNORECASE | re.MULTILINE,
)
# A number glued to a name in prose, `1.TP53`.
_NUMBERED = re.compile(r"^(?:\d{1,4}\.|[①-⑳])")
_EDGES = ".,;:!?\"'“”„‘’‚`*_()[]{}<>«»。，；：、！？（）"
# A word inside a chunk that has no spaces; scripts that are written without spaces end it.
_INNER_WORD = re.compile(
    r"[^\s,;:()\[\]{}\"'“”„‘’‚`*<>|/\\!?=&+。，；：、！？「」（）" + UNSPACED_CHARACTERS + "]+"
)


class ParsedProposal(NamedTuple):
    """What an answer proposes, and what of it could not be used.

    Attributes:
        proposed: Identifiers of the registry in its spelling, in the order in which they were
            written, each once.
        invalid: Entries that are no identifier, in order, every occurrence, at most
            `MAX_ENTRY_LENGTH` characters each. Empty when the identifiers were taken from prose.
        duplicate: Repeats of identifiers already proposed, in the registry's spelling, one for each
            repeat.
        unparsed: True when nothing could be read: no entry, neither valid nor invalid, and no
            explicit empty list.
        aliased: Entries read through an alias, every occurrence: as written, and the identifier,
            which stands in `proposed` or `duplicate`. Empty without aliases.
    """

    proposed: tuple[str, ...]
    invalid: tuple[str, ...]
    duplicate: tuple[str, ...]
    unparsed: bool
    aliased: tuple[tuple[str, str], ...] = ()


def parse_proposal(
    text: str,
    identifiers: Sequence[str] | Mapping[str, int],
    *,
    aliases: Mapping[str, str] | None = None,
) -> ParsedProposal:
    """The proposal that a text makes.

    The rule, in order:

    1. Text inside `<think>`, `<thinking>` or `<reasoning>` is dropped; so is everything after such
       a tag that is never closed, and everything before a closing tag that was never opened.
       Tokens of a chat template are dropped, with the turns that a model writes behind its own.
    2. A structured part after the last line that announces a final answer wins, if it names an
       identifier.
    3. Else a structured part of the whole text: the last JSON part that names an identifier; else
       the list or table that names most identifiers (at equal numbers the outermost, then the
       last), lists nested below names and lists headed as rejected or drafts last; else the last
       JSON part; else the largest list whose entries look like names. Adjacent lines that are
       entries are one list, whatever their bullets.
    4. Without any structured part, words of the prose that are identifiers to the letter, case
       included.

    In a structured part an entry matches an identifier exactly, else in any letter case if only one
    identifier fits. Dashes, spaces and full-width letters count as their plain forms.
    With `aliases`, an entry that is no identifier may name one by another name; which entries are
    read stays the same, and words of prose are never aliases.

    Args:
        text: The answer of a proposer, of any length and content.
        identifiers: The identifiers of the registry: a tuple (cheapest, its index is cached),
            another sequence, or a mapping with the identifiers as keys.
        aliases: Other name -> identifier, matched as identifiers are. An alias that is an
            identifier, or whose letter case fits two aliases, is not used. None for no aliases.

    Returns:
        The identifiers proposed, and the entries that are invalid or repeated.

    Raises:
        ProposalError: `text` is not a str, `identifiers` is one str, or `aliases` is no mapping of
            text to text.
    """
    if not isinstance(text, str):
        msg = (
            f"cannot read a proposal from an object of type {type(text).__name__}: expected the "
            "text of an answer (str). Decode bytes first; a list of identifiers needs no parsing."
        )
        raise ProposalError(msg)
    if isinstance(identifiers, str):
        msg = (
            f"identifiers is the str {identifiers[:80]!r}: expected a sequence of identifiers. "
            "Pass the identifiers of the registry, for example view.identifiers."
        )
        raise ProposalError(msg)
    is_many = isinstance(identifiers, Sequence | Mapping) and not isinstance(identifiers, bytes)
    if not is_many:
        msg = (
            f"identifiers is a {type(identifiers).__name__}: expected a sequence of identifiers. "
            "Pass those of the registry, for example view.identifiers."
        )
        raise ProposalError(msg)
    if aliases is not None and not isinstance(aliases, Mapping):
        msg = (
            f"aliases is a {type(aliases).__name__}: expected a mapping from other names to "
            "identifiers, or None."
        )
        raise ProposalError(msg)
    lookup = lookup_for(tuple(identifiers))
    answer = own_turn(without_thinking(text))
    entries = _final_entries(answer, lookup)
    if entries is None:
        in_json = json_parts(answer, lookup)
        answer = answer[: in_json.readable_end]
        entries = _structured(answer, in_json.parts, lookup)
    if entries is None:
        entries = _scan(answer, lookup) or None
    return _account(entries, lookup, aliases)


def without_thinking(text: str) -> str:
    """The text without what stands inside think tags.

    An open tag is closed by the first closing tag of its own name; unclosed, it swallows the rest.
    A closing tag outside any block swallows what comes before it, since chat templates often put
    the open tag into the prompt.
    """
    kept: list[str] = []
    start = 0
    inside = ""
    for tag in _THINK_TAG.finditer(text):
        is_closing, name = bool(tag[1]), tag[2].lower()
        if tag[0].endswith("/>") and not inside:
            kept.append(text[start : tag.start()])
            start = tag.end()
        elif inside:
            if is_closing and name == inside:
                inside = ""
                start = tag.end()
        elif is_closing:
            kept.clear()
            start = tag.end()
        else:
            kept.append(text[start : tag.start()])
            inside = name
    if not inside:
        kept.append(text[start:])
    return "\n".join(kept)


def _account(
    entries: list[Entry] | None, lookup: Lookup, aliases: Mapping[str, str] | None
) -> ParsedProposal:
    proposed: dict[str, None] = {}
    invalid, duplicate, aliased = [], [], []
    is_all_valid = all(entry.identifier is not None for entry in entries or ())
    index = None if is_all_valid or not aliases else alias_index(aliases, lookup)
    for text, identifier in entries or ():
        if identifier is None and index is not None:
            identifier = index.identifier(text)
            if identifier is not None:
                aliased.append((text[:MAX_ENTRY_LENGTH], identifier))
        if identifier is None:
            invalid.append(text[:MAX_ENTRY_LENGTH])
        elif identifier in proposed:
            duplicate.append(identifier)
        else:
            proposed[identifier] = None
    return ParsedProposal(
        tuple(proposed), tuple(invalid), tuple(duplicate), entries is None, tuple(aliased)
    )


def _names_any(entries: list[Entry] | None) -> bool:
    return any(entry.identifier is not None for entry in entries or ())


def _final_entries(answer: str, lookup: Lookup) -> list[Entry] | None:
    """The structured entries after the last announcement of a final answer, if they name any."""
    end = -1
    for found in _FINAL.finditer(answer):
        end = found.end()
    if end < 0:
        return None
    in_json = json_parts(answer[end:], lookup)
    tail = answer[end : end + in_json.readable_end]
    entries = _structured(tail, in_json.parts, lookup)
    return entries if _names_any(entries) else None


def _structured(answer: str, in_json: list[list[Entry]], lookup: Lookup) -> list[Entry] | None:
    """The entries of the structured part that is the answer, or None when there is only prose."""
    for entries in reversed(in_json):
        if _names_any(entries):
            return entries
    parts, has_prose = list_parts(without_markup(answer, lookup), lookup)
    parts.extend(
        Part(entries=entries, is_aside=is_aside_key(name))
        for name, entries in element_lists(answer, lookup).items()
    )
    naming = [(part.valid_count(), part) for part in parts if part.valid_count()]
    if naming:
        return _best(naming, lookup).entries
    if in_json:
        return in_json[-1]
    of_names = [
        (len(p.entries), p) for p in parts if p.is_of_names() and not (p.is_plain and has_prose)
    ]
    return _best(of_names, lookup).entries if of_names else None


def _best(sized: list[tuple[int, Part]], lookup: Lookup) -> Part:
    """The part that is not set aside, then the largest, then the outermost, then the last.

    What is nested below a list of names is about those names, and comes behind all other parts.
    """
    order = range(len(sized))
    parents = {id(part.parent): part.parent for _, part in sized if part.parent is not None}
    naming = {
        key for key, parent in parents.items() if parent.valid_count() and parent.is_naming(lookup)
    }
    is_detail = [part.parent is not None and id(part.parent) in naming for _, part in sized]
    chosen = max(
        order,
        key=lambda i: (
            not sized[i][1].is_aside,
            not is_detail[i],
            sized[i][0],
            -sized[i][1].level,
            i,
        ),
    )
    return sized[chosen][1]


def _scan(answer: str, lookup: Lookup) -> list[Entry]:
    """The words of a prose text that are identifiers to the letter."""
    chunks = answer.split()
    known: dict[str, list[Entry]] = {}
    entries: list[Entry] = []
    at = 0
    while at < len(chunks):
        chunk = chunks[at]
        for size in lookup.spans.get(chunk.lstrip(_EDGES), ()) if lookup.spans else ():
            words = " ".join(chunks[at : at + size])
            found = lookup.exact(words.rstrip(".,;:!?")) or lookup.exact(words.strip(_EDGES))
            if found is not None:
                entries.append(Entry(words, found))
                at += size
                break
        else:
            if chunk not in known:
                known[chunk] = _scan_chunk(chunk, lookup)
            entries.extend(known[chunk])
            at += 1
    return entries


def _scan_chunk(chunk: str, lookup: Lookup) -> list[Entry]:
    for form in dict.fromkeys((chunk, chunk.rstrip(".,;:!?"), chunk.strip(_EDGES))):
        found = lookup.exact(form)
        if found is not None:
            return [Entry(form, found)]
    if chunk.isalnum() and chunk.isascii():
        return []
    words = (_NUMBERED.sub("", word.rstrip(".-_")) for word in _INNER_WORD.findall(chunk))
    return [Entry(word, found) for word in words if (found := lookup.exact(word)) is not None]

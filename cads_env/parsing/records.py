"""The entries that the JSON of an answer proposes.

`json_parts` finds arrays and objects anywhere in a text and returns the names in them: of lists, of
the fields that hold the answer, of records such as {"gene": "TP53", "reason": "..."}. Never takes a
field that is set aside by its name (`rejected`, `reasoning`) where another one names something.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from cads_env.parsing.entries import as_list, entries_of
from cads_env.parsing.json import OPENING, Json, Reader
from cads_env.parsing.names import Entry, Lookup, is_name_like, is_score

_NAME_KEY = re.compile(
    r"(?:gene|symbol|candidate|identifier|id|name|compound|drug|target|smiles|molecule|perturbation)s?"
    r"(?:[_ -]?(?:name|symbol|id|identifier)s?)?",
    re.IGNORECASE,
)
_ANSWER_KEY = re.compile(
    r"final|answer|propos|select|chosen|choice|pick|recommend|genes$|identifiers$", re.IGNORECASE
)
_RECORD_KEY = re.compile(
    r"(?:gene|symbol|candidate|compound|drug|smiles|molecule)(?:[_ -]?(?:name|symbol))?",
    re.IGNORECASE,
)
_ID_KEY = re.compile(r"(?:.*[_ -])?(?:id|identifier|name|target)", re.IGNORECASE)
_RANK_KEY = re.compile(
    r".*\d|(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth)"
    r"(?:[_ -][a-z]{1,20})?",
    re.IGNORECASE,
)
# What stands between records that are one list: JSON lines, items of a list, blocks of code.
_BETWEEN = re.compile(r"(?:[\s,;*+•-]|`{3}\w*|\d{1,4}[.):])*")
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
    row_size = 0
    readable_end = len(text)
    at = 0
    while (found := OPENING.search(text, at)) is not None:
        start = found.start()
        reader = Reader(text, start)
        value = reader.value(0)
        at = max(reader.at, start + 1)
        readable_end = min(readable_end, reader.readable_end)
        is_empty_list = value == [] and not reader.is_broken and not _is_check_box(text, start)
        if value is None or not (reader.has_quotes or is_empty_list):
            continue
        entries = _entries_of_value(value, lookup)
        if entries is None or (not entries and reader.is_broken):
            continue
        size = _record_size(value, entries, lookup)
        is_next = size and size == row_size and _BETWEEN.fullmatch(text, record_end, start)
        if is_next:
            parts[-1].extend(entries)
        else:
            parts.append(entries)
        record_end, row_size = at, size
    return JsonParts(parts, readable_end)


def _record_size(value: Json, entries: list[Entry], lookup: Lookup) -> int:
    """The number of cells of a row such as ["TP53", 0.9], -1 for a record, 0 for anything else."""
    if isinstance(value, list):
        is_row = len(entries) == 1 and all(isinstance(cell, str) for cell in value)
        return len(value) if is_row else 0
    if isinstance(value, str):
        return 0
    is_flat = all(isinstance(cell, str) for cell in value.values())
    return -1 if is_flat or _entries_of_fields(value, lookup) is None else 0


def _is_check_box(text: str, start: int) -> bool:
    before = text[max(0, start - 2) : start]
    return before[:1] in ("-", "*", "+") or before[-1:].isalnum()


def _entries_of_value(value: Json, lookup: Lookup) -> list[Entry] | None:
    """The entries of a whole JSON value; None when it holds neither a list nor a name."""
    if isinstance(value, str):
        return None
    if isinstance(value, list):
        all_entries = [entry for item in value for entry in _entries_of_item(item, lookup)]
        names = [e for e in all_entries if e.identifier or not is_score(e.text, lookup)]
        return names or all_entries
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
    fields = {key: _opened(value, lookup) for key, value in fields.items()}
    names = [v for k, v in fields.items() if isinstance(v, str) and _NAME_KEY.fullmatch(k)]
    nested = {key: value for key, value in fields.items() if not isinstance(value, str)}
    kept = {key: value for key, value in nested.items() if not _ASIDE_KEY.search(key)}
    is_record = any(lookup.whole(name) for name in names) or any(
        isinstance(value, str) and _RECORD_KEY.fullmatch(key) for key, value in fields.items()
    )
    has_answer = any(_ANSWER_KEY.search(key) for key in kept)
    if (is_record and not has_answer) or (names and not kept):
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


def _opened(value: Json, lookup: Lookup) -> Json:
    """The value; of a string that holds JSON, what it holds."""
    if not isinstance(value, str) or value.strip()[:1] not in ("[", "{"):
        return value
    reader = Reader(value.strip(), 0)
    inner = reader.value(0) if lookup.whole(value) is None else None
    is_whole = reader.has_quotes and not reader.is_broken and reader.at == len(reader.text)
    return inner if inner is not None and is_whole else value


def _entries_of_record(fields: dict[str, Json], lookup: Lookup) -> list[Entry] | None:
    """The entry of a record such as {"gene": "TP53", "reason": "..."}; None when it has no name."""
    texts = {key: value for key, value in fields.items() if isinstance(value, str)}
    ranked = [v for k, v in texts.items() if _RANK_KEY.fullmatch(k) and not _ASIDE_KEY.search(k)]
    others = [value for key, value in texts.items() if not _ASIDE_KEY.search(key)]
    if len(ranked) > 1 and len(ranked) == len(others):
        return [entry for value in ranked for entry in entries_of(value, lookup)]
    named = [key for key in texts if _NAME_KEY.fullmatch(key) and not is_score(texts[key], lookup)]
    names = [texts[key] for key in sorted(named, key=lambda key: bool(_ID_KEY.fullmatch(key)))]
    for value in (*(texts[key] for key in named), *others):
        found = lookup.whole(value)
        if found is not None:
            return [Entry(value, found)]
    answers = [value for key, value in texts.items() if _ANSWER_KEY.search(key)]
    for value in (*names, *answers):
        entries = entries_of(value, lookup)
        if any(entry.identifier for entry in entries):
            return entries
    for value in (*names, *answers):
        if is_name_like(value):
            return entries_of(value, lookup)
    if names:
        return entries_of(names[0], lookup)
    for value in others:
        listed = as_list(value, lookup)
        if listed and any(entry.identifier for entry in listed):
            return listed
    return None


def is_aside_key(key: str) -> bool:
    """Whether a field or element of this name holds no answer (`rejected`, `reasoning`)."""
    return _ASIDE_KEY.search(key) is not None

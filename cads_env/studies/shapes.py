"""Whether a changed setting has the shape of the one that ships with a study.

A shipped value says what may stand in its place: a number for a number, a list of what its own
entries look like, a mapping with the keys that it knows. Never says what a setting means.
"""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from cads_env.errors import StudyError, suggest

_LARGEST: Final = 1_000_000_000
"""Whole numbers above this are slips of the keyboard."""


def plain(value: Any) -> Any:
    """A value as JSON gives it back: tuples as lists, keys as texts."""
    return json.loads(json.dumps(value))


def fitted(name: str, value: Any, shipped: Any) -> Any:
    """The value of a setting, with what a mapping leaves out taken from the shipped one.

    Args:
        name: What it is called, for the message.
        value: What was given, a YAML value.
        shipped: What ships with the study.

    Returns:
        The value to use; at the top, a mapping is laid over the shipped one.

    Raises:
        StudyError: It has another shape; the message names the place.
    """
    if isinstance(shipped, Mapping) and isinstance(value, Mapping):
        laid = dict(shipped)
        for key, inner in ((str(key), inner) for key, inner in value.items()):
            if key not in shipped:
                msg = f"{name} has no entry {key!r}. {suggest(str(key), map(str, shipped))}"
                raise StudyError(msg)
            laid[key] = fitted(f"{name}.{key}", inner, shipped[key])
        return laid
    if name == "registry" and isinstance(value, Mapping) and isinstance(value.get(name), str):
        # A registry with the options of its source, see `registry_of`.
        return value
    problem = _problem(value, [shipped])
    if problem:
        msg = f"{name} is {reprlib.repr(value)}: {problem}. It ships as {reprlib.repr(shipped)}."
        raise StudyError(msg)
    return value


def _problem(value: Any, examples: Sequence[Any]) -> str:
    """Why a value is like none of the examples; "" when it is like one."""
    found = [_unlike(value, example) for example in _merged(examples)]
    return "" if "" in found else found[0]


class _Mappings(NamedTuple):
    """Mappings of which a value may be like any mixture."""

    examples: Sequence[Mapping[Any, Any]]


def _merged(examples: Sequence[Any]) -> list[Any]:
    """The examples, all mappings among them made one."""
    mappings = [e for e in examples if isinstance(e, Mapping)]
    others = [e for e in examples if not isinstance(e, Mapping)]
    return [*others, *([_Mappings(mappings)] if mappings else [])]


def _unlike(value: Any, example: Any) -> str:
    if example is None:
        free = value is None or isinstance(value, (str, float, int, list, Mapping))
        return "" if free and not isinstance(value, bool) else "expected a value or nothing"
    if isinstance(example, bool):
        return "" if isinstance(value, bool) else "expected true or false"
    if isinstance(example, int):
        whole = isinstance(value, int) and not isinstance(value, bool)
        least = min(0, example)
        inside = whole and least <= value <= _LARGEST
        return "" if inside else f"expected a whole number from {least} to {_LARGEST:,}"
    if isinstance(example, float):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        finite = number and abs(value) < 1e300 and math.isfinite(value)
        return "" if finite else "expected a finite number"
    if isinstance(example, str):
        return "" if isinstance(value, str) and value.strip() else "expected a text"
    if isinstance(example, _Mappings):
        is_mapping = isinstance(value, Mapping)
        return _unlike_mapping(value, example.examples) if is_mapping else "expected a mapping"
    if not isinstance(value, list):
        return "expected a list"
    for entry in value:
        if problem := _problem(entry, example):
            return f"entry {reprlib.repr(entry)}: {problem}"
    return ""


def _unlike_mapping(value: Mapping[Any, Any], examples: Sequence[Mapping[Any, Any]]) -> str:
    """Why a mapping is not like the mappings of a list."""
    known = {key for example in examples for key in example}
    for key in value:
        if key not in known:
            return f"unknown entry {key!r}; {suggest(str(key), map(str, known))}"
    for key in known:
        if key in value:
            if problem := _problem(value[key], [e[key] for e in examples if key in e]):
                return f"{key}: {problem}"
        elif all(key in example for example in examples):
            return f"entry {key!r} is missing"
    return ""

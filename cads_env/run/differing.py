"""The first place where two JSON values differ, as a message can show it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

_SHOWN: Final = 60
"""Characters of each value that are shown."""


class Difference(NamedTuple):
    """Where two values first differ.

    Attributes:
        path: As `messages[0].content`; empty for the values themselves.
        there: The recorded value, shortened.
        here: The other one, shortened.
    """

    path: str
    there: str
    here: str

    def __str__(self) -> str:
        """As `messages[0].content (there "a", now "b")`."""
        return f"{self.path or 'the value'} (there {self.there}, now {self.here})"


def first_difference(there: Any, here: Any, path: str = "") -> Difference | None:
    """Where two JSON values first differ, in the order of the recorded one; None where nowhere.

    Args:
        there: The recorded value.
        here: The other one.
        path: What leads to them.
    """
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        for key in dict.fromkeys([*there, *here]):
            inner = f"{path}.{key}" if path else str(key)
            if key not in there or key not in here:
                return Difference(inner, _side(there, key), _side(here, key))
            found = first_difference(there[key], here[key], inner)
            if found is not None:
                return found
        return None
    if isinstance(there, list) and isinstance(here, list):
        for i, (one, other) in enumerate(zip(there, here, strict=False)):
            found = first_difference(one, other, f"{path}[{i}]")
            if found is not None:
                return found
        if len(there) != len(here):
            return Difference(path, f"{len(there)} entries", f"{len(here)} entries")
        return None
    if there == here and type(there) is type(here):
        return None
    if isinstance(there, str) and isinstance(here, str):
        return Difference(path, *_texts(there, here))
    return Difference(path, _shown(there), _shown(here))


def _side(value: Mapping[str, Any], key: str) -> str:
    return _shown(value[key]) if key in value else "nothing"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _texts(there: str, here: str) -> tuple[str, str]:
    """Two texts around the first character that differs."""
    pairs = enumerate(zip(there, here, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(there), len(here)))
    start = max(0, at - _SHOWN // 3)

    def around(text: str) -> str:
        part = json.dumps(text[start : start + _SHOWN], ensure_ascii=True)
        head = "..." if start else ""
        return f"{head}{part}{'...' if start + _SHOWN < len(text) else ''}"

    return around(there), around(here)

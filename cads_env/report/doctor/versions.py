"""Version numbers and the ranges that a package's metadata asks for.

Knows what cads-env's own metadata uses (>=, >, <, <=, ==, !=, ~=, and markers that name an extra);
says "cannot tell" of the rest rather than guessing. Installs and imports nothing.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_REQUIREMENT: Final = re.compile(
    r"\s*(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[(?P<extras>[^\]]*)\])?"
    r"\s*\(?(?P<range>[^;()]*)\)?\s*(?:;(?P<marker>.*))?"
)
_EXTRA: Final = re.compile(r"""\s*extra\s*==\s*["']([^"']+)["']\s*""")
_CLAUSE: Final = re.compile(r"(>=|<=|==|!=|~=|>|<)\s*([0-9][^\s*]*)")
_VERSION: Final = re.compile(r"v?(\d+(?:\.\d+)*)(.*)")


class Requirement(NamedTuple):
    """One line of a package's requirements.

    Attributes:
        name: The package.
        extras: Extras of it that are asked for.
        range: The versions asked for, as written.
        extra: The extra that the line belongs to; None for the core.
        is_conditional: Whether the line holds only on some machines.
    """

    name: str
    extras: tuple[str, ...]
    range: str
    extra: str | None
    is_conditional: bool


def parse_requirement(line: str) -> Requirement | None:
    """A requirement from metadata; None for a line that is none.

    Args:
        line: Such as `numpy>=1.26` or `pytest>=8.0; extra == 'test'`.
    """
    match = _REQUIREMENT.fullmatch(line)
    if match is None:
        return None
    marker = match["marker"] or ""
    parts = re.split(r"\band\b", marker) if marker.strip() else []
    extras = [found[1] for part in parts if (found := _EXTRA.fullmatch(part))]
    wanted = tuple(e.strip() for e in (match["extras"] or "").split(",") if e.strip())
    return Requirement(
        match["name"],
        wanted,
        match["range"].strip(),
        extras[0] if extras else None,
        len(parts) > len(extras),
    )


def is_met(version: str, wanted: str) -> bool | None:
    """Whether a version lies in a range; None where this cannot tell.

    Args:
        version: Such as `2.1.0`; a pre-release comes before its release.
        wanted: Comma-separated clauses; empty for any version.
    """
    have = _order(version)
    if have is None:
        return None
    for clause in filter(None, (part.strip() for part in wanted.split(","))):
        match = _CLAUSE.fullmatch(clause)
        bound = _order(match[2]) if match else None
        if match is None or bound is None:
            return None
        if not _holds(match[1], have, bound):
            return False
    return True


class _Order(NamedTuple):
    """Comparable form of a version: its release without trailing zeros, then its stage."""

    release: tuple[int, ...]
    stage: int
    written: int


def _order(version: str) -> _Order | None:
    match = _VERSION.fullmatch(version.strip())
    if match is None:
        return None
    numbers = [int(part) for part in match[1].split(".")]
    written = len(numbers)
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    rest = match[2].lower().lstrip(".-_")
    is_early = re.match(r"(a|b|c|rc|alpha|beta|dev|pre)", rest) is not None
    is_late = re.match(r"(post|rev|r)\d", rest) is not None
    return _Order(tuple(numbers), -1 if is_early else int(is_late), written)


def _holds(operator: str, have: _Order, bound: _Order) -> bool:
    left, right = have[:2], bound[:2]
    if operator == "~=":
        prefix = max(bound.written - 1, 1)
        padded = [(*order.release, *[0] * prefix)[:prefix] for order in (have, bound)]
        return left >= right and padded[0] == padded[1]
    return {
        ">=": left >= right,
        ">": left > right,
        "<=": left <= right,
        "<": left < right,
        "==": left == right,
        "!=": left != right,
    }[operator]

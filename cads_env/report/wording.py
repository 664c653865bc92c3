"""How a report writes numbers, counts, lists and other people's text.

Every renderer and sentence uses these, so that a number reads the same wherever it stands. Rounds
for reading only; never computes.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Collection, Sequence
from typing import Final

TEXT_SHOWN: Final = 80
"""Characters of a name or a reason that a report shows before it cuts."""

UNDEFINED: Final = "-"
"""What stands where a number is not defined."""

_LARGEST_PLAIN_E: Final = 1e9
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def visible(text: str, limit: int = TEXT_SHOWN) -> str:
    r"""Somebody's text on one line, with what cannot be seen written out.

    Control characters, marks that turn the writing direction and lone surrogates become `\x1b`
    or `\u202e`, so that no name can break a table, hide, or pose as another.

    Args:
        text: Any text.
        limit: Characters kept; a cut text says how long it was.
    """
    kept = text if len(text) <= limit else text[:limit]
    shown = "".join(_escape(c) if unicodedata.category(c) in _HIDDEN else c for c in kept)
    return shown if len(text) <= limit else f"{shown}... ({len(text):,} characters)"


def shortened(text: str, limit: int) -> str:
    """Somebody's text for a picture: like `visible`, and at most `limit` characters."""
    shown = visible(text, limit + 1)
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def _escape(character: str) -> str:
    code = ord(character)
    if character in "\t\n\r":
        return " "
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def number(value: float | None, digits: int = 2) -> str:
    """A number with fixed digits, thousands separated and a true minus; '-' if undefined."""
    if value is None or math.isnan(value):
        return UNDEFINED
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:,.{digits}f}"
    if text.startswith("-"):
        # What rounds to zero has no sign.
        text = text[1:] if not text.strip("-0.,") else f"−{text[1:]}"
    return text


def signed(value: float | None, digits: int = 2) -> str:
    """A difference: like `number`, with a plus sign before what is above zero."""
    text = number(value, digits)
    is_positive = value is not None and value > 0 and bool(text.strip("0.,"))
    return f"+{text}" if is_positive else text


def plain(value: float) -> str:
    """A parameter as short as it can be written: 0.1, 40, 1e-05."""
    return f"{value:g}".replace("-", "−") if math.isfinite(value) else number(value)


def interval(low: float, high: float, digits: int = 2) -> str:
    """`[−3.69, 1.99]`, or '-' if undefined."""
    if math.isnan(low) or math.isnan(high):
        return UNDEFINED
    return f"[{number(low, digits)}, {number(high, digits)}]"


def p_text(p: float) -> str:
    """A p-value with its sign of relation: `p = 0.54`, `p < 0.001`."""
    if math.isnan(p):
        return "p undefined"
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}" if p < 0.1 else f"p = {p:.2f}"


def p_cell(p: float) -> str:
    """A p-value for a table: `0.54`, `< 0.001`."""
    return p_text(p).removeprefix("p ").removeprefix("= ").replace("undefined", UNDEFINED)


def e_text(log_e: float) -> str:
    """An e-value from its natural log: three digits up to 1e9, then a power of ten."""
    if math.isnan(log_e):
        return UNDEFINED
    if log_e <= math.log(_LARGEST_PLAIN_E):
        value = math.exp(log_e)
        return f"{value:.2g}" if value < 0.1 else f"{value:.2f}" if value < 10 else _rounded(value)
    return f"10^{log_e / math.log(10):.1f}"


def _rounded(value: float) -> str:
    return f"{float(f'{value:.3g}'):,.0f}"


def counted(n: int, noun: str, several: str | None = None) -> str:
    """`1 campaign`, `20 campaigns`, `0 campaigns`."""
    return f"{n:,} {noun if n == 1 else several or noun + 's'}"


def listed(words: Sequence[str], *, limit: int = 12) -> str:
    """`a`, `a and b`, `a, b and c`; beyond `limit`, the first ones and how many more."""
    if len(words) > limit:
        return f"{', '.join(words[:limit])} and {len(words) - limit:,} more"
    if len(words) <= 1:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def ranges(numbers: Sequence[int]) -> str:
    """Whole numbers as `0-19` or `0,2,5-9`, as the command line takes them."""
    parts: list[str] = []
    ordered = sorted(numbers)
    start = 0
    for i in range(1, len(ordered) + 1):
        if i == len(ordered) or ordered[i] != ordered[i - 1] + 1:
            first, last = ordered[start], ordered[i - 1]
            parts.append(str(first) if first == last else f"{first}-{last}")
            start = i
    return ",".join(parts)


def last_rounds(reach: Collection[int]) -> str:
    """Last rounds in reach: `3`, `2 to 3`, or `none` in place of a round before the first.

    Args:
        reach: One entry a registry size; empty where it is not known.
    """
    ends = dict.fromkeys([min(reach), max(reach)]) if reach else {}
    return " to ".join("none" if last < 0 else f"{last:,}" for last in ends) or UNDEFINED


def spread(low: float, high: float, digits: int = 0) -> str:
    """`18,159`, or `1,607 to 2,005` where they differ."""
    first, last = number(low, digits), number(high, digits)
    return first if first == last else f"{first} to {last}"

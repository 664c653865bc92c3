"""What counts as a number in a config: finite, not a truth value, and small enough for a float."""

from __future__ import annotations

import math
from typing import TypeGuard

from cads_env.errors import AgentError, quoted


def is_number(value: object) -> TypeGuard[float]:
    """True for a finite number; a whole number beyond every float is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def check_positive(value: object, *, name: str) -> None:
    """Raise `AgentError` unless a setting is a number above 0 and below 1e9."""
    if not is_number(value) or not 0 < value < 1e9:
        msg = f"{name} is {quoted(value)}; expected a number above 0."
        raise AgentError(msg)

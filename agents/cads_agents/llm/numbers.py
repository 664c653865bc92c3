"""What counts as a number in a config: finite, not a truth value, and small enough for a float."""

from __future__ import annotations

import math
from typing import TypeGuard


def is_number(value: object) -> TypeGuard[float]:
    """True for a finite number; a whole number beyond every float is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False

"""Values as people type them in names, options and flags: `24`, `0.2`, `1e-3`, `[1, 2]`."""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

_EXPONENT: Final = re.compile(r"[-+]?\d+(?:\.\d*)?[eE][-+]?\d+")


def parse_value(text: str) -> Any:
    """What a typed value means.

    Args:
        text: Read as YAML; text that is no YAML stays text.

    Returns:
        A number, bool, None, text, list or mapping.
    """
    # A pair in round brackets is a list, as people write it in Python.
    is_pair = text.startswith("(") and text.endswith(")")
    try:
        value = yaml.safe_load(f"[{text[1:-1]}]" if is_pair else text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return text
    # YAML 1.1 reads 1e-5, which has no point, as text.
    return float(value) if isinstance(value, str) and _EXPONENT.fullmatch(value) else value

"""Words about a screen that any source takes: `assay` and `high_means`, told to every proposer.

They are public: part of the registry's hash and of every view. Never holds anything of the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from cads_env.registry import Registry
from cads_env.sources.declared import refuse

WORDS: Final = ("assay", "high_means")
"""Options that set the field of `Registry` of the same name."""

LONGEST: Final = 2_000


def take_words(options: dict[str, Any]) -> dict[str, str]:
    """The words among options, taken out of them.

    Args:
        options: Options of a registry; changed.

    Returns:
        Word by option, of those that are given and not None.

    Raises:
        RegistryError: One is no line of printable text, or is too long.
    """
    words = {}
    for option in WORDS:
        value = options.pop(option, None)
        if value is None:
            continue
        if not isinstance(value, str) or not value.isprintable() or len(value) > LONGEST:
            refuse(option, value, f"one line of at most {LONGEST:,} printable characters")
        words[option] = value
    return words


def with_words(registry: Registry, words: Mapping[str, str]) -> Registry:
    """The registry under these words; itself when there are none."""
    if not words:
        return registry
    return replace(
        registry,
        assay=words.get("assay", registry.assay),
        high_means=words.get("high_means", registry.high_means),
    )

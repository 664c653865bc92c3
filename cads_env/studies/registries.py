"""The registries of cells, named by JSON values so that cells travel to other processes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from cads_env.errors import StudyError
from cads_env.panel import load_panel
from cads_env.registry import Oracle, Registry


def registry_of(named: object) -> tuple[Registry, Oracle]:
    """The registry that a cell names, cached in the process.

    Args:
        named: A name or path as `load_panel` takes it, or a mapping with `registry` and options of
            its source.

    Raises:
        StudyError: `named` is neither, or it names several registries.
        RegistryError: The registry cannot be loaded.
    """
    return _load(json.dumps(named, sort_keys=True))


@lru_cache(maxsize=8)
def _load(text: str) -> tuple[Registry, Oracle]:
    named: Any = json.loads(text)
    options: dict[str, Any] = {}
    if isinstance(named, Mapping):
        options = dict(named)
        named = options.pop("registry", None)
    if not isinstance(named, str):
        msg = f"A study's registry is {named!r}; expected a name or a path."
        raise StudyError(msg)
    for text in (named, *options.values()):
        # A pipe would be waited for, and a device never ends.
        if isinstance(text, str) and os.path.exists(text) and not os.path.isfile(text):  # noqa: PTH110, PTH113
            msg = f"A study's registry names {text!r}, which is no plain file."
            raise StudyError(msg)
    panel = load_panel(named, **options)
    if len(panel) != 1:
        msg = (
            f"{named!r} names {len(panel)} registries; a study's cell plays one: name it "
            f"({named}/0, or line=ACH-000446)."
        )
        raise StudyError(msg)
    return panel[0]

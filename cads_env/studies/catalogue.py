"""Which studies there are, and which tables and figures each of them holds.

Modules are imported when they are asked for. Never plays anything.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Final

from cads_env.errors import StudyError, suggest
from cads_env.studies.study import Study

STUDIES: Final = (
    "primary",
    "cross",
    "audit",
    "validity",
    "contamination",
    "null-misspecification",
    "zhou-liu",
    "gate",
)
"""Names of the studies in the order in which they are shown; the module of `null-misspecification`
is `cads_env.studies.null_misspecification`."""

ALL: Final = "all"
"""Every item of every study."""


def study_names() -> tuple[str, ...]:
    """Names of all studies."""
    return STUDIES


def load_study(name: str) -> Study:
    """A study by name.

    Raises:
        StudyError: There is none of this name.
    """
    if name not in STUDIES:
        msg = f"Unknown study {name!r}. {suggest(name, STUDIES)}"
        raise StudyError(msg)
    module = importlib.import_module(f"cads_env.studies.{name.replace('-', '_')}")
    study: Study = module.STUDY
    return study


def find_items(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The items that names ask for, by study.

    Args:
        names: Items (`table1`), studies (`primary`: all its items) or `all`.

    Returns:
        Item names by study name, both in the order in which they are shown.

    Raises:
        StudyError: A name is neither an item nor a study.
    """
    wanted = list(names)
    offered = {study: tuple(load_study(study).items) for study in STUDIES}
    known = {ALL, *offered, *(item for items in offered.values() for item in items)}
    for name in wanted:
        if name not in known:
            msg = f"Unknown table or figure {name!r}. {suggest(name, known)}"
            raise StudyError(msg)
    chosen = {
        study: tuple(item for item in items if ALL in wanted or study in wanted or item in wanted)
        for study, items in offered.items()
    }
    return {study: items for study, items in chosen.items() if items}

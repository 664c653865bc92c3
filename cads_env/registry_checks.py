"""The checks that every registry and oracle passes, whatever its source.

Plain values in, an error that lists the offenders out. Never loads or changes anything.
"""

from __future__ import annotations

import unicodedata
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cads_env.errors import HitlessError, RegistryError, quoted

_FILLERS: Final = "\u115f\u1160\u3164\uffa0\u034f\ufe0e\ufe0f"
"""Characters that take no ink although Unicode calls them letters or marks."""

_HELD: Final = 4
_REMEMBERED: Final = 100_000
_sound: OrderedDict[tuple[str, ...], None] = OrderedDict()
"""The last identifiers that passed, at most `_HELD` families of fewer than `_REMEMBERED`."""

_LISTED: Final = 5
"""Offending entries that a message names before it only counts."""


def listed(entries: Sequence[object]) -> str:
    """The first few entries for a message, and how many more there are."""
    shown = ", ".join(quoted(entry) for entry in entries[:_LISTED])
    rest = len(entries) - _LISTED
    return f"{shown} and {rest} more" if rest > 0 else shown


def check_identifiers(identifiers: Sequence[str], name: str) -> None:
    """Raise unless there are at least two identifiers, all of them unique, non-empty strings.

    Raises:
        RegistryError: The message lists the offenders with their positions.
    """
    if len(identifiers) < _REMEMBERED and _remembered(identifiers):
        return
    if len(identifiers) < 2:
        msg = f"Registry {name!r} has {len(identifiers)} candidates; expected at least 2."
        raise RegistryError(msg)
    bad = [(i, x) for i, x in enumerate(identifiers) if not isinstance(x, str) or not x.strip()]
    if bad:
        msg = (
            f"Registry {name!r} has {len(bad)} empty or non-text identifiers (position, value): "
            f"{listed(bad)}. Give every candidate a name."
        )
        raise RegistryError(msg)
    if len(set(identifiers)) != len(identifiers):
        repeated = _repeated(identifiers)
        msg = (
            f"Registry {name!r} repeats {len(repeated)} identifiers: {listed(repeated)}. "
            "Identifiers must be unique: merge or rename the rows."
        )
        raise RegistryError(msg)
    _check_visible(identifiers, name)
    if len(identifiers) < _REMEMBERED:
        _sound[tuple(identifiers)] = None
        if len(_sound) > _HELD:
            _sound.popitem(last=False)


def _remembered(identifiers: Sequence[str]) -> bool:
    """Whether the very same identifiers have passed: lines of one file share 18,000 genes."""
    try:
        return tuple(identifiers) in _sound
    except TypeError:  # an entry that cannot be hashed, hence no text
        return False


def _check_visible(identifiers: Sequence[str], name: str) -> None:
    """Raise when two identifiers look the same, or one like nothing at all."""
    by_look: dict[str, list[str]] = {}
    for identifier in identifiers:
        if not (identifier.isascii() and identifier.isprintable()):
            by_look.setdefault(_visible(identifier), []).append(identifier)
    if not by_look:
        return
    for identifier in identifiers:
        if identifier in by_look and identifier not in by_look[identifier]:
            by_look[identifier].append(identifier)
    same = [
        ascii(x) for look, group in by_look.items() if len(group) > 1 or not look for x in group
    ]
    if same:
        msg = (
            f"Registry {name!r} has {len(same)} identifiers that differ only in characters that "
            f"cannot be seen: {', '.join(same[:_LISTED])}. Take those characters out, and merge "
            "the rows that are then the same."
        )
        raise RegistryError(msg)


def _visible(identifier: str) -> str:
    """What can be seen of an identifier: no format or control characters, spaces all alike."""
    shown = (
        " " if unicodedata.category(c) in ("Zs", "Zl", "Zp") else c
        for c in identifier
        if unicodedata.category(c) not in ("Cf", "Cc") and c not in _FILLERS
    )
    return " ".join("".join(shown).split())


def _repeated(identifiers: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    repeated: dict[str, None] = {}
    for identifier in identifiers:
        if identifier in seen:
            repeated[identifier] = None
        seen.add(identifier)
    return list(repeated)


def check_truth(
    signal: NDArray[np.float64],
    labels: NDArray[np.bool_],
    name: str,
    identifiers: Sequence[str] | None = None,
) -> None:
    """Raise unless u is finite, every null has u <= 0, and there is at least one hit and one null.

    Raises:
        RegistryError: The message lists the offenders.
    """
    if signal.ndim != 1 or signal.shape != labels.shape:
        msg = (
            f"{name!r}: signal has shape {signal.shape} and labels {labels.shape}; "
            "expected the same (m,)."
        )
        raise RegistryError(msg)
    for bad, what, fix in (
        (~np.isfinite(signal), "a signal that is not finite", "Drop or mend them."),
        (
            ~labels & (signal > 0),
            "a null label but a signal u > 0, which breaks the certificate's null",
            "A null needs u <= 0: check direction and threshold, or label them as hits.",
        ),
    ):
        at = np.flatnonzero(bad)
        if at.size:
            names = [identifiers[int(i)] if identifiers is not None else int(i) for i in at]
            msg = f"{name!r}: {at.size} candidates have {what}: {listed(names)}. {fix}"
            raise RegistryError(msg)
    hits = int(labels.sum())
    if hits == 0 or hits == labels.size:
        msg = (
            f"{name!r} has {hits} hits among {labels.size} candidates; expected at least one hit "
            "and one null. Check direction and threshold."
        )
        raise HitlessError(msg)

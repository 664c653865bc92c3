"""Checks of the options that a user declares about a file: types and ranges, in one message form.

Only looks at the values; which options belong together depends on the file, and is each source's
own matter. Never opens a file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from cads_env.errors import RegistryError, quoted


def refuse(option: str, value: object, expected: str) -> NoReturn:
    """Raise the error of an option whose value is not usable.

    Raises:
        RegistryError: Always.
    """
    msg = f"{option}={quoted(value)} is not usable; expected {expected}."
    raise RegistryError(msg)


def is_number(value: object) -> bool:
    """True for a finite int or float; a bool is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False


def check_texts(**options: object) -> None:
    """Raise unless each option is None or a text that is not blank."""
    for option, value in options.items():
        if value is not None and (not isinstance(value, str) or not value.strip()):
            refuse(option, value, "a text")


def check_choice(option: str, value: object, choices: Sequence[str], *, optional: bool) -> None:
    """Raise unless the value is one of the choices, or None where it is optional."""
    if value not in choices and not (optional and value is None):
        *most, last = map(repr, choices)
        refuse(option, value, f"{', '.join(most)} or {last}")


def check_number(option: str, value: object) -> None:
    """Raise unless the value is None or a finite number."""
    if value is not None and not is_number(value):
        refuse(option, value, "a finite number")


def check_fraction(option: str, value: object) -> None:
    """Raise unless the value is None or a number above 0 and at most 1."""
    is_fraction = isinstance(value, int | float) and is_number(value) and 0 < value <= 1
    if value is not None and not is_fraction:
        refuse(option, value, "a number above 0 and at most 1")


def check_flag(option: str, value: object) -> None:
    """Raise unless the value is true or false."""
    if not isinstance(value, bool):
        refuse(option, value, "true or false")


def check_signal(value: object) -> None:
    """Raise unless the value is None or (u of a hit, u of a null), hit > 0 and null <= 0."""
    if value is None:
        return
    pair = list(value) if isinstance(value, Sequence) else []
    if len(pair) != 2 or not all(map(is_number, pair)) or not pair[1] <= 0 < pair[0]:
        refuse("signal", value, "(hit, null) with hit > 0 and null <= 0")


def check_list(option: str, value: object, of: str) -> None:
    """Raise unless the value is a list of texts; `of` says of what kind."""
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    if not is_list or not all(isinstance(x, str) for x in value):  # type: ignore[attr-defined]
        refuse(option, value, f"a list of {of}")


def file_of(source: str, option: str, value: object, what: str) -> Path:
    """The path that an option names.

    Args:
        source: Name of the source, for the message.
        option: The option.
        value: What was received.
        what: What the file is expected to be.

    Raises:
        RegistryError: None or something else than a path was received.
    """
    if value is None:
        msg = f"The source {source!r} needs {option}=..., {what}."
        raise RegistryError(msg)
    if not isinstance(value, str | Path) or not str(value).strip():
        refuse(option, value, "the path of a file")
    try:
        return Path(value).expanduser()
    except RuntimeError as error:
        msg = f"{value} names the folder of a user that does not exist."
        raise RegistryError(msg) from error

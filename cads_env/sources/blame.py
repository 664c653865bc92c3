"""Errors about a file name it, wherever they are found.

A check of effects, names or options deep inside knows no path; who called it does. Never changes
what an error says about the cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cads_env.errors import RegistryError


@contextmanager
def naming(file: Path | None) -> Iterator[None]:
    """Put a file's path before the message of a `RegistryError` that does not name it yet.

    Args:
        file: What is being read, or None to change nothing.

    Raises:
        RegistryError: As raised within.
    """
    try:
        yield
    except RegistryError as error:
        msg = named(str(error), file)
        if msg == str(error):
            raise
        raise type(error)(msg) from error


def named(message: str, file: Path | None) -> str:
    """A message with a file's path before it, unless it names the file already.

    Args:
        message: What is wrong.
        file: What was read, or None to change nothing.
    """
    return message if file is None or file.name in message else f"{file}: {message}"

"""The rows of a text file that is too large to hold, each with the byte at which it begins.

Any line ending is understood, one kind a file. Knows nothing of what stands in a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from cads_env.errors import RegistryError

_BLOCK: Final = 1 << 20
_LONGEST_ROW: Final = 1 << 26


def open_file(path: Path) -> BinaryIO:
    """A file, open for reading bytes.

    Raises:
        RegistryError: It is a folder or cannot be read.
    """
    if path.is_dir():
        msg = f"{path} is a folder; expected a file."
        raise RegistryError(msg)
    try:
        return path.open("rb")
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> RegistryError:
    """The error of a file that the system does not let read."""
    return RegistryError(f"{path} cannot be read: {error.strerror or error}.")


def numbered_rows(file: BinaryIO, path: Path) -> Iterator[tuple[int, bytes]]:
    """Each row that is not blank: the byte at which it begins, and it without its line ending.

    Args:
        file: Open at its beginning.
        path: For the message.

    Raises:
        RegistryError: A row is so long that the file is no text.
    """
    start = file.read(_BLOCK)
    file.seek(0)
    ending = b"\r" if b"\r" in start and b"\n" not in start else b"\n"
    at, held = 0, b""
    while block := file.read(_BLOCK):
        *rows, held = (held + block).split(ending)
        for row in rows:
            if not row.isspace() and row:
                yield at, row.rstrip(b"\r")
            at += len(row) + 1
        if len(held) > _LONGEST_ROW:
            msg = f"{path} has a row of more than {_LONGEST_ROW:,} bytes; it is no text matrix."
            raise RegistryError(msg)
    if held.strip():
        yield at, held.rstrip(b"\r")

"""A look at the heaps of text in an HDF5 file before the HDF5 library opens it.

A damaged heap whose free space has no length sends the library round for ever, where no timer of
Python's reaches it. Only bytes are looked at; nothing is read as HDF5.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Final

from cads_env.errors import RegistryError

LARGEST_CHECKED: Final = 1 << 30
"""Bytes of a file beyond which it is not looked through: a row of it is read much sooner."""

_SIGNATURE: Final = b"GCOL\x01\0\0\0"
_HEAD: Final = 16
"""Bytes before the objects of a heap, and before the content of each object."""


def check_heaps(path: Path) -> None:
    """Raise when a global heap of the file holds free space that has no length.

    Args:
        path: An HDF5 file, or any other.

    Raises:
        RegistryError: There is one.
        OSError: The file cannot be read.

    Source: HDF5 File Format Specification, version 3, section III.E (global heap).
    """
    size = path.stat().st_size
    if not 0 < size <= LARGEST_CHECKED:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as raw:
        at = raw.find(_SIGNATURE)
        while at >= 0:
            end = min(at + _number(raw, at + 8, 8), size)
            if _is_endless(raw, at + _HEAD, end):
                msg = (
                    f"{path} cannot be read as an h5ad (HDF5) file: its heap of texts at byte "
                    f"{at:,} is damaged. Fetch the file again."
                )
                raise RegistryError(msg)
            at = raw.find(_SIGNATURE, at + len(_SIGNATURE))


def _is_endless(raw: mmap.mmap, at: int, end: int) -> bool:
    """Whether a walk from object to object comes to a standstill before the heap's end."""
    while at + _HEAD <= end:
        length = _number(raw, at + 8, 8)
        if _number(raw, at, 2) == 0:  # free space, whose length counts its own head
            if length < _HEAD:
                return True
            at += length
        else:
            at += _HEAD + (length + 7) // 8 * 8
    return False


def _number(raw: mmap.mmap, at: int, length: int) -> int:
    return int.from_bytes(raw[at : at + length], "little")

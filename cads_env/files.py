"""Files that are there whole or not at all: written under a temporary name, then renamed."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

PARTIAL: Final = ".partial"
"""Ending of a file that is not finished; its name begins with a point and the final name."""


def write_whole(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file and put it on disk; until it is whole, the old one or none is there.

    Args:
        path: The file to make or to replace; its folder exists.
        parts: Its content; may read the old file.

    Raises:
        OSError: It cannot be written; nothing has changed and nothing is left.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=PARTIAL, dir=path.parent)
    partial = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files that only their owner can read.
        mask = os.umask(0)
        os.umask(mask)
        partial.chmod(0o666 & ~mask)
        partial.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise


def is_partial(path: Path) -> bool:
    """True for what a killed process left of a file that it was writing."""
    return path.name.startswith(".") and path.name.endswith(PARTIAL)

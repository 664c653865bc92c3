"""Files that are there whole or not at all: written under a temporary name, then renamed."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Final

PARTIAL: Final = ".partial"
"""Ending of a file that is not finished; its name begins with a point and the final name."""

_MASK_LOCK: Final = threading.Lock()


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
        partial.chmod(0o666 & ~_umask())
        partial.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise


def _umask() -> int:
    """The mask of the process, which can only be read by setting it."""
    # Two threads between each other's calls would leave it at 0.
    with _MASK_LOCK:
        mask = os.umask(0)
        os.umask(mask)
    return mask


def is_partial(path: Path) -> bool:
    """True for what a killed process left of a file that it was writing."""
    return path.name.startswith(".") and path.name.endswith(PARTIAL)

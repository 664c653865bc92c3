"""What a path can be by its ending, and whether it is a file, said so that a user sees what it is.

Never opens a file.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final, Literal

from cads_env.errors import RegistryError
from cads_env.sources.delimited import SEPARATORS
from cads_env.sources.registry_files import FILE_SUFFIXES

TABLE_SUFFIXES: Final = (*SEPARATORS, ".parquet")
"""Endings of a table's path."""


def is_file_name(text: str) -> bool:
    """True when the text ends like the path of a table or a registry file."""
    return text.lower().endswith((*TABLE_SUFFIXES, *FILE_SUFFIXES))


def path_hint(text: str) -> str:
    """The sentence on what a path must end in.

    Args:
        text: A path that does not.
    """
    endings = ", ".join((*TABLE_SUFFIXES, *FILE_SUFFIXES))
    there = "is a folder; give a file in it." if kind_of(Path(text)) == "folder" else ""
    return f"A path must end in one of {endings}{'; this one ' + there if there else '.'}"


def check_is_file(path: Path, expected: str, named: str = "") -> None:
    """Raise unless the path is that of a file.

    Args:
        path: What is looked for.
        expected: What it should be, for the message.
        named: Where the path comes from, for the message.

    Raises:
        RegistryError: It does not exist or is a folder.
    """
    kind = kind_of(path)
    if kind != "file":
        what = "is a folder" if kind == "folder" else "does not exist"
        where = "" if path.is_absolute() else f" Looked in {Path.cwd()}."
        msg = f"{path} {what}{named}; expected {expected}.{where}"
        raise RegistryError(msg)


def kind_of(path: Path) -> Literal["file", "folder", "nothing"]:
    """What is at a path; nothing also where no path can be.

    Args:
        path: Any path.
    """
    # A name too long or with a NUL in it makes the system call fail instead of answering no.
    with contextlib.suppress(OSError, ValueError):
        if path.is_dir():
            return "folder"
        if path.exists():
            return "file"
    return "nothing"

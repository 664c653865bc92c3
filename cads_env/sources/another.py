"""What to say when a file that is read as a table seems to be another source's.

Only adds to an error: how a file is read is declared, never guessed.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from cads_env.errors import RegistryError
from cads_env.sources import SOURCES
from cads_env.sources.layouts import Layout, layout_of_another_source

_LEFT_OUT: Final = ("path", "name", "salt")


@contextmanager
def suggesting_source(path: Path | None, options: Mapping[str, Any]) -> Iterator[None]:
    """Put the words that read the file behind the message of a `RegistryError`.

    Args:
        path: The file that is being read as a table, or None to change nothing.
        options: As they were given.

    Raises:
        RegistryError: As raised within; says more where the file's layout is another source's.
    """
    try:
        yield
    except RegistryError as error:
        layout = None if path is None else layout_of_another_source(path)
        if path is None or layout is None:
            raise
        msg = f"{error} {_words(path, layout, options)}"
        raise type(error)(msg) from error


def _words(path: Path, layout: Layout, options: Mapping[str, Any]) -> str:
    """What to say in place of the path alone; an option that is still open reads `...`."""
    info = SOURCES[str(layout.source)]
    said = {
        option: value
        for option, value in options.items()
        if option in info.options and option not in _LEFT_OUT and value is not None
    }
    said |= {group[0]: "..." for group in layout.missing(said)}
    pairs = [(option, _word(value)) for option, value in said.items()]
    own = " ".join(f"-O {option}={value}" for option, value in pairs)
    added = " ".join(
        f"--line {value}" if option == "line" else f"-O {option}={value}" for option, value in pairs
    )
    file = _word(path)
    return (
        f"{path.name} was read as a table, but it looks like {layout.title}, which the source "
        f"{info.name!r} reads. Say `--registry {info.name} -O path={file} {own}`, or remember it: "
        f"`cads registry add {file} {added} --name ...`."
    )


def _word(value: object) -> str:
    """A value as a shell takes it."""
    return "..." if value == "..." else shlex.quote(str(value))

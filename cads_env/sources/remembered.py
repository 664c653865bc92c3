"""Registries that a user has given a name: where their files lie, and how one is written.

A remembered registry is a registry file in the user's data folder. Only names and files are known
here; what a file means is said in `registry_files` and `names`. Never loads a registry.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import platformdirs

from cads_env.errors import RegistryError, suggest
from cads_env.files import write_whole
from cads_env.sources import SOURCES
from cads_env.values import dump_yaml

HOME_VARIABLE: Final = "CADS_HOME"
"""Environment variable that names the data folder in place of the system's own."""

SUFFIX: Final = ".yaml"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_FILE_ENDINGS: Final = (".csv", ".tsv", ".txt", ".bf", ".parquet", ".h5ad", ".yaml", ".yml")


def data_folder() -> Path:
    """The user's data folder; it need not exist."""
    said = os.environ.get(HOME_VARIABLE, "").strip()
    return Path(said).expanduser().absolute() if said else platformdirs.user_data_path("cads-env")


def registries_folder() -> Path:
    """The folder of remembered registries; it need not exist."""
    return data_folder() / "registries"


def remembered_names() -> tuple[str, ...]:
    """The names of all remembered registries, sorted."""
    try:
        files = list(registries_folder().iterdir())
    except OSError:
        return ()
    return tuple(sorted(f.stem for f in files if f.suffix == SUFFIX and _NAME.fullmatch(f.stem)))


def find(name: str) -> Path | None:
    """The file of a remembered registry, or None when there is none of this name."""
    # A source's name is never looked up: a file must not change what a published name means.
    if name in SOURCES or not _NAME.fullmatch(name):
        return None
    path = registries_folder() / f"{name}{SUFFIX}"
    try:
        return path if path.is_file() else None
    except OSError as error:
        msg = (
            f"{path.parent} cannot be looked into: {error.strerror or error}. Set the environment "
            f"variable {HOME_VARIABLE} to a folder that can."
        )
        raise RegistryError(msg) from error


def check_name(name: str) -> None:
    """Raise unless a registry can be remembered by this name.

    Raises:
        RegistryError: The name is a source's, looks like a file, or has characters that names of
            registries use otherwise.
    """
    if name in SOURCES:
        msg = f"{name!r} is the name of a source; choose another name to remember a registry by."
        raise RegistryError(msg)
    if name.lower().endswith(_FILE_ENDINGS):
        msg = f"{name!r} would be read as a file; choose a name that does not end like one."
        raise RegistryError(msg)
    if not _NAME.fullmatch(name):
        msg = (
            f"{name!r} is no usable name; expected up to 80 letters, digits, '-', '_' and '.', the "
            "first a letter or digit ('/', ':' and '+' have a meaning in registries' names)."
        )
        raise RegistryError(msg)


def write(name: str, content: Mapping[str, Any], *, replace: bool) -> Path:
    """Write the file of a remembered registry, whole or not at all.

    Args:
        name: Checked here.
        content: Plain values, as a registry file has them.
        replace: Whether an existing registry of this name may go.

    Returns:
        The file.

    Raises:
        RegistryError: The name is not usable or taken, or the folder cannot be written to.
    """
    check_free(name, replace=replace)
    folder = registries_folder()
    path = folder / f"{name}{SUFFIX}"
    text = dump_yaml(dict(content))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, [text.encode("utf-8")])
    except OSError as error:
        msg = (
            f"{path} cannot be written: {error.strerror or error}. Set the environment variable "
            f"{HOME_VARIABLE} to a folder that can."
        )
        raise RegistryError(msg) from error
    return path


def check_free(name: str, *, replace: bool) -> None:
    """Raise unless the name can be used, and is free or may be replaced.

    Raises:
        RegistryError: It cannot.
    """
    check_name(name)
    if find(name) is not None and not replace:
        msg = (
            f"A registry is remembered as {name!r} already. Add --replace to put this one in its "
            "place, or choose another name."
        )
        raise RegistryError(msg)


def remove(name: str) -> Path:
    """Forget a remembered registry; the data that it names stay where they are.

    Returns:
        The file that was removed.

    Raises:
        RegistryError: None is remembered by this name, or the file cannot be removed.
    """
    path = find(name)
    if path is None:
        kind = f"{name!r} is a source" if name in SOURCES else f"No registry is called {name!r}"
        known = remembered_names()
        msg = f"{kind}; only remembered registries can be removed. " + (
            suggest(name, known) if known else "None is remembered."
        )
        raise RegistryError(msg)
    try:
        path.unlink()
    except OSError as error:
        msg = f"{path} cannot be removed: {error.strerror or error}."
        raise RegistryError(msg) from error
    return path

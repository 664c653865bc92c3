"""What a registry's name, path and options mean, checked before anything is loaded.

Everything that a name, a path or an option can get wrong is refused here with the nearest thing
that exists. Never opens a table and never draws a number: that is a source's work.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from cads_env.errors import RegistryError, suggest
from cads_env.registry import Oracle, Registry, subsample
from cads_env.sources import COMMON_OPTIONS, SOURCES, SourceInfo
from cads_env.sources.delimited import SEPARATORS
from cads_env.values import load_yaml

Pair = tuple[Registry, Oracle]

TABLE_SUFFIXES: Final = tuple(SEPARATORS)
FILE_SUFFIXES: Final = (".yaml", ".yml")
"""Endings of a registry file, and of the file beside a table that holds its options."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What it takes to load one registry of a panel.

    Attributes:
        name: The registry's name.
        source: Key of `SOURCES`.
        options: The source's own options, checked by name.
        label: `name` without the part about the subset.
        subsample: Candidates to keep, or None for all.
        subsample_seed: Which subset.
        salt: Secret of a private panel.
    """

    name: str
    source: str
    options: Mapping[str, Any]
    label: str
    subsample: int | None
    subsample_seed: int
    salt: bytes = field(repr=False)

    def load(self) -> Pair:
        """The registry and its oracle."""
        info = SOURCES[self.source]
        pair = info.load(name=self.label, salt=self.salt, **self.options)
        if self.subsample is None:
            return pair
        return subsample(*pair, self.subsample, self.subsample_seed)


def resolve(name_or_path: str | Path, options: Mapping[str, Any]) -> Entry:
    """The entry of one registry's name or path.

    Args:
        name_or_path: As for `cads_env.panel.load_registry`.
        options: Options given by the caller; they win over those of a file.

    Raises:
        RegistryError: The name, the path or the name of an option is unknown.
    """
    if not isinstance(name_or_path, str | Path):
        msg = f"Received {name_or_path!r}; expected the name or the path of a registry."
        raise RegistryError(msg)
    if not str(name_or_path).strip():
        msg = "Received an empty name; expected the name or the path of a registry."
        raise RegistryError(msg)
    if isinstance(name_or_path, Path) or is_file_name(name_or_path):
        return _resolve_path(_expanded(Path(name_or_path)), options)
    name = name_or_path
    source, slash, number = name.partition("/")
    if source not in SOURCES:
        split_source, colon, _ = name.partition(":")
        if colon and split_source in SOURCES:
            msg = f"{name!r} names a panel, not one registry; use load_panel({name!r})."
            raise RegistryError(msg)
        msg = f"Unknown registry {name!r}. {suggest_source(source)} {_path_hint(name)}"
        raise RegistryError(msg)
    if not slash:
        return make_entry(source, options)
    if not SOURCES[source].has_instances:
        msg = f"{source!r} is one registry without instances; received {name!r}. Use {source!r}."
        raise RegistryError(msg)
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        msg = f"{name!r} is no instance of {source!r}; expected a number, such as '{source}/17'."
        raise RegistryError(msg)
    if options.get("instance", int(number)) != int(number):
        msg = f"{name!r} and instance={options['instance']!r} disagree; leave one of them out."
        raise RegistryError(msg)
    return make_entry(source, {**options, "instance": int(number)})


def _resolve_path(path: Path, options: Mapping[str, Any]) -> Entry:
    """The entry of a table or a registry file."""
    suffix = path.suffix.lower()
    if suffix not in (*TABLE_SUFFIXES, *FILE_SUFFIXES):
        msg = f"{path} is no registry. {_path_hint(str(path))}"
        raise RegistryError(msg)
    _check_is_file(path, "a table or a registry file")
    if suffix in TABLE_SUFFIXES:
        return make_entry("table", {**options, "path": path})
    written = _read_options(path)
    source = written.pop("source", None)
    if source is None:
        msg = f"{path} has no key 'source'; a registry file says which source its options are for."
        raise RegistryError(msg)
    if not isinstance(source, str) or source not in SOURCES:
        msg = f"{path} names the unknown source {source!r}. {suggest_source(str(source))}"
        raise RegistryError(msg)
    if source == "table":
        if "path" not in written:
            msg = f"{path} has no key 'path'; a table needs one, relative to the registry file."
            raise RegistryError(msg)
        written["path"] = path.parent / _path_option(written["path"])
        written.setdefault("name", path.stem)
    return make_entry(source, {**written, **options}, origin=path)


def make_entry(source: str, options: Mapping[str, Any], origin: Path | None = None) -> Entry:
    """The entry of a source under options, whose names are checked here.

    Args:
        source: Key of `SOURCES`.
        options: The source's own options and the common ones.
        origin: The registry file that the options come from, or None.

    Raises:
        RegistryError: An option is unknown, or a common option is of the wrong type.
    """
    info = SOURCES[source]
    own = dict(options)
    if source == "table":
        own = _table_options(own, beside=origin is None)
    _check_names(info, own, origin)
    size, seed = own.pop("subsample", None), own.pop("subsample_seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int):
        msg = f"subsample_seed={seed!r} is not usable; expected a whole number."
        raise RegistryError(msg)
    salt = own.pop("salt", b"")
    if not isinstance(salt, str | bytes):
        msg = f"salt is of type {type(salt).__name__}; expected bytes or str."
        raise RegistryError(msg)
    label = own.pop("name", info.name)
    if not isinstance(label, str) or not label.strip():
        msg = f"name={label!r} is not usable; expected a text."
        raise RegistryError(msg)
    if info.has_instances:
        label = f"{label}/{own.setdefault('instance', 0)}"
    for option, default in info.renaming.items():
        value = own.get(option, default)
        if value != default:
            label += f"+{option}={value:g}" if isinstance(value, float) else f"+{option}={value}"
    if salt:
        label += "+salted"
    name = label if size is None else f"{label}+subsample={size},subsample_seed={seed}"
    raw = salt.encode() if isinstance(salt, str) else salt
    return Entry(name, source, own, label, size, seed, raw)


def _table_options(options: dict[str, Any], *, beside: bool) -> dict[str, Any]:
    """A table's options, with its name, its absolute path and those of the file beside it."""
    if "path" not in options:
        msg = "The source 'table' needs path=...; or give the path of the table itself."
        raise RegistryError(msg)
    path = _path_option(options["path"]).absolute()
    _check_is_file(path, "a table")
    written: dict[str, Any] = {}
    sidecar = next((f for s in FILE_SUFFIXES if (f := path.with_suffix(s)).is_file()), None)
    if beside and sidecar is not None:
        written = _read_options(sidecar)
        if written.pop("source", "table") != "table":
            msg = f"{sidecar} lies beside a table but is for another source; expected 'table'."
            raise RegistryError(msg)
        # A registry file may lie beside its own table.
        meant = sidecar.parent / _path_option(written.pop("path", path))
        if meant.resolve() != path.resolve():
            msg = f"{sidecar} lies beside {path.name} but is for {meant}. Rename one of the two."
            raise RegistryError(msg)
        _check_names(SOURCES["table"], written, sidecar)
    return {"name": path.stem, **written, **options, "path": path}


def _check_names(info: SourceInfo, options: Mapping[str, Any], origin: Path | None) -> None:
    known = (*info.options, *COMMON_OPTIONS)
    for option in options:
        if option not in known:
            where = f" (in {origin})" if origin is not None else ""
            near = suggest(str(option), known)
            listing = f" Available: {', '.join(known)}." if near.startswith("Did") else ""
            msg = f"Source {info.name!r} has no option {option!r}{where}. {near}{listing}"
            raise RegistryError(msg)


def _read_options(path: Path) -> dict[str, Any]:
    """The mapping that a YAML file holds."""
    try:
        content = load_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        msg = f"{path} is not readable YAML: {' '.join(str(error).split())}"
        raise RegistryError(msg) from error
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        msg = f"{path} holds no options; expected lines such as `threshold: -0.5`."
        raise RegistryError(msg)
    return content


def is_file_name(text: str) -> bool:
    """True when the text ends like the path of a table or a registry file."""
    return text.lower().endswith((*TABLE_SUFFIXES, *FILE_SUFFIXES))


def suggest_source(word: str) -> str:
    """The sentence that names the nearest source and lists all."""
    near = suggest(word, SOURCES)
    return near if near.startswith("Available") else f"{near} Available: {', '.join(SOURCES)}."


def _path_hint(text: str) -> str:
    endings = ", ".join((*TABLE_SUFFIXES, *FILE_SUFFIXES))
    there = "is a folder; give a file in it." if _kind(Path(text)) == "folder" else ""
    return f"A path must end in one of {endings}{'; this one ' + there if there else '.'}"


def _path_option(value: object) -> Path:
    if not isinstance(value, str | Path):
        msg = f"path={value!r} is not usable; expected a text."
        raise RegistryError(msg)
    return Path(value).expanduser()


def _check_is_file(path: Path, expected: str) -> None:
    kind = _kind(path)
    if kind != "file":
        what = "is a folder" if kind == "folder" else "does not exist"
        where = "" if path.is_absolute() else f" Looked in {Path.cwd()}."
        msg = f"{path} {what}; expected {expected}.{where}"
        raise RegistryError(msg)


def _kind(path: Path) -> Literal["file", "folder", "nothing"]:
    # A name too long or with a NUL in it makes the system call fail instead of answering no.
    with contextlib.suppress(OSError, ValueError):
        if path.is_dir():
            return "folder"
        if path.exists():
            return "file"
    return "nothing"


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        msg = f"{path} names the folder of a user that does not exist."
        raise RegistryError(msg) from error

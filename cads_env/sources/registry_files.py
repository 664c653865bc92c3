"""What a registry file (YAML) says: one registry, several of one source, or a list of registries.

Keys, types and splits are checked here, and every path in a file is made relative to that file.
Options themselves are checked where an entry is made. Never opens the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from cads_env.errors import RegistryError, quoted, suggest
from cads_env.sources import SOURCES, SourceInfo
from cads_env.sources.blame import naming
from cads_env.values import load_yaml

SPLIT_NAMES: Final = ("train", "dev", "eval")
ALL: Final = "all"
FILE_SUFFIXES: Final = (".yaml", ".yml")
"""Endings of a registry file, and of the file beside a table that holds its options."""

LONGEST_TITLE: Final = 200
"""Characters of a registry's or a panel's name: every table and random key holds it."""

HASHES: Final[tuple[str, str]] = ("registry_hash", "oracle_hash")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryFile:
    """The content of one registry file.

    Attributes:
        path: The file.
        name: What it calls its registries, or None.
        source: The source of all of them, or None for a list of registries.
        options: The source's options, paths absolute; without members and hashes.
        members: Values of the source's member option; "all"; or None when the file does not say.
        registries: Names, paths or mappings of a list of registries, or None.
        splits: Members or registries by split name; empty without splits.
        hashes: Recorded hashes by kind: one text, or texts by member.
    """

    path: Path
    name: str | None
    source: str | None
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    members: tuple[str, ...] | str | None = None
    registries: tuple[Any, ...] | None = None
    splits: Mapping[str, tuple[Any, ...]] = field(default_factory=lambda: MappingProxyType({}))
    hashes: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def is_panel(self) -> bool:
        """True when the file names several registries."""
        return bool(self.members is not None or self.registries is not None or self.splits)

    @property
    def title(self) -> str:
        """What a panel of this file is called."""
        return self.name or self.path.stem

    def recorded(self, member: str | None) -> dict[str, str]:
        """The recorded hashes of one registry, by kind; empty when there are none."""
        found: dict[str, str] = {}
        for kind, value in self.hashes.items():
            said = value.get(member) if isinstance(value, Mapping) else value
            if said is not None:
                found[kind] = said
        return found


def also_held_out(given: object, reported: Sequence[str]) -> object:
    """Members that no prior may be made of: those given and those of `dev` and `eval`.

    Args:
        given: The option's value; what is no list is left for the source to refuse.
        reported: Members of the splits that are reported on.
    """
    if not isinstance(given, Sequence) or isinstance(given, str):
        return given
    return list(dict.fromkeys([*given, *reported]))


def read_registry_file(path: Path) -> RegistryFile:
    """The content of a registry file.

    Args:
        path: The file.

    Raises:
        RegistryError: It is no YAML, or its keys contradict each other or are unknown.
    """
    return parse_registry_file(read_mapping(path), path)


def parse_registry_file(written: Mapping[str, Any], path: Path) -> RegistryFile:
    """The content of a registry file that has been read already.

    Args:
        written: Its mapping.
        path: Where it lies: paths in it are relative to its folder.

    Raises:
        RegistryError: Keys contradict each other, are unknown, or have values of a wrong type.
    """
    rest = dict(written)
    name = rest.get("name")
    if name is not None:
        with naming(path):
            check_title(name)
    if "registries" in rest or ("source" not in rest and "splits" in rest):
        return _parse_list(rest, path, name)
    source = rest.pop("source", None)
    if source is None:
        msg = (
            f"{path} has no key 'source'; a registry file says which source its options are for, "
            "or lists registries under 'registries'."
        )
        raise RegistryError(msg)
    if not isinstance(source, str) or source not in SOURCES:
        near = suggest(str(source), SOURCES)
        msg = f"{path} names the unknown source {source!r}. {near}"
        raise RegistryError(msg)
    info = SOURCES[source]
    hashes = {kind: _hashes(rest.pop(kind), kind, path) for kind in HASHES if kind in rest}
    splits = _splits(rest.pop("splits", None), path)
    members = None
    if info.member is not None:
        members = _members(rest.pop(f"{info.member}s", None), f"{info.member}s", path)
        _check_members(info, rest, members, splits, path)
    elif splits:
        msg = f"{path}: the source {source!r} is one registry; leave splits out."
        raise RegistryError(msg)
    if info.needs_path and "path" not in rest:
        msg = f"{path} has no key 'path'; {source!r} needs one, relative to the registry file."
        raise RegistryError(msg)
    if info.needs_path:
        rest.setdefault("name", path.stem)
    return RegistryFile(
        path=path,
        name=name,
        source=source,
        options=_with_paths(info, rest, path),
        members=members,
        splits=splits,
        hashes=hashes,
    )


def read_mapping(path: Path) -> dict[str, Any]:
    """The mapping that a YAML file holds.

    Raises:
        RegistryError: It cannot be read, or holds something else.
    """
    try:
        content = load_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        msg = f"{path} is not readable YAML: {' '.join(str(error).split())}"
        raise RegistryError(msg) from error
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        msg = f"{path} holds no options; expected lines such as `threshold: -0.5`."
        raise RegistryError(msg)
    return content


def path_of(value: object, option: str = "path") -> Path:
    """The path that an option's value names.

    Raises:
        RegistryError: It is no text, or names the folder of a user that does not exist.
    """
    if not isinstance(value, str | Path) or not str(value).strip():
        msg = f"{option}={value!r} is not usable; expected a text."
        raise RegistryError(msg)
    try:
        return Path(value).expanduser()
    except RuntimeError as error:
        msg = f"{value} names the folder of a user that does not exist."
        raise RegistryError(msg) from error


def check_title(name: object) -> None:
    """Raise unless registries can be called so: a printable text of 200 characters at most.

    Args:
        name: What a user or a file wants to call them.

    Raises:
        RegistryError: It is something else.
    """
    is_text = isinstance(name, str) and bool(name.strip())
    if not is_text or not str(name).isprintable() or len(str(name)) > LONGEST_TITLE:
        msg = (
            f"name={quoted(name)} is not usable; expected a text of at most {LONGEST_TITLE} "
            "printable characters. Say name=... with another one."
        )
        raise RegistryError(msg)


def _parse_list(rest: dict[str, Any], path: Path, name: str | None) -> RegistryFile:
    for key in rest:
        if key not in ("name", "registries", "splits"):
            near = suggest(key, ("name", "registries", "splits", "source"))
            msg = (
                f"{path} lists registries and has the key {key!r}. {near} Options belong to the "
                "registry that they are for."
            )
            raise RegistryError(msg)
    splits = _splits(rest.get("splits"), path)
    if "registries" not in rest:
        return RegistryFile(path=path, name=name, source=None, splits=splits)
    listed = rest["registries"]
    if splits:
        msg = f"{path} has both 'registries' and 'splits'; name each registry in one split only."
        raise RegistryError(msg)
    if not isinstance(listed, list) or not listed:
        msg = (
            f"{path}: registries={listed!r} is not usable; expected a list of names, paths or "
            "mappings with a key 'source'."
        )
        raise RegistryError(msg)
    return RegistryFile(path=path, name=name, source=None, registries=tuple(listed))


def _with_paths(info: SourceInfo, options: dict[str, Any], path: Path) -> dict[str, Any]:
    """The options with every path relative to the registry file."""
    for option in info.paths:
        if options.get(option) is not None:
            options[option] = path.parent.absolute() / path_of(options[option], option)
    return options


def _splits(value: object, path: Path) -> dict[str, tuple[Any, ...]]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not value:
        msg = f"{path}: splits={value!r} is not usable; expected lists by split: train, dev, eval."
        raise RegistryError(msg)
    for split, members in value.items():
        if split not in SPLIT_NAMES:
            msg = f"{path}: unknown split {split!r}. {suggest(str(split), SPLIT_NAMES)}"
            raise RegistryError(msg)
        if not isinstance(members, list) or not members:
            msg = f"{path}: the split {split!r} is {members!r}; expected a list that is not empty."
            raise RegistryError(msg)
    # In one order whatever the file's: a panel without a split is all of them.
    return {split: tuple(value[split]) for split in SPLIT_NAMES if split in value}


def _members(value: object, option: str, path: Path) -> tuple[str, ...] | str | None:
    if value is None or value == ALL:
        return value if value is None else ALL
    return check_members(value, f"{path}: {option}")


def check_members(value: object, option: str) -> tuple[str, ...]:
    """Members as a user lists them.

    Raises:
        RegistryError: It is no list of texts, is empty, or repeats one.
    """
    listed = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []
    members = tuple(x for x in listed if isinstance(x, str) and x.strip())
    if not members or len(members) != len(listed):
        msg = f"{option}={value!r} is not usable; expected a list of names, or all."
        raise RegistryError(msg)
    repeated = sorted({x for x in members if members.count(x) > 1})
    if repeated:
        msg = f"{option} repeats {', '.join(map(repr, repeated[:5]))}. Name each once."
        raise RegistryError(msg)
    return members


def _check_members(
    info: SourceInfo,
    rest: Mapping[str, Any],
    members: tuple[str, ...] | str | None,
    splits: Mapping[str, tuple[Any, ...]],
    path: Path,
) -> None:
    plural = f"{info.member}s"
    if info.member in rest and (members is not None or splits):
        msg = f"{path} has {info.member!r} and {plural!r} or 'splits'; expected one of them."
        raise RegistryError(msg)
    of: dict[str, str] = {}
    for split, names in splits.items():
        for name in check_members(names, f"{path}: the split {split!r}"):
            if name in of:
                msg = (
                    f"{path}: {name!r} is in the splits {of[name]!r} and {split!r}. Splits share "
                    "no registry: what is learnt on one would be known on the other."
                )
                raise RegistryError(msg)
            of[name] = split
            if isinstance(members, tuple) and name not in members:
                msg = f"{path}: {name!r} is in the split {split!r} but not among {plural}."
                raise RegistryError(msg)


def _hashes(value: object, kind: str, path: Path) -> Any:
    values = list(value.values()) if isinstance(value, dict) else [value]
    if not values or not all(isinstance(x, str) and len(x) == 64 for x in values):
        msg = f"{path}: {kind} is not usable; expected 64 hexadecimal digits as `cads` writes them."
        raise RegistryError(msg)
    return value

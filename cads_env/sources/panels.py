"""What the name of a panel means: a split, the members of one file, or a list of registries.

Turns names into entries and checks that splits share nothing. Never loads a registry, though the
members of a file may have to be looked up in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from cads_env.errors import RegistryError
from cads_env.sources import SOURCES
from cads_env.sources.blame import naming
from cads_env.sources.existing import is_file_name
from cads_env.sources.names import (
    TABLE,
    Entry,
    entry_of,
    make_entry,
    registry_file,
    resolve,
    suggest_source,
)
from cads_env.sources.registry_files import (
    ALL,
    RegistryFile,
    also_held_out,
    check_members,
    parse_registry_file,
    path_of,
)

_MOST_NESTED: Final = 8


class Expansion(NamedTuple):
    """The registries of one name.

    Attributes:
        title: What the panel is called when this name is all of it.
        entries: Its registries in order.
    """

    title: str
    entries: tuple[Entry, ...]


def expand(item: str | Path, options: Mapping[str, Any], *, depth: int = 0) -> Expansion:
    """The registries that one name means.

    Args:
        item: A split, a panel file, or whatever `resolve` takes.
        options: Options of the caller, for every registry; they win over those of a file.
        depth: In how many panel files this name was found.

    Raises:
        RegistryError: The name, a file or an option is not usable.
    """
    if depth > _MOST_NESTED:
        msg = f"{item} is named by {depth} panel files in one another; does one name itself?"
        raise RegistryError(msg)
    if isinstance(item, str) and ":" in item and not is_file_name(item):
        return _expand_split(item, options, depth)
    if item in SOURCES and f"{SOURCES[str(item)].member}s" in options:
        return _expand_source(str(item), options)
    if isinstance(item, str | Path):
        file = registry_file(item)
        if file is not None and file.is_panel and not _chooses_one(file, options):
            with naming(file.path):
                entries = _entries_of(file, options, depth)
            return Expansion(_titled(file.title, entries), entries)
    entry = resolve(item, options)
    return Expansion(entry.name, (entry,))


def entries_of_file(file: RegistryFile) -> tuple[Entry, ...]:
    """Every registry of a registry file, in order.

    Raises:
        RegistryError: As for `expand`.
    """
    return _entries_of(file, {}, 0) if file.is_panel else (entry_of(file, {}),)


def _expand_split(item: str, options: Mapping[str, Any], depth: int) -> Expansion:
    head, _, split = item.rpartition(":")
    file = None if head in SOURCES else registry_file(head)
    if file is not None:
        return _expand_split_of_file(file, split, options, depth)
    source, _, split = item.partition(":")
    if source not in SOURCES:
        msg = f"Unknown panel {item!r}: no source is called {source!r}. {suggest_source(source)}"
        raise RegistryError(msg)
    splits = SOURCES[source].splits
    if split not in splits:
        has = f"its splits are {', '.join(splits)}" if splits else "it has no splits"
        msg = f"Unknown split {split!r} of {source!r}: {has}."
        raise RegistryError(msg)
    if "instance" in options:
        msg = f"{item!r} names many instances; leave instance={options['instance']!r} out."
        raise RegistryError(msg)
    entries = tuple(make_entry(source, {**options, "instance": i}) for i in splits[split])
    return Expansion(_titled(item, entries), entries)


def _expand_split_of_file(
    file: RegistryFile, split: str, options: Mapping[str, Any], depth: int
) -> Expansion:
    if split not in file.splits:
        has = f"its splits are {', '.join(file.splits)}" if file.splits else "it states no splits"
        msg = f"Unknown split {split!r} of {file.path}: {has}."
        raise RegistryError(msg)
    if _chooses_one(file, options):
        msg = f"{file.path}:{split} names several registries; leave the option for one of them out."
        raise RegistryError(msg)
    with naming(file.path):
        by_split = _entries_by_split(file, options, depth)
    return Expansion(_titled(f"{file.title}:{split}", by_split[split]), by_split[split])


def _expand_source(source: str, options: Mapping[str, Any]) -> Expansion:
    """Several members of a file that the options name."""
    info = SOURCES[source]
    rest = dict(options)
    plural = f"{info.member}s"
    value = rest.pop(plural)
    if info.member in rest:
        msg = f"Both {info.member}= and {plural}= were given; expected one of them."
        raise RegistryError(msg)
    members = _all_members(source, rest) if value == ALL else check_members(value, plural)
    entries = tuple(make_entry(source, {**rest, str(info.member): x}) for x in members)
    title = rest.get("name") or path_of(rest["path"]).stem
    return Expansion(_titled(str(title), entries), entries)


def _entries_of(file: RegistryFile, options: Mapping[str, Any], depth: int) -> tuple[Entry, ...]:
    if file.splits and file.members is None:
        return sum(_entries_by_split(file, options, depth).values(), ())
    if file.source is None:
        return _entries_of_list(file, file.registries or (), options, depth)
    members = file.members or ()
    if members == ALL:
        members = _all_members(file.source, {**file.options, **options})
    return tuple(entry_of(file, options, member) for member in members)


def _entries_by_split(
    file: RegistryFile, options: Mapping[str, Any], depth: int
) -> dict[str, tuple[Entry, ...]]:
    """The registries of every split, none of them in two."""
    found: dict[str, tuple[Entry, ...]] = {}
    of: dict[str, str] = {}
    data: dict[tuple[str, ...], tuple[str, str]] = {}
    for split, items in file.splits.items():
        if file.source is None:
            found[split] = _entries_of_list(file, items, options, depth)
        else:
            found[split] = tuple(entry_of(file, options, str(item)) for item in items)
        for entry in found[split]:
            if of.setdefault(entry.name, split) != split:
                msg = (
                    f"{file.path}: {entry.name!r} is in the splits {of[entry.name]!r} and "
                    f"{split!r}. Splits share no registry: what is learnt on one would be known "
                    "on the other."
                )
                raise RegistryError(msg)
            name, first = data.setdefault(_data_of(entry), (entry.name, split))
            if first != split:
                msg = (
                    f"{file.path}: {name!r} in the split {first!r} and {entry.name!r} in "
                    f"{split!r} are the same data under two names. Splits share no registry: "
                    "what is learnt on one would be known on the other. Leave one of them out."
                )
                raise RegistryError(msg)
    return _held_out(found)


def _held_out(splits: Mapping[str, tuple[Entry, ...]]) -> dict[str, tuple[Entry, ...]]:
    """The entries with the members of `dev` and `eval` of their own file out of every prior.

    A column made of other members would carry what is reported on into what is learnt on.
    """
    reported: dict[tuple[str, str], list[str]] = {}
    for split in ("dev", "eval"):
        for entry in splits.get(split, ()):
            if "held_out" in SOURCES[entry.source].options:
                member = str(entry.options[str(SOURCES[entry.source].member)])
                reported.setdefault(_file_of(entry), []).append(member)

    def held(entry: Entry) -> Entry:
        out = reported.get(_file_of(entry)) if entry.options.get("path") is not None else None
        if out is None:
            return entry
        options = dict(entry.options)
        options["held_out"] = also_held_out(options.get("held_out", ()), out)
        return replace(entry, options=options)

    return {split: tuple(map(held, entries)) for split, entries in splits.items()}


def _file_of(entry: Entry) -> tuple[str, str]:
    return (entry.source, str(Path(entry.options["path"]).resolve()))


def _data_of(entry: Entry) -> tuple[str, ...]:
    """What tells an entry's data from other data, whatever they are called and how many are kept.

    Thresholds, labels and directions make other hits of the same effects, and are left aside.
    """
    info, options = SOURCES[entry.source], entry.options
    if not info.needs_path:
        return (entry.source, entry.label)
    # Columns of one table, and conditions of one perturbation, are screens of their own.
    chosen = [info.member, *(["condition"] if entry.source == "perturbseq" else [])]
    if entry.source == TABLE:
        chosen = ["label" if options.get("signal") is not None else "effect"]
    values = [options.get(x, x if entry.source == TABLE else None) for x in chosen if x is not None]
    return (entry.source, str(Path(options["path"]).resolve()), *map(repr, values))


def _entries_of_list(
    file: RegistryFile, items: Sequence[Any], options: Mapping[str, Any], depth: int
) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    for item in items:
        if isinstance(item, dict):
            inner = parse_registry_file(item, file.path)
            if "name" not in item and inner.options.get("path") is not None:
                # Here the panel file's name says nothing about this one of its registries.
                renamed = {**inner.options, "name": Path(inner.options["path"]).stem}
                inner = replace(inner, options=renamed)
            entries += (
                _entries_of(inner, options, depth + 1)
                if inner.is_panel
                else (entry_of(inner, options),)
            )
        elif isinstance(item, str):
            entries += expand(_beside(file, item), options, depth=depth + 1).entries
        else:
            msg = (
                f"{file.path} lists {item!r}; expected a registry's name or path, or a mapping "
                "with a key 'source'."
            )
            raise RegistryError(msg)
    return tuple(entries)


def _beside(file: RegistryFile, item: str) -> str:
    """A name as it is; a path, with or without a split behind it, relative to the panel file."""
    head, colon, split = item.rpartition(":")
    name, end = (item, "") if is_file_name(item) else (head, f"{colon}{split}")
    if not is_file_name(name):
        return item
    return f"{file.path.parent.absolute() / path_of(name)}{end}"


def _all_members(source: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Every member of a file; the options are checked as for one of them."""
    entry = make_entry(source, options, origin=None)
    return SOURCES[source].list_members(**entry.options)


def _chooses_one(file: RegistryFile, options: Mapping[str, Any]) -> bool:
    return file.source is not None and SOURCES[file.source].member in options


def _titled(title: str, entries: Sequence[Entry]) -> str:
    """A panel's title with what its options added to the registries' names."""
    if len(entries) == 1:
        return entries[0].name
    added = entries[0].name.partition("+")
    return f"{title}{added[1]}{added[2]}"

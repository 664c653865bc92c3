"""Remember a registry under a name: a data file with its options, or what a registry file says.

The data are loaded once: what is remembered is known to be usable, and its hashes are written down
so that a changed file is noticed at every later load.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from cads_env.errors import RegistryError
from cads_env.sources import SOURCES
from cads_env.sources.excel_names import KEEP
from cads_env.sources.existing import TABLE_SUFFIXES, check_is_file
from cads_env.sources.layouts import Layout, recognise
from cads_env.sources.names import TABLE, Entry, Pair, make_entry
from cads_env.sources.panels import entries_of_file
from cads_env.sources.registry_files import (
    ALL,
    FILE_SUFFIXES,
    HASHES,
    RegistryFile,
    check_members,
    parse_registry_file,
    path_of,
    read_mapping,
)
from cads_env.sources.remembered import check_free, write


class Guess(NamedTuple):
    """The source that a file is read by.

    Attributes:
        source: Its name.
        reason: Why, in a sentence.
        layout: The layout that it was told from, or None.
    """

    source: str
    reason: str
    layout: Layout | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """A registry that has been remembered.

    Attributes:
        file: The registry file that was written.
        guess: The source, and why it was taken.
        names: Names of the registries in it.
        first: The first registry and its oracle.
    """

    file: Path
    guess: Guess
    names: tuple[str, ...]
    first: Pair


def guess_source(path: Path) -> Guess:
    """The source that reads a file, told from its first lines.

    Args:
        path: The file.

    Raises:
        RegistryError: The file is known to hold no screen.
    """
    found = recognise(path)
    sources = list(dict.fromkeys(layout.source for layout in found))
    titles = " or ".join(dict.fromkeys(layout.title for layout in found))
    if not found:
        return Guess(TABLE, "It has the layout of no known download: read as a table.")
    if sources == [None]:
        msg = f"{path} looks like {titles}, which no source reads. {found[0].advice}"
        raise RegistryError(msg.rstrip())
    if len(sources) == 1 and sources[0] is not None:
        reason = f"It looks like {titles}: read by the source {sources[0]!r}."
        return Guess(sources[0], reason, found[0])
    return Guess(TABLE, f"It could be {titles}: read as a table unless --source says which.")


def add_registry(
    path: str | Path,
    *,
    name: str,
    source: str | None = None,
    members: Sequence[str] = (),
    replace: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Added:
    """Load a registry, or several of one file, and remember it under a name.

    Args:
        path: The data file, or a registry file of one source. Absolute paths are remembered;
            nothing is copied.
        name: What `load_registry` and `cads run --registry` are to call it.
        source: The source that reads it, or None to tell it from the file's first lines.
        members: Which of the registries in the file, such as cell lines; several make a panel.
        replace: Whether a registry that is remembered by this name may go.
        options: The source's options.

    Raises:
        RegistryError: The name is not usable or taken, or the data are not usable.
        MissingExtraError: An optional package is missing.
    """
    check_free(name, replace=replace)
    options = {"name": name, **(options or {})}
    if "salt" in options:
        msg = (
            "salt is a secret and is not written to a file; leave it out here and give it when the "
            "registry is loaded."
        )
        raise RegistryError(msg)
    if is_registry_file(path):
        guess, content, entries = _of_file(path, options, source, members)
    else:
        guess = choose_source(path, source)
        entries = entries_of_data(path, guess.source, members, options)
        content = _content(guess.source, entries, options)
    pairs = [entry.load_whole() for entry in entries[:1]]
    hashes = [(pair[0].hash, pair[1].hash) for pair in pairs]
    for entry in entries[1:]:  # one at a time: a panel may be larger than memory
        public, private = entry.load_whole()
        hashes.append((public.hash, private.hash))
    pair = entries[0].load() if entries[0].subsample is not None else pairs[0]
    chooser = SOURCES[guess.source].member
    for i, kind in enumerate(HASHES):
        content[kind] = (
            {entry.options[chooser]: h[i] for entry, h in zip(entries, hashes, strict=True)}
            if chooser is not None and len(entries) > 1
            else hashes[0][i]
        )
    file = write(name, content, replace=replace)
    return Added(file=file, guess=guess, names=tuple(e.name for e in entries), first=pair)


def is_registry_file(path: str | Path) -> bool:
    """True when the path ends as that of a registry file does."""
    return path_of(path).suffix.lower() in FILE_SUFFIXES


def choose_source(path: str | Path, source: str | None) -> Guess:
    """The source that is to read a data file: the one that is said, or told from its first lines.

    Raises:
        RegistryError: There is no such file or source, or the file holds no screen.
    """
    file = path_of(path)
    check_is_file(file, "a data file")
    if source is None:
        return guess_source(file)
    if source not in SOURCES or not SOURCES[source].needs_path:
        readers = ", ".join(info.name for info in SOURCES.values() if info.needs_path)
        msg = f"--source {source!r} reads no file; expected one of {readers}."
        raise RegistryError(msg)
    return Guess(source, f"Read as --source {source} says.")


def entries_of_data(
    path: str | Path, source: str, members: Sequence[str], options: Mapping[str, Any]
) -> tuple[Entry, ...]:
    """The registries of a data file.

    Args:
        path: The data file.
        source: Key of `SOURCES`.
        members: Which of the registries in the file.
        options: The source's options.

    Raises:
        RegistryError: Members or options are unknown or exclude one another.
    """
    info = SOURCES[source]
    if "path" in options:
        msg = "path= was given as an option beside the file itself. Leave the option out."
        raise RegistryError(msg)
    given = {**options, "path": path_of(path).absolute()}
    chosen: object = list(members)
    if members and info.member != "line":
        choose = f"say -O {info.member}=... instead" if info.member else "leave --line out"
        msg = f"The source {source!r} knows no cell lines; {choose}."
        raise RegistryError(msg)
    plural = f"{info.member}s"
    if info.member is not None and plural in given:
        if members:
            msg = f"--line and the option {plural}= were both given; expected one of them."
            raise RegistryError(msg)
        chosen = given.pop(plural)
    if not chosen:
        return (make_entry(source, given),)
    if info.member in given:
        msg = f"{info.member}= was given beside several {plural}; expected one of them."
        raise RegistryError(msg)
    if chosen in (ALL, [ALL]):
        listed = info.list_members(**make_entry(source, given).options)
    else:
        listed = check_members(chosen, plural)
    return tuple(make_entry(source, {**given, str(info.member): member}) for member in listed)


def read_declared(
    path: str | Path, source: str | None, members: Sequence[str], options: Mapping[str, Any]
) -> RegistryFile:
    """The content of a registry file that is given where a data file may be.

    Args:
        path: The registry file.
        source: Must be None: the file says it.
        members: Must be empty, likewise.
        options: Must be empty, likewise.

    Raises:
        RegistryError: It does not exist, is not usable, or something was said beside it.
    """
    file = path_of(path)
    check_is_file(file, "a registry file")
    said = [*(["--source"] if source else []), *(["--line"] if members else [])]
    said += [f"-O {option}" for option in options]
    if said:
        msg = (
            f"{file} is a registry file, which says source, members and options itself; "
            f"{', '.join(said)} was given beside it. Leave that out, or say it in the file."
        )
        raise RegistryError(msg)
    written = read_mapping(file)
    data = next((x for s in TABLE_SUFFIXES if (x := file.with_suffix(s)).is_file()), None)
    if "source" not in written and not {"registries", "splits"} & set(written) and data:
        msg = f"{file} holds the options of the table beside it. Give that file itself: {data}."
        raise RegistryError(msg)
    return parse_registry_file(written, file)


def _of_file(
    path: str | Path, options: Mapping[str, Any], source: str | None, members: Sequence[str]
) -> tuple[Guess, dict[str, Any], tuple[Entry, ...]]:
    """What a registry file says, to be remembered: its content with absolute paths, its entries."""
    name = options["name"]
    said = {option: value for option, value in options.items() if option != "name"}
    file = read_declared(path, source, members, said)
    if file.source is None or "salt" in file.options:
        what = "lists registries" if file.source is None else "has a salt, which is a secret"
        msg = (
            f"{file.path} {what}, and cannot be remembered under a name. Give the file itself "
            f"wherever a registry is named, as in `cads run --panel {file.path}`."
        )
        raise RegistryError(msg)
    content: dict[str, Any] = {"source": file.source, **file.options}
    if SOURCES[file.source].needs_path:
        content["name"] = file.name or name
    content = {option: _plain(value) for option, value in content.items()}
    if file.members is not None:
        content[f"{SOURCES[file.source].member}s"] = _plain(file.members)
    if file.splits:
        content["splits"] = {split: list(names) for split, names in file.splits.items()}
    # Hashes that the file has recorded hold for its own name alone, and were checked by that name.
    for entry in entries_of_file(file) if file.hashes else ():
        entry.load_whole()
    # Read as it will be written, but errors name the file that the user knows.
    entries = entries_of_file(parse_registry_file(content, file.path))
    return Guess(file.source, f"{file.path} is a registry file."), content, entries


def _content(source: str, entries: Sequence[Entry], options: Mapping[str, Any]) -> dict[str, Any]:
    """A registry file that says the same as the entries."""
    first, chooser = entries[0], SOURCES[source].member
    content: dict[str, Any] = {"source": source, "name": options["name"]}
    for option, value in first.options.items():
        if option != chooser:
            content[option] = _plain(value)
    if chooser is not None:
        members = [entry.options[chooser] for entry in entries if chooser in entry.options]
        if len(entries) > 1:
            content[f"{chooser}s"] = members
        elif members:  # a file that holds one needs no choice
            content[chooser] = members[0]
    if first.subsample is not None:
        content |= {"subsample": first.subsample, "subsample_seed": first.subsample_seed}
    content |= first.words
    if first.keeps_excel_names:
        content["excel_names"] = KEEP
    return content


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value

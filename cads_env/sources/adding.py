"""Remember a registry under a name, and say all that is wrong with a file that cannot be one.

Both load the data once: what is remembered is known to be usable, and its hashes are written down
so that a changed file is noticed at every later load.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from cads_env.errors import CadsError, RegistryError
from cads_env.sources import SOURCES
from cads_env.sources.excel_names import KEEP
from cads_env.sources.layouts import recognise
from cads_env.sources.names import Entry, Pair, check_is_file, make_entry
from cads_env.sources.registry_files import ALL, FILE_SUFFIXES, HASHES, check_members, path_of
from cads_env.sources.remembered import check_free, write

TABLE: Final = "table"

_HITLESS: Final = "at least one hit and one null"

_OPTIONAL: Final = ("label", "module", "features", "dependency", "model", "compounds", "index")
"""Options without which a file may still be usable."""


class Guess(NamedTuple):
    """The source that a file is read by.

    Attributes:
        source: Its name.
        reason: Why, in a sentence.
        advice: What such a file wants declared; may be empty.
    """

    source: str
    reason: str
    advice: str = ""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a check of a file found.

    Attributes:
        guess: The source, and why it was taken.
        pair: The first registry and its oracle, or None when the file is not usable as declared.
        problems: What is wrong, each with what to do; empty when the file is usable.
    """

    guess: Guess
    pair: Pair | None
    problems: tuple[str, ...]


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
        return Guess(sources[0], reason, found[0].advice)
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
        path: The data file. Its absolute path is remembered; nothing of it is copied.
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
    guess = _chosen(path, source)
    entries = _entries(path, guess.source, members, options)
    pairs = [entry.load_whole() for entry in entries[:1]]
    hashes = [(pair[0].hash, pair[1].hash) for pair in pairs]
    for entry in entries[1:]:  # one at a time: a panel may be larger than memory
        public, private = entry.load_whole()
        hashes.append((public.hash, private.hash))
    pair = entries[0].load() if entries[0].subsample is not None else pairs[0]
    content = _content(guess.source, entries, options)
    chooser = SOURCES[guess.source].member
    for i, kind in enumerate(HASHES):
        content[kind] = (
            {entry.options[chooser]: h[i] for entry, h in zip(entries, hashes, strict=True)}
            if chooser is not None and len(entries) > 1
            else hashes[0][i]
        )
    file = write(name, content, replace=replace)
    return Added(file=file, guess=guess, names=tuple(e.name for e in entries), first=pair)


def check_file(
    path: str | Path,
    *,
    source: str | None = None,
    members: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
) -> Findings:
    """Load a file as declared; when that fails, find what else would have failed after it.

    After a failure the options that could be at fault are left out one by one; what then fails for
    another reason is a problem of its own.

    Args:
        path: The data file.
        source: The source that reads it, or None to tell it from the file's first lines.
        members: Which of the registries in the file.
        options: The source's options.
    """
    options = dict(options or {})
    problems: list[str] = []
    try:
        guess = _chosen(path, source)
    except RegistryError as error:
        return Findings(guess=Guess(TABLE, ""), pair=None, problems=(str(error),))

    def attempt(changed: Mapping[str, Any]) -> Pair | None:
        """The first pair; None after a failure, whose message is then among the problems."""
        try:
            first = None
            for entry in _entries(path, guess.source, members, changed):
                pair = entry.load()
                first = first or pair
        except CadsError as error:
            said = str(error)
            # How many hits a threshold of our own gives is nobody's problem.
            is_ours = bool(problems) and "threshold" not in options and _HITLESS in said
            # The same problem may come with other advice once an option is left out.
            known = [problem.partition(". ")[0] for problem in problems]
            if said.partition(". ")[0] not in known and not is_ours:
                problems.append(said)
            return None
        return first

    pair = attempt(options)
    changed = dict(options)
    easier = [] if pair is not None else _easier(guess.source, options, problems[0])
    for without in easier:
        before = len(problems)
        tried = {k: v for k, v in {**changed, **without}.items() if v is not ...}
        if attempt(tried) is not None:
            break
        if len(problems) > before:
            changed = tried
    return Findings(guess=guess, pair=pair, problems=tuple(problems))


def _easier(source: str, options: Mapping[str, Any], first: str) -> list[dict[str, Any]]:
    """Changes of the options, each of which takes one thing away that can fail; ... = left out."""
    changes: list[dict[str, Any]] = []
    has_effects = source != TABLE or {"direction", "threshold"} <= set(options)
    if source == TABLE and "direction=" in first:
        # Not declared yet: any will do to look at the rest of the file.
        changes.append({"direction": "lower", "threshold": 0.0, "label": None, **options})
        has_effects = True
    elif source == TABLE and "signal=" in first:
        changes.append({"signal": (1.0, -0.5), **options})
    if has_effects and "drop_missing" in SOURCES[source].options:
        changes.append({"drop_missing": True})
    changes.append({"excel_names": KEEP})
    changes.append({"prior": ..., "prior_direction": ...})
    changes += [{option: ...} for option in _OPTIONAL if option in options]
    return changes


def _chosen(path: str | Path, source: str | None) -> Guess:
    file = path_of(path)
    if file.suffix.lower() in FILE_SUFFIXES:
        msg = f"{file} is a registry file; expected the data file itself."
        raise RegistryError(msg)
    check_is_file(file, "a data file")
    if source is None:
        return guess_source(file)
    if source not in SOURCES or not SOURCES[source].needs_path:
        readers = ", ".join(info.name for info in SOURCES.values() if info.needs_path)
        msg = f"--source {source!r} reads no file; expected one of {readers}."
        raise RegistryError(msg)
    return Guess(source, f"Read as --source {source} says.")


def _entries(
    path: str | Path, source: str, members: Sequence[str], options: Mapping[str, Any]
) -> tuple[Entry, ...]:
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
    if first.keeps_excel_names:
        content["excel_names"] = KEEP
    return content


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value

"""What a registry's name, path and options mean, checked before anything is loaded.

Everything that a name, a path or an option can get wrong is refused here with the nearest thing
that exists. Never opens a table and never draws a number: that is a source's work.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from cads_env.errors import RegistryError, suggest
from cads_env.registry import Oracle, Registry, subsample
from cads_env.sources import SOURCES, SourceInfo
from cads_env.sources.another import suggesting_source
from cads_env.sources.blame import named, naming
from cads_env.sources.excel_names import KEEP, check_excel_names
from cads_env.sources.existing import TABLE_SUFFIXES, check_is_file, is_file_name, path_hint
from cads_env.sources.registry_files import (
    FILE_SUFFIXES,
    HASHES,
    RegistryFile,
    also_held_out,
    check_title,
    path_of,
    read_mapping,
    read_registry_file,
)
from cads_env.sources.remembered import find, remembered_names
from cads_env.sources.words import take_words, with_words

Pair = tuple[Registry, Oracle]

TABLE: Final = "table"


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
        keeps_excel_names: Whether names that a spreadsheet changed are taken as they stand.
        recorded: Hashes that the whole registry must have (`registry_hash`, `oracle_hash`).
        origin: The registry file that recorded them, or None.
        title: `label` without the member, the instance and the options that rename.
        words: `assay` and `high_means`, those that are given.
    """

    name: str
    source: str
    options: Mapping[str, Any]
    label: str
    subsample: int | None
    subsample_seed: int
    salt: bytes = field(repr=False)
    keeps_excel_names: bool = False
    recorded: Mapping[str, str] = field(default_factory=dict)
    origin: Path | None = None
    title: str = ""
    words: Mapping[str, str] = field(default_factory=dict)

    @property
    def told(self) -> dict[str, Any]:
        """Source and options as JSON values for a manifest: files by name alone, no secret."""
        plain = {
            option: value.name if isinstance(value, Path) else value
            for option, value in self.options.items()
            if value is not None
        }
        if SOURCES[self.source].needs_path:
            # The name keys the noise, and would else be that of the file.
            plain["name"] = self.title
        plain |= self.words
        if self.keeps_excel_names:
            plain["excel_names"] = KEEP
        if self.subsample is not None:
            plain |= {"subsample": self.subsample, "subsample_seed": self.subsample_seed}
        return {"source": self.source, "options": json.loads(json.dumps(plain, default=str))}

    def load(self) -> Pair:
        """The registry and its oracle."""
        pair = self.load_whole()
        if self.subsample is None:
            return pair
        with naming(self.origin):
            return subsample(*pair, self.subsample, self.subsample_seed)

    def load_whole(self) -> Pair:
        """The registry and its oracle before a subset is taken.

        Raises:
            RegistryError: The data are not usable, or are not those whose hashes were recorded.
        """
        info = SOURCES[self.source]
        with self._naming():
            public, private = info.load(name=self.label, salt=self.salt, **self.options)
            pair = with_words(public, self.words), private
            if not info.has_instances and not self.keeps_excel_names:
                check_excel_names(pair[0].identifiers, self.label)
        if not self.recorded:
            return pair
        for kind, is_now in zip(HASHES, (pair[0].hash, pair[1].hash), strict=True):
            said = self.recorded.get(kind, is_now)
            if said != is_now:
                msg = (
                    f"{self.label!r} is not what it was when {self.origin} was written: its "
                    f"{kind} is {is_now[:12]}..., recorded is {said[:12]}.... "
                    f"{_mend_hash(self)}"
                )
                raise RegistryError(msg)
        return pair

    def problems(self) -> tuple[str, ...]:
        """Everything that is wrong with the data as declared, where the source can tell at once.

        Returns:
            One message a problem, the first that of `load_whole`; empty also for a source that only
            raises its first problem when it loads.
        """
        info = SOURCES[self.source]
        if not info.problems:
            return ()
        said = info.list_problems(
            name=self.label,
            salt=self.salt,
            keeps_excel_names=self.keeps_excel_names,
            **self.options,
        )
        path = self.options.get("path")
        return tuple(named(named(problem, path), self.origin) for problem in said)

    @contextlib.contextmanager
    def _naming(self) -> Iterator[None]:
        """Errors within name the file, and say so when it seems to be another source's."""
        path = self.options.get("path")
        is_table = self.source == TABLE and path is not None
        with suggesting_source(path if is_table else None, self.options):
            with naming(self.origin), naming(path):
                yield


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
    file = registry_file(name_or_path)
    if file is not None:
        return _only_entry(file, options)
    if isinstance(name_or_path, Path) or is_file_name(name_or_path):
        return _resolve_table(path_of(name_or_path), options)
    name = name_or_path
    source, slash, number = name.partition("/")
    if source not in SOURCES:
        head, colon, _ = name.rpartition(":")
        if colon and (head in SOURCES or registry_file(head) is not None):
            msg = f"{name!r} names a panel, not one registry; use load_panel({name!r})."
            raise RegistryError(msg)
        msg = f"Unknown registry {name!r}. {suggest_source(source)} {path_hint(name)}"
        raise RegistryError(msg)
    if not slash:
        return make_entry(source, options)
    if not SOURCES[source].has_instances:
        member = SOURCES[source].member
        use = f"Use {source!r}" + (f" with {member}={number or '...'}." if member else ".")
        msg = f"{source!r} has no numbered instances; received {name!r}. {use}"
        raise RegistryError(msg)
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        msg = f"{name!r} is no instance of {source!r}; expected a number, such as '{source}/17'."
        raise RegistryError(msg)
    if options.get("instance", int(number)) != int(number):
        msg = f"{name!r} and instance={options['instance']!r} disagree; leave one of them out."
        raise RegistryError(msg)
    return make_entry(source, {**options, "instance": int(number)})


def registry_file(name_or_path: str | Path) -> RegistryFile | None:
    """The registry file that a path or a remembered name means; None when it means another thing.

    Args:
        name_or_path: A name or a path.

    Raises:
        RegistryError: The file does not exist or is not usable.
    """
    if str(name_or_path).lower().endswith(FILE_SUFFIXES):
        path = path_of(name_or_path)
        check_is_file(path, "a registry file")
        return read_registry_file(path)
    remembered = find(name_or_path) if isinstance(name_or_path, str) else None
    return None if remembered is None else read_registry_file(remembered)


def entry_of(file: RegistryFile, options: Mapping[str, Any], member: str | None = None) -> Entry:
    """The entry of a registry file of one source.

    Args:
        file: Its content.
        options: Options of the caller; they win.
        member: The member that is meant, or None when the options say.

    Raises:
        RegistryError: As for `make_entry`.
    """
    source = str(file.source)
    merged = {**file.options, **options}
    chooser = SOURCES[source].member
    if chooser is not None and member is not None:
        merged[chooser] = member
    if file.splits and "held_out" in SOURCES[source].options:
        # A column made of other members would carry what is reported on into what is learnt on.
        reported = [x for split in ("dev", "eval") for x in file.splits.get(split, ())]
        merged["held_out"] = also_held_out(merged.get("held_out", ()), reported)
    with naming(file.path):
        entry = make_entry(source, merged, origin=file.path)
    # Under other options it is another registry, of which nothing is recorded.
    is_same = set(options) <= {"subsample", "subsample_seed", chooser}
    recorded = file.recorded(merged.get(chooser)) if is_same and chooser else file.recorded(None)
    return replace(entry, recorded=recorded if is_same else {}, origin=file.path)


def _only_entry(file: RegistryFile, options: Mapping[str, Any]) -> Entry:
    """The entry of a registry file that is to name one registry."""
    chooser = SOURCES[file.source].member if file.source is not None else None
    if file.is_panel and (chooser is None or chooser not in options):
        choose = f", or say {chooser}=... for one of them" if chooser is not None else ""
        msg = f"{file.path} names a panel, not one registry; use load_panel{choose}."
        raise RegistryError(msg)
    return entry_of(file, options)


def _resolve_table(path: Path, options: Mapping[str, Any]) -> Entry:
    """The entry of a table's path."""
    if path.suffix.lower() not in TABLE_SUFFIXES:
        msg = f"{path} is no registry. {path_hint(str(path))}"
        raise RegistryError(msg)
    if "path" in options:
        msg = (
            f"path={str(options['path'])!r} was given beside the table {path}. Leave one of them "
            "out."
        )
        raise RegistryError(msg)
    check_is_file(path, "a table or a registry file")
    with suggesting_source(path, options):
        return make_entry(TABLE, {**options, "path": path})


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
    if source == "table" and origin is None and own.get("path") is not None:
        own = {**_options_beside(path_of(own["path"]).absolute()), **own}
    _check_names(info, own, origin)
    own = _with_files(info, own, origin)
    names_kept = own.pop("excel_names", None)
    if names_kept not in (None, KEEP):
        msg = f"excel_names={names_kept!r} is not usable; expected {KEEP!r}."
        raise RegistryError(msg)
    size, seed = own.pop("subsample", None), own.pop("subsample_seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int):
        msg = f"subsample_seed={seed!r} is not usable; expected a whole number."
        raise RegistryError(msg)
    words = take_words(own)
    salt = own.pop("salt", b"")
    if not isinstance(salt, str | bytes):
        msg = f"salt is of type {type(salt).__name__}; expected bytes or str."
        raise RegistryError(msg)
    label = own.pop("name", Path(own["path"]).stem if info.needs_path else info.name)
    check_title(label)
    title = label
    if info.member is not None and own.get(info.member) is not None:
        label = f"{label}/{own[info.member]}"
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
    keeps = names_kept == KEEP
    return Entry(name, source, own, label, size, seed, raw, keeps, title=title, words=words)


def varied(entry: Entry, options: Mapping[str, Any]) -> Entry:
    """An entry under other options of its source, all else as it is.

    Args:
        entry: As `make_entry` returns it.
        options: The source's own options; None stands for the default.

    Raises:
        RegistryError: The source has no such option.
    """
    own = {key: value for key, value in {**entry.options, **options}.items() if value is not None}
    common: dict[str, Any] = dict(entry.words)
    if entry.salt:
        common["salt"] = entry.salt
    if entry.subsample is not None:
        common |= {"subsample": entry.subsample, "subsample_seed": entry.subsample_seed}
    return make_entry(entry.source, {**own, **common}, entry.origin)


def _with_files(info: SourceInfo, options: dict[str, Any], origin: Path | None) -> dict[str, Any]:
    """The options with absolute paths of files that exist."""
    if info.needs_path and options.get("path") is None:
        also = "; or give the path of the table itself" if info.name == "table" else ""
        msg = f"The source {info.name!r} needs path=...{also}."
        raise RegistryError(msg)
    for option in info.paths:
        if options.get(option) is not None:
            path = path_of(options[option], option).absolute()
            named = f" ({option}={f' in {origin}' if origin is not None else ''})"
            check_is_file(path, "a table" if option == "path" else "a file", named)
            options[option] = path
    return options


def _options_beside(path: Path) -> dict[str, Any]:
    """The options of a table that the registry file beside it declares."""
    sidecar = next((f for s in FILE_SUFFIXES if (f := path.with_suffix(s)).is_file()), None)
    if sidecar is None:
        return {}
    written = read_mapping(sidecar)
    source = written.pop("source", "table")
    if source != "table":
        msg = (
            f"{sidecar} lies beside {path.name} but is for another source, {source!r}; load "
            f"{sidecar} itself, or rename it."
        )
        raise RegistryError(msg)
    # A registry file may lie beside its own table.
    meant = sidecar.parent / path_of(written.pop("path", path))
    if meant.resolve() != path.resolve():
        msg = f"{sidecar} lies beside {path.name} but is for {meant}. Rename one of the two."
        raise RegistryError(msg)
    _check_names(SOURCES["table"], written, sidecar)
    return written


def _check_names(info: SourceInfo, options: Mapping[str, Any], origin: Path | None) -> None:
    if info.member is not None and f"{info.member}s" in options:
        msg = (
            f"{info.member}s= means a panel, not one registry: use load_panel, or {info.member}= "
            "for one."
        )
        raise RegistryError(msg)
    for option in options:
        check_option(info, option, origin)


def check_option(info: SourceInfo, option: str, origin: Path | None = None) -> None:
    """Raise unless a source has an option; the plural of its member, which makes a panel, is one.

    Args:
        info: The source.
        option: What was received.
        origin: The registry file that it comes from, or None.

    Raises:
        RegistryError: There is no such option.
    """
    known = (*info.options, *info.common_options)
    if option in known or (info.member is not None and option == f"{info.member}s"):
        return
    where = f" (in {origin})" if origin is not None else ""
    near = suggest(str(option), known)
    listing = f" Available: {', '.join(known)}." if near.startswith("Did") else ""
    msg = f"Source {info.name!r} has no option {option!r}{where}. {near}{listing}"
    raise RegistryError(msg)


def suggest_source(word: str) -> str:
    """The sentence that names the nearest source and lists all."""
    near = suggest(word, (*SOURCES, *remembered_names()))
    if near.startswith("Available"):
        return near
    return f"{near} Available: {', '.join((*SOURCES, *remembered_names()))}."


def _mend_hash(entry: Entry) -> str:
    """What to do when the data are not those whose hashes were recorded."""
    if entry.origin is not None and find(entry.origin.stem) == entry.origin:
        return (
            f"Put the file back as it was, or run `cads registry add {entry.options.get('path')} "
            f"--name {entry.origin.stem}` with the options of before and --replace."
        )
    return f"Put the data back as they were, or take the hashes out of {entry.origin}."

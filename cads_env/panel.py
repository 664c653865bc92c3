"""One registry by name or path, or a panel: an ordered, named list of them.

A panel loads its registries when they are asked for and holds a few. Knows no protocol and no
agent, and never looks into an oracle.
"""

from __future__ import annotations

import operator
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from cads_env.errors import RegistryError
from cads_env.registry import Oracle, Registry
from cads_env.sources import SOURCES
from cads_env.sources.names import Entry, Pair, resolve, varied
from cads_env.sources.panels import Expansion, expand

HELD_PAIRS: Final = 8
"""Registries that a panel keeps loaded: 8 of 18,159 candidates are about 10 MB."""

_NAMES_SHOWN: Final = 4


def load_registry(name_or_path: str | Path, **options: Any) -> Pair:
    """One registry and its private oracle.

    Args:
        name_or_path: A source (`depmap-26q1-mean`), an instance of one (`synthetic-depmap/17`; no
            number means instance 0), a remembered registry (see `cads registry add`), a table
            (ending in .csv, .tsv, .txt or .parquet), or a registry file (ending in .yaml or .yml)
            with the key `source` and the source's options. Paths in a registry file are relative to
            it. Options of a table `screen.csv` are also read from `screen.yaml` beside it.
        **options: The source's options; they win over those of a file. Every source takes
            `subsample` (candidates to keep, at random), `subsample_seed` (0), `salt` (secret of
            a private panel, bytes or str), `assay` (how a candidate is measured) and `high_means`
            (what it means that one reads high), words for proposers, and `excel_names="keep"` (take
            names such as `1-Mar`, which a spreadsheet made of a gene's, as they stand).

    Raises:
        RegistryError: The name, the path or an option is unknown, or the data is not usable.
        MissingExtraError: The source needs an optional package.
    """
    return resolve(name_or_path, options).load()


def load_panel(name_or_names: str | Path | Sequence[str | Path], **options: Any) -> Panel:
    """An ordered list of registries.

    Args:
        name_or_names: A split (`synthetic-depmap:train`, `:dev` or `:eval`), whatever
            `load_registry` takes (a panel of one), a panel file, one of its splits
            (`lines.yaml:eval`), or several of these in order. A panel file is a registry file with
            several members (`source: depmap`, `path`, and `lines`, a list or `all`), or with a list
            of names, paths and mappings under `registries`; either may have `splits` in place of
            the list, lists by `train`, `dev` and `eval`, and a `name`.
        **options: As for `load_registry`, for every registry of the panel; a source whose file
            holds many takes several at once, as in
            `load_panel("depmap", path="CRISPRGeneEffect.csv", lines=["ACH-000446", "ACH-000622"])`.

    Raises:
        RegistryError: As for `load_registry`; also when the panel is empty or repeats a name.
        MissingExtraError: A source needs an optional package.
    """
    if not isinstance(name_or_names, str | Path | Sequence):
        msg = f"Received {name_or_names!r}; expected a name, a path, or a list of these."
        raise RegistryError(msg)
    wanted = [name_or_names] if isinstance(name_or_names, str | Path) else list(name_or_names)
    expansions = [expand(item, options) for item in wanted]
    entries = [entry for expansion in expansions for entry in expansion.entries]
    if not entries:
        msg = "A panel needs at least one registry; received an empty list of names."
        raise RegistryError(msg)
    names = [entry.name for entry in entries]
    if len(set(names)) != len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        msg = (
            f"The panel repeats registry names: {', '.join(map(repr, repeated[:_NAMES_SHOWN]))}. "
            f"Leave the doubles out{f' of {wanted[0]}' if len(wanted) == 1 else ''}; tables of one "
            "file name need a `name:` each in the .yaml file beside them."
        )
        raise RegistryError(msg)
    panel = Panel(_panel_name(wanted, expansions), tuple(entries))
    # Files are read once now: a faulty one should stop a run before its first read.
    for i, entry in enumerate(entries):
        if i == 0 or not SOURCES[entry.source].has_instances:
            panel[i]
    return panel


class _Loaded(NamedTuple):
    """An entry whose registry is loaded already."""

    name: str
    pair: Pair

    def load(self) -> Pair:
        """The pair."""
        return self.pair


class Panel:
    """An ordered, named list of registries, loaded when asked for.

    Pickles as names and options alone: a copy in another process loads what it needs.
    """

    __slots__ = ("_entries", "_held", "_lock", "_name")

    def __init__(self, name: str, entries: tuple[Entry | _Loaded, ...]) -> None:
        """A panel; `load_panel` makes one from names and paths."""
        self._name = name
        self._entries = entries
        self._held: OrderedDict[int, Pair] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def of(cls, pairs: Sequence[Pair], *, name: str) -> Panel:
        """A panel of registries that are loaded already.

        Args:
            pairs: Registries with their oracles, at least one.
            name: What tables and messages call the panel.

        Raises:
            RegistryError: No pair was given.
        """
        if not pairs:
            msg = "A panel needs at least one registry; received no pairs."
            raise RegistryError(msg)
        return cls(
            name, tuple(_Loaded(registry.name, (registry, oracle)) for registry, oracle in pairs)
        )

    @classmethod
    def resolve(cls, registry: object) -> Panel:
        """The panel that an argument called `registry` means.

        Args:
            registry: A panel, a (registry, oracle) pair, or whatever `load_panel` takes.

        Raises:
            RegistryError: It means no panel.
        """
        if isinstance(registry, Panel):
            return registry
        if isinstance(registry, Registry | Oracle):
            msg = (
                f"Received {type(registry).__name__} alone; pass the pair (registry, oracle) that "
                "load_registry returns."
            )
            raise RegistryError(msg)
        if isinstance(registry, tuple) and len(registry) == 2:
            public, private = registry
            if isinstance(public, Registry) and isinstance(private, Oracle):
                return cls.of([(public, private)], name=public.name)
        if not isinstance(registry, str | Path | Sequence):
            msg = f"Received {registry!r}; expected a registry's name or path, a pair or a panel."
            raise RegistryError(msg)
        return load_panel(registry)

    def check_common_size(self) -> None:
        """Raise unless the registries have one size; one instance is drawn of each synthetic kind.

        Raises:
            RegistryError: Names two registries that differ.
        """
        first = self[0][0]
        seen: set[tuple[object, ...]] = set()
        for i, entry in enumerate(self._entries):
            if isinstance(entry, Entry) and SOURCES[entry.source].has_instances:
                # Instances of one source under the same options have one size: one tells of all.
                kind = (entry.source, entry.options.get("m"), entry.subsample)
                if kind in seen:
                    continue
                seen.add(kind)
            other = self[i][0]
            if other.m != first.m:
                msg = (
                    f"Panel {self.name!r} holds registries of different sizes: {first.name!r} has "
                    f"{first.m} candidates, {other.name!r} {other.m}. An environment needs one "
                    "size; unequal ones run in cads_env.evaluate and `cads run`."
                )
                raise RegistryError(msg)

    @property
    def name(self) -> str:
        """What tables and messages call the panel."""
        return self._name

    @property
    def names(self) -> tuple[str, ...]:
        """The registries' names, in order."""
        return tuple(entry.name for entry in self._entries)

    def told(self, i: int) -> dict[str, Any]:
        """Source and options of registry i for a manifest; empty for one that was handed in."""
        entry = self._entries[i]
        return entry.told if isinstance(entry, Entry) else {}

    def varied(self, **options: Any) -> Panel:
        """The same registries under other options of their source.

        Args:
            **options: Options that every registry's source has, such as `structure=0.2`.

        Raises:
            RegistryError: A registry was handed in, or its source has no such option.
        """
        entries = []
        for entry in self._entries:
            if not isinstance(entry, Entry):
                msg = (
                    f"Registry {entry.name!r} was handed in ready made, so {', '.join(options)} "
                    "cannot be changed; load it by name."
                )
                raise RegistryError(msg)
            entries.append(varied(entry, options))
        return Panel(self._name, tuple(entries))

    def split(self, name: str) -> Panel:
        """Another split of the panel's source, under the options of its first registry.

        Args:
            name: Of a split, such as `eval`.

        Raises:
            RegistryError: The first registry was handed in, or its source has no such split.
        """
        first = self._entries[0]
        splits = SOURCES[first.source].splits if isinstance(first, Entry) else {}
        if not isinstance(first, Entry) or name not in splits:
            has = f"splits {', '.join(splits)}" if splits else "no splits"
            msg = f"The source of {self._name!r} has {has}; received {name!r}."
            raise RegistryError(msg)
        entries = tuple(varied(first, {"instance": i}) for i in splits[name])
        return Panel(f"{first.source}:{name}", entries)

    def only(self, i: int) -> Panel:
        """A panel of registry i alone."""
        return Panel(self.names[i], (self._entries[i],))

    @property
    def untold(self) -> tuple[int, ...]:
        """Positions of the registries whose content their name does not tell.

        Those that files give, those handed in, and private ones: a salt is no part of a name.
        """
        return tuple(
            i
            for i, entry in enumerate(self._entries)
            if not isinstance(entry, Entry) or entry.salt or not SOURCES[entry.source].has_instances
        )

    @property
    def m(self) -> int:
        """Number of candidates of the panel's first registry."""
        return self[0][0].m

    def for_seed(self, seed: int) -> Pair:
        """The registry that campaign `seed` plays: `panel[seed % len(panel)]`."""
        return self[operator.index(seed) % len(self)]

    def __len__(self) -> int:
        """Number of registries."""
        return len(self._entries)

    def __iter__(self) -> Iterator[Pair]:
        """The pairs in order, loaded one at a time."""
        return (self[i] for i in range(len(self)))

    def __getitem__(self, i: int) -> Pair:
        """Registry i and its oracle.

        Raises:
            IndexError: i is negative or not below the panel's length.
        """
        i = operator.index(i)
        if not 0 <= i < len(self):
            msg = f"Panel {self.name!r} has registries 0 to {len(self) - 1}; received {i}."
            raise IndexError(msg)
        with self._lock:
            if i in self._held:
                self._held.move_to_end(i)
                return self._held[i]
        pair = self._entries[i].load()
        with self._lock:
            self._held[i] = pair
            if len(self._held) > HELD_PAIRS:
                self._held.popitem(last=False)
        return pair

    def __repr__(self) -> str:
        """Name and length."""
        return f"Panel({self.name!r}, {len(self)} registries)"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the registries that happen to be loaded."""
        return (Panel, (self._name, self._entries))


def _panel_name(wanted: Sequence[str | Path], expansions: Sequence[Expansion]) -> str:
    if len(expansions) == 1:
        return expansions[0].title
    names = [str(item) if isinstance(item, str) else item.stem for item in wanted]
    if len(names) <= _NAMES_SHOWN:
        return ", ".join(names)
    count = sum(len(expansion.entries) for expansion in expansions)
    return f"{names[0]}, ..., {names[-1]} ({count} registries)"

"""The registries of a run as words of a command line, or as a panel file.

Reads names and told options in the manifest; loads no registry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final, NamedTuple

from cads_env.report.repeat_agents import typed
from cads_env.report.wording import listed, visible
from cads_env.sources import SOURCES, SourceInfo
from cads_env.values import dump_yaml

PANEL_FILE: Final = "panel.yaml"
SALT: Final = "SALT"
"""Stands for a secret that no manifest holds."""


class PanelWords(NamedTuple):
    """How a panel is named.

    Attributes:
        words: Options of `cads run`.
        file: Text of the panel file that they name; empty for none.
        notes: What neither says.
    """

    words: tuple[str, ...]
    file: str = ""
    notes: tuple[str, ...] = ()


class _Told(NamedTuple):
    """What a manifest tells of one registry of the panel; no source where it tells nothing."""

    name: str
    source: str
    options: Mapping[str, Any]


def panel_words(
    entries: Sequence[Mapping[str, Any]], config: Mapping[str, Any], panel: str
) -> PanelWords:
    """The panel as a command line names it.

    Args:
        entries: `registries` of a manifest: those that were played.
        config: Its `config`, whose `registries` names the whole panel in order.
        panel: The panel's name, used where no registry is named.
    """
    names = [str(name) for name in config.get("registries", [])] or [panel]
    told = _complete([_told(entry) for entry in entries], names)
    if not any(one.source for one in told):
        words = tuple(word for name in names for word in ("--registry", name))
        text = "The registries were handed over in Python: the manifest does not tell their source."
        return PanelWords(words, notes=(text,))
    found = _one_source(told) if all(one.source for one in told) else None
    if found is not None:
        return found
    unknown = [visible(one.name) for one in told if not one.source]
    notes: tuple[str, ...] = ()
    if unknown:
        notes = (
            f"The manifest does not tell where {listed(unknown)} came from (never played, or "
            f"handed over in Python): put them into {PANEL_FILE} yourself.",
        )
    return PanelWords(("--panel", PANEL_FILE), _panel_file(told), notes)


def _told(entry: Mapping[str, Any]) -> _Told:
    source = str(entry.get("source") or "")
    options = entry.get("options")
    known = source in SOURCES and isinstance(options, Mapping)
    name = str(entry.get("name"))
    if not known:
        return _Told(name, "", {})
    own = {str(key): value for key, value in (options or {}).items()}
    if "+salted" in name:
        own["salt"] = SALT
    return _Told(name, source, own)


def _complete(played: Sequence[_Told], names: Sequence[str]) -> list[_Told]:
    """What is told of every registry of the panel, in order.

    Registries that were not played have no entry; where they are members or instances beside ones
    that were, their names tell the rest.
    """
    by_name = {one.name: one for one in played}
    first = next((one for one in played if one.source), None)
    return [by_name.get(name) or _like(first, name) for name in names]


def _like(one: _Told | None, name: str) -> _Told:
    """A registry of the same file or generator as another, by its name alone."""
    unknown = _Told(name, "", {})
    chooser = _chooser(one)
    if one is None or chooser is None:
        return unknown
    head = f"{one.options.get('name', one.source)}/"
    mine = f"{head}{one.options.get(chooser)}"
    tail = one.name[len(mine) :]
    member = name[len(head) : len(name) - len(tail)]
    if not (one.name.startswith(mine) and name == f"{head}{member}{tail}" and member):
        return unknown
    value: object = int(member) if chooser == "instance" and member.isdecimal() else member
    return _Told(name, one.source, {**one.options, chooser: value})


def _chooser(one: _Told | None) -> str | None:
    """The option that chooses one registry of many of its source."""
    if one is None or not one.source:
        return None
    info = SOURCES[one.source]
    return "instance" if info.has_instances else info.member


def _one_source(told: Sequence[_Told]) -> PanelWords | None:
    """Registries of one source under the same options; None where they are not."""
    first = told[0]
    info = SOURCES[first.source]
    chooser = _chooser(first)
    apart = {chooser} if chooser else {"path", "name"} if info.name == "table" else set()
    shared = [{k: v for k, v in one.options.items() if k not in apart} for one in told]
    if any(one.source != first.source for one in told) or any(o != shared[0] for o in shared):
        return None
    if info.name == "table":
        return _tables(told, shared[0])
    options = shared[0]
    if info.has_instances:
        return PanelWords((*_instances(info, told), *_options(options)))
    members = [one.options.get(str(chooser)) for one in told] if chooser else [None]
    if len(told) > 1 and None in members:
        return None
    if len(members) == 1 and members[0] is not None:
        options = {**options, str(chooser): members[0]}
    elif len(members) > 1:
        options = {**options, f"{chooser}s": members}
    return PanelWords(("--registry", info.name, *_options(options)))


def _tables(told: Sequence[_Told], shared: Mapping[str, Any]) -> PanelWords | None:
    paths = [str(one.options.get("path", "FILE")) for one in told]
    options = dict(shared)
    if len(told) == 1 and "name" in told[0].options:
        options["name"] = told[0].options["name"]
    elif any(
        one.options.get("name") != PurePath(p).stem for one, p in zip(told, paths, strict=True)
    ):
        return None
    words = tuple(word for path in paths for word in ("--registry", path))
    return PanelWords((*words, *_options(options)))


def _instances(info: SourceInfo, told: Sequence[_Told]) -> tuple[str, ...]:
    numbers = [one.options.get("instance", 0) for one in told]
    for split, members in info.splits.items():
        if list(members) == numbers:
            return ("--panel", f"{info.name}:{split}")
    return tuple(word for n in numbers for word in ("--registry", f"{info.name}/{n}"))


def _options(options: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(word for k, v in options.items() for word in ("-O", f"{k}={typed(v)}"))


def _panel_file(told: Sequence[_Told]) -> str:
    registries: list[Any] = [
        {"source": one.source, **one.options} if one.source else one.name for one in told
    ]
    return dump_yaml({"registries": registries})

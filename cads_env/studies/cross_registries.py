"""Which registries the study of other screens plays: those shipped, and a user's own files.

Every cell names its registry by JSON values. A registry that cannot be loaded here because a
package is missing becomes an absent cell; a file that is not usable is an error. Plays nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from cads_env.errors import MissingExtraError, StudyError
from cads_env.sources import SOURCES
from cads_env.sources.existing import check_is_file
from cads_env.studies.registries import registry_of
from cads_env.studies.study import Config

USER_LINE: Final = "your "
"""How the cells of a user's own DepMap file begin; the line follows."""

_SUBSET: Final = " #"


class Named(NamedTuple):
    """A registry that is to be played.

    Attributes:
        title: What its cell is called.
        registry: Its name, or a mapping with `registry` and options, as `registry_of` takes it.
        absent: Why it cannot be loaded here; "" when it can.
    """

    title: str
    registry: Any
    absent: str = ""


def named_registries(config: Config) -> list[Named]:
    """All registries of the study, larger ones as the subsets that stand in for them.

    Raises:
        StudyError: A setting is not usable.
        RegistryError: A registry or a file is not usable.
    """
    subsets = config["subsample"], config["subsample_seeds"]
    found = [x for one in config["registries"] for x in _shipped(one, *subsets)]
    found += [x for one in _lines(config) for x in _subsets(one, *subsets)]
    found += [x for one in _registries(config) for x in _subsets(one, *subsets)]
    titles = [one.title for one in found]
    for title in titles:
        if titles.count(title) > 1:
            msg = f"Two registries of the study are called {title!r}; leave one of them out."
            raise StudyError(msg)
    return found


def title_of(cell: str) -> str:
    """The title of a cell's registry, without the number of its subset."""
    return cell.partition(_SUBSET)[0]


def is_subset(cell: str) -> bool:
    """Whether a cell plays a random subset."""
    return _SUBSET in cell


def _shipped(one: Mapping[str, str], size: int, seeds: list[int]) -> list[Named]:
    """A registry of the config; only those of a package need to be looked at."""
    title, registry = one["title"], one["registry"]
    info = SOURCES.get(registry)
    if info is None or info.extra is None:
        return [Named(title, registry)]
    try:
        return _subsets(Named(title, registry), size, seeds)
    except MissingExtraError as error:
        return [Named(title, registry, str(error))]


def _lines(config: Config) -> Iterator[Named]:
    """The lines of a user's own DepMap file."""
    path, lines = config["depmap"], config["lines"]
    if path is None:
        for option in ("dependency", "lines"):
            if config[option] is not None:
                msg = f"{option}={config[option]!r} was given without depmap=, the effects' file."
                raise StudyError(msg)
        return
    if lines is None:
        published = [row["line"] for row in config["published"]["rows"] if "line" in row]
        in_file = _members(path)
        lines = [line for line in published if line in in_file]
        if not lines:
            msg = (
                f"{path} has none of the published lines {', '.join(published)}; name others of "
                f"it: --line {in_file[0]}, or lines= in Python."
            )
            raise StudyError(msg)
    more = {} if config["dependency"] is None else {"dependency": config["dependency"]}
    for line in [lines] if isinstance(lines, str) else lines:
        registry = {"registry": "depmap", "path": path, "line": line, **more}
        yield Named(f"{USER_LINE}{line}", registry)


def _members(path: str) -> tuple[str, ...]:
    """The lines of a DepMap file."""
    check_is_file(Path(path), "your CRISPRGeneEffect.csv", " (depmap=)")
    return SOURCES["depmap"].list_members(path=Path(path))


def _registries(config: Config) -> Iterator[Named]:
    """A user's other registries."""
    names, options = config["registry"], config["options"] or {}
    if names is None:
        if options:
            msg = f"Options {options} were given without registry=, the registry that they are of."
            raise StudyError(msg)
        return
    for name in [names] if isinstance(names, str) else names:
        title = Path(name).stem if Path(name).suffix else name
        yield Named(title, {"registry": name, **options} if options else name)


def _subsets(one: Named, size: int, seeds: list[int]) -> list[Named]:
    """The registry itself, or subsets of it where it has more candidates than `size`."""
    if registry_of(one.registry)[0].m <= size:
        return [one]
    named = one.registry if isinstance(one.registry, Mapping) else {"registry": one.registry}
    return [
        Named(
            f"{one.title}{_SUBSET}{seed}",
            {**named, "subsample": size, "subsample_seed": seed},
        )
        for seed in seeds
    ]

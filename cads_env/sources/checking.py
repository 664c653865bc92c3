"""Say everything that is wrong with a file that is to be a registry.

Never stops at the first problem: a source lists its problems, or the options that could be at fault
are left out one by one. Remembers nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cads_env.errors import CadsError, HitlessError, RegistryError
from cads_env.sources import COMMON_OPTIONS, SOURCES
from cads_env.sources.adding import (
    Guess,
    choose_source,
    entries_of_data,
    is_registry_file,
    read_declared,
)
from cads_env.sources.excel_names import KEEP
from cads_env.sources.names import TABLE, Entry, Pair, check_option
from cads_env.sources.panels import entries_of_file
from cads_env.sources.problems import Problems

_OPTIONAL: Final = ("dependency", "model", "compounds", "index")
"""Options without which a file may still be usable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a check of a file found.

    Attributes:
        guess: The source, and why it was taken.
        pair: The first registry and its oracle, or None when the file is not usable as declared.
        problems: What is wrong, each with what to do; empty when the file is usable.
        advice: What such a file wants declared and no problem mentions; may be empty.
    """

    guess: Guess
    pair: Pair | None
    problems: tuple[str, ...]
    advice: str = ""


def check_file(
    path: str | Path,
    *,
    source: str | None = None,
    members: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
) -> Findings:
    """Load a file as declared; when that fails, find all that is wrong with it.

    Args:
        path: The data file, or a registry file.
        source: The source that reads it, or None to tell it from the file's first lines.
        members: Which of the registries in the file.
        options: The source's options.
    """
    options = dict(options or {})
    problems = Problems(are_gathered=True)
    if is_registry_file(path):
        return _check_registry_file(path, source, members, options)
    try:
        guess = choose_source(path, source)
    except RegistryError as error:
        return Findings(guess=Guess(TABLE, ""), pair=None, problems=(str(error),))
    info = SOURCES[guess.source]
    usable: dict[str, Any] = {}
    for option, value in options.items():
        with problems.gathered():
            check_option(info, option)
            usable[option] = value
    pair = None
    if info.problems:
        entries = _entries(path, guess.source, members, usable, problems)
        pair = _load_all(entries, problems)
    else:
        pair = _leave_out(path, guess.source, members, usable, problems)
    given = [*options, *(["line"] if members else [])]
    return Findings(
        guess=guess,
        pair=None if problems.found else pair,
        problems=tuple(problems.found),
        advice=_advice(guess, given, problems.found),
    )


def _check_registry_file(
    path: str | Path, source: str | None, members: Sequence[str], options: Mapping[str, Any]
) -> Findings:
    problems = Problems(are_gathered=True)
    guess = Guess(TABLE, "")
    pair = None
    with problems.gathered():
        file = read_declared(path, source, members, options)
        guess = Guess(file.source or "several", f"{file.path} is a registry file.")
        pair = _load_all(entries_of_file(file), problems)
    return Findings(guess=guess, pair=pair, problems=tuple(problems.found))


def _entries(
    path: str | Path,
    source: str,
    members: Sequence[str],
    options: Mapping[str, Any],
    problems: Problems,
) -> tuple[Entry, ...]:
    with problems.gathered():
        return entries_of_data(path, source, members, options)
    # The rest of the file can be looked at without the options that every source has.
    rest = {k: v for k, v in options.items() if k not in (*COMMON_OPTIONS, "name")}
    with problems.gathered():
        return entries_of_data(path, source, members, rest)
    return ()


def _load_all(entries: Sequence[Entry], problems: Problems) -> Pair | None:
    """The first pair; None when one of the entries has a problem."""
    first: Pair | None = None
    for entry in entries:
        before = len(problems.found)
        with problems.gathered():
            for problem in entry.problems():
                problems.add(problem)
            if len(problems.found) == before:
                pair = entry.load()
                first = first or pair
    return None if problems.found else first


def _leave_out(
    path: str | Path,
    source: str,
    members: Sequence[str],
    options: Mapping[str, Any],
    problems: Problems,
) -> Pair | None:
    """The first pair as declared; after a failure, what else fails under easier options.

    What fails for another reason once something is left out or assumed is a problem of its own.
    """

    def attempt(tried: Mapping[str, Any], *, is_declared: bool) -> Pair | None:
        """The first pair; None after a failure, whose message is then among the problems."""
        first = None
        before = problems.count
        try:
            with problems.listening():
                for entry in entries_of_data(path, source, members, tried):
                    pair = entry.load()
                    first = first or pair
        except CadsError as error:
            # How many hits options that nobody declared would give, or rows that are to be mended,
            # is nobody's problem.
            is_theirs = is_declared and problems.count == before
            if is_theirs or not isinstance(error, HitlessError):
                said = str(error)
                # The same problem may come with other advice once an option is left out.
                known = [problem.partition(". ")[0] for problem in problems.found]
                if said.partition(". ")[0] not in known:
                    problems.add(said)
            return None
        return first

    pair = attempt(options, is_declared=True)
    if pair is not None:
        return pair if not problems.found else None
    changed = dict(options)
    for change in _easier(path, source, members, options):
        before = len(problems.found)
        tried = {k: v for k, v in {**changed, **change}.items() if v is not ...}
        is_declared = {*tried} ^ {*options} <= {"excel_names"}
        if attempt(tried, is_declared=is_declared) is not None:
            break
        if len(problems.found) > before:
            changed = tried
    return None


def _easier(
    path: str | Path, source: str, members: Sequence[str], options: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Changes of the options, each of which takes one thing away that can fail; ... = left out."""
    info = SOURCES[source]
    changes: list[dict[str, Any]] = []
    if (
        info.member is not None
        and not members
        and not {info.member, f"{info.member}s"} & {*options}
    ):
        with contextlib.suppress(CadsError):  # then it is the problem that is known already
            (entry,) = entries_of_data(path, source, (), options)
            first = info.list_members(**entry.options)[:1]  # a file without rows has none
            changes += [{info.member: member} for member in first]
    if assumed := _assumed(source, options):
        changes.append({**assumed, **options})
    if options.get("drop_missing") is False:
        changes.append({"drop_missing": True})
    if "excel_names" not in options:
        changes.append({"excel_names": KEEP})
    left_out = [option for option in ("prior", *_OPTIONAL) if option in options]
    return changes + [{option: ...} for option in left_out]


def _assumed(source: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Declarations that let the rest of a file be looked at before the user has made them."""
    calls = {"mageck": "fdr", "perturbseq": "adj_p", "orcs": "label"}
    is_called = calls.get(source) in options or source == "orcs"
    assumed: dict[str, Any] = {"direction": "neg"} if source == "mageck" else {}
    if "threshold" in options or "signal" in options or source == "depmap":
        return assumed
    return assumed | ({"signal": (1.0, -0.5)} if is_called else {"threshold": 0.0})


def _advice(guess: Guess, given: Sequence[str], problems: Sequence[str]) -> str:
    """What the layout wants declared, less what is given and what a problem asks for."""
    if guess.layout is None or not problems:
        return ""
    missing = guess.layout.missing(given)
    left = [x for x in missing if not any(f"{option}=" in p for option in x for p in problems)]
    if len(left) == len(guess.layout.asks):
        return guess.layout.advice
    wanted = ", ".join(" or ".join(f"{option}=..." for option in group) for group in left)
    return f"Say also {wanted}." if wanted else ""

"""Checking a study's folder: rows complete, hashes of today, every aggregate recomputed.

Reads files only; plays nothing unless seeds are to be played again.
"""

from __future__ import annotations

import csv
import hashlib
import io
import reprlib
import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

from cads_env.errors import CadsError, StudyError, error_text
from cads_env.report.studies.content import build_items
from cads_env.report.studies.folder import (
    CONFIG,
    ROWS_FILE,
    check_regular,
    folder_texts,
    read_manifest,
    read_rows,
)
from cads_env.studies.catalogue import load_study
from cads_env.studies.manifest import cell_json, sha256_of_json, study_manifest
from cads_env.studies.play import StudyRows, StudyWork, Unit, summary_of
from cads_env.studies.shapes import plain
from cads_env.studies.study import Cell, Summary
from cads_env.values import load_yaml

Problem = str
"""What is wrong, in one sentence that names the place."""

_MOST_LISTED: Final = 12
"""Missing or doubled seeds that a message lists."""


def check_folder(folder: str | Path, *, replay: int = 0) -> list[Problem]:
    """Everything that is wrong with a study's folder.

    Args:
        folder: What `reproduce_into` wrote.
        replay: Seeds of every cell, spread evenly, that are played again and compared.

    Returns:
        One sentence a problem; empty when all is as it should be.

    Raises:
        StudyError: It is no folder of a study.
    """
    place = Path(folder)
    manifest = read_manifest(place)
    try:
        sha256_of_json(manifest)
        plan = _plan_of(manifest)
    except (CadsError, KeyError, TypeError, ValueError, AttributeError) as error:
        return [f"manifest.json does not describe a study that this version knows: {error}"]
    problems = [*_config_problems(place, manifest), *_stale(plan, manifest)]
    summary, found = _rows(place, plan)
    problems += found
    if not _is_hashed(place / ROWS_FILE, manifest):
        problems.append(f"{ROWS_FILE} was changed: its SHA-256 is not the manifest's.")
    if found:
        # Aggregates of incomplete rows would only repeat what is said already.
        return problems
    problems += _differences(place, plan, summary, manifest)
    # What does not hold together is not played: its manifest may name anything.
    return problems or list(_replayed(place, plan, replay))


def _is_hashed(path: Path, manifest: Mapping[str, Any]) -> bool:
    """Whether a file of rows is the one that the manifest hashed."""
    try:
        check_regular(path)
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == manifest.get("rows_sha256")
    except OSError:
        return False


def _plan_of(manifest: Mapping[str, Any]) -> StudyRows:
    study = load_study(manifest["study"])
    cells = tuple(map(_cell, manifest["cells"]))
    if manifest["seeds"] is not None and type(manifest["seeds"]) is not int:
        msg = f"seeds is {reprlib.repr(manifest['seeds'])}; expected a number or null"
        raise ValueError(msg)
    items = tuple(manifest["items"])
    return StudyRows(study, manifest["config"], items, cells, manifest["seeds"])


def _cell(value: object) -> Cell:
    """A cell as `cell_json` writes it.

    Raises:
        ValueError: It is none.
    """
    match value:
        case {
            "name": str(name),
            "settings": dict(settings),
            "seeds": [int(first), int(stop)],
            "absent": str(absent),
        } if 0 <= first <= stop < 1 << 62 and not isinstance(stop, bool):
            return Cell(name, settings, range(first, stop), absent)
    msg = (
        f"a cell is {reprlib.repr(value)}; expected its name, settings, seeds (the first one and "
        "the one after the last) and absent"
    )
    raise ValueError(msg)


def _config_problems(place: Path, manifest: Mapping[str, Any]) -> Iterator[Problem]:
    if sha256_of_json(manifest["config"]) != manifest.get("config_sha256"):
        yield "The manifest's config is not the one that it hashed."
    try:
        check_regular(place / CONFIG)
        written = load_yaml((place / CONFIG).read_text("utf-8"))
    except (OSError, ValueError) as error:
        yield f"{CONFIG} cannot be read: {error_text(error)}."
        return
    if written != manifest["config"]:
        yield f"{CONFIG} is not the config of the manifest."


def _stale(plan: StudyRows, manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """Hashes and cells that today's package would not write."""
    try:
        today = plain(study_manifest(plan))
        planned = StudyRows.plan(plan.study, plan.config, plan.items, seeds=manifest["seeds"])
    except (CadsError, KeyError, TypeError, ValueError, AttributeError) as error:
        yield f"What was played cannot be loaded any more, so hashes are not checked: {error}"
        return
    for kind in ("registries", "protocols"):
        for name, value in manifest.get(kind, {}).items():
            if today[kind].get(name) != value:
                yield f"Stale hash: {kind} {name!r} has another content today."
        for name in set(today[kind]) - set(manifest.get(kind, {})):
            yield f"The manifest does not list {kind} {name!r}, which its cells name."
    if today["cads_env"] != manifest.get("cads_env"):
        yield f"Written by cads-env {manifest.get('cads_env')}, this is {today['cads_env']}."
    expected = {c.name: cell_json(c) for c in planned.cells}
    there = {c.name: cell_json(c) for c in plan.cells}
    for name, cell in expected.items():
        if name not in there:
            yield f"Cell {name!r} is missing from the manifest."
        elif cell["settings"] != there[name]["settings"]:
            yield f"Cell {name!r} was played with other settings than the config gives."
        elif there[name]["absent"] and not cell["absent"]:
            yield f"Cell {name!r} is said to be absent, but it can be played here."
        elif not there[name]["absent"] and cell["seeds"] != there[name]["seeds"]:
            yield (
                f"Cell {name!r} holds the seeds {there[name]['seeds']} (first, end); expected "
                f"{cell['seeds']}."
            )
    for name in set(there) - set(expected):
        yield f"Cell {name!r} does not belong to the study."


def _rows(place: Path, plan: StudyRows) -> tuple[Summary, list[Problem]]:
    """The summary of the rows, and what is missing, doubled or odd among them."""
    summary = summary_of(plan.cells)
    cells = {cell.name: cell for cell in plan.cells if not cell.absent}
    seen: dict[str, set[int]] = {name: set() for name in cells}
    columns: dict[str, list[str]] = {}
    problems: list[Problem] = []
    try:
        for number, row in read_rows(place):
            cell, seed = row.pop("cell", None), row.pop("seed", None)
            bad = _row_problem(cell, seed, row, cells, seen, columns)
            if bad:
                problems.append(f"{ROWS_FILE}, line {number}: {bad}")
                continue
            seen[cell].add(seed)
            summary.add(cell, row)
    except StudyError as error:
        problems.append(str(error))
    for name, cell in cells.items():
        missing = len(cell.seeds) - len(seen[name])
        if missing:
            first = islice((seed for seed in cell.seeds if seed not in seen[name]), _MOST_LISTED)
            listed = ", ".join(map(str, first))
            more = f" and {missing - _MOST_LISTED:,} more" if missing > _MOST_LISTED else ""
            problems.append(f"Cell {name!r} is incomplete: seeds {listed}{more} are missing.")
    return summary, problems


def _row_problem(
    cell: object,
    seed: object,
    row: Mapping[str, Any],
    cells: Mapping[str, Cell],
    seen: Mapping[str, set[int]],
    columns: dict[str, list[str]],
) -> Problem:
    """What is wrong with one row; "" for nothing."""
    if not isinstance(cell, str) or cell not in cells:
        return f"cell {cell!r} is not one of the study."
    if not isinstance(seed, int) or isinstance(seed, bool) or seed not in cells[cell].seeds:
        return f"seed {seed!r} is not one of cell {cell!r}."
    if seed in seen[cell]:
        return f"seed {seed} of cell {cell!r} is there twice."
    expected = columns.setdefault(cell, list(row))
    if list(row) != expected:
        return f"columns {', '.join(row)} are not those of the cell's first row."
    for name, value in row.items():
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        # Compared as they are: a whole number may be beyond every float.
        if not is_number or not -sys.float_info.max <= value <= sys.float_info.max:
            return f"{name} is {reprlib.repr(value)}; expected a finite number."
    return ""


def _differences(
    place: Path, plan: StudyRows, summary: Summary, manifest: Mapping[str, Any]
) -> Iterator[Problem]:
    """Files that are not what the rows give."""
    whole = dict(manifest)
    digest = whole.pop("rows_sha256", "")
    try:
        built = build_items(plan, summary)
        texts = folder_texts(plan, summary, built, whole, digest)
    except (CadsError, KeyError, TypeError, ValueError, AttributeError) as error:
        yield f"The tables cannot be built from the rows: {type(error).__name__}: {error}"
        return
    for name, text in texts.items():
        try:
            check_regular(place / name)
            there = (place / name).read_text("utf-8")
        except (OSError, ValueError) as error:
            yield f"{name} cannot be read: {error_text(error)}."
            continue
        if there == text:
            continue
        if name.endswith(".csv"):
            yield from _csv_differences(name, there, text)
        else:
            yield f"{name} is not what the rows give."


def _csv_differences(name: str, there: str, ours: str) -> Iterator[Problem]:
    """The cells of a table that differ from what the rows give."""
    try:
        old, new = (list(csv.reader(io.StringIO(text), strict=True)) for text in (there, ours))
    except csv.Error as error:
        yield f"{name} is no CSV: {error}."
        return
    if len(old) != len(new) or old[:1] != new[:1]:
        yield f"{name} has other rows or columns than its study."
        return
    head = new[0]
    for number, (a, b) in enumerate(zip(old, new, strict=True), 1):
        for column, x, y in zip(head, a, b, strict=False):
            if x != y:
                yield f"{name}, line {number}: {column} is {x!r}; the rows give {y!r}."
        if len(a) != len(b):
            yield f"{name}, line {number}, has {len(a)} cells; expected {len(b)}."


def _replayed(place: Path, plan: StudyRows, count: int) -> Iterator[Problem]:
    """Rows that come out differently when their seeds are played again."""
    if count <= 0:
        return
    again: dict[tuple[str, int], dict[str, float]] = {}
    work = StudyWork(plan.study.name)
    for cell in plan.cells:
        if cell.absent:
            continue
        step = max(1, len(cell.seeds) // count)
        seeds = tuple(cell.seeds[::step][:count])
        _, rows = work.play(Unit(cell.name, cell.settings, seeds))
        again |= {(cell.name, s): row for s, row in zip(seeds, rows, strict=True)}
    for number, row in read_rows(place):
        key = (row.pop("cell"), row.pop("seed"))
        if key in again and again[key] != row:
            changed = [name for name in row if again[key].get(name) != row[name]]
            yield (
                f"{ROWS_FILE}, line {number}: played again, seed {key[1]} of cell {key[0]!r} "
                f"gives another {', '.join(changed[:4])}."
            )

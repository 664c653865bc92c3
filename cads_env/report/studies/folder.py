"""The folder of a study: rows, manifest, tables, figures and report, there whole or not at all.

Rows stream to disk as they come; the folder gets its name when everything in it is written. A
study that is there is read, never played over.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import yaml

from cads_env.errors import StudyError, error_text
from cads_env.files import write_whole
from cads_env.report.html import html_page
from cads_env.report.studies.content import build_items, build_study_report
from cads_env.report.studies.forms import item_files
from cads_env.run.executors import Executor
from cads_env.studies.manifest import KIND, study_manifest
from cads_env.studies.play import StudyRows, play_study, summary_of
from cads_env.studies.shapes import plain
from cads_env.studies.study import Row, Summary
from cads_env.studies.tables import Chart, Table

ROWS_FILE: Final = "rows.jsonl"
MANIFEST: Final = "manifest.json"
CONFIG: Final = "config.yaml"
REPORT: Final = "REPORT.html"
DEFAULT_ROOT: Final = "studies"
_PARTIAL: Final = ".partial"
_LONGEST_LINE: Final = 1 << 20
"""Characters of a line of rows; a real one has thousands at most."""
_LARGEST_FILE: Final = 1 << 26
"""Bytes of a table, figure, report or manifest that is read."""


class StudyFolder(NamedTuple):
    """A study that was played.

    Attributes:
        plan: What was played.
        summary: What it gave.
        built: Its tables and charts by item name.
        folder: Where its files are; None for none.
        was_there: Whether it was read instead of played.
    """

    plan: StudyRows
    summary: Summary
    built: dict[str, Table | Chart]
    folder: Path | None
    was_there: bool = False


def reproduce_into(
    root: Path | None,
    plan: StudyRows,
    *,
    executor: Executor | None = None,
    replace: bool = False,
    progress: Callable[[int], None] | None = None,
) -> StudyFolder:
    """Play a study and write its folder, or read the one that is there.

    Args:
        root: Its folder is made in this one, under the study's name; None to write nothing.
        plan: From `StudyRows.plan`.
        executor: Where it is played.
        replace: Whether a folder that holds another version of the study is replaced.
        progress: Called with the number of rows after every unit.

    Returns:
        The study with its tables and charts.

    Raises:
        StudyError: The folder holds something else, or cannot be written.
        CadsError: A cell cannot be played.
    """
    if root is None:
        summary = play_study(plan, executor=executor, progress=progress)
        return StudyFolder(plan, summary, build_items(plan, summary), None)
    place = root / plan.study.name
    manifest = study_manifest(plan)
    if place.exists() and not replace:
        return _there(place, plan, manifest)
    with _writing(root), _new_folder(root, plan.study.name) as partial:
        with (partial / ROWS_FILE).open("w", encoding="utf-8", newline="\n") as file:
            rows = _Rows(file)
            summary = play_study(plan, executor=executor, keep=rows.keep, progress=progress)
            file.flush()
            os.fsync(file.fileno())
        built = build_items(plan, summary)
        for name, text in folder_texts(plan, summary, built, manifest, rows.sha256).items():
            (partial / name).write_text(text, encoding="utf-8", newline="\n")
        _put(partial, place, replace=replace)
    return StudyFolder(plan, summary, built, place)


def write_summary(root: Path, lines: Sequence[str]) -> None:
    """Write SUMMARY.md beside several studies: one line each on how many figures agree.

    Raises:
        StudyError: It cannot be written.
    """
    text = "# Studies\n\n" + "".join(f"- {line}\n" for line in lines)
    with _writing(root):
        write_whole(root / "SUMMARY.md", [text.encode()])


def folder_texts(
    plan: StudyRows,
    summary: Summary,
    built: dict[str, Table | Chart],
    manifest: dict[str, Any],
    rows_sha256: str,
) -> dict[str, str]:
    """Every file of a study's folder but its rows, by name.

    Args:
        plan: What was played.
        summary: Of its rows.
        built: Its tables and charts.
        manifest: From `study_manifest`.
        rows_sha256: SHA-256 of `rows.jsonl`.
    """
    texts = {CONFIG: yaml.safe_dump(plain(plan.config), sort_keys=False, allow_unicode=True)}
    for name, item in built.items():
        texts |= item_files(name, item)
    title = f"cads-env study: {plan.study.title}"
    texts[REPORT] = html_page(build_study_report(plan, summary, built), title=title)
    whole = manifest | {"rows_sha256": rows_sha256}
    texts[MANIFEST] = json.dumps(whole, indent=2, allow_nan=False) + "\n"
    return texts


def row_line(cell: str, seed: int, row: Row) -> str:
    """A row as one line of strict JSON."""
    return json.dumps({"cell": cell, "seed": seed, **row}, allow_nan=False) + "\n"


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a study's folder.

    Raises:
        StudyError: There is none, or it is not one that a study wrote.
    """
    path = folder / MANIFEST
    try:
        check_regular(path)
        manifest = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        msg = f"{str(folder)!r} holds no readable {MANIFEST} of a study: {error_text(error)}."
        raise StudyError(msg) from error
    if not isinstance(manifest, dict) or manifest.get("kind") != KIND:
        msg = f"{str(path)!r} is no manifest of a study; name a folder that cads reproduce wrote."
        raise StudyError(msg)
    return manifest


def read_rows(folder: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and content of every row.

    Raises:
        StudyError: A line is no JSON object or longer than any row, or the file cannot be read.
    """
    path = folder / ROWS_FILE
    number = 0
    try:
        check_regular(path)
        with path.open(encoding="utf-8", newline="\n") as file:
            while line := file.readline(_LONGEST_LINE):
                number += 1
                row = json.loads(line) if len(line) < _LONGEST_LINE else None
                if not isinstance(row, dict):
                    msg = f"{str(path)!r}, line {number}, is no row of a study; put a copy back."
                    raise StudyError(msg)
                yield number, row
    except (OSError, ValueError, RecursionError) as error:
        msg = f"{str(path)!r} cannot be read after line {number}: {error_text(error)}."
        raise StudyError(msg) from error


def check_regular(path: Path) -> None:
    """Refuse what is there but no plain file of a usual size: a pipe would be waited for.

    Raises:
        OSError: It is not there, is no plain file, or is larger than any file of a study but rows.
    """
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        msg = f"{path.name} is no plain file"
        raise OSError(msg)
    if path.name != ROWS_FILE and found.st_size > _LARGEST_FILE:
        msg = f"{path.name} has {found.st_size:,} bytes, more than a study writes"
        raise OSError(msg)


class _Rows:
    """Writes rows and hashes them."""

    def __init__(self, file: IO[str]) -> None:
        self._file, self._digest = file, hashlib.sha256()

    def keep(self, cell: str, seed: int, row: Row) -> None:
        line = row_line(cell, seed, row)
        self._digest.update(line.encode())
        self._file.write(line)

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


def _there(place: Path, plan: StudyRows, manifest: dict[str, Any]) -> StudyFolder:
    """The study in a folder, if it is the one that is asked for."""
    from cads_env.report.studies.check import check_folder

    found = read_manifest(place)
    found.pop("rows_sha256", None)
    if found != plain(manifest):
        differs = [key for key in manifest if found.get(key) != plain(manifest[key])]
        msg = (
            f"{str(place)!r} holds this study with another {', '.join(differs)}. Name another "
            "folder with --out, or give --replace to play it anew in its place."
        )
        raise StudyError(msg)
    problems = check_folder(place)
    if problems:
        msg = (
            f"{str(place)!r} holds this study, but it does not hold together ({problems[0]}). "
            "`cads reproduce check` lists what is wrong; --replace plays it anew."
        )
        raise StudyError(msg)
    summary = summary_of(plan.cells)
    for _, row in read_rows(place):
        cell = row.pop("cell")
        row.pop("seed")
        summary.add(cell, row)
    return StudyFolder(plan, summary, build_items(plan, summary), place, was_there=True)


@contextlib.contextmanager
def _writing(root: Path) -> Iterator[None]:
    """Turn errors of the disk into one of ours."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        yield
    except (OSError, UnicodeError) as error:
        msg = f"The study cannot be written into {str(root)!r}: {error_text(error)}."
        raise StudyError(msg) from error


@contextlib.contextmanager
def _new_folder(root: Path, name: str) -> Iterator[Path]:
    """A folder under a temporary name, removed when it was not put in its place."""
    for left in root.glob(f".{name}.*{_PARTIAL}"):
        if not _is_alive(left):
            shutil.rmtree(left, ignore_errors=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{name}.{os.getpid()}.", suffix=_PARTIAL, dir=root))
    mask = os.umask(0)
    os.umask(mask)
    partial.chmod(0o777 & ~mask)
    try:
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _is_alive(partial: Path) -> bool:
    """Whether the process that began an unfinished folder still runs here."""
    process = partial.name.removesuffix(_PARTIAL).split(".")[-2]
    if not process.isdecimal():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _put(partial: Path, place: Path, *, replace: bool) -> None:
    """Give the finished folder its name; an old one goes only when the new one is whole."""
    for path in partial.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    old = place.with_name(f".{place.name}.{os.getpid()}.old{_PARTIAL}")
    if replace and place.exists():
        read_manifest(place)
        place.rename(old)
    try:
        partial.rename(place)
    except OSError:
        if old.exists():
            old.rename(place)
        raise
    shutil.rmtree(old, ignore_errors=True)

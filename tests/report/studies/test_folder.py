"""The folder of a study: complete, equal to the byte whoever played it, and checked."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cads_env.errors import StudyError
from cads_env.report.studies import check_folder, reproduce_into
from cads_env.run.executors import Executor
from cads_env.studies import load_config, load_study
from cads_env.studies.play import StudyRows


def plan(seeds: int = 4) -> StudyRows:
    return StudyRows.plan(
        load_study("primary"), load_config("primary"), ("table1", "figure-3a"), seeds=seeds
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    study = reproduce_into(tmp_path_factory.mktemp("studies"), plan())
    assert study.folder is not None
    return study.folder


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "primary"))


def test_a_folder_holds_rows_tables_figures_and_a_report(made: Path) -> None:
    names = {path.name for path in made.iterdir()}
    assert names == {
        "config.yaml", "manifest.json", "rows.jsonl", "table1.csv", "table1.md", "figure-3a.svg",
        "REPORT.html",
    }  # fmt: skip
    assert len((made / "rows.jsonl").read_text().splitlines()) == 20
    assert "CADS" in (made / "table1.md").read_text()
    assert check_folder(made, replay=1) == []


def test_two_processes_write_the_same_bytes(made: Path, tmp_path: Path) -> None:
    study = reproduce_into(tmp_path, plan(), executor=Executor(jobs=2))
    assert study.folder is not None
    for path in made.iterdir():
        assert path.read_bytes() == (study.folder / path.name).read_bytes(), path.name


def test_a_study_that_is_there_is_read(copy: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in copy.iterdir()}
    study = reproduce_into(copy.parent, plan())
    assert study.was_there
    assert study.summary.of("epsilon=0.1", "reads").n == 4
    assert before == {path.name: path.stat().st_mtime_ns for path in copy.iterdir()}


def test_another_study_is_not_played_over_unless_it_is_said(copy: Path) -> None:
    with pytest.raises(StudyError, match=r"another seeds, cells.*--replace"):
        reproduce_into(copy.parent, plan(5))
    study = reproduce_into(copy.parent, plan(5), replace=True)
    assert study.summary.of("epsilon=0.1", "reads").n == 5
    assert sorted(p.name for p in copy.parent.iterdir()) == ["primary"]


def test_a_folder_of_something_else_stays(tmp_path: Path) -> None:
    (tmp_path / "primary").mkdir()
    (tmp_path / "primary" / "thesis.txt").write_text("mine")
    for replace in (False, True):
        with pytest.raises(StudyError, match=r"manifest.json"):
            reproduce_into(tmp_path, plan(), replace=replace)
    assert (tmp_path / "primary" / "thesis.txt").read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["primary"]


def test_nothing_half_written_stays(tmp_path: Path) -> None:
    def interrupt(rows: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce_into(tmp_path, plan(), progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def _edit(name: str, change: Callable[[str], str]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / name
        text = path.read_text()
        changed = change(text)
        assert changed != text
        path.write_text(changed)

    return damage


def _drop_line(number: int) -> Callable[[str], str]:
    return lambda text: "".join(
        line for i, line in enumerate(text.splitlines(keepends=True)) if i != number
    )


def _repeat_line(number: int) -> Callable[[str], str]:
    def change(text: str) -> str:
        lines = text.splitlines(keepends=True)
        return "".join([*lines, lines[number]])

    return change


def _manifest(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / "manifest.json"
        manifest = json.loads(path.read_text())
        change(manifest)
        path.write_text(json.dumps(manifest, indent=2) + "\n")

    return damage


def _pipe(folder: Path) -> None:
    (folder / "REPORT.html").unlink()
    os.mkfifo(folder / "REPORT.html")


def _forget_registry(manifest: dict[str, Any]) -> None:
    manifest["registries"]["synthetic-depmap-6000/0"]["oracle_hash"] = "0" * 64


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "an aggregate": (_edit("table1.csv", lambda t: t.replace("0.0,", "0.5,", 1)), "the rows give"),
    "a count": (_edit("rows.jsonl", lambda t: t.replace('"reads": 45899', '"reads": 45898', 1)),
                "SHA-256"),
    "a missing seed": (_edit("rows.jsonl", _drop_line(1)), "incomplete: seeds 1 are missing"),
    "a doubled seed": (_edit("rows.jsonl", _repeat_line(2)), "is there twice"),
    "a foreign cell": (_edit("rows.jsonl", lambda t: t.replace("epsilon=0.1", "epsilon=7", 1)),
                       "not one of the study"),
    "a torn line": (_edit("rows.jsonl", lambda t: t[:-30]), "cannot be read"),
    "not a number": (_edit("rows.jsonl", lambda t: t.replace("45899", "NaN", 1)), "finite number"),
    "a column": (_edit("rows.jsonl", lambda t: t.replace('"reads"', '"raeds"', 1)), "columns"),
    "a picture": (_edit("figure-3a.svg", lambda t: t.replace("FDR", "TDR", 1)), "figure-3a.svg"),
    "the report": (_edit("REPORT.html", lambda t: t.replace("within", "off", 1)), "REPORT.html"),
    "words": (_edit("table1.md", lambda t: t.replace("CADS", "CDAS", 1)), "table1.md"),
    "the config": (_edit("config.yaml", lambda t: t.replace("0.816", "0.9")), "config.yaml"),
    "a file away": (lambda f: (f / "table1.csv").unlink(), "table1.csv cannot be read"),
    "a stale registry": (
        _manifest(_forget_registry),
        "Stale hash: registries"),
    "a stale protocol": (_manifest(lambda m: m["protocols"].update(sweep="0" * 64)),
                         "Stale hash: protocols"),
    "another version": (_manifest(lambda m: m.update(cads_env="0.0")), "Written by cads-env 0.0"),
    "a cell left out": (_manifest(lambda m: m["cells"].pop()), "missing from the manifest"),
    "other settings": (
        _manifest(lambda m: m["cells"][0]["settings"].update(epsilon=0.5)),
        "other settings"),
    "rows away": (lambda f: (f / "rows.jsonl").unlink(), "rows.jsonl' cannot be read"),
    "a pipe": (_pipe, "no plain file"),
    "a line without end": (lambda f: (f / "rows.jsonl").write_text("[" * 2_000_000), "no row"),
    "endless seeds": (
        _manifest(lambda m: m["cells"][0].update(seeds=[0, 10**15])), "999,999,999,999,984 more"),
    "seeds in steps": (_manifest(lambda m: m["cells"][0].update(seeds=[0, 4, 2])), "a cell is"),
    "an odd name": (_manifest(lambda m: m["cells"][0].update(name=["a"])), "a cell is"),
    "a number beyond floats": (
        _edit("rows.jsonl", lambda t: t.replace("45899", "1" + "0" * 400, 1)), "finite number"),
    "not a number in the config": (
        _manifest(lambda m: m["config"].update(qs=[float("nan")])), "does not describe"),
    "other seeds": (_manifest(lambda m: m["cells"][0].update(seeds=[4, 8])), "holds the seeds"),
    "fewer seeds": (_manifest(lambda m: m["cells"][0].update(seeds=[0, 1])), "holds the seeds"),
    "a cell said to be absent": (
        _manifest(lambda m: m["cells"][0].update(absent="no time")), "said to be absent"),
    "an alias": (_edit("config.yaml", lambda t: f"{t}a: &a [x]\nb: *a\n"), "uses an alias"),
    "an unknown study": (_manifest(lambda m: m.update(study="astrology")), "does not describe"),
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGES)
def test_damage_is_found_and_named(copy: Path, what: str) -> None:
    damage, said = DAMAGES[what]
    damage(copy)
    problems = check_folder(copy)
    assert any(said in problem for problem in problems), problems


def test_rows_that_were_invented_are_found_by_playing_again(copy: Path) -> None:
    import hashlib

    path = copy / "rows.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["cads@0.1.true"] += 1
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["rows_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (copy / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    problems = check_folder(copy, replay=1)
    assert any("played again, seed 0" in problem for problem in problems), problems


def test_a_folder_without_a_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"no readable manifest.json"):
        check_folder(tmp_path)

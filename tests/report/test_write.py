"""Where a report is written, and the command that writes it."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

from cads_env import RunResult, files
from cads_env.cli import main
from cads_env.errors import RecordError, RunError
from cads_env.report.methods import methods_paragraph
from cads_env.report.write import write_report

NAMES = ["report.html", "report.md", "datasheet.md"]


def cads(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["cads", *map(str, arguments)])
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_the_same_run_gives_the_same_bytes(run: RunResult, tmp_path: Path) -> None:
    first = write_report(run, tmp_path / "a")
    second = write_report(run, tmp_path / "b")
    assert [p.name for p in first] == NAMES
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == sorted(NAMES)


def test_formats_choose_the_files(run: RunResult, tmp_path: Path) -> None:
    assert [p.name for p in write_report(run, tmp_path, formats=["md"])] == ["report.md"]
    with pytest.raises(RunError, match="Did you mean 'html'"):
        write_report(run, tmp_path, formats=["htm"])
    with pytest.raises(RunError, match="No format"):
        write_report(run, tmp_path, formats=[])


def test_a_file_that_cannot_be_finished_leaves_the_old_one(
    run: RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_report(run, tmp_path)
    before = (tmp_path / "report.html").read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(RunError, match="No space left"):
        write_report(run, tmp_path)
    assert (tmp_path / "report.html").read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(NAMES)


def test_the_command_prints_the_table_and_the_methods_and_writes_the_files(
    run: RunResult,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cads(monkeypatch, "report", run.folder, "--out", tmp_path) == 0
    printed = capsys.readouterr().out
    assert "reference*" in printed
    assert " ".join(methods_paragraph(run).split()) in " ".join(printed.split())
    for name in NAMES:
        assert str(tmp_path / name) in printed
        assert (tmp_path / name).stat().st_size > 1000
    assert "\x1b" not in printed


def test_a_folder_without_a_run_is_one_paragraph_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cads(monkeypatch, "report", tmp_path / "none") == 1
    said = capsys.readouterr().err
    assert "does not exist" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("registries", [1]),
        ("registries", [{"name": "r", "m": "many", "hits": 1, "contrary_hits": 0}]),
        ("versions", []),
        ("files", "none"),
        ("config", {"agents": [{"arm": "a", "options": 3}], "seeds": [0]}),
        ("config", {"agents": [], "seeds": ["0"]}),
    ],
)
def test_a_manifest_that_was_changed_is_named(
    run: RunResult, tmp_path: Path, part: str, value: object
) -> None:
    changed = dataclasses.replace(run, manifest={**run.manifest, part: value})
    with pytest.raises(RecordError, match=part):
        write_report(changed, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_report_that_cannot_be_written_says_where(run: RunResult, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(RunError, match="taken"):
        write_report(run, tmp_path / "taken")

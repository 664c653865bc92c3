"""`cads reproduce` from the shell: what it lists, prints, writes and how it ends."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from cads_env.cli import main


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))


def cads(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["cads", "reproduce", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_the_list_names_every_item(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cads(monkeypatch, "--list") == 0
    printed = capsys.readouterr().out
    for word in ("primary", "table1", "table-s1", "figure-3a", "5,000 rows"):
        assert word in printed


def test_a_table_is_printed_beside_the_published_one_and_its_folder_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cads(monkeypatch, "table1", "--seeds", "4", "--jobs", "1") == 0
    printed = capsys.readouterr().out
    for word in ("ours", "published", "difference", "verdict", "45,899", "within", "figures agree"):
        assert word in printed
    assert Path("studies/0001/primary/table1.csv").exists()
    assert cads(monkeypatch, "check", "studies/0001") == 0
    assert "holds together" in capsys.readouterr().out
    rows = Path("studies/0001/primary/rows.jsonl")
    rows.write_text("".join(rows.read_text().splitlines(keepends=True)[:-1]))
    assert cads(monkeypatch, "check", "studies/0001/primary") == 3
    assert "seeds 3 are missing" in capsys.readouterr().err


def test_a_figure_that_is_off_ends_with_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tolerance = json.dumps({"power": 1e-9, "fdr": 1e-9, "cads_fdr_below": 1.0})
    code = cads(
        monkeypatch, "table1", "--seeds", "3", "--jobs", "1", "--set", f"tolerance={tolerance}"
    )
    assert code == 3
    assert "OFF" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Nothing to reproduce was named"),
        (("tabel1",), "Did you mean 'table1'"),
        (("check",), "No folder was named"),
        (("check", "nowhere"), "no readable manifest.json"),
        (("table1", "--set", "sedes=3"), "Did you mean 'seeds'"),
        (("table1", "--set", "seeds"), "expected --set name=value"),
        (("table1", "--jobs", "0"), "jobs=0 is not usable"),
        (("table1", "--jobs", "-1"), "jobs=-1 is not usable"),
        (("table1", "--executor", "roy"), "Unknown executor 'roy'"),
        (("table1", "--depmap", "x.csv"), "has a setting 'depmap'"),
    ],
)
def test_mistakes_are_one_paragraph(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    said: str,
) -> None:
    assert cads(monkeypatch, *arguments) == 1
    error = capsys.readouterr().err
    assert said in " ".join(error.split())
    assert "Traceback" not in error
    assert not list(Path().glob("studies/*/*"))

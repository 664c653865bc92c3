"""`cads selfcheck`: its table, its files, its exit codes."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from cads_env.cli import main
from cads_env.report.instrument import write_selfcheck
from cads_env.report.instrument.folder import selfcheck_texts
from cads_env.selfcheck import SelfCheck, selfcheck
from tests.selfcheck.test_selfcheck import PANEL, RULES

TABLE = "identifier,effect\n" + "".join(
    f"G{i:03d},{-2.0 if i % 7 == 0 else 0.1 + i / 1000}\n" for i in range(120)
)


@pytest.fixture(scope="module")
def outcome() -> SelfCheck:
    return selfcheck(RULES, PANEL, seeds=3, agents=["random"])


def cads(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", ["cads", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_too_few_campaigns_end_with_3_and_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CADS_HOME", str(tmp_path / "home"))
    Path("screen.csv").write_text(TABLE)
    Path("screen.yaml").write_text("direction: lower\nthreshold: -0.5\n")
    status = cads(
        monkeypatch, "selfcheck", "--panel", "screen.csv", "--seeds", "2", "--set", "rounds=3",
        "--agent", "random", "--jobs", "1", "--out", "checked", "--record", "--rows",
    )  # fmt: skip
    printed = capsys.readouterr().out
    assert status == 3
    for word in ("quality ladder", "UNDECIDED", "not applicable", "memoriser", "expected"):
        assert word in printed
    table = [line for line in printed.splitlines() if not line.startswith("Written: ")]
    assert max(map(len, table)) <= 100
    data = json.loads(Path("checked/selfcheck.json").read_text())
    assert data["verdict"] == "undecided"
    assert len(list(Path("home/selfchecks").iterdir())) == 1


def test_a_mistake_is_one_paragraph(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cads(monkeypatch, "selfcheck", "--protocol", "standrad") == 1
    assert "Did you mean 'standard'?" in " ".join(capsys.readouterr().err.split())


def test_the_folder_holds_data_page_pictures_and_badge(outcome: SelfCheck, tmp_path: Path) -> None:
    written = write_selfcheck(outcome, tmp_path / "a")
    names = [path.name for path in written]
    assert names == [
        "ladder.svg", "late.svg", "badge.svg", "badge.json", "SELFCHECK.md", "selfcheck.json",
    ]  # fmt: skip
    for path in written:
        if path.suffix == ".svg":
            ElementTree.fromstring(path.read_text("utf-8"))
    page = (tmp_path / "a" / "SELFCHECK.md").read_text("utf-8")
    assert outcome.verdict.split(" (")[0] in page
    assert "![Late starters" in page
    again = write_selfcheck(outcome, tmp_path / "b")
    assert [p.read_bytes() for p in again] == [p.read_bytes() for p in written]
    assert not [path for path in (tmp_path / "a").iterdir() if path.name.startswith(".")]


def test_every_row_stands_on_the_page_with_its_interval(outcome: SelfCheck) -> None:
    page = selfcheck_texts(outcome)["SELFCHECK.md"]
    for check in outcome.checks:
        for row in check.rows:
            assert row.name.replace("_", "\\_") in page

"""Everything that is wrong with a file, said in one go; and what to say of another source's."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from cads_env.cli import main
from cads_env.errors import RegistryError
from cads_env.panel import load_registry
from cads_env.sources import SOURCES
from cads_env.sources.checking import check_file

MATRIX = (
    ",HLA-A (1),NKX2-1 (2),H3-3A (3)\n"
    "ACH-000001,0.1,-1.25,-0.6\n"
    "ACH-000002,-0.9,-0.75,0.2\n"
    "ACH-000003,0.3,-0.55,0.4\n"
)
TABLE = "identifier,effect\nA,-1.0\nB,0.1\nC,-0.7\nD,0.0\n"
DECLARED: dict[str, Any] = {"direction": "lower", "threshold": -0.5}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CADS_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("effect.csv").write_text(MATRIX)
    Path("screen.csv").write_text(TABLE)
    return tmp_path / "home"


def cads(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["cads", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_a_check_finds_every_problem_of_a_table() -> None:
    Path("bad.csv").write_text(
        "identifier,effect,score\n1-Mar,-1.0,x\nB,,1\nC,0.2,2\nD,0.3,4\nE,-2,3\n"
    )
    options = {**DECLARED, "prior": "score", "prior_direction": "higher"}
    findings = check_file("bad.csv", options=options)
    assert findings.pair is None
    words = ["are missing", "'score' (prior=) are no numbers", "spreadsheet"]
    assert len(findings.problems) == 3
    for word in words:
        assert any(word in problem for problem in findings.problems)
    assert check_file("screen.csv", options=DECLARED).problems == ()


def test_a_check_without_declarations_looks_at_the_rest_all_the_same() -> None:
    Path("bad.csv").write_text("identifier,effect\nA,-1.0\nA,1\nB,0.2\n")
    problems = check_file("bad.csv").problems
    assert len(problems) == 2
    assert "direction=lower" in problems[0]
    assert "threshold=" in problems[0]
    assert "repeat an identifier" in problems[1]
    assert len(check_file("screen.csv").problems) == 1


def test_a_check_of_a_matrix_finds_what_each_option_breaks() -> None:
    Path("models.csv").write_text("ModelID,CellLineName\nACH-000009,X\n")
    findings = check_file(
        "effect.csv",
        members=["ACH-000001"],
        options={"model": "models.csv", "dependency": "effect.csv"},
    )
    assert len(findings.problems) == 2
    assert any("0 to 1" in problem for problem in findings.problems)
    assert any("does not describe" in problem for problem in findings.problems)


def test_one_problem_is_told_once_whatever_is_advised() -> None:
    Path("models.csv").write_text("ModelID,CellLineName\nACH-000001,MY-1\n")
    findings = check_file("effect.csv", members=["MY-1"], options={"model": "models.csv"})
    assert len(findings.problems) == 1
    assert "say line=ACH-000001" in findings.problems[0]


def test_a_check_says_that_nothing_is_a_hit() -> None:
    Path("effect.csv").write_text(MATRIX.replace("-1.25", "-0.25").replace("-0.6", "0.6"))
    (problem,) = check_file("effect.csv", members=["ACH-000001"]).problems
    assert "0 hits among 3" in problem
    Path("flat.csv").write_text("identifier,effect\nA,1\nB,2\nC,2\n")
    (problem,) = check_file("flat.csv").problems
    assert "still to be declared" in problem


def test_the_check_command_prints_the_layout_and_every_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cads(monkeypatch, "registry", "check", "effect.csv", "--line", "ACH-000001") == 0
    printed = " ".join(capsys.readouterr().out.split())
    for word in ("a DepMap matrix of gene effects", "depmap", "3", "2 (66.7%)"):
        assert word in printed
    assert cads(monkeypatch, "registry", "check", "effect.csv") == 1
    assert "line=ACH-000001" in capsys.readouterr().err
    assert cads(monkeypatch, "registry", "check", "screen.csv") == 1
    said = capsys.readouterr()
    assert "read as a table" in said.out
    assert "direction=lower" in said.err
    assert cads(monkeypatch, "registry", "check", "gone.csv") == 1
    assert "does not exist" in capsys.readouterr().err
    assert cads(monkeypatch, "registry", "check", "screen.csv", "-O", "direction=lower", "-O",
                "threshold=-0.5") == 0  # fmt: skip


ALL_WRONG = (
    "identifier,effect,label\n,-1,1\nA,-1,1\nA,-2,1\nB,abc,0\nC,inf,0\nD,1,2\n1-Mar,1,0\n"
    "E,,0\nF,2,1\nG,1,0\n"
)


def test_every_kind_of_faulty_row_is_told_in_one_pass() -> None:
    Path("bad.csv").write_text(ALL_WRONG)
    problems = check_file("bad.csv", options=DECLARED).problems
    for words in (
        ["1 rows have no identifier", "row 2"],
        ["repeat an identifier", "row 4: 'A (first in row 3)'"],
        ["are no numbers", "row 5: 'abc'"],
        ["are infinite", "row 6: 'inf'"],
        ["label column", "row 7: '2'"],
        ["'1-Mar' (probably MARCHF1"],
        ["are missing", "row 9: ''"],
        ["contradicts direction and threshold in 1 rows: 'F'"],
    ):
        assert [p for p in problems if all(word in p for word in words)], words
    assert len(problems) == 8
    with pytest.raises(RegistryError) as caught:
        load_registry("bad.csv", **DECLARED)
    assert str(caught.value) == problems[0]


def test_no_problem_is_made_of_the_rows_that_are_to_be_mended() -> None:
    Path("bad.csv").write_text("identifier,effect\nA,x\nB,0.1\nC,0.2\n")  # A may be the hit
    (problem,) = check_file("bad.csv", options=DECLARED).problems
    assert "are no numbers" in problem
    Path("bad.csv").write_text("identifier,effect,copy\nA,-1,-2\nB,x,3\nC,0,0\nD,2,4\n")
    problems = check_file("bad.csv", options={**DECLARED, "features": ["copy"]}).problems
    assert ["copy of the truth" in problem for problem in problems] == [False, True]


def test_every_faulty_option_of_a_table_is_told_in_one_pass() -> None:
    options = {
        "direction": "down", "features": ["effect", "gone"], "module": "absent", "colour": 1,
        "excel_names": "drop", "signal": (1.0, -0.5), "prior": "none", "label": "hit",
    }  # fmt: skip
    problems = check_file("screen.csv", options=options).problems
    for words in (
        "no option 'colour'", "excel_names='drop'", "direction='down'", "names the column 'effect'",
        "no column 'gone'", "no column 'absent'", "no column 'none'", "no column 'hit'",
        "signal=(1.0, -0.5) is for tables without effects",
        "still to be declared: threshold=... (the effect beyond which",
    ):  # fmt: skip
        assert len([p for p in problems if words in p]) == 1, words
    assert len(problems) == 10
    assert any("; prior_direction=higher" in problem for problem in problems)


def test_an_option_of_another_type_is_not_said_to_be_missing() -> None:
    problems = check_file("screen.csv", options={"direction": "lower", "threshold": "x"}).problems
    assert len(problems) == 1
    assert "threshold='x'" in problems[0]


def test_the_first_problem_is_the_one_that_loading_raises() -> None:
    for text, options in (
        ("identifier,effect\nA,-1\nB,q\nB,\n", DECLARED),
        ("identifier,label\nA,1\nB,x\n", {"signal": (1.0, -0.5), "threshold": 1}),
        ("identifier,effect\nA,1\n", DECLARED),
        ("identifier,effect\nA,1\nB,2\n", DECLARED),
        ("a;b\n1;2\n", {}),
    ):
        Path("bad.csv").write_text(text)
        with pytest.raises(RegistryError) as caught:
            load_registry("bad.csv", **options)
        assert check_file("bad.csv", options=options).problems[0] == str(caught.value)


def test_a_check_assumes_what_is_missing_to_look_at_the_rest() -> None:
    head = "Gene\tx|beta\tx|fdr\ty|beta\ty|fdr\n"
    Path("mle.txt").write_text(head + "A\t-1\t0.1\t0\t1\nA\t2\t1\t0\t1\n")
    problems = check_file("mle.txt").problems
    assert ["2 conditions; say which" in p for p in problems] == [True, False, False]
    assert "still to be declared: direction=neg" in problems[1]
    assert "repeats 1 identifiers: 'A'" in problems[2]
    Path("mle.txt").write_text(head + "A\t-1\t0.1\t0\t1\nB\t-2\t1\t0\t1\n")
    problems = check_file("mle.txt", options={"condition": "x"}).problems
    assert len(problems) == 1  # that both are hits at 0 is nobody's threshold


def test_faulty_rows_of_a_download_are_told_in_one_pass() -> None:
    Path("genes.txt").write_text(
        "id\tneg|fdr\tpos|fdr\tneg|lfc\tpos|lfc\nA\tx\t1\t-2\t-2\nB\t1\t1\tinf\t0\n"
        "C\t1\t1\t0\t0\nC\t1\t1\t1\t1\n1-Mar\t1\t1\t1\t1\nD\t1\t1\t-3\t-3\n"
    )
    words = (
        ["'neg|lfc' are no finite numbers: row 3: 'inf'"],
        ["'neg|fdr' are no finite numbers: row 2: 'x'"],
        ["still to be declared: threshold=..."],
        ["repeats 1 identifiers: 'C'"],
        ["'1-Mar' (probably"],
    )
    problems = check_file("genes.txt", options={"direction": "neg"}).problems
    for parts in words:
        assert [p for p in problems if all(part in p for part in parts)], parts
    with pytest.raises(RegistryError, match="no finite numbers"):
        load_registry("mageck", path="genes.txt", direction="neg", threshold=-1)
    problems = check_file("genes.txt", options={"direction": "neg", "threshold": -9}).problems
    assert not any("of 5 candidates are hits" in problem for problem in problems)


def test_a_registry_file_can_be_checked() -> None:
    Path("lines.yaml").write_text("source: depmap\npath: effect.csv\nlines: all\n")
    findings = check_file("lines.yaml")
    assert (findings.guess.source, findings.problems) == ("depmap", ())
    Path("bad.csv").write_text(ALL_WRONG)
    Path("list.yaml").write_text(
        "registries:\n- {source: table, path: bad.csv, direction: lower, threshold: -0.5}\n"
        "- {source: depmap, path: effect.csv, line: ACH-9}\n"
    )
    problems = check_file("list.yaml").problems
    assert len(problems) == 9
    assert "no cell line 'ACH-9'" in problems[-1]
    assert "-O threshold was given" in check_file("list.yaml", options={"threshold": 1}).problems[0]


@pytest.mark.parametrize(
    ("path", "options", "words"),
    [
        (
            "effect.csv",
            {"line": "ACH-000001", "model": "my models.csv"},
            "no option 'line'.*'depmap' reads. Say `--registry depmap -O path=effect.csv "
            "-O line=ACH-000001 -O model='my models.csv'`, or remember it: `cads registry add "
            "effect.csv --line ACH-000001 -O model='my models.csv' --name ...`",
        ),
        ("effect.csv", {}, "neither a column.*--registry depmap -O path=.*effect.csv -O line=...`"),
        (
            "genes.txt",
            {"direction": "neg"},
            "direction='neg' is not usable.*the gene summary of `mageck test`.*--registry mageck "
            "-O path=.*genes.txt -O direction=neg -O threshold=...`",
        ),
        ("screen.csv", {"line": "x"}, r"Available: [^.]*\.$"),
        ("bf.csv", {}, "a table of Bayes factors from BAGEL. Say identifier=GENE"),
    ],
)
def test_a_table_that_is_another_sources_file_says_so(
    path: str, options: dict[str, Any], words: str
) -> None:
    Path("genes.txt").write_text("id\tneg|fdr\tpos|fdr\nA\t0\t1\nB\t1\t1\n")
    Path("bf.csv").write_text("GENE,BF\nA,1\nB,2\n")
    with pytest.raises(RegistryError) as caught:
        load_registry(path, **options)
    assert re.search(words, str(caught.value)), str(caught.value)
    assert str(caught.value).count("looks like") <= 1


def test_a_file_of_another_source_may_still_be_declared_as_a_table() -> None:
    Path("genes.txt").write_text("id\tneg|fdr\tpos|fdr\tx\nA\t0\t1\t-2\nB\t1\t1\t0\n")
    registry, _ = load_registry("genes.txt", identifier="id", effect="x", **DECLARED)
    assert registry.m == 2


@pytest.mark.parametrize(
    ("path", "options", "advice"),
    [
        ("effect.csv", {}, ""),  # the problem says which lines there are
        ("effect.csv", {"line": "ACH-9"}, ""),
        ("effect.csv", {"lines": ["ACH-9"]}, ""),
        ("effect.csv", {"colour": 1, "line": "ACH-000001"}, ""),
        ("screen.csv", {}, ""),
        ("genes.txt", {}, "Say direction=neg or pos, and threshold=... or fdr=...."),
        ("genes.txt", {"direction": "neg"}, "Say also threshold=... or fdr=...."),
        ("genes.txt", {"direction": "neg", "threshold": -1}, ""),
    ],
)
def test_advice_fits_what_is_missing(path: str, options: dict[str, Any], advice: str) -> None:
    Path("genes.txt").write_text("id\tneg|fdr\tpos|fdr\tneg|lfc\nA\t0\t1\nB\t1\t1\t0\n")
    findings = check_file(path, options=options)
    assert findings.problems
    assert findings.advice == advice


def test_the_folder_one_stands_in_has_a_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cads(monkeypatch, "registry", "check", ".") == 1
    said = capsys.readouterr().err
    assert said.startswith(". is not usable yet: 1 problem.")
    assert cads(monkeypatch, "registry", "check", "effect.csv", "--line", "ACH-9") == 1
    assert "Say which cell line" not in capsys.readouterr().err


def test_only_sources_of_files_list_the_option_on_spreadsheets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    has = {name for name, info in SOURCES.items() if "excel_names" in info.common_options}
    assert has == {name for name in SOURCES if not name.startswith("synthetic")}
    assert cads(monkeypatch, "registry", "list") == 0
    assert capsys.readouterr().out.count("excel_names") == len(has)
    with pytest.raises(RegistryError, match="no option 'excel_names'"):
        load_registry("synthetic-depmap-6000/1", excel_names="keep")


def test_a_download_without_rows_is_one_problem() -> None:
    Path("empty.txt").write_text("#SCREEN_ID\tIDENTIFIER_TYPE\tOFFICIAL_SYMBOL\tHIT\n")
    findings = check_file("empty.txt", source="orcs")
    assert findings.pair is None
    assert findings.problems

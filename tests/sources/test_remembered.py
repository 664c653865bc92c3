"""Registries remembered under a name, and the check of a file, in Python and from the shell."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

import cads_env
from cads_env.cli import main
from cads_env.errors import RegistryError
from cads_env.panel import load_panel, load_registry
from cads_env.sources.adding import add_registry, check_file, guess_source
from cads_env.sources.names import resolve
from cads_env.sources.remembered import data_folder, find, remembered_names

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


def test_a_remembered_line_loads_by_its_name_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = add_registry("effect.csv", name="kpn", members=["ACH-000001"])
    assert added.guess.source == "depmap"
    assert added.file == tmp_path / "home" / "registries" / "kpn.yaml"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    registry, oracle = cads_env.load_registry("kpn")
    assert registry.name == oracle.panel == "kpn/ACH-000001"
    path = tmp_path / "effect.csv"
    plain = load_registry("depmap", path=path, line="ACH-000001", name="kpn")
    assert (registry.hash, oracle.hash) == (plain[0].hash, plain[1].hash)
    assert load_panel("kpn").names == ("kpn/ACH-000001",)
    assert load_registry("kpn", threshold=-1.0)[1].hit_count == 1
    assert load_registry("kpn", subsample=2, subsample_seed=1)[0].m == 2
    assert pickle.loads(pickle.dumps(resolve("kpn", {}))).load()[1].hash == oracle.hash


def test_several_lines_are_remembered_as_a_panel() -> None:
    add_registry("effect.csv", name="three", members=["all"])
    assert load_panel("three").names == tuple(f"three/ACH-00000{i}" for i in (1, 2, 3))
    assert load_panel("three").name == "three"
    assert load_registry("three", line="ACH-000002")[0].name == "three/ACH-000002"
    add_registry("effect.csv", name="two", options={"lines": ["ACH-000003", "ACH-000001"]})
    assert load_panel("two").names == ("two/ACH-000003", "two/ACH-000001")
    with pytest.raises(RegistryError, match="names a panel"):
        load_registry("two")


def test_a_table_is_remembered_with_the_options_of_the_file_beside_it() -> None:
    Path("screen.yaml").write_text("direction: lower\nthreshold: -0.5\n")
    added = add_registry("screen.csv", name="mine", options={"subsample": 3})
    assert added.guess.source == "table"
    assert added.first[0].m == 3
    Path("screen.yaml").unlink()
    registry, _ = load_registry("mine")
    assert registry.name == "mine+subsample=3,subsample_seed=0"
    assert registry.hash == added.first[0].hash


def test_a_changed_file_is_noticed_and_can_be_remembered_anew() -> None:
    add_registry("screen.csv", name="mine", options=DECLARED)
    Path("screen.csv").write_text(TABLE.replace("0.1", "0.2"))
    with pytest.raises(RegistryError) as caught:
        load_registry("mine")
    for word in ("not what it was", "oracle_hash", "cads registry add", "--name mine", "--replace"):
        assert word in str(caught.value)
    with pytest.raises(RegistryError, match="not what it was"):
        load_registry("mine", subsample=3)
    with pytest.raises(RegistryError, match="remembered as 'mine' already"):
        add_registry("screen.csv", name="mine", options=DECLARED)
    add_registry("screen.csv", name="mine", options=DECLARED, replace=True)
    assert load_registry("mine")[0].m == 4


def test_a_changed_line_of_a_panel_is_noticed_alone() -> None:
    add_registry("effect.csv", name="three", members=["all"], options={"prior": "none"})
    Path("effect.csv").write_text(MATRIX.replace("0.3,-0.55", "0.35,-0.55"))
    assert load_registry("three", line="ACH-000001")[0].m == 3
    with pytest.raises(RegistryError, match="'three/ACH-000003' is not what it was"):
        load_panel("three")


def test_a_registry_that_fails_is_not_remembered(home: Path) -> None:
    with pytest.raises(RegistryError, match="still to be declared"):
        add_registry("screen.csv", name="mine")
    assert remembered_names() == ()
    assert not home.exists()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("table", "name of a source"),
        ("synthetic-depmap", "name of a source"),
        ("a/b", "no usable name"),
        ("a:dev", "no usable name"),
        ("a+b", "no usable name"),
        ("../a", "no usable name"),
        (".hidden", "no usable name"),
        ("", "no usable name"),
        ("x" * 81, "no usable name"),
        ("mine.csv", "read as a file"),
        ("mine.YAML", "read as a file"),
    ],
)
def test_a_name_that_means_something_else_is_refused(name: str, words: str) -> None:
    with pytest.raises(RegistryError, match=words):
        add_registry("screen.csv", name=name, options=DECLARED)
    assert find(name) is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"path": "gone.csv"}, "gone.csv does not exist"),
        ({"path": "screen.yaml"}, "is a registry file"),
        ({"options": {"salt": "x"}}, "salt is a secret"),
        ({"options": {"path": "x"}}, "beside the file itself"),
        ({"source": "synthetic-depmap"}, "reads no file"),
        ({"source": "tabel"}, "reads no file"),
        ({"members": ["ACH-000001"]}, "knows no cell lines"),
        ({"path": "effect.csv", "members": ["ACH-1"]}, "no cell line 'ACH-1'"),
        ({"path": "effect.csv", "members": ["a", "a"]}, "repeats 'a'"),
        (
            {"path": "effect.csv", "members": ["ACH-000001"], "options": {"line": "x"}},
            "line= was given beside several lines",
        ),
        (
            {"path": "effect.csv", "members": ["ACH-000001"], "options": {"lines": ["x"]}},
            "both given",
        ),
        ({"path": "models.csv"}, "which no source reads"),
    ],
)
def test_what_cannot_be_remembered_is_refused(arguments: dict[str, Any], words: str) -> None:
    Path("models.csv").write_text("ModelID,OncotreeLineage\nACH-000001,Lung\n")
    with pytest.raises(RegistryError, match=words):
        add_registry(**{"path": "screen.csv", "name": "mine", **arguments})


def test_a_folder_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CADS_HOME", str(tmp_path / "file"))
    with pytest.raises(RegistryError, match="CADS_HOME"):
        add_registry("screen.csv", name="mine", options=DECLARED)
    assert remembered_names() == ()


def test_the_data_folder_is_the_systems_own_without_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CADS_HOME")
    assert data_folder().name == "cads-env"
    assert data_folder().is_absolute()


def test_the_source_is_told_from_the_file_or_said_to_be_a_table() -> None:
    assert guess_source(Path("effect.csv")).source == "depmap"
    plain = guess_source(Path("screen.csv"))
    assert (plain.source, "no known download" in plain.reason) == ("table", True)


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


def test_the_commands_add_list_show_run_and_remove(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"G{i:03d},{-1.5 if i % 7 == 0 else 0.1 + i / 1e4}\n" for i in range(200))
    Path("big.csv").write_text("identifier,effect\n" + rows)
    add = ("registry", "add", "big.csv", "--name", "mine", "-O", "direction=lower")
    assert cads(monkeypatch, *add) == 1
    assert "threshold=" in capsys.readouterr().err
    assert cads(monkeypatch, *add, "-O", "threshold=-0.5") == 0
    printed = capsys.readouterr().out
    for word in ("read as a table", "mine.yaml", "200", "29 (14.5%)", "cads run --registry mine"):
        assert word in printed
    assert cads(monkeypatch, *add, "-O", "threshold=-0.5") == 1
    assert "--replace" in capsys.readouterr().err
    assert cads(monkeypatch, *add, "-O", "threshold=-0.5", "--replace") == 0
    assert cads(monkeypatch, "registry", "list") == 0
    assert "remembered in" in capsys.readouterr().out
    assert cads(monkeypatch, "registry", "show", "mine") == 0
    assert "29 (14.5%)" in capsys.readouterr().out
    run = ("run", "--registry", "mine", "--agent", "random", "--seeds", "0", "--set", "rounds=3")
    assert cads(monkeypatch, *run) == 0
    manifest = json.loads(Path("runs/0001/manifest.json").read_text())
    assert "mine" in json.dumps(manifest)
    assert cads(monkeypatch, "registry", "remove", "mine") == 0
    assert cads(monkeypatch, "registry", "remove", "mine") == 1
    assert "only remembered registries" in capsys.readouterr().err
    assert cads(monkeypatch, "registry", "remove", "table") == 1
    assert "'table' is a source" in capsys.readouterr().err
    assert cads(monkeypatch, *run) == 1
    assert "Unknown registry 'mine'" in capsys.readouterr().err


def test_lines_run_from_options_and_from_a_panel_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix = ["," + ",".join(f"G{i} ({i})" for i in range(60))]
    matrix += [
        f"ACH-00000{k},"
        + ",".join(str(-1.0 - i / 99 if (i * k) % 5 == 1 else 0.01 * i) for i in range(60))
        for k in (1, 2, 3)
    ]
    Path("m.csv").write_text("\n".join(matrix))
    Path("lines.yaml").write_text("source: depmap\npath: m.csv\nlines: [ACH-000002, ACH-000003]\n")
    rest = ("--agent", "random", "--seeds", "0-1", "--set", "rounds=2")
    one = ("-O", "path=m.csv", "-O", "line=ACH-000001")
    assert cads(monkeypatch, "run", "--registry", "depmap", *one, *rest) == 0
    assert "m/ACH-000001" in capsys.readouterr().out
    assert cads(monkeypatch, "run", "--panel", "lines.yaml", *rest) == 0
    assert "on lines" in capsys.readouterr().out


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

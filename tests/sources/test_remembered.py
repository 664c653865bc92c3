"""Registries remembered under a name, in Python and from the shell."""

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
from cads_env.sources.adding import add_registry, guess_source
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


def test_a_registry_file_is_remembered_with_absolute_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "source: table\npath: screen.csv\ndirection: lower\nthreshold: -0.5\nsubsample: 3\n"
    Path("one.yaml").write_text(text)
    added = add_registry("one.yaml", name="mine")
    assert (added.guess.source, added.first[0].m) == ("table", 3)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    registry, oracle = load_registry("mine")
    assert (registry.name, registry.hash) == (added.first[0].name, added.first[0].hash)
    assert oracle.panel == registry.name
    (tmp_path / "one.yaml").unlink()
    (tmp_path / "screen.csv").write_text(TABLE.replace("0.1", "0.2"))
    with pytest.raises(RegistryError, match="'mine' is not what it was"):
        load_registry("mine")


def test_a_panel_file_is_remembered_with_its_splits_and_own_name() -> None:
    Path("lines.yaml").write_text(
        "name: lines\nsource: depmap\npath: effect.csv\n"
        "splits: {train: [ACH-000001, ACH-000002], eval: [ACH-000003]}\n"
    )
    Path("lone.yaml").write_text(
        "source: depmap\npath: effect.csv\nsplits: {train: [ACH-000001], "
        "eval: [ACH-000002, ACH-000003]}\n"
    )
    with pytest.raises(RegistryError, match=r"lone.yaml: .*prior='other-lines'"):
        add_registry("lone.yaml", name="lone")
    added = add_registry("lines.yaml", name="mine")
    assert added.names == tuple(f"lines/ACH-00000{i}" for i in (1, 2, 3))
    assert load_panel("mine:eval").names == ("lines/ACH-000003",)
    plain, kept = load_panel("lines.yaml"), load_panel("mine")
    assert [p[0].hash for p in plain] == [p[0].hash for p in kept]
    assert [p[1].hash for p in plain] == [p[1].hash for p in kept]


def test_a_generated_registry_is_remembered_from_its_file() -> None:
    Path("made.yaml").write_text("source: synthetic-scale\ninstance: 4\nm: 300\n")
    add_registry("made.yaml", name="made")
    registry, _ = load_registry("made")
    assert registry == load_registry("synthetic-scale/4", m=300)[0]


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
        ({"path": "gone.yaml"}, "gone.yaml does not exist; expected a registry file"),
        ({"path": "options.yaml"}, "no key 'source'"),
        ({"path": "beside.yaml"}, "Give that file itself: beside.csv"),
        ({"path": "list.yaml"}, "lists registries.*cads run --panel list.yaml"),
        ({"path": "secret.yaml"}, "has a salt"),
        ({"path": "one.yaml", "source": "table"}, "--source was given beside it"),
        ({"path": "one.yaml", "members": ["a"]}, "--line was given beside it"),
        ({"path": "one.yaml", "options": {"threshold": 1}}, "-O threshold was given beside it"),
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
    Path("beside.csv").write_text(TABLE)
    options = "direction: lower\nthreshold: -0.5\n"
    for name, text in {
        "options": options,
        "beside": options,
        "list": "registries: [beside.csv]\n",
        "one": f"source: table\npath: screen.csv\n{options}",
        "secret": f"source: table\npath: screen.csv\nsalt: abc\n{options}",
    }.items():
        Path(f"{name}.yaml").write_text(text)
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

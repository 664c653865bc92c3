"""Panel files: lists, splits, members, paths, and every way they can be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

import cads_env
from cads_env.errors import RegistryError
from cads_env.panel import load_panel, load_registry
from cads_env.values import dump_yaml, load_yaml

TABLE = "identifier,effect\nA,-1.0\nB,0.1\nC,-0.7\nD,0.0\n"
DECLARED = "direction: lower\nthreshold: -0.5\n"
MATRIX = ",A (1),B (2)\nACH-000001,-1,0\nACH-000002,0.5,-2\nACH-000003,-3,1\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / "data" / f"{name}.csv").write_text(TABLE)
        (tmp_path / "data" / f"{name}.yaml").write_text(DECLARED)
    (tmp_path / "data" / "lines.csv").write_text(MATRIX)
    return tmp_path


def write(folder: Path, text: str, name: str = "panel.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_panel_file_lists_names_paths_and_mappings(folder: Path) -> None:
    file = write(
        folder,
        "name: mine\nregistries:\n- data/a.csv\n- synthetic-depmap-6000/3\n"
        "- {source: table, path: data/b.csv, direction: higher, threshold: 0}\n"
        "- {source: depmap, path: data/lines.csv, lines: [ACH-000001, ACH-000003], prior: none}\n"
        "- {source: depmap, path: data/lines.csv, line: ACH-000002, name: other, prior: none}\n",
    )
    panel = load_panel(file)
    assert panel.name == "mine"
    assert panel.names == (
        "a", "synthetic-depmap-6000/3", "b", "lines/ACH-000001", "lines/ACH-000003",
        "other/ACH-000002",
    )  # fmt: skip
    assert [panel[i][1].hit_count for i in (0, 2, 3)] == [2, 1, 1]
    assert load_panel(str(file)).names == panel.names


def test_paths_in_a_panel_file_do_not_depend_on_where_one_stands(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, "registries: [data/a.csv, inner.yaml]\n")
    write(folder, "registries: [data/b.csv]\n", "inner.yaml")
    monkeypatch.chdir(folder / "data")
    assert load_panel("../panel.yaml").names == ("a", "b")


def test_splits_of_a_list_are_disjoint_and_chosen_by_name(folder: Path) -> None:
    file = write(folder, "splits:\n  eval: [data/c.csv]\n  train: [data/a.csv, data/b.csv]\n")
    assert load_panel(f"{file}:train").names == ("a", "b")
    assert load_panel(f"{file}:train").name == "panel:train"
    assert load_panel(file).names == ("a", "b", "c")
    outer = write(folder, f"registries: ['{file.name}:eval', data/a.csv]\n", "outer.yaml")
    assert load_panel(outer).names == ("c", "a")


def test_splits_share_no_data_under_two_names(folder: Path) -> None:
    line = "{{source: depmap, path: data/lines.csv, line: ACH-00000{}, name: {}, prior: none}}"
    table = "{{source: table, path: data/{}.csv, name: {}, direction: {}, threshold: -0.5}}"
    one = "{source: depmap, path: data/../data/lines.csv, lines: [ACH-000001], prior: none}"
    for first, second in (
        (line.format(1, "a"), line.format(1, "b")),
        (line.format(1, "a"), one),
        (table.format("a", "x", "lower"), table.format("a", "y", "higher")),
        ("data/a.csv", table.format("a", "y", "lower")),
        ("synthetic-depmap-6000/3", "{source: synthetic-depmap-6000, instance: 3, subsample: 50}"),
    ):
        file = write(folder, f"splits:\n  train: [{first}]\n  eval: [{second}]\n")
        for name in (str(file), f"{file}:eval"):
            with pytest.raises(RegistryError, match=r"in the split 'train'.* the same data under"):
                load_panel(name)


def test_other_members_and_columns_of_one_file_are_other_data(folder: Path) -> None:
    (folder / "data" / "wide.csv").write_text("identifier,p,q,h,k\nA,-1,1,1,0\nB,1,-1,0,1\n")
    line = "{{source: depmap, path: data/lines.csv, line: ACH-00000{}, prior: none}}"
    wide = "{{source: table, path: data/wide.csv, name: {0}, "
    effect = wide + "effect: {0}, direction: lower, threshold: 0}}"
    label = wide + "label: {0}, signal: [1, -1]}}"
    for pattern, values in ((line, "12"), (effect, "pq"), (label, "hk")):
        first, second = (pattern.format(value) for value in values)
        file = write(folder, f"splits:\n  train: [{first}]\n  eval: [{second}]\n")
        assert len(load_panel(file)) == 2


def test_a_file_of_lines_takes_all_of_them_or_one(folder: Path) -> None:
    file = write(folder, "source: depmap\npath: data/lines.csv\nlines: all\nprior: none\n")
    assert load_panel(file).names == tuple(f"panel/ACH-00000{i}" for i in (1, 2, 3))
    assert load_registry(file, line="ACH-000002")[0].name == "panel/ACH-000002"
    assert load_panel(file, line="ACH-000002").names == ("panel/ACH-000002",)
    assert load_panel(file, subsample=2).name == "panel+subsample=2,subsample_seed=0"


def test_a_panel_file_runs(folder: Path) -> None:
    file = write(folder, "splits: {train: [data/a.csv], eval: [data/b.csv, data/c.csv]}\n")
    result = cads_env.evaluate(
        "random", registry=load_panel(f"{file}:eval"), protocol="standard", seeds=[0, 1]
    )
    assert sorted(set(result.campaigns["registry"])) == ["b", "c"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("registries: []\n", ["registries=[]", "a list of names, paths or mappings"]),
        ("registries: data/a.csv\n", ["registries='data/a.csv'"]),
        ("registries: [3]\n", ["lists 3", "name or path"]),
        ("registries: [data/gone.csv]\n", ["gone.csv does not exist"]),
        ("registries: [nowhere]\n", ["Unknown registry 'nowhere'"]),
        ("registries: [data/a.csv, data/a.csv]\n", ["repeats registry names: 'a'"]),
        ("registries: [data/a.csv]\nthreshold: 1\n", ["has the key 'threshold'"]),
        ("registries: [data/a.csv]\nregistrys: [x]\n", ["Did you mean 'registries'?"]),
        ("registries: [data/a.csv]\nname: 3\n", ["name=3"]),
        ("registries: [{path: data/a.csv}]\n", ["no key 'source'"]),
        ("registries: [panel.yaml]\n", ["panel files in one another"]),
        ("registries: [data/a.csv]\nsplits: {dev: [data/b.csv]}\n", ["both 'registries' and"]),
        ("splits: {}\n", ["splits={}"]),
        ("splits: [a]\n", ["splits=['a']", "train, dev, eval"]),
        ("splits: {test: [data/a.csv]}\n", ["unknown split 'test'", "train"]),
        ("splits: {dev: data/a.csv}\n", ["the split 'dev' is 'data/a.csv'"]),
        ("splits: {dev: [data/a.csv], eval: [data/a.csv]}\n", ["'a' is in the splits", "'dev'"]),
        ("source: depmp\n", ["unknown source 'depmp'", "Did you mean 'depmap'?"]),
        ("source: depmap\nlines: all\n", ["no key 'path'"]),
        ("source: table\npath: data/a.csv\nsplits: {dev: [x]}\n", ["is one registry"]),
        (
            "source: depmap\npath: data/lines.csv\nline: ACH-000001\nlines: all\n",
            ["'line' and 'lines'"],
        ),
        ("source: depmap\npath: data/lines.csv\nlines: [1]\n", ["lines=[1]", "list of names"]),
        (
            "source: depmap\npath: data/lines.csv\nsplits: {dev: [ACH-000001], eval: [ACH-000001]}",
            ["'ACH-000001' is in the splits 'dev' and 'eval'", "share no registry"],
        ),
        (
            "source: depmap\npath: data/lines.csv\nlines: [ACH-000001]\n"
            "splits: {dev: [ACH-000002]}",
            ["'ACH-000002' is in the split 'dev' but not among lines"],
        ),
        ("source: depmap\npath: data/lines.csv\nlines: [ACH-000009]\n", ["no cell line"]),
        ("source: depmap\npath: data/lines.csv\nregistry_hash: abc\n", ["registry_hash", "64"]),
        ("source: depmap\npath: a\npath: b\n", ["the key 'path' twice (line 3)"]),
    ],
)
def test_a_faulty_panel_file_is_refused(folder: Path, text: str, words: list[str]) -> None:
    file = write(folder, text)
    with pytest.raises(RegistryError) as caught:
        load_panel(file)
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("panel.yaml:test", ["Unknown split 'test'", "train, eval"]),
        ("data/a.yaml:eval", ["no key 'source'"]),
        ("gone.yaml:eval", ["gone.yaml does not exist"]),
        ("gone:eval", ["Unknown panel 'gone:eval'"]),
    ],
)
def test_a_wrong_split_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: list[str]
) -> None:
    write(folder, "splits: {train: [data/a.csv], eval: [data/b.csv]}\n")
    monkeypatch.chdir(folder)
    with pytest.raises(RegistryError) as caught:
        load_panel(name)
    assert [word for word in words if word not in str(caught.value)] == []


def test_a_panel_is_no_single_registry(folder: Path) -> None:
    file = write(folder, "source: depmap\npath: data/lines.csv\nlines: all\n")
    with pytest.raises(RegistryError, match=r"names a panel.*load_panel, or say line="):
        load_registry(file)
    listing = write(folder, "registries: [data/a.csv]\n", "list.yaml")
    with pytest.raises(RegistryError, match="names a panel"):
        load_registry(listing)
    with pytest.raises(RegistryError, match="use load_panel"):
        load_registry(f"{listing}:eval")


def test_a_path_option_beside_a_table_is_refused(folder: Path) -> None:
    with pytest.raises(RegistryError, match=r"path='other.csv' was given beside the table"):
        load_registry(folder / "data" / "a.csv", path="other.csv")


def test_doubled_keys_are_refused_at_every_depth() -> None:
    for text in ("a: 1\na: 1\n", "x: {b: 1, b: 2}\n", "- {c: 1, c: 2}\n"):
        with pytest.raises(ValueError, match="twice"):
            load_yaml(text)
    assert load_yaml("{a: {a: 1}, b: 1e-5}") == {"a": {"a": 1}, "b": 1e-5}


@pytest.mark.parametrize(
    "text", ["580e6d33", "1e5", "1.5", "null", "", "yes", "2023-03-01", "a: b", "1e5x", "\u00e4"]
)
def test_dumped_texts_are_read_back_as_they_were(text: str) -> None:
    content = {"a": text, "b": [text, 1e-5, 3, True, None]}
    assert load_yaml(dump_yaml(content)) == content

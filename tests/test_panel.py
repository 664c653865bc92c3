"""Names, paths and options of registries; panels of them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from cads_env.errors import RegistryError
from cads_env.panel import HELD_PAIRS, Panel, load_panel, load_registry
from cads_env.sources import COMMON_OPTIONS, SOURCES
from cads_env.sources.table_options import OPTION_NAMES

SMALL = "synthetic-depmap-6000"
TABLE = "identifier,effect\nA,-1.0\nB,0.1\nC,-0.7\nD,0.0\nE,0.3\nF,-0.2\n"
DECLARED: dict[str, Any] = {"direction": "lower", "threshold": -0.5}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "my_screen.csv"
    path.write_text(TABLE)
    return path


def test_the_plain_name_of_a_panel_is_its_instance_0() -> None:
    plain, plain_oracle = load_registry(SMALL)
    numbered, numbered_oracle = load_registry(f"{SMALL}/0")
    assert plain.name == numbered.name == f"{SMALL}/0"
    assert (plain.hash, plain_oracle.hash) == (numbered.hash, numbered_oracle.hash)


def test_an_oracle_knows_its_panel_and_instance() -> None:
    _, oracle = load_registry(f"{SMALL}/17")
    assert (oracle.panel, oracle.instance) == (SMALL, 17)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("synthetic-depmp", {}, ["Unknown registry", "Did you mean 'synthetic-depmap'?", "table"]),
        ("nowhere", {}, ["Unknown registry 'nowhere'", "Available", "must end in"]),
        ("synthetic-depmap/x", {}, ["no instance", "synthetic-depmap/17"]),
        ("synthetic-depmap/-1", {}, ["no instance"]),
        ("synthetic-depmap/", {}, ["no instance"]),
        ("synthetic-depmap/²", {}, ["no instance"]),
        ("synthetic-depmap/3", {"instance": 4}, ["disagree"]),
        ("synthetic-depmap:train", {}, ["names a panel", "load_panel('synthetic-depmap:train')"]),
        ("depmap-26q1-mean/3", {}, ["no numbered instances"]),
        ("missing.csv", {}, ["missing.csv does not exist"]),
        ("missing.yaml", {}, ["missing.yaml does not exist"]),
        ("x" * 5000 + ".csv", {}, ["does not exist"]),
        ("nul\0.csv", {}, ["does not exist"]),
        ("screen.xlsx", {}, ["must end in one of .csv, .tsv, .txt, "]),
        (SMALL, {"structur": 0.1}, ["'structur'", "Did you mean 'structure'?", "subsample_seed"]),
        (SMALL, {"threshold": 0.1}, ["'threshold'", "Available", "structure"]),
        (SMALL, {"salt": 3}, ["salt is of type int"]),
        (SMALL, {"subsample": 1}, ["subsample=1 is out of range"]),
        (SMALL, {"subsample": 90, "subsample_seed": "x"}, ["subsample_seed='x'"]),
        ("table", {}, ["needs path="]),
        ("table", {"path": 3}, ["path=3"]),
        (5, {}, ["Received 5"]),
    ],
)
def test_a_wrong_name_or_option_is_refused_with_what_exists(
    name: str, options: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(RegistryError) as caught:
        load_registry(name, **options)
    assert [word for word in words if word not in str(caught.value)] == []


def test_a_folder_is_no_registry(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match="is a folder"):
        load_registry(str(tmp_path))
    odd = tmp_path / "folder.csv"
    odd.mkdir()
    with pytest.raises(RegistryError, match="is a folder"):
        load_registry(odd)


def test_a_path_ending_in_csv_is_a_table(table: Path) -> None:
    registry, oracle = load_registry(str(table), **DECLARED)
    assert registry.name == oracle.panel == "my_screen"
    assert (registry.m, oracle.hit_count, oracle.instance) == (6, 2, 0)
    assert load_registry("table", path=str(table), **DECLARED)[1].hash == oracle.hash


def test_the_file_beside_a_table_declares_its_options_and_explicit_ones_win(table: Path) -> None:
    table.with_suffix(".yaml").write_text("direction: lower\nthreshold: -0.5\nname: mine\n")
    registry, oracle = load_registry(table)
    assert (registry.name, oracle.hit_count) == ("mine", 2)
    assert load_registry(table, threshold=-0.1)[1].hit_count == 3


def test_a_registry_file_names_source_path_and_options(table: Path) -> None:
    (table.parent / "folder").mkdir()
    file = table.parent / "folder" / "screen.yaml"
    file.write_text("source: table\npath: ../my_screen.csv\ndirection: lower\nthreshold: -0.5\n")
    registry, oracle = load_registry(file)
    assert (registry.name, oracle.hit_count) == ("screen", 2)
    assert load_registry(str(file), threshold=-0.1, name="b")[0].name == "b"


def test_a_registry_file_may_lie_beside_its_table_and_serves_both_ways(table: Path) -> None:
    file = table.with_suffix(".yaml")
    file.write_text("source: table\npath: my_screen.csv\ndirection: lower\nthreshold: -0.5\n")
    assert load_registry(table)[1].hash == load_registry(file)[1].hash


def test_a_registry_file_of_a_synthetic_source_takes_instance_and_options(tmp_path: Path) -> None:
    file = tmp_path / "flat.yml"
    file.write_text(f"source: {SMALL}\ninstance: 3\nstructure: 0.0\n")
    registry, oracle = load_registry(file)
    assert registry.name == f"{SMALL}/3+structure=0"
    assert oracle.hash == load_registry(f"{SMALL}/3", structure=0)[1].hash


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("threshold: -0.5\n", ["no key 'source'"]),
        ("source: tabel\n", ["unknown source 'tabel'", "Did you mean 'table'?"]),
        ("source: [table]\n", ["unknown source"]),
        ("source: table\n", ["no key 'path'"]),
        ("source: table\npath: gone.csv\n", ["gone.csv does not exist"]),
        ("source: table\npath: my_screen.csv\ntreshold: 1\n", ["'treshold'", "'threshold'?"]),
        ("- a\n- b\n", ["holds no options"]),
        ("", ["holds no options"]),
        ("a: [1\n", ["not readable YAML"]),
    ],
)
def test_a_faulty_registry_file_is_refused(table: Path, text: str, words: list[str]) -> None:
    file = table.parent / "registry.yaml"
    file.write_text(text)
    with pytest.raises(RegistryError) as caught:
        load_registry(file)
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("treshold: 1\n", ["'treshold'", "my_screen.yaml"]),
        ("source: synthetic-scale\n", ["for another source"]),
        ("path: other.csv\n", ["is for", "other.csv"]),
    ],
)
def test_a_faulty_file_beside_a_table_is_refused(table: Path, text: str, words: list[str]) -> None:
    table.with_suffix(".yaml").write_text(text)
    with pytest.raises(RegistryError) as caught:
        load_registry(table, **DECLARED)
    assert [word for word in words if word not in str(caught.value)] == []


def test_splits_are_disjoint_and_hold_no_instance_0() -> None:
    splits = SOURCES["synthetic-depmap"].splits
    assert {name: (min(r), max(r), len(r)) for name, r in splits.items()} == {
        "train": (1, 512, 512),
        "dev": (513, 544, 32),
        "eval": (545, 576, 32),
    }


@pytest.mark.parametrize("panel_name", ["synthetic-depmap", SMALL])
def test_a_split_is_a_panel_of_its_instances_in_order(panel_name: str) -> None:
    panel = load_panel(f"{panel_name}:dev")
    assert panel.name == f"{panel_name}:dev"
    assert panel.names == tuple(f"{panel_name}/{i}" for i in range(513, 545))
    registry, oracle = panel[2]
    assert (registry.name, oracle.instance) == (f"{panel_name}/515", 515)
    assert panel.m == registry.m


def test_seed_k_plays_registry_k_modulo_the_length() -> None:
    panel = load_panel(f"{SMALL}:dev")
    assert panel.for_seed(33)[1].instance == 514
    assert panel.for_seed(1)[0] is panel[1][0]


@pytest.mark.parametrize("i", [-1, 32, 1000])
def test_a_position_outside_a_panel_is_an_index_error(i: int) -> None:
    with pytest.raises(IndexError, match="registries 0 to 31"):
        load_panel(f"{SMALL}:dev")[i]


def test_the_name_that_a_panel_gives_a_registry_is_the_registrys_own() -> None:
    options: dict[str, Any] = {"structure": 0.25, "salt": "s", "subsample": 300}
    panel = load_panel(f"{SMALL}:eval", **options)
    expected = f"{SMALL}/545+structure=0.25+salted+subsample=300,subsample_seed=0"
    assert panel.names[0] == panel[0][0].name == expected
    assert panel.name == f"{SMALL}:eval+structure=0.25+salted+subsample=300,subsample_seed=0"


def test_one_name_or_path_is_a_panel_of_one(table: Path) -> None:
    panel = load_panel(f"{SMALL}/5")
    assert (len(panel), panel.name, panel.names) == (1, f"{SMALL}/5", (f"{SMALL}/5",))
    panel = load_panel(table, **DECLARED)
    assert (panel.name, panel.m, panel.for_seed(7)[0].name) == ("my_screen", 6, "my_screen")


def test_several_names_and_paths_are_a_panel_in_their_order(table: Path) -> None:
    table.with_suffix(".yaml").write_text("direction: lower\nthreshold: -0.5\n")
    panel = load_panel([f"{SMALL}/5", table, f"{SMALL}:dev"])
    assert panel.names[:3] == (f"{SMALL}/5", "my_screen", f"{SMALL}/513")
    assert [registry.m for registry, _ in (panel[0], panel[1])] == [6000, 6]


@pytest.mark.parametrize(
    ("names", "options", "words"),
    [
        ("synthetic-depmap:foo", {}, ["Unknown split 'foo'", "train, dev, eval"]),
        ("depmap-26q1-mean:train", {}, ["it has no splits"]),
        ("synthetic:train", {}, ["Unknown panel", "Did you mean"]),
        (f"{SMALL}:dev", {"instance": 3}, ["leave instance=3 out"]),
        (f"{SMALL}:dev", {"structure": 7}, ["structure=7"]),
        ([], {}, ["at least one registry"]),
        ([f"{SMALL}/1", f"{SMALL}/1"], {}, [f"repeats registry names: '{SMALL}/1'"]),
        (None, {}, ["Received None"]),
    ],
)
def test_a_wrong_panel_is_refused(names: Any, options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(RegistryError) as caught:
        load_panel(names, **options)
    assert [word for word in words if word not in str(caught.value)] == []


def test_a_faulty_table_anywhere_in_a_panel_is_found_at_once(table: Path) -> None:
    faulty = table.with_name("faulty.csv")
    faulty.write_text("identifier,effect\nA,x\nB,1\n")
    with pytest.raises(RegistryError, match=r"faulty.csv: 1 entries"):
        load_panel([table, faulty], **DECLARED)


def test_a_panel_holds_few_registries_and_returns_the_held_one() -> None:
    panel = load_panel(f"{SMALL}:dev", subsample=100)
    first = panel[0]
    assert panel[0] is first
    for i in range(1, HELD_PAIRS + 1):
        panel[i]
    assert panel[0] is not first
    assert panel[0][1].hash == first[1].hash


def test_a_pickled_panel_is_small_and_loads_the_same_registries() -> None:
    panel = load_panel(f"{SMALL}:dev")
    raw = pickle.dumps(panel)
    copy = pickle.loads(raw)
    assert len(raw) < 5000
    assert copy.names == panel.names
    assert copy[0][1].hash == panel[0][1].hash


def test_a_panel_goes_through_its_registries_in_order(table: Path) -> None:
    panel = load_panel([f"{SMALL}/1", f"{SMALL}/2"])
    assert [oracle.instance for _, oracle in panel] == [1, 2]


def test_a_panel_can_be_made_of_loaded_registries() -> None:
    pairs = [load_registry(f"{SMALL}/{i}", subsample=200) for i in (3, 4)]
    panel = Panel.of(pairs, name="mine")
    assert (panel.name, panel.names) == ("mine", tuple(registry.name for registry, _ in pairs))
    assert panel.for_seed(3)[1] is pairs[1][1]
    assert pickle.loads(pickle.dumps(panel))[1][1].hash == pairs[1][1].hash
    with pytest.raises(RegistryError, match="at least one registry"):
        Panel.of([], name="none")


def test_whatever_means_a_panel_is_resolved_to_one() -> None:
    pair = load_registry(f"{SMALL}/3", subsample=200)
    panel = Panel.of([pair], name="mine")
    assert Panel.resolve(panel) is panel
    assert Panel.resolve(pair)[0][1] is pair[1]
    assert Panel.resolve(f"{SMALL}/3").names == (f"{SMALL}/3",)
    assert len(Panel.resolve([f"{SMALL}/3", f"{SMALL}/4"])) == 2
    for half in pair:
        with pytest.raises(RegistryError, match="pass the pair"):
            Panel.resolve(half)
    with pytest.raises(RegistryError, match="expected a registry's name"):
        Panel.resolve(3)


def test_registries_of_different_sizes_are_found_and_named(table: Path) -> None:
    load_panel(f"{SMALL}:dev").check_common_size()
    table.with_suffix(".yaml").write_text("direction: lower\nthreshold: -0.5\n")
    for other, m in (("synthetic-depmap/2", 18159), (table, 6)):
        panel = load_panel([f"{SMALL}/1", f"{SMALL}/2", other])
        with pytest.raises(RegistryError, match=f"'{SMALL}/1' has 6000 candidates, .* {m}"):
            panel.check_common_size()


def test_the_salt_of_a_private_panel_is_not_printed() -> None:
    panel = load_panel(f"{SMALL}:dev", salt="geheim")
    assert "geheim" not in f"{panel!r}{panel.name}{panel.names}{panel[0]!r}"


def test_the_catalogue_lists_exactly_the_options_that_a_table_takes() -> None:
    assert sorted(SOURCES["table"].options) == sorted(("path", "name", *OPTION_NAMES))
    assert not set(COMMON_OPTIONS) & {o for info in SOURCES.values() for o in info.options}

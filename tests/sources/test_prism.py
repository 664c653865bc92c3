"""Registries from PRISM: both primary orientations, the secondary screen, names, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cads_env.errors import RegistryError
from cads_env.panel import load_panel, load_registry
from cads_env.registry import Oracle, Registry
from cads_env.sources.layouts import recognise
from cads_env.sources.prism_files import lines_of

LAYOUTS = Path(__file__).parents[2] / ".." / "shared" / "data" / "layouts"
BY_COMPOUND = (
    ",ACH-000001,ACH-000002\r\n"
    "BRD:BRD-K00000002-001-01-1,-2.0,0.5\r\n"
    "BRD:BRD-K00000001-001-01-1,0.25,NaN\r\n"
    "BRD:BRD-K00000003-001-01-1,,-1.5\r\n"
)
BY_LINE = (
    ",BRD-K2::2.5::HTS,BRD-K1::2.5::HTS,BRD-K1::2.5::MTS,BRD-K3::2.5::MTS\n"
    "ACH-000001,-2,0.5,-3,\n"
    "ACH-000002,1,,0.5,-1\n"
)
SECONDARY = (
    "broad_id,depmap_id,ccle_name,screen_id,auc,ec50,ic50,name,moa,target\n"
    'BRD-K1,ACH-000001,HT29_COLON,HTS,0.3,1,,alpha,inhibitor,"A, B"\n'
    "BRD-K2,ACH-000001,HT29_COLON,HTS,0.9,2,4,beta,inhibitor,\n"
    "BRD-K3,ACH-000001,HT29_COLON,HTS,,3,0.5,beta,,C\n"
    'BRD-K1,ACH-000002,KPN_LUNG,HTS,0.8,1,,alpha,inhibitor,"A, B"\n'
)
MEASURED = SECONDARY.replace("HTS,,3", "HTS,0.7,3")
LIST = (
    "screen,dose,repurposing_target,MOA,IDs,Drug.Name\n"
    "X,2.5,\"A, B\",kinase,BRD:BRD-K00000001-001-01-1,ALPHA\n"
    "X,2.5,,,BRD:BRD-K00000002-001-01-1,BETA\n"
)  # fmt: skip
ONE: dict[str, Any] = {"line": "ACH-000001", "threshold": -1}
AUC: dict[str, Any] = {"line": "ACH-000001", "measure": "auc", "threshold": 0.5}


def load(tmp_path: Path, content: str | bytes, **options: Any) -> tuple[Registry, Oracle]:
    path = tmp_path / "prism.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return load_registry("prism", path=path, **options)


@pytest.fixture
def compounds(tmp_path: Path) -> Path:
    path = tmp_path / "list.csv"
    path.write_text(LIST, encoding="utf-8")
    return path


def test_lower_is_a_kill_and_a_hit_when_compounds_are_rows(tmp_path: Path) -> None:
    registry, oracle = load(tmp_path, BY_COMPOUND, **ONE)
    assert registry.identifiers == ("BRD-K00000001-001-01-1", "BRD-K00000002-001-01-1")
    assert oracle.signal.tolist() == [-1.25, 1.0]
    assert registry.description.endswith("Left out: compounds without a value on this line (1).")


def test_lines_as_rows_give_the_same_with_a_screen_chosen(tmp_path: Path) -> None:
    registry, oracle = load(tmp_path, BY_LINE, screen="HTS", **ONE)
    assert registry.identifiers == ("BRD-K1", "BRD-K2")
    assert oracle.signal.tolist() == [-1.5, 1.0]
    assert "compounds of other screens (1)" in registry.description


def test_screens_may_be_listed_in_order_of_preference(tmp_path: Path) -> None:
    options: dict[str, Any] = {"line": "ACH-000002", "threshold": 0}
    registry, oracle = load(tmp_path, BY_LINE, screen=["MTS", "HTS"], **options)
    assert registry.identifiers == ("BRD-K1", "BRD-K2", "BRD-K3")
    assert oracle.signal.tolist() == [-0.5, -1.0, 1.0]


def test_the_compound_list_gives_names_mechanisms_and_targets(
    tmp_path: Path, compounds: Path
) -> None:
    text, options = BY_COMPOUND.replace(",,", ",0.5,"), {"compounds": compounds, **ONE}
    registry, _ = load(tmp_path, text, **options)
    assert registry.identifiers == ("ALPHA", "BETA", "BRD-K00000003-001-01-1")
    assert registry.side_tables["moa"].values.tolist() == ["kinase", "", ""]
    assert registry.side_tables["target"].values.tolist() == ["A, B", "", ""]
    by_id, _ = load(tmp_path, text, names="id", **options)
    assert by_id.identifiers[0] == "BRD-K00000001-001-01-1"


def test_a_compound_without_a_name_of_its_own_keeps_its_id(tmp_path: Path) -> None:
    registry, _ = load(tmp_path, MEASURED, **AUC)
    assert registry.identifiers == ("BRD-K2", "BRD-K3", "alpha")


def test_lower_area_under_the_curve_is_a_hit(tmp_path: Path) -> None:
    registry, oracle = load(tmp_path, SECONDARY, annotations=False, **AUC)
    assert registry.identifiers == ("alpha", "beta")
    assert oracle.signal == pytest.approx([0.2, -0.4])
    assert "lower: killed" in registry.description
    assert not registry.side_tables


def test_compounds_without_an_ic50_are_left_out_and_counted(tmp_path: Path) -> None:
    options: dict[str, Any] = {"line": "ACH-000001", "measure": "ic50", "threshold": 1}
    registry, oracle = load(tmp_path, SECONDARY, **{**options, "names": "id", "annotations": False})
    assert registry.identifiers == ("BRD-K2", "BRD-K3")
    assert oracle.labels.tolist() == [False, True]
    assert "(1)" in registry.description


def test_the_lines_of_each_layout_are_listed(tmp_path: Path) -> None:
    for text in (BY_COMPOUND, BY_LINE, SECONDARY):
        path = tmp_path / "x.csv"
        path.write_text(text, encoding="utf-8")
        assert lines_of(path=path) == ("ACH-000001", "ACH-000002")


def test_an_annotation_that_spells_the_hits_out_is_refused_with_the_way_out(
    tmp_path: Path,
) -> None:
    with pytest.raises(RegistryError, match=r"copy of the truth.*annotations=false"):
        load(tmp_path, SECONDARY, **AUC)


def test_long_lists_of_targets_are_cut_and_said_to_be(tmp_path: Path) -> None:
    registry, _ = load(tmp_path, MEASURED.replace("A, B", "GENE, " * 60), **AUC)
    table = registry.side_tables["target"]
    assert max(map(len, table.values.tolist())) == 200
    assert "cut to 200 characters" in table.description


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (BY_COMPOUND, {}, ["2 cell lines", "line=...", "'ACH-000001'"]),
        (BY_COMPOUND, {"line": "ACH-00001"}, ["no cell line 'ACH-00001'", "nearest", "000001"]),
        (BY_COMPOUND, {"line": "ACH-000001"}, ["threshold=...", "lower means killed", "lfc < "]),
        (BY_COMPOUND, {**ONE, "measure": "auc"}, ["measure='auc'", "secondary screen"]),
        (BY_COMPOUND, {**ONE, "threshold": -9}, ["0 of 2", "between -2 and 0.25"]),
        (BY_COMPOUND, {**ONE, "screen": "HTS"}, ["no screen 'HTS'", "names no screens"]),
        (BY_COMPOUND, {**ONE, "screen": 3}, ["screen=3", "a list of screens"]),
        (BY_COMPOUND, {**ONE, "names": "smiles"}, ["names='smiles'", "'drug' or 'id'"]),
        (BY_COMPOUND, {**ONE, "annotations": "no"}, ["annotations='no'", "true or false"]),
        (BY_COMPOUND.replace("-2.0", "dead"), ONE, ["no finite numbers", "row 2: 'dead'"]),
        (BY_COMPOUND.replace("K00000002", "K00000001"), ONE, ["several values", "Remove"]),
        (BY_COMPOUND.replace("NaN", "NaN,1"), ONE, ["row 3 has 4 fields"]),
        (BY_COMPOUND.replace("000002", "000001"), ONE, ["repeats column names: 'ACH-000001'"]),
        (BY_LINE, ONE, ["BRD-K1 (HTS, MTS)", "screen=[HTS, MTS]"]),
        (BY_LINE, {**ONE, "screen": "HTX"}, ["no screen 'HTX'", "'HTS'"]),
        (BY_LINE, {"line": "ACH-999999", "threshold": 0}, ["no cell line", "among its 2"]),
        (BY_LINE.replace("ACH-000002", "ACH-000001"), ONE, ["2 rows of the line"]),
        (BY_LINE.replace("-3", "inf"), {**ONE, "screen": "HTS"}, ["BRD-K1::2.5::MTS: 'inf'"]),
        (",BRD-K1,BRD-K2\n", ONE, ["header and no data rows"]),
        (SECONDARY, {"line": "ACH-000001"}, ["measure=auc", "ic50 is often empty"]),
        (SECONDARY, {**AUC, "measure": "AUC"}, ["measure='AUC'", "'ec50'"]),
        (SECONDARY, {**AUC, "line": "HT-29"}, ["name of ACH-000001", "line=ACH-000001"]),
        (SECONDARY.replace("ic50", "IC"), {**AUC, "measure": "ic50"}, ["no column 'ic50'"]),
        (SECONDARY + "BRD-K1,ACH-000001,x,MTS,0.2,1,,alpha,,\n", AUC,
         ["BRD-K1 (HTS, MTS)", "screen=..."]),
        (SECONDARY.splitlines()[0] + "\n", AUC, ["header and no data rows"]),
        ("a,b\n1,2\n", ONE, ["expected a PRISM file", "'a'"]),
        ("gene,ACH-000001,b\n\"x,1,2\n", ONE, ["expected a PRISM file"]),
        (BY_COMPOUND.encode("utf-16"), ONE, ["not UTF-8"]),
        (b"\x89HDF\r\n\x1a\n\0\0", ONE, ["not UTF-8"]),
        ("", ONE, ["no header"]),
    ],
)  # fmt: skip
def test_a_faulty_file_or_declaration_is_refused_with_what_to_do(
    tmp_path: Path, content: str | bytes, options: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(RegistryError) as caught:
        load(tmp_path, content, **options)
    assert [word for word in words if word not in str(caught.value)] == []


def test_a_compound_list_of_another_kind_or_release_is_refused(
    tmp_path: Path, compounds: Path
) -> None:
    compounds.write_text(LIST.replace("K0000", "K9999"), encoding="utf-8")
    with pytest.raises(RegistryError, match="none of the 2 compounds"):
        load(tmp_path, BY_COMPOUND, compounds=compounds, **ONE)
    compounds.write_text(BY_COMPOUND, encoding="utf-8")
    with pytest.raises(RegistryError, match="no PRISM compound list"):
        load(tmp_path, BY_COMPOUND, compounds=compounds, **ONE)


def layout(name: str) -> Path:
    path = LAYOUTS / name
    if not path.is_file():
        pytest.skip(f"the miniature {name} is not here")
    return path


MATRIX = "Repurposing_Public_24Q2_Extended_Primary_Data_Matrix.csv"
COMPOUNDS = "Repurposing_Public_24Q2_Extended_Primary_Compound_List.csv"
TURNED = "primary-screen-replicate-collapsed-logfold-change.csv"
CURVES = "secondary-screen-dose-response-curve-parameters.csv"


def test_both_primary_miniatures_hold_the_same_screen() -> None:
    options: dict[str, Any] = {"line": "ACH-000827", "threshold": -1}
    one, other = (
        load_registry("prism", path=layout(x), name="p", **options) for x in (MATRIX, TURNED)
    )
    assert (one[0].hash, one[1].hash) == (other[0].hash, other[1].hash)
    assert (one[0].m, one[1].hit_count) == (13, 4)
    for name in (MATRIX, TURNED, CURVES):
        assert [found.source for found in recognise(layout(name))] == ["prism"]


def test_the_compound_miniature_names_them_and_is_no_screen() -> None:
    path = layout(COMPOUNDS)
    registry, _ = load_registry(
        "prism", path=layout(MATRIX), line="ACH-000446", threshold=-1, compounds=path
    )
    assert "BORTEZOMIB" in registry.identifiers
    assert set(registry.side_tables) == {"moa", "target"}
    with pytest.raises(RegistryError, match="expected a PRISM file"):
        load_registry("prism", path=path, line="ACH-000446", threshold=-1)
    assert [found.source for found in recognise(path)] == [None]


def test_the_secondary_miniature_loads_by_each_measure() -> None:
    for measure, threshold, m in (("auc", 0.5, 14), ("ic50", 1, 5), ("ec50", 1, 14)):
        registry, oracle = load_registry(
            "prism", path=layout(CURVES), line="ACH-000446", measure=measure, threshold=threshold
        )
        assert registry.m == m
        assert oracle.hit_count > 0


def test_the_lines_of_a_file_make_a_panel_and_a_measure_is_in_the_name(tmp_path: Path) -> None:
    path = tmp_path / "prism.csv"
    path.write_text(BY_COMPOUND, encoding="utf-8")
    panel = load_panel("prism", path=path, lines=["ACH-000002", "ACH-000001"], threshold=-1)
    assert panel.names == ("prism/ACH-000002", "prism/ACH-000001")
    path.write_text(MEASURED, encoding="utf-8")
    assert load_registry("prism", path=path, **AUC)[0].name == "prism/ACH-000001+measure=auc"

"""Registries from DepMap's matrices: truth, priors, panels, descriptions, and what is refused."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cads_env.errors import RegistryError
from cads_env.panel import Panel, load_panel, load_registry
from cads_env.registry import Oracle, Registry
from cads_env.sources.layouts import recognise, source_of

SHARED = Path(__file__).parents[2] / ".." / "shared" / "data"
LAYOUTS = SHARED / "layouts"
with_shared = pytest.mark.skipif(not LAYOUTS.is_dir(), reason="the shared test data are absent")

EFFECT = (
    ",HLA-A (1),NKX2-1 (2),H3-3A (3),KRAS (4)\n"
    "ACH-000001,0.1,-1.25,-0.6,0.0\n"
    "ACH-000002,,-0.75,0.2,\n"
    "ACH-000003,0.3,-0.55,0.0,\n"
    "ACH-000004,-0.9,,-0.7,0.1\n"
)
DEPENDENCY = (
    "ModelID,KRAS (4),H3-3A (3),HLA-A (1),NKX2-1 (2)\n"
    "ACH-000004,0.1,0.9,0.95,\n"
    "ACH-000001,0.05,0.7,0.01,0.99\n"
)
MODELS = (
    "ModelID,CellLineName,OncotreeLineage,OncotreePrimaryDisease\n"
    'ACH-000001,MY-1,Lung,"Cancer, small"\n'
    "ACH-000002,,,\n"
    "ACH-000077,Other-77,Skin,Melanoma\n"
)
ONE = "ACH-000001"


@pytest.fixture
def effect(tmp_path: Path) -> Path:
    path = tmp_path / "CRISPRGeneEffect.csv"
    path.write_text(EFFECT)
    (tmp_path / "Dependency.csv").write_text(DEPENDENCY)
    (tmp_path / "Model.csv").write_text(MODELS)
    return path


def load(path: Path, line: str = ONE, **options: Any) -> tuple[Registry, Oracle]:
    return load_registry("depmap", path=path, line=line, **options)


def test_u_is_the_threshold_minus_the_effect_of_the_line(effect: Path) -> None:
    registry, oracle = load(effect)
    assert registry.name == oracle.panel == f"CRISPRGeneEffect/{ONE}"
    assert registry.identifiers == ("H3-3A", "HLA-A", "KRAS", "NKX2-1")
    assert oracle.signal == pytest.approx([0.1, -0.6, -0.5, 0.75])
    assert oracle.labels.tolist() == [True, False, False, True]
    assert load(effect, threshold=-1.0)[1].labels.tolist() == [False, False, False, True]


def test_the_prior_is_minus_the_mean_of_the_other_lines_and_0_where_they_have_none(
    effect: Path,
) -> None:
    table = load(effect)[0].side_tables["prior"]
    assert table.values == pytest.approx([0.5 / 3, 0.3, -0.1, 0.65], abs=1e-9)
    assert "3 other cell lines" in table.description
    registry, _ = load(effect, "ACH-000004", prior=["ACH-000002", "ACH-000003", "ACH-000004"])
    assert registry.side_tables["prior"].values == pytest.approx([-0.1, -0.3, 0.0], abs=1e-9)
    assert "0 for 1 genes" in registry.side_tables["prior"].description
    assert load(effect, prior="none")[0].side_tables == {}


def test_no_bit_of_the_prior_depends_on_the_line_itself(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(-0.3, 0.5, (40, 30))
    priors = set()
    for shift in (0.0, 0.1, 1 / 3, -7.123456789):
        values[3] = rng.normal(-0.5, 1.0, 30) + shift
        path = tmp_path / f"m{shift:g}.csv"
        rows = [",".join(["", *(f"G{i} ({i})" for i in range(30))])]
        rows += [f"ACH-{i:06d}," + ",".join(map(repr, map(float, x))) for i, x in enumerate(values)]
        path.write_text("\n".join(rows))
        registry, _ = load(path, "ACH-000003", threshold=float(np.median(values[3])))
        priors.add(registry.side_tables["prior"].values.tobytes())
    assert len(priors) == 1


def test_a_matrix_of_one_line_has_no_prior(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("".join(EFFECT.splitlines(keepends=True)[:2]))
    assert load(path)[0].side_tables == {}


def test_a_prior_that_is_the_truth_in_another_dress_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "twin.csv"
    path.write_text(",A (1),B (2),C (3)\nACH-000001,-1,0.5,0.1\nACH-000002,-2,1,0.2\n")
    with pytest.raises(RegistryError, match="'prior' of 'twin/ACH-000001' is a copy of the truth"):
        load(path)


def test_genes_without_a_value_are_dropped_and_counted_unless_refused(effect: Path) -> None:
    registry, _ = load(effect, "ACH-000004")
    assert registry.identifiers == ("H3-3A", "HLA-A", "KRAS")
    assert "1 genes without a measured value were left out" in registry.description
    with pytest.raises(RegistryError, match="1 genes have no value in ACH-000004: 'NKX2-1"):
        load(effect, "ACH-000004", drop_missing=False)


def test_probabilities_of_dependency_are_joined_by_name_and_label(effect: Path) -> None:
    dependency = effect.parent / "Dependency.csv"
    registry, oracle = load(effect, dependency=dependency)
    assert oracle.labels.tolist() == [True, False, False, True]
    assert "probability of dependency above 0.5" in registry.description
    assert load(effect, "ACH-000004", dependency=dependency)[0].m == 3


def test_the_description_tells_name_disease_and_lineage_where_the_models_do(effect: Path) -> None:
    models = effect.parent / "Model.csv"
    words = f"in the cell line MY-1 ({ONE}; Cancer, small; lineage Lung)."
    assert words in load(effect, model=models)[0].description
    other = (",A (1),B (2)\nACH-000002,-1,0\n", "in the cell line ACH-000002.")
    (effect.parent / "two.csv").write_text(other[0])
    assert other[1] in load(effect.parent / "two.csv", "ACH-000002", model=models)[0].description


def test_full_identifiers_keep_the_number(effect: Path) -> None:
    assert load(effect, identifiers="full")[0].identifiers[0] == "H3-3A (3)"


def test_genes_in_rows_give_the_same_registry(effect: Path) -> None:
    rows = [line.split(",") for line in EFFECT.splitlines()]
    turned = effect.parent / "turned" / effect.name
    turned.parent.mkdir()
    turned.write_text("\n".join(",".join(row) for row in zip(*rows, strict=True)))
    ours, other = load(turned), load(effect)
    assert (ours[0].hash, ours[1].hash) == (other[0].hash, other[1].hash)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"line": "ACH-00001"}, ["no cell line 'ACH-00001'", "Did you mean 'ACH-000001'"]),
        ({"line": "MY-1"}, ["no cell line 'MY-1'", "Lines are called like", "model="]),
        ({"line": "my 1", "model": "Model.csv"}, ["name of ACH-000001: say line=ACH-000001"]),
        ({"line": "Nobody", "model": "Model.csv"}, ["called like 'ACH-000001', and", "none so"]),
        ({"line": "Other-77", "model": "Model.csv"}, ["ACH-000077", "was not screened"]),
        ({"line": "ACH-000077", "model": "Model.csv"}, ["was not screened"]),
        ({"line": "ACH-000003", "model": "Model.csv"}, ["does not describe", "ACH-000003"]),
        ({"line": None}, ["holds 4 cell lines", "line=ACH-000001"]),
        ({"line": 7}, ["line=7", "name of a cell line"]),
        ({"threshold": "low"}, ["threshold='low'", "finite number"]),
        ({"threshold": -5}, ["0 hits among 4"]),
        ({"identifiers": "entrez"}, ["identifiers='entrez'", "'symbol' or 'full'"]),
        ({"prior": "others"}, ["prior='others'", "'other-lines'"]),
        ({"prior": []}, ["prior=[]", "at least one"]),
        ({"prior": [ONE]}, ["leaves no cell line", "prior=none"]),
        ({"prior": ["ACH-000009"]}, ["no cell line 'ACH-000009'", "prior="]),
        ({"prior": ["ACH-000002"], "held_out": ["ACH-000002"]}, ["leaves no cell line"]),
        ({"held_out": "ACH-000002"}, ["held_out='ACH-000002'", "a list of cell lines"]),
        ({"drop_missing": "yes"}, ["drop_missing='yes'"]),
        ({"dependency": "CRISPRGeneEffect.csv"}, ["lie outside 0 to 1", "CRISPRGeneDependency"]),
        ({"dependency": "Dependency.csv", "line": "ACH-000002"}, ["has no cell line 'ACH-000002'"]),
        ({"dependency": "Dependency.csv", "threshold": 0.05}, ["1 genes have", "threshold=0.0"]),
        ({"dependency": "Model.csv"}, ["table of cell lines", "model="]),
        ({"dependency": "gone.csv"}, ["gone.csv does not exist", "dependency="]),
        ({"model": "Dependency2.csv"}, ["no column ModelID", "Model.csv"]),
        ({"path": "Dependency.csv"}, ["between 0 and 1", "dependency="]),
        ({"lines": ["ACH-000001"]}, ["lines= means a panel", "load_panel"]),
        ({"lne": "x"}, ["no option 'lne'", "'line'"]),
        ({"path": None}, ["'depmap' needs path="]),
    ],
)
def test_a_wrong_option_or_file_is_refused_with_what_to_do(
    effect: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], words: list[str]
) -> None:
    monkeypatch.chdir(effect.parent)
    Path("Dependency2.csv").write_text(DEPENDENCY.replace("ModelID", "cell"))
    with pytest.raises(RegistryError) as caught:
        load_registry("depmap", **{"path": effect.name, "line": ONE, **options})
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("NKX2-1 (2)", "HLA-A (2)", ["2 genes share a symbol", "identifiers=full"]),
        ("NKX2-1 (2)", "2-Sep (2)", ["'2-Sep' (probably SEPTIN2", "excel_names=keep"]),
        ("0.1,-1.25,-0.6,0.0", ",,,", ["no value in any gene", "another line"]),
        ("NKX2-1 (2)", "HLA-A\u200b (2)", ["cannot be seen", r"'HLA-A\u200b'"]),
    ],
)
def test_a_faulty_matrix_is_refused_with_what_to_do(
    effect: Path, old: str, new: str, words: list[str]
) -> None:
    effect.write_text(EFFECT.replace(old, new))
    with pytest.raises(RegistryError) as caught:
        load(effect)
    assert [word for word in words if word not in str(caught.value)] == []


def test_several_lines_make_a_panel_whose_sizes_may_differ(effect: Path) -> None:
    panel = load_panel("depmap", path=effect, lines=["ACH-000004", ONE])
    assert panel.names == ("CRISPRGeneEffect/ACH-000004", f"CRISPRGeneEffect/{ONE}")
    assert [panel[i][0].m for i in range(2)] == [3, 4]
    assert panel.name == "CRISPRGeneEffect"
    effect.write_text("".join(EFFECT.splitlines(keepends=True)[:3]))
    assert len(load_panel("depmap", path=effect, lines="all", name="mine", prior="none")) == 2
    copy: Panel = pickle.loads(pickle.dumps(panel))
    assert copy.names == panel.names


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lines": []}, ["lines=[]", "a list of names, or all"]),
        ({"lines": [ONE, ONE]}, ["repeats 'ACH-000001'"]),
        ({"lines": "ACH-000001"}, ["expected a list of names, or all"]),
        ({"lines": [ONE], "line": ONE}, ["Both line= and lines="]),
        ({"lines": [ONE, "ACH-9"]}, ["no cell line 'ACH-9'"]),
    ],
)
def test_a_wrong_list_of_lines_is_refused(
    effect: Path, options: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(RegistryError) as caught:
        load_panel("depmap", path=effect, **options)
    assert [word for word in words if word not in str(caught.value)] == []


def test_lines_of_dev_and_eval_are_held_out_of_every_prior(effect: Path) -> None:
    file = effect.with_name("lines.yaml")
    file.write_text(
        "source: depmap\npath: CRISPRGeneEffect.csv\n"
        "splits:\n  eval: [ACH-000004]\n  train: [ACH-000001, ACH-000003]\n"
    )
    assert load_panel(f"{file}:eval").names == ("lines/ACH-000004",)
    panel = load_panel(file)
    assert panel.names == ("lines/ACH-000001", "lines/ACH-000003", "lines/ACH-000004")
    # Line 2 and the other line of train alone.
    assert panel[0][0].side_tables["prior"].values[3] == pytest.approx(0.65, abs=1e-9)
    assert panel[0][0].side_tables["prior"].values[1] == pytest.approx(-0.3, abs=1e-9)
    before = [panel[i][0].side_tables["prior"].values.tobytes() for i in range(3)]
    effect.write_text(EFFECT.replace("ACH-000004,-0.9,,-0.7", "ACH-000004,-0.8,,-0.3"))
    again = load_panel(file)
    assert [again[i][0].side_tables["prior"].values.tobytes() for i in range(3)] == before
    alone, _ = load_registry(file, line="ACH-000001")
    assert alone.hash == panel[0][0].hash


@with_shared
def test_the_149_genes_of_the_release_give_the_published_hits_and_prior() -> None:
    registry, oracle = load(
        SHARED / "depmap24q4_CRISPRGeneEffect_149genes.csv",
        "ACH-000446",
        model=SHARED / "depmap24q4_models.csv",
    )
    assert (registry.m, oracle.hit_count) == (149, 20)
    assert "ACH-000446; Neuroblastoma; lineage Peripheral Nervous System" in registry.description
    rows = (SHARED / "depmap24q4_ach000446_149.csv").read_text().splitlines()
    columns = rows[0].split(",")
    at = columns.index("prior_effect_all_other_lines")
    published = {row.split(",")[0]: float(row.split(",")[at]) for row in rows[1:]}
    ours = dict(zip(registry.identifiers, -registry.side_tables["prior"].values, strict=True))
    assert ours.keys() == published.keys()
    assert max(abs(ours[name] - published[name]) for name in ours) <= 0.5e-5 + 1e-9


@with_shared
def test_the_form_with_genes_in_rows_loads_from_the_sample_of_44_lines() -> None:
    registry, oracle = load(SHARED / "depmap_chronos_sample_avana.csv", "ACH-000004")
    assert (registry.m, oracle.hit_count) == (883, 293)


@with_shared
@pytest.mark.parametrize("name", ["CRISPRGeneEffect.csv", "CRISPRGeneEffect_ModelID_header.csv"])
def test_both_header_forms_load_and_are_recognised(name: str) -> None:
    registry, oracle = load(
        LAYOUTS / name,
        "ACH-000446",
        dependency=LAYOUTS / "CRISPRGeneDependency.csv",
        model=LAYOUTS / "Model.csv",
    )
    assert (registry.m, oracle.hit_count) == (24, 12)
    assert "KP-N-SI9s (ACH-000446; Neuroblastoma" in registry.description
    assert source_of(LAYOUTS / name) == "depmap"


@with_shared
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("CRISPRGeneDependency.csv", "between 0 and 1"),
        ("Model.csv", "table of cell lines"),
        ("CRISPRInferredCommonEssentials.csv", "has one column"),
        ("Repurposing_Public_24Q2_Extended_Primary_Data_Matrix.csv", "'prism'"),
        ("primary-screen-replicate-collapsed-logfold-change.csv", "'prism'"),
        ("mageck_rra.gene_summary.txt", "'mageck'"),
        ("egbench_common_continuous.parquet", "no UTF-8 text"),
    ],
)
def test_another_layout_is_refused_as_a_matrix_of_effects(name: str, words: str) -> None:
    with pytest.raises(RegistryError, match=words):
        load(LAYOUTS / name, "ACH-000446")


def test_a_layout_is_told_from_the_head_of_a_file(effect: Path) -> None:
    assert [layout.source for layout in recognise(effect)] == ["depmap"]
    assert [layout.source for layout in recognise(effect.parent / "Model.csv")] == [None]
    assert recognise(effect.parent / "gone.csv") == ()
    (effect.parent / "plain.csv").write_text("identifier,effect\nA,1\n")
    assert source_of(effect.parent / "plain.csv") is None
    (effect.parent / "empty.csv").write_text("")
    assert recognise(effect.parent / "empty.csv") == ()


def wide(folder: Path) -> Path:
    """Ten lines by forty genes with noise of their own."""
    rng = np.random.default_rng(3)
    values = rng.normal(-0.4, 0.6, (10, 40)).round(3)
    rows = [",".join(["", *(f"G{i} ({i})" for i in range(40))])]
    rows += [f"ACH-{i:06d}," + ",".join(map(str, x)) for i, x in enumerate(values.tolist())]
    path = folder / "wide.csv"
    path.write_text("\n".join(rows))
    return path


@pytest.mark.parametrize("form", ["lines", "with held_out", "mappings"])
def test_no_prior_of_a_panel_with_splits_holds_anything_of_a_line_of_eval(
    form: str, tmp_path: Path
) -> None:
    path = wide(tmp_path)
    splits = {"train": [f"ACH-{i:06d}" for i in range(7)], "eval": ["ACH-000007", "ACH-000008"]}
    head = "source: depmap\npath: wide.csv\n"
    lists = "splits: {" + ", ".join(f"{k}: [{', '.join(v)}]" for k, v in splits.items()) + "}\n"
    if form == "mappings":
        head = ""
        items = {
            split: [f"{{source: depmap, path: wide.csv, line: {line}}}" for line in lines]
            for split, lines in splits.items()
        }
        lists = "splits:\n" + "".join(f"  {k}: [{', '.join(v)}]\n" for k, v in items.items())
    elif form == "with held_out":
        head += "held_out: [ACH-000009]\n"
    (tmp_path / "panel.yaml").write_text(head + lists)
    panel = load_panel(tmp_path / "panel.yaml")
    before = [pair[0].side_tables["prior"].values.tobytes() for pair in panel]
    lines = path.read_text().splitlines()
    for at in (8, 9):
        cells = lines[at].split(",")
        lines[at] = ",".join([cells[0], *(str(float(x) * 0.9 + 0.01) for x in cells[1:])])
    path.write_text("\n".join(lines))
    again = load_panel(tmp_path / "panel.yaml")
    assert len(before) == 9
    assert [pair[0].side_tables["prior"].values.tobytes() for pair in again] == before

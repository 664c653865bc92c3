"""Registries from Perturb-seq differential expression: long tables, h5ad files, refusals."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cads_env.errors import MissingExtraError, RegistryError
from cads_env.panel import load_panel, load_registry
from cads_env.registry import Oracle, Registry
from cads_env.sources.layouts import recognise
from cads_env.sources.perturbseq import targets_of

LAYOUTS = Path(__file__).parents[2] / ".." / "shared" / "data" / "layouts"
HEADER = (
    "target_contrast_gene_name,culture_condition,gene_ids,gene_name,log_fc,zscore,adj_p_value\n"
)
LONG = HEADER + (
    "KRAS,Rest,E1,MYC,-1.5,-4,0.01\n"
    "KRAS,Rest,E2,A1BG,0.5,1,0.6\n"
    "KRAS,Rest,E3,RPL3,2,5,0.001\n"
    "KRAS,Rest,E4,KRAS,-3,-9,0\n"
    "KRAS,Rest,E5,ZZZ3,NaN,,\n"
    "KRAS,Stim,E1,MYC,0.1,0.3,0.9\n"
    "KRAS,Stim,E2,A1BG,1,3,0.02\n"
    "TP53,Rest,E1,MYC,0.1,0.3,0.9\n"
    "TP53,Rest,E2,A1BG,-1,-3,0.02\n"
)
REST: dict[str, Any] = {"target": "KRAS", "condition": "Rest", "effect": "log_fc"}


def load(tmp_path: Path, content: str | bytes, **options: Any) -> tuple[Registry, Oracle]:
    path = tmp_path / "de.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return load_registry("perturbseq", path=path, **options)


def test_effects_of_either_sign_are_hits(tmp_path: Path) -> None:
    registry, oracle = load(tmp_path, LONG, threshold=1, **REST)
    assert registry.identifiers == ("A1BG", "MYC", "RPL3")
    assert oracle.signal.tolist() == [-0.5, 0.5, 1.0]
    for words in ("KRAS is perturbed", "condition Rest", "beyond 1 in magnitude",
                  "genes without the values that decide (1)", "no candidate"):  # fmt: skip
        assert words in registry.description


def test_one_side_can_be_declared(tmp_path: Path) -> None:
    _, lower = load(tmp_path, LONG, threshold=-1, direction="lower", **REST)
    assert lower.signal.tolist() == [-1.5, 0.5, -3.0]
    _, higher = load(tmp_path, LONG, threshold=1, direction="higher", **REST)
    assert higher.labels.tolist() == [False, False, True]


def test_the_perturbed_gene_is_a_candidate_only_when_asked_for(tmp_path: Path) -> None:
    registry, _ = load(tmp_path, LONG, threshold=1, drop_target=False, **REST)
    assert registry.identifiers == ("A1BG", "KRAS", "MYC", "RPL3")


def test_adjusted_p_values_call_hits(tmp_path: Path) -> None:
    _, constant = load(tmp_path, LONG, adj_p=0.05, signal=(1, -1), **REST)
    assert constant.signal.tolist() == [-1.0, 1.0, 1.0]
    _, down = load(tmp_path, LONG, adj_p=0.05, signal=(1, -1), direction="lower", **REST)
    assert down.labels.tolist() == [False, True, False]
    _, graded = load(tmp_path, LONG, adj_p=0.05, threshold=1.75, **REST)
    assert (graded.hit_count, graded.contrary_hit_count) == (2, 1)


def test_ids_can_name_the_candidates(tmp_path: Path) -> None:
    registry, _ = load(tmp_path, LONG, threshold=1, identifiers="id", **REST)
    assert registry.identifiers == ("E1", "E2", "E3")


def test_a_single_contrast_needs_no_choice(tmp_path: Path) -> None:
    text = "".join(line for line in LONG.splitlines(keepends=True) if not line.startswith("KRAS"))
    registry, oracle = load(tmp_path, text, effect="zscore", threshold=2)
    assert oracle.signal.tolist() == [1.0, -1.7]
    assert "TP53" in registry.description


def test_targets_are_listed_for_a_condition(tmp_path: Path) -> None:
    path = tmp_path / "de.csv"
    path.write_text(LONG, encoding="utf-8")
    assert targets_of(path=path) == ("KRAS", "TP53")
    assert targets_of(path=path, condition="Stim") == ("KRAS",)


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (LONG, {}, ["2 targets", "target=...", "'KRAS', 'TP53'"]),
        (LONG, {"target": "KRAS"}, ["2 conditions of 'KRAS'", "'Rest', 'Stim'"]),
        (LONG, {"target": "KRAS1"}, ["no target 'KRAS1'", "Did you mean 'KRAS'?"]),
        (LONG, {"target": "TP53", "condition": "Stim"}, ["no condition 'Stim' of 'TP53'"]),
        (LONG, {"target": "KRAS", "condition": "Rest"},
         ["effect=log_fc", "threshold=...", "adj_p_value < 0.05: 3", "|log_fc| >"]),
        (LONG, {**REST, "adj_p": 0.05}, ["signal=(1.0, -0.5)", "or threshold=..."]),
        (LONG, {**REST, "threshold": -1}, ["threshold=-1", "magnitude"]),
        (LONG, {**REST, "threshold": 99}, ["0 of 3", "between -1.5 and 2"]),
        (LONG, {**REST, "signal": (1, 0)}, ["signal=(1, 0)", "Leave signal out"]),
        (LONG, {**REST, "adj_p": 0}, ["adj_p=0", "above 0"]),
        (LONG, {**REST, "effect": "lfc"}, ["effect='lfc'", "'log_fc' or 'zscore'"]),
        (LONG, {**REST, "direction": "up"}, ["direction='up'", "'both'"]),
        (LONG, {**REST, "threshold": 1, "drop_target": 1}, ["drop_target=1", "true or false"]),
        (LONG, {**REST, "adj_p": 0.005, "threshold": 1},
         ["'MYC'", "threshold=1.5, which no null passes (0 of 1"]),
        (LONG.replace("A1BG", "MYC"), {**REST, "threshold": 1}, ["'MYC'", "identifiers=id"]),
        (LONG.replace("-1.5", "low"), {**REST, "threshold": 1}, ["'log_fc'", "row 2: 'low'"]),
        (LONG.replace("gene_ids", "x"), {**REST, "threshold": 1, "identifiers": "id"},
         ["no gene ids", "identifiers=symbol"]),
        (LONG.replace("zscore", "z"), {**REST, "effect": "zscore", "threshold": 1},
         ["no column 'zscore'", "'log_fc'"]),
        (HEADER, {**REST, "threshold": 1}, ["header and no data rows"]),
        ("gene,effect\nA,1\n", REST, ["no column 'target_contrast_gene_name'", "'table'"]),
    ],
)  # fmt: skip
def test_a_faulty_table_or_declaration_is_refused_with_what_to_do(
    tmp_path: Path, content: str | bytes, options: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(RegistryError) as caught:
        load(tmp_path, content, **options)
    assert [word for word in words if word not in str(caught.value)] == []


GENES = ["MYC", "A1BG", "RPL3"]
LOG_FC = np.array([[-1.5, 0.5, 2.0], [0.1, 1.0, 0.0]])
ADJUSTED = np.array([[0.01, 0.6, 0.001], [0.9, 0.02, 1.0]])
FILE: dict[str, Any] = {"target": "KRAS", "condition": "Rest", "effect": "log_fc"}


def write_h5ad(path: Path, *, is_sparse: bool = False, is_old: bool = False) -> Path:
    """A file in AnnData's on-disk encoding."""
    h5py = pytest.importorskip("h5py")
    text = h5py.string_dtype()
    with h5py.File(path, "w") as file:
        obs, var, layers = (file.create_group(x) for x in ("obs", "var", "layers"))
        obs.attrs["_index"], var.attrs["_index"] = "index", "gene_ids"
        obs.create_dataset("index", data=["K_R", "K_S"], dtype=text)
        if is_old:
            obs.create_dataset("target_contrast_gene_name", data=np.zeros(2, np.int8))
            old = obs.create_group("__categories")
            old.create_dataset("target_contrast_gene_name", data=["KRAS"], dtype=text)
        else:
            group = obs.create_group("target_contrast_gene_name")
            group.create_dataset("categories", data=["KRAS"], dtype=text)
            group.create_dataset("codes", data=np.zeros(2, np.int8))
        obs.create_dataset("culture_condition", data=["Rest", "Stim"], dtype=text)
        var.create_dataset("gene_ids", data=["E1", "E2", "E3"], dtype=text)
        var.create_dataset("gene_name", data=GENES, dtype=text)
        layers.create_dataset("adj_p_value", data=ADJUSTED)
        if is_sparse:
            csr = layers.create_group("log_fc")
            csr.attrs["encoding-type"], csr.attrs["shape"] = "csr_matrix", (2, 3)
            csr.create_dataset("data", data=[-1.5, 0.5, 2.0, 0.1, 1.0])
            csr.create_dataset("indices", data=[0, 1, 2, 0, 1])
            csr.create_dataset("indptr", data=[0, 3, 5])
        else:
            layers.create_dataset("log_fc", data=LOG_FC)
    return path


@pytest.mark.parametrize("form", [{}, {"is_sparse": True}, {"is_old": True}])
def test_one_row_of_an_h5ad_file_is_read(tmp_path: Path, form: dict[str, bool]) -> None:
    path = write_h5ad(tmp_path / "de.h5ad", **form)
    registry, oracle = load_registry("perturbseq", path=path, threshold=1, **FILE)
    assert registry.identifiers == ("A1BG", "MYC", "RPL3")
    assert oracle.signal.tolist() == [-0.5, 0.5, 1.0]
    options: dict[str, Any] = {**FILE, "condition": "Stim", "threshold": 0.5}
    assert load_registry("perturbseq", path=path, **options)[1].signal.tolist() == [0.5, -0.4, -0.5]
    assert [found.source for found in recognise(path)] == ["perturbseq"]
    assert targets_of(path=path) == ("KRAS",)


def test_ids_and_adjusted_p_values_come_from_the_h5ad_file(tmp_path: Path) -> None:
    path = write_h5ad(tmp_path / "de.h5ad")
    registry, oracle = load_registry(
        "perturbseq", path=path, adj_p=0.05, signal=(1, -1), identifiers="id", **FILE
    )
    assert registry.identifiers == ("E1", "E2", "E3")
    assert oracle.labels.tolist() == [True, False, True]


def test_an_h5ad_file_that_does_not_fit_is_refused_with_its_reason(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "de.h5ad"

    def refused(words: str, **options: Any) -> None:
        with pytest.raises(RegistryError, match=words):
            load_registry("perturbseq", path=path, **{"threshold": 1, **FILE, **options})

    path.write_bytes(b"PK\x03\x04 no HDF5")
    refused("cannot be read as an h5ad")
    write_h5ad(path)
    refused("no condition 'Late'", condition="Late")
    refused("no layer 'zscore'; its layers are 'adj_p_value', 'log_fc'", effect="zscore")
    with h5py.File(path, "a") as file:
        file["obs/culture_condition"][1] = "Rest"
    refused("2 observations of 'KRAS' in 'Rest'")
    write_h5ad(path)
    with h5py.File(path, "a") as file:
        file["layers/log_fc"][0, 1] = np.inf
    refused("infinite: 'A1BG'")
    with h5py.File(path, "a") as file:
        del file["layers/log_fc"]
        file.create_dataset("layers/log_fc", data=np.zeros((2, 5)))
    refused(r"shape \(2, 5\), but var names 3 genes")
    write_h5ad(path, is_sparse=True)
    with h5py.File(path, "a") as file:
        file["layers/log_fc"].attrs["encoding-type"] = "csc_matrix"
    refused("stored as 'csc_matrix'")
    with h5py.File(path, "a") as file:
        del file["layers/adj_p_value"]
        file.move("layers/log_fc", "layers/adj_p_value")
        file["layers/adj_p_value"].attrs["encoding-type"] = "csr_matrix"
        file.create_dataset("layers/log_fc", data=LOG_FC)
    refused("would read as 0", condition="Stim", threshold=None, adj_p=0.05)
    with h5py.File(path, "a") as file:
        del file["obs/culture_condition"]
    refused("no column 'culture_condition' in obs")
    with h5py.File(path, "w") as file:
        file.create_group("matrix")
    refused("no group 'obs', 'var', 'layers'; it has 'matrix'")


def test_a_missing_package_is_named_with_the_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "de.h5ad"
    path.write_bytes(b"\x89HDF")
    monkeypatch.setattr("cads_env.sources.h5ad.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'cads-env\[h5ad\]'"):
        load_registry("perturbseq", path=path, threshold=1, **FILE)


def test_a_file_that_anndata_wrote_is_read(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other people's packages
        anndata = pytest.importorskip("anndata")
        import pandas as pd

        obs = pd.DataFrame(
            {"target_contrast_gene_name": pd.Categorical(["KRAS", "KRAS"]),
             "culture_condition": ["Rest", "Stim"]}, index=["a", "b"],
        )  # fmt: skip
        var = pd.DataFrame({"gene_name": GENES}, index=["E1", "E2", "E3"])
        data = anndata.AnnData(obs=obs, var=var, shape=(2, 3))
        data.layers["log_fc"], data.layers["adj_p_value"] = LOG_FC, ADJUSTED
        path = tmp_path / "de.h5ad"
        data.write_h5ad(path)
    _, oracle = load_registry("perturbseq", path=path, threshold=1, identifiers="id", **FILE)
    assert oracle.signal.tolist() == [0.5, -0.5, 1.0]


def test_the_miniature_of_one_contrast_loads() -> None:
    path = LAYOUTS / "GWCD4i_DE_stats_DOP1B_Rest.csv"
    if not path.is_file():
        pytest.skip("the miniature is not here")
    registry, oracle = load_registry("perturbseq", path=path, effect="zscore", threshold=2)
    assert (registry.m, oracle.hit_count) == (24, 4)
    _, called = load_registry("perturbseq", path=path, effect="zscore", adj_p=0.05, threshold=3.2)
    assert called.hit_count == 2
    assert [found.source for found in recognise(path)] == ["perturbseq"]


def test_targets_make_a_panel_and_the_condition_is_in_the_name(tmp_path: Path) -> None:
    path = tmp_path / "de.csv"
    path.write_text(LONG, encoding="utf-8")
    panel = load_panel(
        "perturbseq", path=path, targets="all", condition="Rest", effect="log_fc", threshold=0.5
    )
    assert panel.names == ("de/KRAS+condition=Rest", "de/TP53+condition=Rest")
    assert [registry.m for registry, _ in panel] == [3, 2]


def test_a_heap_of_texts_that_has_no_end_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = write_h5ad(tmp_path / "de.h5ad")
    raw = bytearray(path.read_bytes())
    heap = raw.find(b"GCOL\x01")
    assert heap > 0
    # The first text becomes free space of length 0, at which the HDF5 library never ends.
    raw[heap + 16 : heap + 18] = bytes(2)
    raw[heap + 24 : heap + 32] = bytes(8)
    path.write_bytes(raw)
    with pytest.raises(RegistryError, match=r"de\.h5ad .* its heap of texts at byte .* is damaged"):
        load_registry("perturbseq", path=path, threshold=1, **REST)

"""Small files of every layout that a source reads, with invented numbers, and how each is declared.

The fuzz of the sources damages them; undamaged, each of them loads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

LAYOUTS = Path(__file__).parents[2] / ".." / "shared" / "data" / "layouts"
"""Files of real layouts with invented values, where they are there."""


class Miniature(NamedTuple):
    """One file to damage.

    Attributes:
        file: Its name.
        content: Its text, or None for a binary file that is made or copied.
        source: What reads it; empty for a YAML file.
        options: As the source wants them.
        damaged: Option that names the damaged file: `path`, or that of the file beside it.
        beside: Names and texts of the other files.
    """

    file: str
    content: str | None
    source: str
    options: dict[str, Any]
    damaged: str = "path"
    beside: dict[str, str] = {}  # noqa: RUF012


_GENES = ("ALFA (11)", "BRAVO (12)", "HLA-C (13)", "DELTA (14)", "ECHO (15)", "NKX-1 (16)")
_EFFECTS = (
    ("ACH-000011", (-1.25, 0.05, -0.75, 0.1, "", -0.02)),
    ("ACH-000012", (-0.9, -0.55, 0.2, 0.15, 0.3, -0.6)),
    ("ACH-000013", (-1.5, 0.25, -0.1, "", -0.8, 0.0)),
    ("ACH-000014", (-0.2, 0.35, -0.95, -0.45, 0.6, 0.1)),
)


def _matrix(corner: str) -> str:
    rows = [f"{line},{','.join(map(str, values))}" for line, values in _EFFECTS]
    return "\n".join([",".join((corner, *_GENES)), *rows]) + "\n"


def _transposed() -> str:
    rows = [
        ",".join([gene, *(str(values[i]) for _, values in _EFFECTS)])
        for i, gene in enumerate(_GENES)
    ]
    return "\n".join([",".join(["gene", *(line for line, _ in _EFFECTS)]), *rows]) + "\n"


_DEPENDENCY = (
    ",DELTA (14),ALFA (11),HLA-C (13),BRAVO (12),NKX-1 (16),ECHO (15)\n"
    "ACH-000013,0.1,0.99,0.2,0.01,0.03,0.6\nACH-000011,0.02,0.97,0.8,0.05,0.04,0.3\n"
)
_MODEL = (
    "ModelID,CellLineName,StrippedCellLineName,OncotreeLineage,OncotreePrimaryDisease\n"
    'ACH-000011,KX-1,KX1,Lung,"Carcinoma, small cell"\nACH-000012,PQ-2,PQ2,,\n'
    "ACH-000099,ZZ-9,ZZ9,Bowel,Adenoma\n"
)
_RRA = (
    "id\tnum\tneg|score\tneg|p-value\tneg|fdr\tneg|rank\tneg|goodsgrna\tneg|lfc"
    "\tpos|score\tpos|p-value\tpos|fdr\tpos|rank\tpos|goodsgrna\tpos|lfc\n"
    "ALFA\t5\t0.01\t0.001\t0.004\t1\t5\t-2.25\t0.9\t0.9\t1\t5\t0\t-2.25\n"
    "BRAVO\t5\t0.02\t0.002\t0.02\t2\t4\t-1.1\t0.8\t0.8\t0.9\t4\t0\t-1.1\n"
    "HLA-C\t5\t0.4\t0.3\t0.45\t3\t2\t-0.4\t0.5\t0.5\t0.7\t3\t1\t-0.4\n"
    "DELTA\t5\t0.9\t0.9\t1\t4\t0\t0.7\t0.05\t0.03\t0.06\t2\t2\t0.7\n"
    "ECHO\t5\t1\t1\t1\t5\t0\t1.3\t0.01\t0.01\t0.01\t1\t4\t1.3\n"
)
_MLE = (
    "Gene\tsgRNA\tdrug|beta\tdrug|z\tdrug|p-value\tdrug|fdr\tdrug|wald-p-value\tdrug|wald-fdr"
    "\tctrl|beta\tctrl|z\tctrl|p-value\tctrl|fdr\tctrl|wald-p-value\tctrl|wald-fdr\n"
    "ALFA\t5\t-1.75\t-4\t0.001\t0.01\t0.001\t0.02\t-0.2\t-1\t0.4\t0.6\t0.4\t0.7\n"
    "BRAVO\t5\t0.15\t0.4\t0.7\t0.9\t0.6\t0.8\t0.1\t0.2\t0.8\t0.9\t0.7\t0.9\n"
    "DELTA\t4\t-0.95\t-3\t0.01\t0.04\t0.02\t0.03\t0.4\t1\t0.3\t0.6\t0.2\t0.4\n"
    "ECHO\t5\t0.45\t1.2\t0.2\t0.4\t0.2\t0.3\t-1.1\t-3\t0.01\t0.03\t0.01\t0.02\n"
)
_SGRNA = (
    "sgrna\tGene\tcontrol_count\ttreatment_count\tLFC\tFDR\nA_1\tALFA\t120/110\t20/30\t-2\t0.01\n"
    "A_2\tALFA\t99/104\t33/25\t-1.7\t0.02\nB_1\tBRAVO\t80/77\t90/85\t0.2\t0.8\n"
)
_ORCS = (
    "#SCREEN_ID\tIDENTIFIER_ID\tIDENTIFIER_TYPE\tOFFICIAL_SYMBOL\tALIASES\tORGANISM_ID"
    "\tORGANISM_OFFICIAL\tSCORE.1\tSCORE.2\tSCORE.3\tSCORE.4\tSCORE.5\tHIT\tSOURCE\n"
    + "".join(
        f"41\t{i}\tENTREZ_GENE\t{gene}\tQ{i}|R{i}\t9606\tHomo sapiens\t{score}\t-\t-\t-\t-\t{hit}"
        "\tBioGRID ORCS\n"
        for i, (gene, score, hit) in enumerate(
            (("ALFA", 14.5, "YES"), ("BRAVO", -22, "NO"), ("DELTA", 7.25, "YES"),
             ("ECHO", "-", "NO"), ("HLA-C", -3, "NO"))
        )
    )
)  # fmt: skip
_INDEX = (
    "#SCREEN_ID\tAUTHOR\tSIGNIFICANCE_CRITERIA\tCELL_LINE\tPHENOTYPE\tSCORE.1_TYPE\tSCORE.2_TYPE\n"
    "40\tA (2019)\t-\tKX-1\tviability\tLog2 Fold Change\t-\n"
    '41\tB (2020)\tScore.1 "F" > 5\tPQ-2\tcell proliferation\tBayes Factor\t-\n'
)
_BY_COMPOUND = (
    ",ACH-000011,ACH-000012\nBRD:BRD-K00000041-001-01-1,-1.9,0.4\n"
    "BRD:BRD-K00000042-001-01-1,0.3,NaN\nBRD:BRD-K00000043-001-01-1,-0.2,-1.4\n"
    "BRD:BRD-K00000044-001-01-1,,0.1\n"
)
_BY_LINE = (
    ",BRD-K41::2.5::HTS,BRD-K42::2.5::HTS,BRD-K43::2.5::MTS,BRD-K44::2.5::MTS\n"
    "ACH-000011,-1.9,0.3,-0.2,\nACH-000012,0.4,,-1.4,0.1\n"
)
_SECONDARY = (
    "broad_id,depmap_id,ccle_name,screen_id,auc,ec50,ic50,name,moa,target\n"
    'BRD-K41,ACH-000011,KX1_LUNG,HTS,0.35,1.5,2,quux,blocker,"ALFA, ECHO"\n'
    "BRD-K42,ACH-000011,KX1_LUNG,HTS,0.95,2,,corge,opener,\n"
    "BRD-K43,ACH-000011,KX1_LUNG,HTS,0.7,3,0.5,,,HLA-C\n"
    "BRD-K41,ACH-000012,PQ2_SKIN,HTS,0.85,1,,quux,blocker,ALFA\n"
)
_LIST = (
    "screen,dose,repurposing_target,MOA,IDs,Drug.Name\n"
    'X,2.5,"ALFA, ECHO",blocker,BRD:BRD-K00000041-001-01-1,QUUX\n'
    "X,2.5,,opener,BRD:BRD-K00000042-001-01-1,CORGE\nX,2.5,HLA-C,,BRD:BRD-K00000043-001-01-1,\n"
)
_LONG = (
    "target_contrast_gene_name,culture_condition,gene_ids,gene_name,log_fc,zscore,adj_p_value\n"
    "DELTA,Rest,E1,ALFA,-1.6,-4,0.01\nDELTA,Rest,E2,BRAVO,0.4,1,0.7\n"
    "DELTA,Rest,E3,ECHO,2.1,6,0.001\nDELTA,Rest,E4,DELTA,-2.8,-9,0\nDELTA,Rest,E5,HLA-C,NaN,,\n"
    "DELTA,Stim,E1,ALFA,0.2,0.3,0.9\nECHO,Rest,E1,ALFA,0.1,0.3,0.9\n"
)
_TABLE = "identifier,effect,label,prior,module,note\n" + "".join(
    f"G-{i:02d},{'-1.5' if i % 5 == 0 else i / 100},{int(i % 5 == 0)},{i * 7 % 11},M{i % 3},n{i}\n"
    for i in range(24)
)
_BAGEL = "GENE\tBF\tSTD\tNumObs\n" + "".join(
    f"{gene}\t{bf}\t1.5\t4\n"
    for gene, bf in (("ALFA", 12.25), ("BRAVO", -30.5), ("DELTA", 6.5), ("ECHO", -2.75))
)
_REGISTRY_FILE = (
    "source: table\npath: mini.csv\nname: mine\ndirection: lower\nthreshold: -0.5\n"
    "prior: prior\nprior_direction: lower\nmodule: module\nfeatures: [note]\nsubsample: 12\n"
)
_PANEL_FILE = (
    "name: lines\nsource: depmap\npath: mini.csv\nthreshold: -0.5\nprior: other-lines\n"
    "splits:\n  train: [ACH-000011, ACH-000012]\n  eval: [ACH-000013]\n"
)
_LIST_FILE = (
    "name: several\nregistries:\n- synthetic-depmap-6000/3\n- source: table\n  path: mini.csv\n"
    "  direction: lower\n  threshold: -0.5\n"
)
_PROTOCOL_FILE = (
    "name: mine\nrounds: 6\nfirst_fresh: 30\nfresh: 20\nnoise_sd: 0.4\n"
    "rank_by: log_evidence\nfeedback_proposer: full\ncertificate:\n  q: 0.1\n  epsilon_bar: 0.1\n"
)

_LINE: dict[str, Any] = {"line": "ACH-000011"}
_TABULAR: dict[str, Any] = {"direction": "lower", "threshold": -0.5}
_RICH = {**_TABULAR, "prior": "prior", "prior_direction": "lower", "module": "module",
         "features": ["note"]}  # fmt: skip
_CONTRAST = {"target": "DELTA", "condition": "Rest", "effect": "log_fc", "threshold": 1.0}

MINIATURES: dict[str, Miniature] = {
    "depmap": Miniature("mini.csv", _matrix(""), "depmap", _LINE),
    "depmap-modelid": Miniature("mini.csv", _matrix("ModelID"), "depmap", _LINE),
    "depmap-transposed": Miniature("mini.csv", _transposed(), "depmap", _LINE),
    "depmap-dependency": Miniature(
        "prob.csv", _DEPENDENCY, "depmap", _LINE, "dependency", {"mini.csv": _matrix("")}
    ),
    "depmap-model": Miniature(
        "Model.csv", _MODEL, "depmap", _LINE, "model", {"mini.csv": _matrix("")}
    ),
    "mageck-rra": Miniature(
        "mini.gene_summary.txt", _RRA, "mageck", {"direction": "neg", "threshold": -0.5}
    ),
    "mageck-rra-fdr": Miniature(
        "mini.gene_summary.txt", _RRA, "mageck",
        {"direction": "pos", "fdr": 0.1, "signal": (1.0, -0.5)},
    ),
    "mageck-mle": Miniature(
        "mini.gene_summary.txt", _MLE, "mageck",
        {"direction": "neg", "condition": "drug", "threshold": -0.5},
    ),
    "mageck-sgrna": Miniature(
        "mini.sgrna_summary.txt", _SGRNA, "mageck", {"direction": "neg", "threshold": -0.5}
    ),
    "orcs": Miniature("mini.screen.tab.txt", _ORCS, "orcs", {"signal": (1.0, -0.5)}),
    "orcs-score": Miniature(
        "mini.screen.tab.txt", _ORCS, "orcs",
        {"score": "SCORE.1", "direction": "higher", "threshold": 0.0},
    ),
    "orcs-index": Miniature(
        "mini.index.tab.txt", _INDEX, "orcs", {"signal": (1.0, -0.5)}, "index",
        {"mini.screen.tab.txt": _ORCS},
    ),
    "prism-by-compound": Miniature("mini.csv", _BY_COMPOUND, "prism", {**_LINE, "threshold": -1.0}),
    "prism-by-line": Miniature("mini.csv", _BY_LINE, "prism", {**_LINE, "threshold": -1.0}),
    "prism-secondary": Miniature(
        "mini.csv", _SECONDARY, "prism", {**_LINE, "threshold": 0.5, "measure": "auc"}
    ),
    "prism-compounds": Miniature(
        "list.csv", _LIST, "prism", {**_LINE, "threshold": -1.0}, "compounds",
        {"mini.csv": _BY_COMPOUND},
    ),
    "perturbseq": Miniature("mini.csv", _LONG, "perturbseq", _CONTRAST),
    "h5ad": Miniature("mini.h5ad", None, "perturbseq", _CONTRAST),
    "h5ad-sparse": Miniature("mini.h5ad", None, "perturbseq", _CONTRAST),
    "table": Miniature("mini.csv", _TABLE, "table", _RICH),
    "table-tsv": Miniature("mini.tsv", _TABLE.replace(",", "\t"), "table", _TABULAR),
    "table-labels": Miniature(
        "mini.csv", _TABLE, "table", {"effect": None, "label": "label", "signal": (1.0, -0.5)}
    ),
    "parquet": Miniature("mini.parquet", None, "table", _RICH),
    "bagel": Miniature(
        "mini.bf", _BAGEL, "table",
        {"identifier": "GENE", "effect": "BF", "direction": "higher", "threshold": 0.0},
    ),
    "registry-file": Miniature("mini.yaml", _REGISTRY_FILE, "", {}, beside={"mini.csv": _TABLE}),
    "panel-file": Miniature("lines.yaml", _PANEL_FILE, "", {}, beside={"mini.csv": _matrix("")}),
    "list-file": Miniature("list.yaml", _LIST_FILE, "", {}, beside={"mini.csv": _TABLE}),
    "protocol-file": Miniature("mine.yaml", _PROTOCOL_FILE, "protocol", {}),
}  # fmt: skip

_ACH: dict[str, Any] = {"line": "ACH-000446"}
REAL_LAYOUTS: dict[str, tuple[str, dict[str, Any]]] = {
    "BIOGRID-ORCS-SCREEN_99999-1.1.17.screen.tab.txt": (
        "orcs", {"signal": (1.0, -0.5), "unknown": "drop", "duplicates": "first"},
    ),
    "BIOGRID-ORCS-SCREEN_INDEX-1.1.17.index.tab.txt": ("orcs", {"signal": (1.0, -0.5)}),
    "CRISPRGeneDependency.csv": ("depmap", _ACH),
    "CRISPRGeneEffect.csv": ("depmap", _ACH),
    "CRISPRGeneEffect_ModelID_header.csv": ("depmap", _ACH),
    "CRISPRInferredCommonEssentials.csv": ("table", _TABULAR),
    "GWCD4i_DE_stats_DOP1B_Rest.csv": ("perturbseq", {"effect": "log_fc", "threshold": 0.5}),
    "Model.csv": ("depmap", _ACH),
    "Repurposing_Public_24Q2_Extended_Primary_Compound_List.csv": ("prism", _ACH),
    "Repurposing_Public_24Q2_Extended_Primary_Data_Matrix.csv": (
        "prism", {**_ACH, "threshold": -1.0},
    ),
    "bagel.bf": (
        "table", {"identifier": "GENE", "effect": "BF", "direction": "higher", "threshold": 0.0},
    ),
    "bagel_reads.txt": ("table", _TABULAR),
    "egbench_common_continuous.parquet": (
        "table",
        {"identifier": "gene_symbol", "effect": "gene_effect", "direction": "lower",
         "threshold": -0.5},
    ),
    "mageck.sgrna_summary.txt": ("mageck", {"direction": "neg", "threshold": -0.5}),
    "mageck_mle.gene_summary.txt": (
        "mageck", {"direction": "neg", "condition": "treat", "threshold": -0.5},
    ),
    "mageck_rra.gene_summary.txt": ("mageck", {"direction": "neg", "threshold": -0.5}),
    "primary-screen-replicate-collapsed-logfold-change.csv": ("prism", {**_ACH, "threshold": -1.0}),
    "secondary-screen-dose-response-curve-parameters.csv": (
        "prism", {**_ACH, "threshold": 0.5, "measure": "auc"},
    ),
}  # fmt: skip
"""How each file of `LAYOUTS` is declared."""


def write_h5ad(path: Path, *, is_sparse: bool) -> None:
    """A small h5ad file of three contrasts, dense or with the effects in CSR."""
    import h5py
    import numpy as np

    text = h5py.string_dtype()
    effects = np.array([[-1.6, 0.4, 2.1, -2.8], [0.2, 0.0, 0.0, 1.5], [0.1, 0.3, 0.0, 0.0]])
    with h5py.File(path, "w") as file:
        obs, var, layers = (file.create_group(name) for name in ("obs", "var", "layers"))
        obs["target_contrast_gene_name"] = np.array(["DELTA", "DELTA", "ECHO"], text)
        condition = obs.create_group("culture_condition")
        condition["categories"] = np.array(["Rest", "Stim"], text)
        condition["codes"] = np.array([0, 1, 0], np.int8)
        var["gene_name"] = np.array(["ALFA", "BRAVO", "ECHO", "DELTA"], text)
        var["gene_ids"] = np.array(["E1", "E2", "E3", "E4"], text)
        layers.create_dataset("adj_p_value", data=np.full((3, 4), 0.5), compression="gzip")
        if not is_sparse:
            layers["log_fc"] = effects
            return
        layer = layers.create_group("log_fc")
        layer.attrs["encoding-type"] = "csr_matrix"
        layer.attrs["shape"] = effects.shape
        rows = [np.flatnonzero(row) for row in effects]
        layer["indptr"] = np.cumsum([0, *map(len, rows)])
        layer["indices"] = np.concatenate(rows)
        layer["data"] = effects[effects != 0]


def write_parquet(path: Path) -> None:
    """The table as Parquet."""
    import io

    import pandas as pd

    pd.read_csv(io.StringIO(_TABLE)).to_parquet(path, index=False)

"""Registries from MAGeCK gene summaries: both analyses, every rule for hits, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cads_env.errors import RegistryError
from cads_env.panel import load_panel, load_registry
from cads_env.registry import Oracle, Registry
from cads_env.sources.layouts import recognise

LAYOUTS = Path(__file__).parents[2] / ".." / "shared" / "data" / "layouts"
RRA = (
    "id\tnum\tneg|score\tneg|p-value\tneg|fdr\tneg|rank\tneg|goodsgrna\tneg|lfc"
    "\tpos|score\tpos|p-value\tpos|fdr\tpos|rank\tpos|goodsgrna\tpos|lfc\n"
    "RPL3\t4\t0\t0\t0.001\t1\t4\t-2.5\t1\t1\t1\t4\t0\t-2.5\n"
    "EEF2\t4\t0\t0\t0.002\t2\t4\t-1.5\t1\t1\t1\t3\t0\t-1.5\n"
    "A1BG\t4\t.1\t.2\t0.4\t3\t1\t-0.75\t.9\t.9\t1\t2\t0\t-0.75\n"
    "ZZZ3\t4\t1\t1\t1\t4\t0\t0.5\t.1\t.1\t0.03\t1\t2\t0.5\n"
)
MLE = (
    "Gene\tsgRNA\tx|beta\tx|z\tx|p-value\tx|fdr\tx|wald-p-value\tx|wald-fdr"
    "\ty|beta\ty|z\ty|p-value\ty|fdr\ty|wald-p-value\ty|wald-fdr\n"
    "A1BG\t4\t0.1\t0\t1\t1\t1\t1\t-1\t0\t0\t0.01\t0\t0.2\n"
    "EEF2\t4\t-1.5\t0\t0\t0.01\t0\t0.2\t0.9\t0\t0\t0.01\t0\t0.02\n"
    "RPL3\t4\t-0.4\t0\t0\t0.04\t0\t0.04\t-0.1\t0\t1\t1\t1\t1\n"
)
NEG: dict[str, Any] = {"direction": "neg"}


def load(tmp_path: Path, content: str | bytes, **options: Any) -> tuple[Registry, Oracle]:
    path = tmp_path / "gene_summary.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return load_registry("mageck", path=path, **options)


def test_depleted_genes_are_hits_below_the_threshold(tmp_path: Path) -> None:
    registry, oracle = load(tmp_path, RRA, threshold=-1, **NEG)
    assert registry.identifiers == ("A1BG", "EEF2", "RPL3", "ZZZ3")
    assert oracle.signal.tolist() == [-0.25, 0.5, 1.5, -1.5]
    assert oracle.labels.tolist() == [False, True, True, False]
    assert "depleted: a log2 fold change below -1" in registry.description


def test_enriched_genes_are_hits_above_the_threshold(tmp_path: Path) -> None:
    registry, oracle = load(tmp_path, RRA, direction="pos", threshold=0.25)
    assert oracle.signal.tolist() == [-1.0, -1.75, -2.75, 0.25]
    assert "enriched" in registry.description


def test_the_order_of_candidates_does_not_follow_the_rank_in_the_file(tmp_path: Path) -> None:
    rows = RRA.splitlines(keepends=True)
    turned = "".join([rows[0], *reversed(rows[1:])])
    one, other = (
        load(tmp_path, RRA, threshold=-1, **NEG),
        load(tmp_path, turned, threshold=-1, **NEG),
    )
    assert (one[0].hash, one[1].hash) == (other[0].hash, other[1].hash)


def test_a_rate_below_the_limit_makes_a_hit_and_constants_make_u(tmp_path: Path) -> None:
    registry, oracle = load(tmp_path, RRA, fdr=0.0015, signal=(1.0, -0.5), **NEG)
    assert oracle.signal.tolist() == [-0.5, -0.5, 1.0, -0.5]
    assert "false discovery rate below 0.0015" in registry.description


def test_a_rate_with_a_threshold_keeps_u_from_the_fold_change(tmp_path: Path) -> None:
    _, oracle = load(tmp_path, RRA, fdr=0.05, threshold=-2, **NEG)
    assert oracle.signal.tolist() == [-1.25, -0.5, 0.5, -2.5]
    assert oracle.labels.tolist() == [False, True, True, False]
    assert oracle.contrary_hit_count == 1


def test_the_message_on_overlap_names_a_threshold_that_works(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match=r"threshold=-1\.5, which no null passes \(0 of 1"):
        load(tmp_path, RRA, fdr=0.0015, threshold=-1, **NEG)
    assert load(tmp_path, RRA, fdr=0.0015, threshold=-1.5, **NEG)[1].hit_count == 1


def test_a_condition_of_mle_is_chosen_and_its_rates_are_two_sided(tmp_path: Path) -> None:
    _, by_beta = load(tmp_path, MLE, condition="x", threshold=-1, **NEG)
    assert by_beta.labels.tolist() == [False, True, False]
    options: dict[str, Any] = {"condition": "y", "fdr": 0.05, "signal": (1, 0)}
    assert load(tmp_path, MLE, **options, **NEG)[1].labels.tolist() == [True, False, False]
    options["direction"] = "pos"
    assert load(tmp_path, MLE, **options)[1].labels.tolist() == [False, True, False]


def test_wald_rates_can_be_chosen(tmp_path: Path) -> None:
    options: dict[str, Any] = {"condition": "x", "fdr": 0.05, "signal": (1, 0), **NEG}
    assert load(tmp_path, MLE, **options)[1].hit_count == 2
    assert load(tmp_path, MLE, fdr_column="wald-fdr", **options)[1].hit_count == 1


def test_genes_without_a_value_are_left_out_and_counted(tmp_path: Path) -> None:
    text = RRA.replace("A1BG\t4\t.1\t.2\t0.4\t3\t1\t-0.75", "A1BG\t4\t.1\t.2\t0.4\t3\t1\tNA")
    registry, _ = load(tmp_path, text, threshold=-1, **NEG)
    assert registry.identifiers == ("EEF2", "RPL3", "ZZZ3")
    assert registry.description.endswith("Left out: genes without the values that decide (1).")


def test_a_summary_without_fold_changes_is_read_by_its_rates(tmp_path: Path) -> None:
    cells = [line.split("\t") for line in RRA.splitlines()]
    text = "".join("\t".join((*row[:7], *row[8:13])) + "\n" for row in cells)
    assert load(tmp_path, text, fdr=0.05, signal=(1, -1), **NEG)[1].hit_count == 2
    with pytest.raises(RegistryError, match=r"no column 'neg\|lfc'.*Say fdr="):
        load(tmp_path, text, threshold=-1, **NEG)


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (RRA, {}, ["direction=neg", "threshold=...", "fdr=0.05", "neg|fdr < 0.05: 2",
                   "pos|fdr < 0.05: 1", "neg|lfc < "]),
        (RRA, NEG, ["still to be declared: threshold=", "neg|fdr < 0.05: 2"]),
        (RRA, {**NEG, "fdr": 0.05}, ["signal=(1.0, -0.5)", "or threshold=..."]),
        (RRA, {**NEG, "threshold": -9}, ["0 of 4", "between -2.5 and 0.5"]),
        (RRA, {**NEG, "threshold": -1, "signal": (1, 0), "fdr": 0.1}, ["exclude each other"]),
        (RRA, {**NEG, "signal": (1, 0)}, ["signal=(1, 0)", "Leave signal out"]),
        (RRA, {"direction": "down"}, ["direction='down'", "'neg' or 'pos'"]),
        (RRA, {**NEG, "fdr": 5}, ["fdr=5", "at most 1"]),
        (RRA, {**NEG, "threshold": "x"}, ["threshold='x'", "finite number"]),
        (RRA, {**NEG, "threshold": -1, "condition": "x"}, ["condition='x'", "mageck mle"]),
        (RRA, {**NEG, "threshold": -1, "fdr_column": "wald-fdr"}, ["fdr_column", "mageck mle"]),
        (MLE, NEG, ["2 conditions", "condition=...", "x, y"]),
        (MLE, {**NEG, "condition": "X1"}, ["no condition 'X1'"]),
        (RRA.replace("-2.5", "high", 1), {**NEG, "threshold": -1}, ["'neg|lfc'", "row 2: 'high'"]),
        (RRA.replace("-2.5", "-inf", 1), {**NEG, "threshold": -1}, ["no finite numbers"]),
        (RRA.replace("EEF2", "RPL3"), {**NEG, "threshold": -1}, ["repeats", "'RPL3'"]),
        (RRA.replace("EEF2", ""), {**NEG, "threshold": -1}, ["empty"]),
        (RRA + "CUT\t4\t0\n", {**NEG, "threshold": -1}, ["row 6 has 3 fields", "header has 14"]),
        (RRA.encode("utf-16"), {**NEG, "threshold": -1}, ["not UTF-8"]),
        ("", NEG, ["no header"]),
        ("id,neg|fdr,pos|fdr\nA,1,1\n", NEG, ["no gene summary", "tab-separated"]),
        ("sgRNA\tGene\tT0\tT18\nA_1\tA\t5\t3\n", NEG, ["read counts", "mageck test -k"]),
        ("sgrna\tGene\tcontrol_count\tx\nA_1\tA\t5\t3\n", NEG, ["sgrna_summary", "gene_summary"]),
        ("GENE\tBF\nA\t5\n", NEG, ["BAGEL", "effect=BF", "direction=higher"]),
    ],
)  # fmt: skip
def test_a_faulty_summary_or_declaration_is_refused_with_what_to_do(
    tmp_path: Path, content: str | bytes, options: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(RegistryError) as caught:
        load(tmp_path, content, **options)
    assert [word for word in words if word not in str(caught.value)] == []


def layout(name: str) -> Path:
    path = LAYOUTS / name
    if not path.is_file():
        pytest.skip(f"the miniature {name} is not here")
    return path


def test_both_miniatures_load_and_are_recognised() -> None:
    rra, mle = layout("mageck_rra.gene_summary.txt"), layout("mageck_mle.gene_summary.txt")
    for path, options in ((rra, {}), (mle, {"condition": "treat"})):
        oracle = load_registry("mageck", path=path, direction="neg", threshold=-1, **options)[1]
        assert (oracle.m, oracle.hit_count) == (24, 11)
        assert [found.source for found in recognise(path)] == ["mageck"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("mageck.sgrna_summary.txt", "sgrna_summary of MAGeCK"),
        ("bagel_reads.txt", "read counts for BAGEL"),
        ("bagel.bf", "Bayes factors"),
    ],
)
def test_other_miniatures_are_refused_for_the_right_reason(name: str, reason: str) -> None:
    path = layout(name)
    with pytest.raises(RegistryError, match=reason):
        load_registry("mageck", path=path, direction="neg", threshold=-1)
    assert len(recognise(path)) == 1


def test_bayes_factors_load_as_a_table_that_says_how() -> None:
    path = layout("bagel.bf")
    with pytest.raises(RegistryError, match=r"Bayes factors from BAGEL.*identifier=GENE effect=BF"):
        load_registry(path)
    options: dict[str, Any] = {"identifier": "GENE", "effect": "BF", "direction": "higher"}
    registry, oracle = load_registry(path, threshold=5, **options)
    assert (registry.m, oracle.hit_count) == (24, 11)
    assert np.array_equal(oracle.labels, oracle.signal > 0)


def test_the_conditions_of_a_file_make_a_panel(tmp_path: Path) -> None:
    path = tmp_path / "run.gene_summary.txt"
    path.write_text(MLE, encoding="utf-8")
    panel = load_panel("mageck", path=path, conditions="all", direction="neg", threshold=-0.5)
    assert panel.names == ("run.gene_summary/x", "run.gene_summary/y")
    assert [oracle.hit_count for _, oracle in panel] == [1, 1]
    path.write_text(RRA, encoding="utf-8")
    with pytest.raises(RegistryError, match="no conditions"):
        load_panel("mageck", path=path, conditions="all", direction="neg", threshold=-0.5)

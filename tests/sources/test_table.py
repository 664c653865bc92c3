"""Registries from a user's own table: declarations, values, and every way a file can be wrong."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cads_env.errors import RegistryError
from cads_env.panel import load_registry
from cads_env.registry import Oracle, Registry

SHARED = Path(__file__).parents[2] / ".." / "shared" / "data"
EFFECTS: dict[str, Any] = {"direction": "lower", "threshold": -0.5}
PLAIN = "identifier,effect\nA,-1.0\nB,0.1\nC,-0.7\nD,0.0\n"
LABELLED = "identifier,label\nA,1\nB,0\nC,0\n"


def load(
    tmp_path: Path, content: str | bytes, file_name: str = "t.csv", **options: Any
) -> tuple[Registry, Oracle]:
    path = tmp_path / file_name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return load_registry(path, **options)


def test_lower_is_a_hit_gives_u_as_threshold_minus_effect(tmp_path: Path) -> None:
    registry, oracle = load(tmp_path, PLAIN, **EFFECTS)
    assert registry.identifiers == ("A", "B", "C", "D")
    assert oracle.signal == pytest.approx([0.5, -0.6, 0.2, -0.5])
    assert oracle.labels.tolist() == [True, False, True, False]


def test_higher_is_a_hit_gives_u_as_effect_minus_threshold(tmp_path: Path) -> None:
    _, oracle = load(tmp_path, PLAIN, direction="higher", threshold=0.05)
    assert oracle.signal == pytest.approx([-1.05, 0.05, -0.75, -0.05])
    assert oracle.labels.tolist() == [False, True, False, False]


def test_an_effect_at_the_threshold_is_a_null_with_u_zero(tmp_path: Path) -> None:
    _, oracle = load(tmp_path, "identifier,effect\nA,-1\nB,-0.5\n", **EFFECTS)
    assert oracle.signal[1] == 0.0
    assert not np.signbit(oracle.signal[1])
    assert not oracle.labels[1]
    _, oracle = load(tmp_path, "identifier,effect\nA,1\nB,-0\n", direction="higher", threshold=0)
    assert not np.signbit(oracle.signal[1])


def test_labels_win_over_the_threshold_and_contrary_hits_are_counted(tmp_path: Path) -> None:
    text = "identifier,effect,label\nA,-1.0,1\nB,0.1,yes\nC,-0.2,FALSE\n"
    _, oracle = load(tmp_path, text, label="label", **EFFECTS)
    assert oracle.labels.tolist() == [True, True, False]
    assert oracle.contrary_hit_count == 1
    _, by_threshold = load(tmp_path, text, label=None, **EFFECTS)
    assert by_threshold.labels.tolist() == [True, False, False]


def test_labels_that_agree_with_the_threshold_need_no_declaration(tmp_path: Path) -> None:
    text = "identifier,effect,label\nA,-1.0,1\nB,0.1,0\n"
    assert load(tmp_path, text, **EFFECTS)[1].labels.tolist() == [True, False]


def test_a_label_only_table_takes_the_declared_signal(tmp_path: Path) -> None:
    _, oracle = load(tmp_path, LABELLED, signal=(1.0, -0.5))
    assert oracle.signal.tolist() == [1.0, -0.5, -0.5]


def test_effects_can_be_left_aside_for_the_labels(tmp_path: Path) -> None:
    text = "identifier,effect,label\nA,-1.0,1\nB,0.1,0\n"
    _, oracle = load(tmp_path, text, effect=None, signal=[0.7, 0])
    assert oracle.signal.tolist() == [0.7, 0.0]


def test_columns_go_by_declared_names(tmp_path: Path) -> None:
    text = "gene;score;hit\nA;-1.0;no\nB;2.5;true\n"
    registry, oracle = load(
        tmp_path, text, sep=";", identifier="gene", effect="score", label="hit",
        direction="higher", threshold=1, name="mine", description="My screen.",
    )  # fmt: skip
    assert (registry.name, registry.description, oracle.panel) == ("mine", "My screen.", "mine")
    assert oracle.signal.tolist() == [-2.0, 1.5]


@pytest.mark.parametrize("name", ["t.tsv", "t.txt", "t.TSV"])
def test_tsv_and_txt_are_separated_by_tabs(tmp_path: Path, name: str) -> None:
    assert load(tmp_path, PLAIN.replace(",", "\t"), name, **EFFECTS)[0].m == 4


def test_the_order_of_a_files_rows_tells_nothing(tmp_path: Path) -> None:
    rows = [f"G{i:02d},{-1.0 + 0.1 * i:.1f},{i * 7 % 15}" for i in range(15)]
    head = "identifier,effect,score"
    pairs = [
        load(tmp_path, "\n".join([head, *order]), features=["score"], **EFFECTS)
        for order in (rows, rows[::-1], rows[7:] + rows[:7])
    ]
    assert all(pair == pairs[0] for pair in pairs)


def test_names_stay_the_text_that_they_were(tmp_path: Path) -> None:
    names = ["NA", "nan", "1e5", "01.Mar", "007", "TRUE", "None", "MARCH1"]
    rows = "".join(f"{name},{-1.0 if i == 0 else 0.5}\n" for i, name in enumerate(names))
    registry, _ = load(tmp_path, "identifier,effect\n" + rows, excel_names="keep", **EFFECTS)
    assert registry.identifiers == tuple(sorted(names))


def test_byte_order_mark_crlf_quotes_and_blank_lines_are_understood(tmp_path: Path) -> None:
    text = '\ufeffidentifier,effect\r\n"HLA-A, allele",-1.0\r\n\r\n"say ""x""",0.2\r\n C , 0.1 \r\n'
    registry, _ = load(tmp_path, text, **EFFECTS)
    assert registry.identifiers == ("C", "HLA-A, allele", 'say "x"')


def test_a_prior_is_oriented_so_that_higher_is_more_promising(tmp_path: Path) -> None:
    text = "identifier,effect,other\nA,-1.0,-2\nB,0.1,0\nC,-0.1,3\n"
    for direction, expected in (("lower", [2.0, 0.0, -3.0]), ("higher", [-2.0, 0.0, 3.0])):
        registry, _ = load(tmp_path, text, prior="other", prior_direction=direction, **EFFECTS)
        table = registry.side_tables["prior"]
        assert table.values.tolist() == expected
        assert "higher = more promising" in table.description
        assert not np.any(np.signbit(table.values) & (table.values == 0))


def test_module_and_feature_columns_become_side_tables(tmp_path: Path) -> None:
    text = (
        "identifier,effect,path,size,kind\nA,-1.0,7,3,x\nB,0.1,7,1.5,y\nC,-0.1,8,2,\nD,0.3,9,2,1\n"
    )
    registry, _ = load(tmp_path, text, module="path", features=["size", "kind"], **EFFECTS)
    assert registry.side_tables["module"].values.tolist() == ["7", "7", "8", "9"]
    assert registry.side_tables["size"].values.tolist() == [3.0, 1.5, 2.0, 2.0]
    assert registry.side_tables["kind"].values.tolist() == ["x", "y", "", "1"]


def test_rows_without_an_effect_can_be_left_out_and_the_description_says_so(
    tmp_path: Path,
) -> None:
    text = "identifier,effect\nA,-1.0\nB,\nC,NaN\nC,0.3\n"
    registry, oracle = load(tmp_path, text, drop_missing=True, **EFFECTS)
    assert registry.identifiers == ("A", "C")
    assert oracle.signal.size == 2
    assert "2 candidates without a measured effect were left out" in registry.description


def test_the_plain_description_tells_what_a_hit_is(tmp_path: Path) -> None:
    assert "effect below -0.5" in load(tmp_path, PLAIN, **EFFECTS)[0].description


def test_numbers_are_read_to_the_nearest_double(tmp_path: Path) -> None:
    text = "identifier,effect\nA,-1.7976931348623157\nB,0.30000000000000004\n"
    _, oracle = load(tmp_path, text, direction="higher", threshold=0)
    assert oracle.signal.tolist() == [-1.7976931348623157, 0.30000000000000004]


def test_a_salt_moves_the_random_streams_and_leaves_the_effects(tmp_path: Path) -> None:
    _, plain = load(tmp_path, PLAIN, **EFFECTS)
    _, salted = load(tmp_path, PLAIN, salt="x", **EFFECTS)
    assert np.array_equal(plain.signal, salted.signal)
    assert plain.key("tape", 1) != salted.key("tape", 1)


E2 = EFFECTS
SIDE = "identifier,effect,x\nA,-1.0,1\nB,0.1,{}\nC,-0.1,5\n"


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (PLAIN, {}, ["direction=lower (or higher", "threshold=..."]),
        (PLAIN, {"direction": "lower"}, ["threshold=..."]),
        (PLAIN, {"threshold": -0.5}, ["direction=lower"]),
        (LABELLED, {}, ["labels alone", "signal=(hit, null)"]),
        (LABELLED, E2, ["direction, threshold", "no column 'effect'", "'label'"]),
        (LABELLED, {"signal": (1, -1), "drop_missing": True}, ["drop_missing need effects"]),
        (PLAIN, {**E2, "signal": (1.0, -1.0)}, ["signal=(1.0, -1.0)", "without effects"]),
        ("gene,x\nA,1\nB,2\n", {}, ["neither a column 'effect' nor a column 'label'", "'gene'"]),
        ("gene,effect\nA,-1\nB,2\n", E2, ["no column 'identifier'", "identifier=...", "'gene'"]),
        (PLAIN, {**E2, "label": "Label"}, ["no column 'Label'", "label=", "'effect'"]),
        (PLAIN, {**E2, "label": "label"}, ["no column 'label'"]),
        (PLAIN, {**E2, "effect": "efect"}, ["no column 'efect'", "Did you mean 'effect'?"]),
        (PLAIN, {**E2, "prior": "x"}, ["prior_direction=higher"]),
        (PLAIN, {**E2, "prior_direction": "lower"}, ["prior=..."]),
        (PLAIN, {**E2, "prior": "x", "prior_direction": "lower"}, ["no column 'x'", "prior="]),
        (PLAIN, {**E2, "module": "x"}, ["no column 'x'", "module="]),
        (PLAIN, {**E2, "features": ["x"]}, ["no column 'x'", "features="]),
        (PLAIN, {**E2, "features": "effect"}, ["features='effect'", "a list"]),
        (PLAIN, {**E2, "direction": "down"}, ["direction='down'", "'lower' or 'higher'"]),
        (PLAIN, {**E2, "threshold": "x"}, ["threshold='x'", "finite number"]),
        (PLAIN, {**E2, "threshold": float("nan")}, ["threshold=nan"]),
        (PLAIN, {**E2, "drop_missing": "yes"}, ["drop_missing='yes'"]),
        (PLAIN, {**E2, "identifier": None}, ["identifier=None"]),
        (PLAIN, {**E2, "name": ""}, ["name=''"]),
        (PLAIN, {**E2, "sep": ",,"}, ["sep=',,'", "one character"]),
        (PLAIN, {**E2, "sep": 3}, ["sep=3"]),
        (LABELLED, {"signal": (1.0, 0.1)}, ["signal=(1.0, 0.1)", "null <= 0"]),
        (LABELLED, {"signal": (-1.0, -2.0)}, ["hit > 0"]),
        (LABELLED, {"signal": 1.0}, ["signal=1.0"]),
        (LABELLED, {"signal": (1.0, float("nan"))}, ["signal="]),
        ("identifier,label\nA,1\nB,maybe\nC,\n", {"signal": (1, -1)},
         ["2 entries", "row 3: 'maybe', row 4: ''", "0, 1, false, true, no, yes"]),
        ("identifier,effect\nA,-1\nB,\nC,nan\n", E2,
         ["2 entries", "missing", "row 3: '', row 4: 'nan'", "drop_missing=true"]),
        ("identifier,effect\nA,-1\nB,abc\nC,\"1,5\"\nD,1_0\n", E2,
         ["3 entries", "no numbers", "row 3: 'abc', row 4: '1,5', row 5: '1_0'"]),
        ("identifier,effect\nA,-1\nB,inf\nC,-Infinity\n", E2, ["infinite", "row 3: 'inf'"]),
        ("identifier,effect\nA,-1\nB,1\nA,2\n", E2, ["1 rows repeat", "row 4", "first in row 2"]),
        ("identifier,effect\nA,-1\n,1\n  ,2\n", E2, ["2 rows have no identifier", "row 3"]),
        ("identifier,effect\nA,-1\nB,1,2\nC\n", E2, ["2 rows", "row 3 has 3, row 4 has 1"]),
        ("identifier\teffect\nA\t-1\nB\t1\n", E2, ["one column", "comma", r"sep='\t'"]),
        ("identifier\nA\nB\n", E2, ["one column"]),
        ("identifier,effect,effect\nA,-1,1\nB,1,1\n", E2, ["repeats column names: 'effect'"]),
        ("", E2, ["no rows"]),
        ("identifier,effect\n", E2, ["a header and no data rows"]),
        ("identifier,effect\nA,-1\n", E2, ["1 candidates", "at least 2"]),
        ('identifier,effect\nA,-1\n"B,1\nC,2\n', E2, ["not a well-formed table", "quotation"]),
        (b"PK\x03\x04\xff\xfe\x00\x01", E2, ["not UTF-8 text", "0xff"]),
        (b"identifier,effect\nA,\x00\nB,1\n", E2, ["binary file"]),
        ("identifier,effect\nÄ,-1\nB,1\n".encode("latin-1"), E2, ["not UTF-8 text", "Save"]),
        (PLAIN.encode("utf-16"), E2, ["not UTF-8 text"]),
        (PLAIN, {"direction": "lower", "threshold": -9}, ["0 hits among 4"]),
        ("identifier,effect,label\nA,-1,0\nB,1,1\n", {**E2, "label": "label"}, ["u > 0", "'A'"]),
        ("identifier,effect,label\nA,-1,1\nB,1,1\n", E2, ["contradicts", "'B'", "label=null"]),
        (SIDE.format(""), {**E2, "prior": "x", "prior_direction": "lower"}, ["missing", "row 3"]),
        (SIDE.format(""), {**E2, "features": ["x"]}, ["missing", "row 3", "features="]),
        (SIDE.format("inf"), {**E2, "features": ["x"]}, ["infinite", "row 3"]),
        (PLAIN, {**E2, "features": ["effect"]}, ["'effect'", "copy of the truth"]),
        (PLAIN, {**E2, "prior": "effect", "prior_direction": "lower"}, ["copy of the truth"]),
        (LABELLED, {"signal": (1, -1), "features": ["label"]}, ["copy of the truth"]),
        ("identifier,label,h\nA,1,hit\nB,0,no\nC,0,no\n", {"signal": (1, -1), "module": "h"},
         ["'module'", "copy of the truth"]),
        ("identifier,effect,prior,x\nA,-1,1,1\nB,0,2,5\nC,1,9,2\n",
         {**E2, "prior": "x", "prior_direction": "lower", "features": ["prior"]},
         ["features names the column 'prior'"]),
    ],
)  # fmt: skip
def test_a_faulty_table_or_declaration_is_refused_with_what_to_do(
    tmp_path: Path, content: str | bytes, options: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(RegistryError) as caught:
        load(tmp_path, content, **options)
    assert [word for word in words if word not in str(caught.value)] == []


COPIES = {
    "exp": lambda u: repr(math.exp(u)),
    "shifted far": lambda u: repr(u + 1e6),
    "tiny": lambda u: repr(u * 1e-170),
    "huge": lambda u: repr(u * 1e200),
    "text with an odd cell": lambda u: "?" if u == -1.91 else repr(u),
    "labels spelled": lambda u: "Yes" if u < -0.5 else " no",
}


@pytest.mark.parametrize("dress", COPIES)
def test_the_truth_in_another_dress_is_no_side_table(dress: str, tmp_path: Path) -> None:
    effects = [round(-2 + 0.09 * i, 2) for i in range(50)]
    rows = "".join(f"G{i},{u},{COPIES[dress](u)}\n" for i, u in enumerate(effects))
    with pytest.raises(RegistryError, match="copy of the truth"):
        load(tmp_path, "identifier,effect,x\n" + rows, features=["x"], **EFFECTS)


def test_a_column_declared_as_the_truth_is_no_side_table(tmp_path: Path) -> None:
    text = "identifier,effect,x\nA,-1.0,u\nB,0.1,v\nC,0.2,w\n"
    with pytest.raises(RegistryError, match="module= names the column 'effect'"):
        load(tmp_path, text, module="effect", **EFFECTS)


def test_missing_groups_are_refused_with_their_rows(tmp_path: Path) -> None:
    text = "identifier,effect,x\nA,-1.0,u\nB,0.1,\nC,0.2, \n"
    with pytest.raises(RegistryError, match=r"2 entries of column 'x'.*row 3, row 4"):
        load(tmp_path, text, module="x", **EFFECTS)


def test_a_text_of_a_side_table_has_a_largest_length(tmp_path: Path) -> None:
    text = f"identifier,effect,x\nA,-1.0,u\nB,0.1,{'v' * 300}\n"
    with pytest.raises(RegistryError, match="300 characters"):
        load(tmp_path, text, module="x", **EFFECTS)


def test_a_side_table_that_only_resembles_the_truth_is_allowed(tmp_path: Path) -> None:
    text = "identifier,effect,near\nA,-1.0,-1.01\nB,0.1,0.12\nC,-0.1,-0.1\nD,0.4,0.4\n"
    registry, _ = load(tmp_path, text, features=["near"], **EFFECTS)
    assert "near" in registry.side_tables


def shared(name: str) -> Path:
    path = SHARED / name
    if not path.is_file():
        pytest.skip(f"the test data file {name} is not here")
    return path


@pytest.mark.parametrize(
    ("name", "m", "hits"),
    [("hap1_tkov3.csv", 18049, 1799), ("ht29_three_libraries.csv", 18392, 1290)],
)
def test_a_real_fitness_screen_is_read_whole(name: str, m: int, hits: int) -> None:
    registry, oracle = load_registry(shared(name), **EFFECTS)
    assert (registry.m, oracle.hit_count, oracle.contrary_hit_count) == (m, hits, 0)
    assert load_registry(shared(name), label=None, **EFFECTS)[1].hit_count == hits


def test_replicates_of_a_real_screen_may_be_side_tables() -> None:
    registry, _ = load_registry(
        shared("hap1_tkov3.csv"), prior="effect_rep1", prior_direction="lower",
        features=["n_guides"], **EFFECTS,
    )  # fmt: skip
    assert set(registry.side_tables) == {"prior", "n_guides"}


def test_the_mean_of_other_lines_is_a_prior_of_a_real_depmap_line() -> None:
    registry, oracle = load_registry(
        shared("depmap24q4_ach000446_149.csv"), prior="prior_effect_all_other_lines",
        prior_direction="lower", **EFFECTS,
    )  # fmt: skip
    assert (registry.m, oracle.hit_count) == (149, 20)
    top = np.argsort(-registry.side_tables["prior"].values)[:10]
    assert oracle.labels[top].mean() > 0.7


@pytest.mark.parametrize(
    ("name", "m", "hits"),
    [("carnevale2022_adenosine.csv", 18861, 943), ("scharenberg2022_choline.csv", 1055, 53)],
)
def test_a_two_sided_screen_is_read_by_its_labels(name: str, m: int, hits: int) -> None:
    _, oracle = load_registry(shared(name), effect=None, signal=(1.0, -0.5))
    assert (oracle.m, oracle.hit_count) == (m, hits)


def test_a_table_with_several_rows_a_gene_is_refused() -> None:
    with pytest.raises(RegistryError, match="repeat an identifier"):
        load_registry(
            shared("gwt_tcell_perturbseq_activation.csv"), effect=None, signal=(1.0, -0.5)
        )

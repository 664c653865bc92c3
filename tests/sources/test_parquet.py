"""Parquet tables: the same registry as from the same CSV, exact values, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cads_env.errors import MissingExtraError, RegistryError
from cads_env.panel import load_registry
from cads_env.registry import Oracle, Registry
from cads_env.sources.parquet import read_parquet

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

SHARED = Path(__file__).parents[2] / ".." / "shared" / "data"
EFFECTS: dict[str, Any] = {"direction": "lower", "threshold": -0.5}
COLUMNS: dict[str, Any] = {"identifier": ["A", "B", "C"], "effect": [-1.0, 0.1, -0.7]}


def write(tmp_path: Path, columns: dict[str, Any], file_name: str = "t.parquet") -> Path:
    path = tmp_path / file_name
    pq.write_table(pa.table(columns), path)
    return path


def load(tmp_path: Path, columns: dict[str, Any], **options: Any) -> tuple[Registry, Oracle]:
    return load_registry(write(tmp_path, columns), **options)


def test_parquet_and_csv_of_one_table_are_one_registry(tmp_path: Path) -> None:
    numbers = [float(x) for x in np.sin(np.arange(40.0)) * 1.7]
    names, words = [f"G{i}" for i in range(40)], ["x", "y"] * 20
    table = {"identifier": names, "effect": numbers, "size": list(range(40)), "path": words}
    rows = zip(*table.values(), strict=True)
    text = ",".join(table) + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    options: dict[str, Any] = {**EFFECTS, "features": ["size"], "module": "path"}
    one = load_registry(tmp_path / "t.csv", **options)
    other = load(tmp_path, table, **options)
    assert (one[0].hash, one[1].hash) == (other[0].hash, other[1].hash)
    assert one[0].name == other[0].name == "t"


def test_floats_stay_exact(tmp_path: Path) -> None:
    values = [-1.7976931348623157, 0.30000000000000004, 5e-324]
    _, oracle = load(tmp_path, {**COLUMNS, "effect": values}, direction="higher", threshold=0)
    assert oracle.signal.tolist() == values
    single = pa.array([0.1, -0.7, 1.5], pa.float32())
    _, oracle = load(tmp_path, {**COLUMNS, "effect": single}, direction="higher", threshold=0)
    assert oracle.signal.tolist() == [float(np.float32(x)) for x in (0.1, -0.7, 1.5)]


def test_bools_and_whole_numbers_are_labels(tmp_path: Path) -> None:
    for labels in ([True, False, False], pa.array([1, 0, 0], pa.int8())):
        columns = {"identifier": COLUMNS["identifier"], "label": labels}
        assert load(tmp_path, columns, signal=(1, -0.5))[1].signal.tolist() == [1.0, -0.5, -0.5]


def test_whole_numbers_and_dictionaries_name_candidates(tmp_path: Path) -> None:
    for names in ([7, 8, 9], pa.array(["7", "8", "9"]).dictionary_encode()):
        registry, _ = load(tmp_path, {**COLUMNS, "identifier": names}, **EFFECTS)
        assert registry.identifiers == ("7", "8", "9")


def test_null_and_nan_are_missing(tmp_path: Path) -> None:
    columns = {**COLUMNS, "identifier": list("ABCD"), "effect": [-1.0, None, float("nan"), 0.1]}
    registry, _ = load(tmp_path, columns, drop_missing=True, **EFFECTS)
    assert registry.identifiers == ("A", "D")
    with pytest.raises(
        RegistryError, match=r"2 entries of the column 'effect'.*are missing: row 2"
    ):
        load(tmp_path, columns, **EFFECTS)


def test_a_column_that_nobody_named_is_not_read(tmp_path: Path) -> None:
    nested = pa.array([[1], [2], [3]])
    path = write(tmp_path, {**COLUMNS, "odd": nested})
    assert load_registry(path, **EFFECTS)[0].m == 3
    assert set(read_parquet(path, columns=["effect", "absent"]).columns) == {"effect"}


def test_the_ending_may_be_in_capitals_and_options_may_lie_beside(tmp_path: Path) -> None:
    path = write(tmp_path, COLUMNS, "T.PARQUET")
    (tmp_path / "T.yaml").write_text("direction: lower\nthreshold: -0.5\n", encoding="utf-8")
    assert load_registry(str(path))[1].hit_count == 2


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        (COLUMNS, {}, ["direction=lower", "threshold=..."]),
        (COLUMNS, {**EFFECTS, "sep": ","}, ["sep=','", "no meaning"]),
        (COLUMNS, {**EFFECTS, "effect": "efect"}, ["no column 'efect'", "Did you mean 'effect'?"]),
        ({"gene": ["A", "B"], "x": [1, 2]}, {}, ["neither a column 'effect'", "'gene', 'x'"]),
        ({**COLUMNS, "identifier": ["A", "B", "A"]}, EFFECTS, ["repeat an identifier", "row 3"]),
        ({**COLUMNS, "identifier": ["A", None, "C"]}, EFFECTS, ["no identifier", "row 2"]),
        ({**COLUMNS, "effect": [-1.0, 0.1, float("inf")]}, EFFECTS, ["infinite", "row 3"]),
        ({**COLUMNS, "effect": ["-1", "high", "0"]}, EFFECTS, ["no numbers", "'high'"]),
        ({**COLUMNS, "effect": [True, False, True]}, EFFECTS, ["no numbers", "'true'"]),
        ({**COLUMNS, "effect": [[1], [2], [3]]}, EFFECTS, ["'effect'", "type list"]),
        ({**COLUMNS, "identifier": [b"A", b"B", b"C"]}, EFFECTS, ["'identifier'", "binary"]),
        ({"identifier": ["A"], "effect": [1.0]}, EFFECTS, ["1 rows", "at least two"]),
        ({**COLUMNS, "label": [0, 1, 0]}, EFFECTS, ["contradicts", "label=null"]),
        ({**COLUMNS, "x": [-1.0, 0.1, -0.7]}, {**EFFECTS, "features": ["x"]}, ["copy of the"]),
    ],
)
def test_a_faulty_table_is_refused_as_a_csv_is(
    tmp_path: Path, columns: dict[str, Any], options: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(RegistryError) as caught:
        load(tmp_path, columns, **options)
    assert [word for word in words if word not in str(caught.value)] == []


def test_a_file_that_is_no_parquet_or_repeats_a_column_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(b"identifier,effect\nA,1\n")
    with pytest.raises(RegistryError, match="not a readable Parquet file"):
        load_registry(path, **EFFECTS)
    twice = pa.Table.from_arrays([pa.array(["A", "B"])] * 2, names=["identifier", "identifier"])
    pq.write_table(twice, path)
    with pytest.raises(RegistryError, match="repeats column names: 'identifier'"):
        load_registry(path, **EFFECTS)


def test_a_missing_package_is_named_with_the_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, COLUMNS)
    monkeypatch.setattr("cads_env.sources.parquet.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'cads-env\[parquet\]'"):
        load_registry(path, **EFFECTS)


def shared(name: str) -> Path:
    path = SHARED / name
    if not path.is_file():
        pytest.skip(f"the test data file {name} is not here")
    return path


def test_a_published_label_table_of_molecules_loads() -> None:
    registry, oracle = load_registry(shared("moleculenet_hiv.parquet"), signal=(1, -0.5))
    assert (registry.m, oracle.hit_count) == (41127, 1443)


def test_the_miniature_of_mean_effects_loads_by_named_columns() -> None:
    path = shared("layouts/egbench_common_continuous.parquet")
    options: dict[str, Any] = {"identifier": "gene_symbol", "effect": "gene_effect", **EFFECTS}
    registry, oracle = load_registry(path, features=["cluster_size"], **options)
    assert (registry.m, oracle.hit_count) == (24, 11)

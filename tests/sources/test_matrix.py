"""Matrices of genes by lines: forms, line endings, exact sums, and what is refused."""

from __future__ import annotations

import os
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cads_env.errors import RegistryError
from cads_env.sources.decimals import SCALE, wholes_of
from cads_env.sources.matrix import Matrix, open_matrix

BY_LINE = (
    ",A (1),B-2 (2),C (3)\n"
    "ACH-000001,0.1,-1.25,0.5\n"
    "ACH-000002,,-0.75,1e-1\n"
    "ACH-000003,0.3,NA,-0.123456789012345678\n"
)


def transposed(text: str) -> str:
    rows = [line.split(",") for line in text.splitlines()]
    return "".join(",".join(row) + "\n" for row in zip(*rows, strict=True))


def matrix(tmp_path: Path, content: str | bytes, name: str = "m.csv") -> Matrix:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return open_matrix(path)


QUOTED = BY_LINE.replace("A (1)", '"A (1)"').replace("ACH-000002,", '"ACH-000002",')


@pytest.mark.parametrize(
    "content",
    [
        BY_LINE,
        "ModelID" + BY_LINE,
        transposed(BY_LINE),
        "\ufeff" + BY_LINE,
        BY_LINE.replace("\n", "\r\n"),
        BY_LINE.replace("\n", "\r"),
        BY_LINE.rstrip("\n"),
        "\n\n" + BY_LINE.replace("\n", "\n\n"),
        BY_LINE.replace(",", "\t"),
        BY_LINE.replace(",", ";"),
        QUOTED,
        transposed(BY_LINE).replace("A (1)", '"A (1)"').replace("B-2 (2)", '"B-2 (2)"'),
        BY_LINE.replace("-0.75", " -0.75 "),
    ],
)
def test_every_form_of_a_matrix_reads_the_same(tmp_path: Path, content: str) -> None:
    read = matrix(tmp_path, content)
    assert read.genes == ("A (1)", "B-2 (2)", "C (3)")
    assert read.lines == ("ACH-000001", "ACH-000002", "ACH-000003")
    assert read.values("ACH-000001").tolist() == [0.1, -1.25, 0.5]
    np.testing.assert_array_equal(read.values("ACH-000002"), [np.nan, -0.75, 0.1])
    np.testing.assert_array_equal(read.values("ACH-000003"), [0.3, np.nan, -0.123456789012345678])
    sums, counts = read.totals()
    assert sums / SCALE == pytest.approx([0.4, -2.0, 0.476543210987], abs=1e-9)
    assert counts.tolist() == [2, 2, 3]


@pytest.mark.parametrize("content", [BY_LINE, transposed(BY_LINE)])
def test_sums_of_some_lines_add_up_to_the_sum_of_all(tmp_path: Path, content: str) -> None:
    read = matrix(tmp_path, content)
    parts = read.totals_of(["ACH-000003", "ACH-000001"]), read.totals_of(["ACH-000002"])
    assert (parts[0].sums + parts[1].sums).tolist() == read.totals().sums.tolist()
    assert (parts[0].counts + parts[1].counts).tolist() == read.totals().counts.tolist()
    assert read.totals_of(["ACH-000001", "ACH-000003"]).sums.tolist() == parts[0].sums.tolist()
    assert not read.totals_of([]).counts.any()


def test_a_wide_matrix_by_gene_is_read_beyond_the_first_block_of_columns(tmp_path: Path) -> None:
    lines = [f"ACH-{i:06d}" for i in range(150)]
    values = np.arange(300).reshape(2, 150) / 8
    rows = [",".join(["gene", *lines])]
    rows += [f"G{g} ({g})," + ",".join(map(str, values[g])) for g in range(2)]
    read = matrix(tmp_path, "\n".join(rows))
    for i in (0, 63, 64, 127, 128, 149, 5):
        assert read.values(lines[i]).tolist() == values[:, i].tolist()


def test_a_matrix_is_kept_until_its_file_changes(tmp_path: Path) -> None:
    first = matrix(tmp_path, BY_LINE)
    assert open_matrix(first.path) is first
    second = matrix(tmp_path, BY_LINE.replace("0.1,", "0.2,"))
    os.utime(second.path, ns=(1, 1))
    third = open_matrix(second.path)
    assert third is not first
    assert third.values("ACH-000001")[0] == 0.2


@pytest.mark.parametrize("is_by_gene", [False, True])
def test_a_file_is_never_held_whole(tmp_path: Path, is_by_gene: bool) -> None:
    rows, columns = (1500, 400) if is_by_gene else (400, 1500)
    genes, lines = max(rows, columns), min(rows, columns)
    names = [f"G{i} ({i})" for i in range(genes)], [f"ACH-{i:06d}" for i in range(lines)]
    row_names, column_names = names if is_by_gene else names[::-1]
    body = ",-0.12345678901234" * columns
    path = tmp_path / "large.csv"
    path.write_text("\n".join([",".join(["", *column_names]), *(x + body for x in row_names)]))
    read = open_matrix(path)  # what is held of the file's names is not in question
    tracemalloc.start()
    try:
        read.totals()
        read.values("ACH-000300")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 10_000_000
    assert peak < 5_000_000


def test_threads_read_one_matrix_alike(tmp_path: Path) -> None:
    read = matrix(tmp_path, transposed(BY_LINE))
    want = {line: read.values(line).tolist() for line in read.lines[:1]}
    seen: list[list[float]] = []

    def work() -> None:
        seen.extend(read.values("ACH-000001").tolist() for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [want["ACH-000001"]] * 80


@given(st.lists(st.floats(-16383, 16383), min_size=1, max_size=30))
def test_plain_and_odd_decimals_are_read_to_the_nearest_multiple(values: list[float]) -> None:
    row = ",".join(map(repr, values)).encode()
    found = wholes_of(row, b",")
    assert found.faulty == ()
    # What is cut off behind 15 digits can move a tie by one.
    assert np.abs(found.multiples - np.rint(np.array(values) * SCALE)).max() <= 1


@given(st.lists(st.text(alphabet="0123456789.-+eE_ naif", max_size=32), min_size=1, max_size=8))
def test_cells_are_numbers_exactly_when_the_slow_reading_says_so(cells: list[str]) -> None:
    from cads_env.sources.delimited import number

    found = wholes_of(",".join(cells).encode(), b",")
    for i, cell in enumerate(cells):
        value = number(cell.strip())
        is_usable = value is not None and not abs(value) >= 2**14
        assert (i not in found.faulty) == is_usable
        if is_usable:
            assert found.there[i] == (value == value)
            assert found.multiples[i] / SCALE == pytest.approx(
                0.0 if value != value else value, abs=2 / SCALE
            )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["is empty"]),
        ("\n\n", ["is empty"]),
        (",A (1)\n", ["a header and no data rows"]),
        ("ACH-000001\nACH-000002\n", ["one column"]),
        (b"\xff\xfeA\x00", ["no UTF-8 text"]),
        (b"PK\x03\x04\x00\x00,1\n", ["no UTF-8 text"]),
        (BY_LINE.replace("0.5\n", "0.5,7\n"), ["1 rows", "'ACH-000001' has 5", "has 4"]),
        (BY_LINE[:-30], ["'ACH-000003' has", "cut off"]),
        (BY_LINE.replace("B-2 (2)", "A (1)"), ["1 genes more than once", "'A (1)'"]),
        (BY_LINE.replace("000002", "000001"), ["1 cell lines more than once", "'ACH-000001'"]),
        (BY_LINE.replace("B-2 (2)", ""), ["1 genes have no name", "position 2"]),
        (BY_LINE.replace("ACH-000003", ""), ["neither", "named like DepMap cell lines"]),
        (",A,B\nX,1,2\nY,3,4\n", ["neither rows nor columns", "'X'", "'table'"]),
        (",ACH-000001,ACH-000002\nACH-000001,1,2\nACH-000002,1,2\n", ["both its rows"]),
        (",ACH-000001,ACH-000002\nBRD:BRD-K1-001,1,2\n", ["compound", "'prism'"]),
        (BY_LINE.replace("ACH-000002", '"ACH-2'), ["unpaired quotation mark"]),
        ("ModelID,OncotreeLineage\nACH-000001,Lung\n", ["table of cell lines", "model="]),
    ],
)
def test_a_file_that_is_no_matrix_is_refused(
    tmp_path: Path, content: str | bytes, words: list[str]
) -> None:
    with pytest.raises(RegistryError) as caught:
        matrix(tmp_path, content)
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("-1.25", "x", ["1 entries of 'ACH-000001' are no numbers", "'B-2 (2)': 'x'"]),
        ("-1.25", "1_000", ["no numbers", "'1_000'"]),
        ("-1.25", "inf", ["infinite or beyond 16,384", "B-2 (2): inf"]),
        ("-1.25", "99999", ["beyond 16,384", "99999"]),
        ("-1.25", "-1.2.5", ["no numbers", "'-1.2.5'"]),
    ],
)
@pytest.mark.parametrize("is_by_gene", [False, True])
def test_a_faulty_value_is_named_by_both_passes(
    tmp_path: Path, old: str, new: str, words: list[str], is_by_gene: bool
) -> None:
    text = BY_LINE.replace(old, new)
    read = matrix(tmp_path, transposed(text) if is_by_gene else text)
    with pytest.raises(RegistryError) as caught:
        read.values("ACH-000001")
    assert [word for word in words if word not in str(caught.value)] == []
    with pytest.raises(RegistryError, match=r"no numbers|infinite"):
        read.totals()
    assert read.values("ACH-000002")[2] == 0.1


def test_a_missing_file_and_a_folder_are_no_matrices(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match="cannot be read"):
        open_matrix(tmp_path / "gone.csv")
    with pytest.raises(RegistryError, match="is a folder"):
        open_matrix(tmp_path)

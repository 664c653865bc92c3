"""Table S6: exact means of the increment, and screens whose nulls read too high."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cads_env.certificate import solve_cap
from cads_env.studies import load_config, load_study
from cads_env.studies.null_misspecification import cells, play_cell, raise_nulls
from cads_env.studies.registries import registry_of
from cads_env.studies.study import Cell, Summary
from cads_env.studies.tables import Entry, Table

CONFIG = load_config("null-misspecification")
STUDY = load_study("null-misspecification")
CELLS = {cell.name: cell for cell in cells(CONFIG, tuple(STUDY.items))}
SEEDS = [0, 1, 2]


def rows_of(cell: Cell) -> list[dict[str, float]]:
    seeds = SEEDS if len(cell.seeds) > 1 else [0]
    return [dict(row) for row in play_cell(cell.settings, seeds)]


@pytest.fixture(scope="module")
def rows() -> dict[str, list[dict[str, float]]]:
    return {name: rows_of(cell) for name, cell in CELLS.items()}


@pytest.fixture(scope="module")
def tables(rows: dict[str, list[dict[str, float]]]) -> dict[str, Table]:
    summary = Summary()
    for name, some in rows.items():
        for row in some:
            summary.add(name, row)
    built = {name: build(CONFIG, summary) for name, build in STUDY.items.items()}
    return {name: table for name, table in built.items() if isinstance(table, Table)}


def named(table: Table, *labels: str, measure: str = "mean increment") -> Entry:
    return next(e for e in table.entries if e.row == labels and e.measure == measure)


def test_all_printed_means_are_within_tolerance(tables: dict[str, Table]) -> None:
    printed = [e for e in tables["table-s6"].entries if e.published is not None]
    assert len(printed) == 24
    assert {e.verdict for e in printed} == {"within"}
    assert all(e.ours <= (e.published or 0.0) + 1e-4 for e in printed)


def test_the_first_cell_is_one_by_construction(tables: dict[str, Table]) -> None:
    first = named(tables["table-s6"], "assumed N(0, s^2)", "C*(0.1)", "kept")
    assert first.ours == pytest.approx(1.0, abs=1e-12)


def test_what_breaks_the_budget_is_computed(tables: dict[str, Table]) -> None:
    table = tables["table-s6"]
    for labels, budget in (
        (("null mean +0.05", "C*(0.1)"), "broken"),
        (("null mean +0.10", "C*(0.2)"), "kept"),
        (("null sd x1.5", "C*(0.2)"), "kept"),
        (("Student t of kurtosis 9.7, sd s", "C*(0.1)"), "kept"),
        (("Student t of kurtosis 9.7, scale s", "C*(0.1)"), "broken"),
    ):
        assert named(table, *labels, budget)


def test_a_cap_solved_for_the_law_keeps_the_budget(rows: dict[str, Any]) -> None:
    for name, cell in CELLS.items():
        if "law" in cell.settings:
            assert rows[name][0]["mean"] <= 1.0
            assert 1.0 < rows[name][0]["cap"] <= solve_cap(0.1) + 1e-12


def test_outliers_of_the_config_have_the_kurtosis_that_they_claim() -> None:
    seen = 0
    for law in CONFIG["laws"]:
        spec = law["law"]
        if spec["law"] == "mixture" and "9.7" in law["name"]:
            sds = [part["sd"] for part in spec["parts"]]
            squares, fourths = (np.power(sds, k) @ spec["weights"] for k in (2, 4))
            assert 3 * fourths / squares**2 == pytest.approx(9.7, abs=1e-3)
            seen += 1
        if spec["law"] == "student":
            assert 3 + 6 / (spec["df"] - 4) == pytest.approx(9.7, abs=1e-2)
            seen += 1
    assert seen == 4


def test_raising_the_nulls_moves_no_hit_and_no_random_stream() -> None:
    oracle = registry_of(CONFIG["screens"]["registry"])[1]
    raised = raise_nulls(oracle, 0.15)
    assert (raised.signal[oracle.labels] == oracle.signal[oracle.labels]).all()
    nulls = ~oracle.labels
    assert raised.signal[nulls] == pytest.approx(oracle.signal[nulls] + 0.15)
    assert raised.key("tape", 5) == oracle.key("tape", 5)
    assert (raise_nulls(oracle, 0.0).labels == oracle.labels).all()


def test_rows_do_not_depend_on_how_seeds_are_cut(rows: dict[str, Any]) -> None:
    settings = CELLS["nulls +0.15"].settings
    assert [dict(play_cell(settings, [s])[0]) for s in SEEDS] == rows["nulls +0.15"]


def test_nulls_that_read_high_ruin_naive_bh_and_leave_cads_its_hits(
    rows: dict[str, Any], tables: dict[str, Table]
) -> None:
    mean = {
        name: {column: np.mean([row[column] for row in some]) for column in some[0]}
        for name, some in rows.items()
        if name.startswith("nulls")
    }
    naive = [mean[f"nulls +{shift}"]["naive.fdr"] for shift in ("0.00", "0.15", "0.30")]
    assert naive[0] < naive[1] - 0.1 < naive[2] - 0.2
    powers = [mean[f"nulls +{shift}"]["cads.power"] for shift in ("0.00", "0.15", "0.30")]
    assert np.ptp(powers) < 0.005
    # A wider declared family costs power, and for the unshifted one nothing.
    assert mean["nulls +0.00"]["wider.power"] == mean["nulls +0.00"]["cads.power"]
    assert mean["nulls +0.15"]["wider.power"] < mean["nulls +0.15"]["cads.power"] - 0.1
    table = tables["table-s6-screens"]
    assert named(table, "nulls +0.15", "naive BH", measure="FDR").verdict in ("within", "noise")
    assert not [e for e in table.entries if e.verdict == "off"]

"""Table S7: laws are played on the same coins, and the bound is computed from the reads played."""

from __future__ import annotations

from typing import Any

import pytest

from cads_env.bound import bound_check
from cads_env.contamination import LAWS, law_of
from cads_env.protocol import load_protocol
from cads_env.studies import load_config, load_study
from cads_env.studies.contamination import cells, play_cell
from cads_env.studies.registries import registry_of
from cads_env.studies.study import Cell, Summary
from cads_env.studies.tables import Entry, Table

CONFIG = load_config("contamination")
CELLS = {cell.name: cell for cell in cells(CONFIG, ("table-s7",))}
SEEDS = [0, 1, 2, 3]


def rows_of(cell: Cell) -> list[dict[str, float]]:
    return [dict(row) for row in play_cell(cell.settings, SEEDS)]


@pytest.fixture(scope="module")
def rows() -> dict[str, list[dict[str, float]]]:
    return {name: rows_of(cell) for name, cell in CELLS.items()}


@pytest.fixture(scope="module")
def table(rows: dict[str, list[dict[str, float]]]) -> Table:
    summary = Summary()
    for name, some in rows.items():
        for row in some:
            summary.add(name, row)
    built = load_study("contamination").items["table-s7"](CONFIG, summary)
    assert isinstance(built, Table)
    return built


def entry(table: Table, name: str, measure: str) -> Entry:
    title = next(c["title"] for c in CONFIG["channels"] if c["name"] == name)
    return next(e for e in table.entries if e.row == (title,) and e.measure == measure)


def test_rows_do_not_depend_on_how_seeds_are_cut(rows: dict[str, Any]) -> None:
    for name in ("reread", "past-high", "campaign-coin"):
        assert [dict(play_cell(CELLS[name].settings, [s])[0]) for s in SEEDS] == rows[name]


def test_every_law_of_ours_is_played_and_every_cell_has_a_law_that_exists() -> None:
    assert {cell.settings["law"] for cell in CELLS.values()} == set(LAWS)
    for cell in CELLS.values():
        protocol = load_protocol(
            "sweep", law=cell.settings["law"], law_options=cell.settings["law_options"]
        )
        law_of(protocol, 6000)


def test_laws_that_saturate_the_cap_on_the_same_coins_give_the_same_declarations(
    rows: dict[str, Any],
) -> None:
    power = {name: [row["cads_power"] for row in some] for name, some in rows.items()}
    assert power["point-mass"] == pytest.approx(power["uniform"], abs=0.02)
    assert max(power["mixed-sign"]) < min(power["uniform"])


def test_the_table_says_of_each_law_whether_the_bound_holds(table: Table) -> None:
    kept = {"uniform", "point-mass", "subthreshold", "mixed-sign", "near-boundary-at-epsilon",
            "uniform-replaced", "mixed-sign-replaced"}  # fmt: skip
    for name in CELLS.keys() - {"campaign-coin"}:
        assert entry(table, name, "bound holds (1 = yes)").ours == float(name in kept), name


def test_a_campaigns_coin_is_certain_after_round_0_of_a_campaign_where_it_fell() -> None:
    settings = CELLS["campaign-coin"].settings
    rows = [dict(row) for row in play_cell(settings | {"epsilon": 0.5}, range(8))]
    fallen = [row for row in rows if row["marginal_rate"] == 1.0]
    others = [row for row in rows if row["marginal_rate"] == 0.0]
    assert len(fallen) + len(others) == 8
    assert {row["largest_rate"] for row in fallen} == {1.0}
    assert {row["largest_rate"] for row in others} == {0.5}
    assert min(row["cads_fdr"] for row in fallen) > 0.5


def test_rates_are_those_of_the_public_check(rows: dict[str, Any]) -> None:
    settings = CELLS["reread"].settings
    protocol = load_protocol("sweep", law="reread", law_options=settings["law_options"])
    found = bound_check(registry_of(settings["registry"]), protocol, SEEDS)
    assert max(row["largest_rate"] for row in rows["reread"]) == found.largest_conditional_rate
    mean = sum(row["marginal_rate"] for row in rows["reread"]) / len(SEEDS)
    assert mean == pytest.approx(found.marginal_rate, rel=1e-12)


def test_figures_that_the_text_pins_down_agree_and_others_are_explained(table: Table) -> None:
    pinned = ("uniform", "point-mass", "subthreshold", "mixed-sign")
    for name in pinned:
        for measure in ("CADS FDR", "CADS power", "naive FDR", "marginal rate"):
            assert entry(table, name, measure).verdict in ("within", "noise"), (name, measure)
    assert entry(table, "reread", "marginal rate").verdict == "explained"
    assert not [e for e in table.entries if e.verdict == "off"]
    assert all(e.note for e in table.entries if e.verdict == "explained")

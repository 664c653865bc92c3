"""The primary grid: one campaign serves every rule and level, and each rule is the public one."""

from __future__ import annotations

import json

import numpy as np
import pytest

import cads_env
from cads_env.campaign import open_screen, play
from cads_env.certificate import Certificate, naive_bh
from cads_env.run.executors import Executor
from cads_env.studies import find_items, load_config, load_study
from cads_env.studies.play import StudyRows, play_study
from cads_env.studies.primary import cells, play_cell
from cads_env.studies.rules import RULES, column

CONFIG = load_config("primary", {"seeds": 3})
SETTINGS = {
    "registry": "synthetic-depmap-6000/0",
    "protocol": "sweep",
    "epsilon": 0.1,
    "qs": [0.05, 0.1],
}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, float]]:
    return [dict(row) for row in play_cell(SETTINGS, [0, 1, 2])]


def test_rows_do_not_depend_on_how_seeds_are_cut(rows: list[dict[str, float]]) -> None:
    assert [dict(play_cell(SETTINGS, [seed])[0]) for seed in (0, 1, 2)] == rows


def test_counts_are_those_of_the_public_functions(rows: list[dict[str, float]]) -> None:
    pair = cads_env.load_registry("synthetic-depmap-6000/0")
    labels = pair[1].labels
    record = play(open_screen([pair], [1], cads_env.load_protocol("sweep")), [None])[0]
    found = {
        "cads": Certificate().declare(record).indices,
        "uncapped": Certificate(epsilon_bar=0.0).declare(record).indices,
        "naive": naive_bh(record.means, record.counts, 0.1, m=6000, indices=record.candidates),
    }
    for rule, indices in found.items():
        true = int(labels[indices].sum())
        assert rows[1][column(rule, 0.1, "true")] == true
        assert rows[1][column(rule, 0.1, "false")] == indices.size - true
        assert rows[1][column(rule, 0.1, "power")] == pytest.approx(true / 620)
    assert rows[1]["reads"] == 45_899
    assert rows[1][column("zhou-liu", 0.1, "true")] == 0


def test_uncapped_equals_cads_where_nothing_is_contaminated() -> None:
    row = play_cell(SETTINGS | {"epsilon": 0.0}, [0])[0]
    for measure in ("true", "false", "fdp", "power"):
        assert row[column("uncapped", 0.1, measure)] == row[column("cads", 0.1, measure)]
    assert row[column("cads", 0.1, "power")] > 0.4


def test_table_1_needs_one_cell_and_the_grid_needs_five() -> None:
    assert [c.name for c in cells(CONFIG, ("table1",))] == ["epsilon=0.1"]
    assert len(cells(CONFIG, ("table1", "figure-3a"))) == 5


def test_the_same_rows_come_from_one_process_and_from_two() -> None:
    plan = StudyRows.plan(load_study("primary"), CONFIG, ("table1",), seeds=20)
    kept: list[list[str]] = []
    for executor in (Executor(), Executor(jobs=2)):
        lines: list[str] = []
        play_study(
            plan,
            executor=executor,
            keep=lambda cell, seed, row, lines=lines: lines.append(json.dumps([cell, seed, row])),  # type: ignore[misc]
        )
        kept.append(lines)
    assert kept[0] == kept[1]
    assert len(kept[0]) == 20


def test_tables_and_charts_come_from_the_summary() -> None:
    study = load_study("primary")
    plan = StudyRows.plan(study, CONFIG, find_items(["primary"])["primary"])
    summary = play_study(plan)
    table = study.items["table-s1"](CONFIG, summary)
    assert len(table.entries) == 5 * 3 * 7 + 1  # type: ignore[union-attr]
    chart = study.items["figure-3a"](CONFIG, summary)
    naive = next(s for s in chart.series if s.name == "naive BH")  # type: ignore[union-attr]
    assert np.all(np.diff(naive.y) > 0)
    assert {s.name for s in chart.series if s.is_reference} == {"q = 0.1"}  # type: ignore[union-attr]
    assert len(chart.series) == len(RULES) + 1  # type: ignore[union-attr]

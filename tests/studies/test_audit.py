"""The audit study: one campaign a seed for every audit, judged as the public functions judge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cads_env
from cads_env.campaign import open_screen, play
from cads_env.certificate import AuditCap, Certificate, audit_bound
from cads_env.studies import load_config, load_study
from cads_env.studies.audit import Plan, cells, play_cell, share_recovered
from cads_env.studies.play import StudyRows, play_study
from cads_env.studies.tables import Chart, Table

CONFIG = load_config("audit")
PUBLISHED = Path(__file__).parents[3] / "shared" / "published.json"
PLANS = [
    Plan("plain", 200),
    Plan("front", 50, "front", {"looks": "per_read"}),
    Plan("detector", 200, kappa=0.7, audit={"rho": 0.1}),
]
SETTINGS: dict[str, Any] = {
    "registry": "synthetic-depmap-6000/0",
    "protocol": "sweep",
    "epsilon": 0.1,
    "q": 0.1,
    "blind_epsilon_bar": 0.3,
    "plans": [plan._asdict() for plan in PLANS],
}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, float]]:
    return [dict(row) for row in play_cell(SETTINGS, [0, 1, 2])]


def test_rows_do_not_depend_on_how_seeds_are_cut(rows: list[dict[str, float]]) -> None:
    assert [dict(play_cell(SETTINGS, [seed])[0]) for seed in (0, 1, 2)] == rows


def test_a_row_is_what_playing_and_judging_with_controls_gives(
    rows: list[dict[str, float]],
) -> None:
    pair = cads_env.load_registry("synthetic-depmap-6000/0")
    for plan in PLANS[:2]:
        protocol = cads_env.load_protocol(
            "sweep", audit_controls=plan.controls, audit_timing=plan.timing
        )
        record = play(open_screen([pair], [1], protocol), [None])[0]
        certificate = Certificate(audit=plan.audit or True)  # type: ignore[arg-type]
        declared = certificate.declare(record).indices
        true = int(pair[1].labels[declared].sum())
        outcome = certificate.audit_outcome(record)
        assert rows[1][plan.column("power")] == true / 620
        assert rows[1][plan.column("fdp")] == (declared.size - true) / max(declared.size, 1)
        assert rows[1][plan.column("final_bound")] == outcome.final_bound
        assert rows[1][plan.column("coverage")] == 1.0
    assert rows[1]["plain@200.power"] > 0.05
    oracle = Certificate(q=AuditCap().level(0.1)).declare(record).indices
    assert rows[1]["oracle cap.power"] == int(pair[1].labels[oracle].sum()) / 620
    assert rows[1]["plain@200.gain"] == rows[1]["plain@200.power"] - rows[1]["blind cap.power"]


def test_an_ideal_detector_of_clean_controls_gives_the_exact_bound(
    rows: list[dict[str, float]],
) -> None:
    exact = audit_bound(0, 200) / 0.7 + 0.1
    for row in rows:
        assert row["detector@200.final_bound"] == pytest.approx(exact, abs=1e-9)
    assert exact == pytest.approx(0.1548, abs=5e-5)


@pytest.mark.parametrize("kappa", [0.7, 1.0])
def test_an_ideal_detector_flags_with_its_probability_and_never_a_clean_control(
    kappa: float,
) -> None:
    plan = Plan("x", 1000, kappa=kappa)
    assert plan.cap.kappa(0.5) == pytest.approx(kappa, abs=1e-9)
    settings = SETTINGS | {"plans": [plan._asdict()], "protocol": "sweep+rounds=1"}
    shares = []
    for epsilon in (0.0, 0.5):
        found = play_cell(settings | {"epsilon": epsilon}, range(8))
        shares.append(np.mean([row["x@1000.final_bound"] for row in found]))
    assert shares[0] == pytest.approx(audit_bound(0, 1000) / kappa, abs=1e-9)
    # The bound of 1,000 controls lies about .05 / kappa above the flag rate kappa epsilon.
    assert 0.5 < shares[1] < 0.5 + 0.08 / kappa


def test_items_need_the_cells_that_they_show() -> None:
    def names(*items: str) -> list[str]:
        return [cell.name for cell in cells(CONFIG, items)]

    assert names("table-s5") == ["boundary"]
    assert names("figure-s2") == names("audit-additions") == ["primary"]
    assert names("table-s4", "table-s5") == ["primary", "tcell", "boundary"]
    for cell in cells(CONFIG, ("table-s4", "table-s5")):
        json.dumps(cell.settings, allow_nan=False)
        assert len(cell.seeds) == (1000 if cell.name == "primary" else 200)


def test_tables_and_figure_hold_every_audit_beside_its_published_figure() -> None:
    study = load_study("audit")
    plan = StudyRows.plan(study, CONFIG, tuple(study.items), seeds=2)
    summary = play_study(plan)
    built = {name: build(CONFIG, summary) for name, build in study.items.items()}
    s4, s5, more, chart = (
        built[n] for n in ("table-s4", "table-s5", "audit-additions", "figure-s2")
    )
    assert isinstance(s4, Table)
    assert isinstance(s5, Table)
    assert isinstance(more, Table)
    assert isinstance(chart, Chart)
    known = {(*e.row[1:], e.measure): e.published for e in s4.entries if "depmap" in e.row[0]}
    assert known["as published", "200", "power"] == 0.172
    assert known["idealised", "1,000", "final bound"] == 0.141
    assert known["oracle cap, epsilon_bar = 0.1", "-", "power"] == 0.39
    assert known["as published", "1,000", "share of the gap"] == 0.57
    assert [e.published for e in s5.entries if e.measure == "power"] == [
        0.214, 0.233, 0.288, 0.175, 0.203, 0.271,
    ]  # fmt: skip
    exact = [e for e in s5.entries if e.row[2] == "0" and e.measure == "final bound"]
    assert [(e.verdict, e.mc_se) for e in exact] == [("within", 0.0)] * 2
    assert all(e.published is None for e in more.entries)
    assert len(more.entries) == 4 * 5 * 4 + 5
    assert [s.name for s in chart.series if s.is_reference] == ["oracle cap", "blind cap"]
    assert all(list(s.x) == CONFIG["controls"] for s in chart.series)


@pytest.mark.skipif(not PUBLISHED.exists(), reason="the published figures are not at hand")
def test_the_configs_published_figures_are_those_that_were_published() -> None:
    told, ours = json.loads(PUBLISHED.read_text(encoding="utf-8")), CONFIG["published"]
    table = told["table_s4_audit"]
    for row, known in zip(ours["table_s4"], table["depmap"], strict=True):
        assert {"fdr" if k == "fdp" else k: v for k, v in row.items()} == known
    assert ours["tcell"] == table["tcell"]
    assert ours["oracle_cap_power"] == table["oracle_cap_power"]
    assert ours["blind_cap_power"] == table["blind_cap_power"]
    ideal = table["idealised_kappa1_no_false_alarm"]
    assert CONFIG["idealised"]["controls"] == ideal["controls"]
    assert ours["idealised"] == {k: ideal[k] for k in ("power", "final_bound")}
    grid = told["table_s5_audit_boundary"]
    for point, row, known in zip(
        CONFIG["boundary"]["points"], ours["table_s5"], grid["rows"], strict=True
    ):
        assert {k: v for k, v in known.items() if k != "epsilon_audit"} == point | row


def test_the_share_of_the_gap_is_that_of_the_vector() -> None:
    vectors = json.loads((Path(__file__).parents[1] / "vectors" / "statistics.json").read_text())
    known = vectors["recovery_fraction"]
    share = share_recovered(known["audit"], known["oracle"], known["blind"])
    assert share == pytest.approx(known["value"], rel=1e-12)
    assert np.isnan(share_recovered(0.2, 0.1, 0.1))

"""The gate study: its contrasts are paired, its controls are what they are said to be."""

from __future__ import annotations

import math
from typing import Any

import pytest

import cads_env
from cads_env.campaign import open_screen, play
from cads_env.certificate import Certificate
from cads_env.errors import AgentError
from cads_env.run import evaluate
from cads_env.studies import find_items, load_config, load_study
from cads_env.studies.gate import interval
from cads_env.studies.gate_play import candidates_needed, play_cell, reads_needed
from cads_env.studies.play import StudyRows, play_study
from cads_env.studies.study import Moments
from cads_env.studies.tables import Entry, Table

REGISTRY = "synthetic-depmap/0"
SMALL = {"budgets": [1], "protocols": ["proposer"], "budget_seeds": 4, "split_seeds": 4}


def rows(arm: str, seeds: list[int], **changes: Any) -> list[dict[str, float]]:
    settings: dict[str, Any] = {
        "registry": REGISTRY, "protocol": "proposer", "arm": arm,
        "modes": ["full", "none", "permuted", "split"],
    }  # fmt: skip
    return [dict(row) for row in play_cell(settings | changes, seeds)]


@pytest.mark.parametrize("arm", ["nothing", "module-learner", "effect-ranked"])
def test_rows_do_not_depend_on_how_seeds_are_cut(arm: str) -> None:
    together = rows(arm, [3, 4, 5])
    assert [rows(arm, [seed])[0] for seed in (3, 4, 5)] == together


def test_an_arms_figures_are_those_of_a_run() -> None:
    for arm, mode in (("module-learner", "full"), ("prior", "permuted")):
        result = evaluate(
            arm, registry=REGISTRY, protocol="proposer", seeds=range(4), feedback=mode
        )
        played = rows(arm, [0, 1, 2, 3])
        assert [row[f"true_{mode}"] for row in played] == result.campaigns["true"].tolist()
        if mode == "full":
            assert [row["net"] for row in played] == result.campaigns["net"].tolist()
            assert [row["twin"] for row in played] == result.campaigns["twin_true"].tolist()


def test_only_an_arm_that_reads_its_lists_changes_when_they_are_permuted() -> None:
    protocol = {"protocol": "standard", "modes": ["full", "split"]}
    assert all(row["full_minus_split"] == 0 for row in rows("prior", [0, 1], **protocol))
    learned = rows("module-learner", [0, 1, 2], **protocol)
    assert any(row["full_minus_split"] != 0 for row in learned)


def test_split_feedback_leaves_re_selection_alone() -> None:
    pair = cads_env.load_registry(REGISTRY)
    split = cads_env.load_protocol("proposer", feedback_proposer="permuted")
    record = play(open_screen([pair], [2], split), [None])[0]
    found = Certificate().declare(record).indices
    row = rows("nothing", [2])[0]
    assert row["true_split"] == row["true_full"] == int(pair[1].labels[found].sum())
    assert row["twin"] == row["true_full"]


def test_in_proposer_even_the_truth_certifies_nothing_without_feedback() -> None:
    for row in rows("effect-ranked", [0, 1, 2]):
        assert row["true_full"] > 10
        assert row["true_none"] == row["true_permuted"] == 0
        assert max(row["most_reads_none"], row["most_reads_permuted"]) <= 8
    assert reads_needed(18_159, 1, Certificate()) == 11


def test_reads_needed_and_candidates_needed_are_the_bar_of_the_certificate() -> None:
    judge, m = Certificate(), 18_159
    for k in (1, 13, 80):
        needed = reads_needed(m, k, judge)
        assert needed * judge.log_cap >= math.log(m / (judge.q * k)) > (needed - 1) * judge.log_cap
    for reads in (5, 8):
        count = candidates_needed(m, reads, judge)
        assert reads_needed(m, count, judge) <= reads < reads_needed(m, count - 1, judge)


def test_an_interval_from_moments_is_the_paired_t_interval() -> None:
    from cads_env.inference import paired_t

    moments, flat = Moments(), Moments()
    for value in (1.0, 4.0, -2.0, 0.5):
        moments.add(value)
        flat.add(3.0)
    estimate = paired_t([1.0, 4.0, -2.0, 0.5])
    assert interval(moments) == pytest.approx((estimate.low, estimate.high))
    assert interval(flat) == (3.0, 3.0)


def test_matched_quota_fills_forty_slots_and_five_in_each_late_round() -> None:
    protocol = cads_env.load_protocol("matched-quota")
    due = cads_env.load_protocol("proposer", quota=5, attempts=8, fallback_priority="round")
    assert protocol.hash == due.hash
    played = rows("random", [20, 21], protocol="matched-quota", modes=["full"])
    assert [row["slots"] for row in played] == [95, 95]


def tables(*items: str, seeds: int | None = None) -> dict[str, Table]:
    study, config = load_study("gate"), load_config("gate", SMALL)
    summary = play_study(StudyRows.plan(study, config, items, seeds=seeds))
    built = {name: study.items[name](config, summary) for name in items}
    return {name: table for name, table in built.items() if isinstance(table, Table)}


def entry(table: Table, arm: str, measure: str) -> Entry:
    return next(e for e in table.entries if e.row[-1] == arm and e.measure == measure)


def test_the_loop_without_a_proposer_passes_the_gate_by_itself() -> None:
    table = tables("gate")["gate"]
    assert entry(table, "no proposer", "passes").verdict == "within"
    assert entry(table, "no proposer", "full - none, low").ours > 0
    assert entry(table, "no proposer", "true, none").ours == 0
    assert "no candidate got more than 8 reads" in table.caption
    assert "one declared alone needs 11" in table.caption


def test_a_loop_whose_controls_certify_as_much_does_not_pass() -> None:
    study, config = load_study("gate"), load_config("gate", SMALL)
    plan = StudyRows.plan(study, config, ["gate"], seeds=2)
    summary = play_study(plan)
    for cell in plan.cells:
        # A thousand seeds on which the control certifies one more than the loop.
        for _ in range(1_000):
            row = dict.fromkeys(summary.columns(cell.name), 0.0)
            summary.add(cell.name, row | {"full_minus_permuted": -1.0, "full_minus_none": 1.0})
    table = study.items["gate"](config, summary)
    assert isinstance(table, Table)
    assert entry(table, "no proposer", "passes").verdict == "off"


def test_every_item_is_built_from_its_own_cells_alone() -> None:
    assert find_items(["gate"])["gate"] == tuple(load_study("gate").items)
    for item in ("budgets", "reach", "split-feedback", "matched-quota"):
        assert tables(item, seeds=2)[item].entries


def test_reach_at_the_published_priors_count_is_round_three() -> None:
    found = [e for e in tables("reach", seeds=2)["reach"].entries if e.expected is not None]
    assert [e.verdict for e in found] == ["within"]


def test_an_agent_that_is_not_installed_is_named() -> None:
    with pytest.raises(AgentError, match="no-such-agent"):
        rows("no-such-agent", [0])

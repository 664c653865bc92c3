"""Summaries: means, ratios and reach as functions of rows, and rows that are not there."""

from __future__ import annotations

import math
from typing import Any

import pytest

from cads_env.certificate import Certificate, reach
from cads_env.inference import clopper_pearson_upper
from cads_env.protocol import load_protocol
from cads_env.run.result import ArmResult, reach_of, show_ratio, summarise

STANDARD = load_protocol("standard")


def campaign(seed: int, **counts: int) -> dict[str, Any]:
    names = ("true", "false", "twin_true", "gained", "lost", "tested_hits", "reference_true")
    row = dict.fromkeys(names, 0) | counts
    row["net"] = row["true"] - row["twin_true"]
    return row | {"registry": "r", "seed": seed, "m": 18_159}


def rounds(seed: int, accepted: int = 3) -> list[dict[str, Any]]:
    return [
        {"registry": "r", "seed": seed, "round": t, "proposal_slots": 20, "accepted": accepted}
        for t in range(12)
    ]


def summary(*campaigns: dict[str, Any], failed: int = 0) -> ArmResult:
    every = [row for c in campaigns for row in rounds(c["seed"])]
    return summarise("arm", campaigns, every, failed, STANDARD, Certificate())


def test_the_means_are_over_the_campaigns_that_were_scored() -> None:
    arm = summary(
        campaign(0, true=10, twin_true=4, gained=7, lost=1, tested_hits=30, reference_true=80),
        campaign(1, true=12, false=1, twin_true=8, gained=4, tested_hits=20, reference_true=76),
        failed=3,
    )
    assert (arm.n, arm.failed) == (2, 3)
    assert (arm.true, arm.false, arm.twin, arm.net.mean) == (11.0, 0.5, 6.0, 5.0)
    assert (arm.gained, arm.lost, arm.raw_hits, arm.reference) == (5.5, 0.5, 25.0, 78.0)
    assert arm.normalised_net == 5.0 / 72.0
    assert arm.fdr_bound == clopper_pearson_upper(1, 2)


def test_slots_in_reach_are_those_of_rounds_that_can_still_be_declared() -> None:
    arm = summary(campaign(0, reference_true=80))
    last = reach(STANDARD, 80, 18_159)
    assert 0 < last < 11
    assert (arm.slots, arm.filled) == (240.0, 36.0)
    assert (arm.slots_in_reach, arm.filled_in_reach) == (20.0 * (last + 1), 3.0 * (last + 1))


def test_the_reach_takes_at_least_one_declaration_and_at_most_the_registry() -> None:
    judge = Certificate()
    assert reach_of(STANDARD, judge, 0.0, 18_159) == reach(STANDARD, 1, 18_159)
    assert reach_of(STANDARD, judge, 0.4, 100) == reach(STANDARD, 1, 100)
    assert reach_of(STANDARD, judge, 500.0, 100) == reach(STANDARD, 100, 100)


@pytest.mark.parametrize(
    ("reference", "expected"), [(5, None), (6, 2.0), (4, None), (13, 0.25), (0, None)]
)
def test_a_ratio_needs_a_reference_one_declaration_above_the_twin(
    reference: int, expected: float | None
) -> None:
    arm = summary(campaign(0, true=7, twin_true=5, reference_true=reference))
    assert arm.normalised_net == expected


def test_a_campaign_counts_as_false_once_however_many_nulls_it_declares() -> None:
    some = summary(*(campaign(seed, false=9 * (seed == 0)) for seed in range(20)))
    none = summary(*(campaign(seed) for seed in range(20)))
    assert some.false == pytest.approx(0.45)
    assert some.fdr_bound == clopper_pearson_upper(1, 20)
    assert none.fdr_bound == pytest.approx(1 - 0.05 ** (1 / 20))


def test_an_arm_without_campaigns_has_no_means() -> None:
    arm = summarise("arm", [], [], 4, STANDARD, Certificate())
    assert (arm.n, arm.failed, arm.fdr_bound, arm.normalised_net) == (0, 4, 1.0, None)
    means = (arm.true, arm.false, arm.twin, arm.gained, arm.lost, arm.reference, arm.raw_hits)
    assert all(math.isnan(x) for x in (*means, arm.net.mean, arm.slots, arm.filled))


def test_a_ratio_is_shown_with_two_decimals_or_a_dash() -> None:
    assert (show_ratio(0.125), show_ratio(-1.0), show_ratio(None)) == ("0.12", "-1.00", "-")

"""The answer for an arm: what decides it, and what is said of it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import pandas as pd
import pytest

from cads_env import RunResult
from cads_env.certificate import Certificate
from cads_env.inference import beats_twin, n_to_detect
from cads_env.protocol import load_protocol
from cads_env.report.answers import cards, summary_table, warnings_of
from cads_env.report.content import Answer
from cads_env.report.verdict import Verdict, judge, verdicts
from cads_env.run.result import summarise


def verdict(nets: Sequence[int], *, registries: Sequence[str] = ()) -> Verdict:
    names = registries or ["r"] * len(nets)
    counts = ("false", "gained", "lost", "tested_hits", "reference_true")
    rows = [
        dict.fromkeys(counts, 0)
        | {"true": 50 + net, "twin_true": 50, "net": net, "registry": name, "seed": i, "m": 1000}
        for i, (net, name) in enumerate(zip(nets, names, strict=True))
    ]
    arm = summarise("arm", rows, [], 0, load_protocol("standard"), Certificate())
    return judge(arm, pd.DataFrame(rows, columns=["net", "registry"]))


@pytest.mark.parametrize(
    ("nets", "expected"),
    [
        ([5, 6, 7, 5, 6], "yes"),
        ([-5, -6, -7, -5], "harm"),
        ([0, 0, 1, -1, 0, 0, 1, -1], "no"),
        ([0, 0, 0], "no"),
        ([9, -9, 4, -3], "open"),
        ([2, 2, 2], "yes"),
        ([7], "unknown"),
        ([], "unknown"),
    ],
)
def test_the_interval_decides_the_answer(nets: list[int], expected: Answer) -> None:
    assert verdict(nets).answer == expected


def test_a_small_net_that_is_told_from_zero_is_a_yes() -> None:
    nets = [1, 0, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1]
    assert verdict(nets).answer == "yes"


def test_wins_losses_and_ties_make_the_e_value() -> None:
    found = verdict([3, -1, 0, 2, 5, 0])
    assert (found.wins, found.losses, found.ties) == (3, 1, 2)
    assert found.log_e == beats_twin(3, 1)


def test_the_campaigns_needed_follow_from_the_spread() -> None:
    nets = [9, -9, 4, -3]
    found = verdict(nets)
    sd = pd.Series(nets).std()
    assert found.needed_for_one == n_to_detect(1.0, sd=sd)
    assert found.needed_for_seen == n_to_detect(0.25, sd=sd)
    assert verdict([7]).needed_for_one is None


def test_over_a_panel_the_units_are_registries() -> None:
    found = verdict([4, 5, 4, 9, 9, 8], registries=["a", "a", "a", "b", "b", "b"])
    assert found.registries == 2
    # Six campaigns would be told from 0; two registries are not.
    assert found.answer == "open"


def test_a_card_says_how_sure_at_what_n_and_what_would_change_it(run: RunResult) -> None:
    answers = verdicts(run)
    card = cards(run, answers)[0]
    facts = dict(card.facts)
    assert list(facts) == ["How sure", "At what n", "What would change it"]
    v = answers[0]
    assert f"{v.wins} won, {v.losses} lost, {v.ties} tied" in facts["How sure"]
    assert "8 campaigns; on 2 registries of tiny." in facts["At what n"]
    assert "80 % power" in facts["What would change it"]
    failed = dict(cards(run, answers)[2].facts)["At what n"]
    assert f"{len(run.failures)} campaigns failed" in failed.replace("1 campaign ", "1 campaigns ")


def test_a_few_arms_need_no_table_of_answers_and_many_do(run: RunResult) -> None:
    answers = verdicts(run)
    assert summary_table(answers) is None
    table = summary_table([*answers, *answers])
    assert table is not None
    assert len(table.rows) == 6


def test_what_voids_the_guarantee_is_said_first(run: RunResult) -> None:
    weak = dataclasses.replace(run, certificate=Certificate(epsilon_bar=0.01, s=0.4))
    said = " ".join(warnings_of(weak))
    assert "epsilon_bar = 0.01 is below the channel's contamination 0.1" in said
    assert "s = 0.4 is below the channel's noise 0.5" in said
    assert "FDR" not in " ".join(warnings_of(run))
    open_run = dataclasses.replace(run, manifest={**run.manifest, "status": "running"})
    assert "not complete" in warnings_of(open_run)[0]


def test_no_campaign_leaves_nothing_but_the_count_of_failures() -> None:
    found = verdict([])
    assert (found.wins, found.losses, found.ties, found.registries) == (0, 0, 0, 0)
    assert math.isnan(found.arm.net.mean)

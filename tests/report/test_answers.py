"""The answer for an arm: what decides it, and what is said of it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import pandas as pd
import pytest

from cads_env import RunResult
from cads_env.certificate import Certificate
from cads_env.inference import beats_twin, n_to_detect, t_power, tost
from cads_env.protocol import load_protocol
from cads_env.report.answers import cards, key_of, summary_table, warnings_of
from cads_env.report.change import what_would_change
from cads_env.report.content import Answer
from cads_env.report.verdict import Verdict, judge, verdicts
from cads_env.run.result import summarise


def verdict(
    nets: Sequence[int], *, registries: Sequence[str] = (), holm: float = math.nan
) -> Verdict:
    names = registries or ["r"] * len(nets)
    counts = ("false", "gained", "lost", "tested_hits", "reference_true")
    rows = [
        dict.fromkeys(counts, 0)
        | {"true": 50 + net, "twin_true": 50, "net": net, "registry": name, "seed": i, "m": 1000}
        for i, (net, name) in enumerate(zip(nets, names, strict=True))
    ]
    arm = summarise("arm", rows, [], 0, load_protocol("standard"), Certificate())
    return judge(arm, pd.DataFrame(rows, columns=["net", "registry"]), holm=holm)


@pytest.mark.parametrize(
    ("nets", "expected"),
    [
        ([5, 6, 7, 5, 6], "yes"),
        ([-5, -6, -7, -5], "harm"),
        ([0, 0, 1, -1, 0, 0, 1, -1], "no"),
        ([0, 0, 0, 0, 0], "no"),
        ([0, 0, 0, 0], "unknown"),
        ([9, -9, 4, -3], "open"),
        ([2, 2, 2, 2, 2], "yes"),
        ([2, 2, 2, 2], "unknown"),
        ([7], "unknown"),
        ([], "unknown"),
    ],
)
def test_the_interval_decides_the_answer(nets: list[int], expected: Answer) -> None:
    assert verdict(nets).answer == expected


def test_over_several_arms_their_adjusted_p_decides_too() -> None:
    nets = [5, 6, 7, 5, 6]
    assert verdict(nets, holm=0.05).answer == "yes"
    assert verdict(nets, holm=0.06).answer == "open"
    assert verdict([-net for net in nets], holm=0.06).answer == "open"
    small = [1, 0, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1]
    assert verdict(small, holm=0.06).answer == "no"


def test_a_small_net_that_is_told_from_zero_is_a_yes() -> None:
    nets = [1, 0, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1]
    assert verdict(nets).answer == "yes-small"
    assert verdict([-net for net in nets]).answer == "harm-small"
    # An interval that reaches past the margin is not small, and neither is a net of the margin.
    assert verdict([1, 0, 2, 0, 2, 2, 0, 1, 2, 0, 1, 2]).answer == "yes"
    assert verdict([1] * 5).answer == "yes"


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
    assert list(facts) == ["How sure", "False", "At what n", "What would change it"]
    v = answers[0]
    assert f"{v.wins} won, {v.losses} lost, {v.ties} tied" in facts["How sure"]
    assert facts["At what n"] == "8 campaigns on 2 registries."
    assert "by Holm over 3 arms" in facts["How sure"]
    assert f"P(any)\u00a0≤\u00a0{v.arm.fdr_bound:.3f}" in facts["False"]
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


def test_a_yes_says_what_overturns_it_and_not_what_power_takes(run: RunResult) -> None:
    text = what_would_change(run, verdict([5, 6, 7, 5, 6]))
    low = verdict([5, 6, 7, 5, 6]).arm.net.low
    for said in (
        f"it ends at +{low:.2f}",
        "holds for this registry alone",
        "contamination above epsilon_bar = 0.1, noise above s = 0.5",
        "saw this registry",
        "--identifiers shuffled",
    ):
        assert said in text
    assert "power" not in text
    shuffled = dataclasses.replace(run, identifiers="shuffled")
    assert "shuffled" not in what_would_change(shuffled, verdict([5, 6, 7, 5, 6]))
    several = verdict([5, 6, 7, 5], registries=list("abcd"))
    assert "registries drawn like these 4" in what_would_change(run, several)


def test_what_is_not_decided_says_how_many_of_which_units_more(run: RunResult) -> None:
    nets = [9, -9, 4, -3]
    seeds = verdict(nets)
    text = what_would_change(run, seeds)
    assert text.startswith("More seeds, for this registry alone: 80 % power takes ")
    assert f"{seeds.needed_for_one:,} for a net of 1" in text
    assert f"{seeds.needed_for_seen:,} for the net seen" in text
    assert t_power(seeds.found_now, sd=seeds.arm.net.sd, n=4) == pytest.approx(0.8)
    panel = what_would_change(run, verdict(nets, registries=list("abcd")))
    assert panel.startswith("More registries (more seeds on these 4 are no more registries): ")


def test_a_no_says_which_margin_would_undo_it(run: RunResult) -> None:
    found = verdict([0, 0, 1, -1, 0, 0, 1, -1])
    assert f"A margin below {found.margin_needed:.2f}" in what_would_change(run, found)
    for margin, within in ((found.margin_needed + 1e-6, True), (found.margin_needed - 1e-6, False)):
        assert tost(found.arm.net, margin=margin).is_equivalent is within


def test_the_key_says_what_the_cards_mean_and_that_arms_are_not_compared(run: RunResult) -> None:
    key = dict(key_of(run))
    assert "90 % interval" in key["Within 1 of 0"]
    assert "20" in key["e"]
    assert "cads compare" in key["Between arms"]
    alone = dataclasses.replace(run, arms={"prior": run.arms["prior"]})
    assert "Between arms" not in dict(key_of(alone))


def test_an_exhausted_registry_leaves_nothing_but_the_order(run: RunResult) -> None:
    assert "order" not in " ".join(warnings_of(run))
    rows = run.campaigns.assign(observed=run.campaigns["m"])
    whole = " ".join(warnings_of(dataclasses.replace(run, campaigns=rows)))
    assert "Every campaign read every candidate" in whole
    rows.loc[rows["registry"] == "tiny-0", "observed"] -= 1
    part = " ".join(warnings_of(dataclasses.replace(run, campaigns=rows)))
    assert "Every campaign on 1 of 2 registries read" in part

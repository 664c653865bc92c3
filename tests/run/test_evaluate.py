"""Evaluation: frames and summaries, failures kept apart, errors with their place, arguments."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cads_env.certificate import Certificate, reach
from cads_env.errors import (
    AgentError,
    CertificateError,
    ProtocolError,
    RegistryError,
    RunError,
)
from cads_env.inference import clopper_pearson_upper, clustered
from cads_env.panel import Panel
from cads_env.proposer import Nothing, Proposal, ProposerFailed, View
from cads_env.run import RunResult, evaluate
from cads_env.run.rows import CAMPAIGN_COLUMNS, DECLARATION_COLUMNS, ROUND_COLUMNS
from cads_env.score import Outcome
from cads_env.testing import tiny_protocol, tiny_registry

PANEL = Panel.of([tiny_registry(seed=i, name=f"tiny-{i}") for i in range(3)], name="tinies")
PROTOCOL = tiny_protocol(reads_each=4, certificate={"q": 0.3})
SEEDS = range(4)


def run(agents: object, **changes: Any) -> RunResult:
    arguments: dict[str, Any] = {"registry": PANEL, "protocol": PROTOCOL, "seeds": SEEDS}
    return evaluate(agents, **(arguments | changes))


class Planned:
    """Fails, breaks or answers oddly in round 2."""

    def __init__(self, trouble: Any) -> None:
        self.trouble = trouble

    def propose(self, view: View) -> Any:
        if view.round == 2:
            if isinstance(self.trouble, BaseException):
                raise self.trouble
            return self.trouble
        return view.identifiers[:3]


def test_frames_have_a_row_a_campaign_a_round_and_a_declaration() -> None:
    result = run({"learner": "module-learner", "none": Nothing})
    assert list(result.arms) == ["learner", "none"]
    assert len(result.campaigns) == 2 * len(SEEDS)
    assert len(result.rounds) == 2 * len(SEEDS) * PROTOCOL.rounds
    assert len(result.declarations) == result.campaigns["declared"].sum() > 0
    for frame in (result.campaigns, result.rounds, result.declarations):
        assert list(frame.columns[:3]) == ["arm", "registry", "seed"]
        assert set(frame["arm"]) == {"learner", "none"}
    assert {f.name for f in dataclasses.fields(Outcome)} <= set(result.campaigns.columns)
    assert list(result.campaigns.columns) == CAMPAIGN_COLUMNS
    assert list(result.rounds.columns) == ROUND_COLUMNS
    assert list(result.declarations.columns) == DECLARATION_COLUMNS


def test_seed_k_plays_registry_k_modulo_the_panels_length() -> None:
    result = run("random", seeds=[0, 1, 5, 6])
    assert result.campaigns["registry"].tolist() == ["tiny-0", "tiny-1", "tiny-2", "tiny-0"]
    assert result.campaigns["seed"].tolist() == [0, 1, 5, 6]
    assert (result.registry_count, result.scope) == (3, "over 3 registries")
    assert run("random", seeds=[3]).scope == "holds for this registry"


def test_declarations_agree_with_the_campaigns() -> None:
    result = run(["module-learner", "prior"])
    keys = ["arm", "seed"]
    by_campaign = result.declarations.groupby(keys)
    for key, row in result.campaigns.set_index(keys).iterrows():
        declared = by_campaign.get_group(key)
        assert len(declared) == row["declared"]
        assert declared["is_hit"].sum() == row["true"]
        assert (declared["is_hit"] & (declared["origin"] == "proposer")).sum() == row["originated"]
        assert (declared["is_hit"] & declared["in_twin"]).sum() == row["shared"]
        assert declared["reads"].between(1, row["reads"]).all()
        assert declared["first_round"].between(0, PROTOCOL.rounds - 1).all()


def test_rounds_agree_with_the_campaigns() -> None:
    result = run("prior", protocol=PROTOCOL.override(quota=2))
    sums = result.rounds.groupby("seed").sum(numeric_only=True)
    for _, row in result.campaigns.iterrows():
        for name in ("reads", "raw", "valid", "accepted", "fallback", "proposal_slots"):
            assert sums.loc[row["seed"], name] == row[name], name
        assert row["observed"] == row["accepted"] + row["fallback"]
    for _, row in result.rounds.iterrows():
        assert len(row["accepted_identifiers"]) == row["accepted"]
        assert len(row["proposed"]) == row["raw"]
        assert len(row["refused"]) == row["raw"] - row["accepted"]


def recomputed(result: RunResult, arm: str) -> dict[str, Any]:
    """Every number of an arm's summary, from the frames."""
    rows = result.campaigns[result.campaigns["arm"] == arm]
    rounds = result.rounds[result.rounds["arm"] == arm]
    mean = rows.groupby("registry").mean(numeric_only=True).mean()
    n, spread = len(rows), mean["reference_true"] - mean["twin_true"]
    k = min(max(1.0, float(mean["reference_true"])), 60.0)
    near = rounds["round"] <= reach(result.protocol, k, 60, certificate=result.certificate)
    return {
        "arm": arm,
        "n": n,
        "failed": sum(f.arm == arm for f in result.failures),
        "true": mean["true"],
        "false": mean["false"],
        "fdr_bound": clopper_pearson_upper(int((rows["false"] > 0).sum()), n),
        "twin": mean["twin_true"],
        "net": clustered((rows["true"] - rows["twin_true"]).tolist(), rows["registry"].tolist()),
        "gained": mean["gained"],
        "lost": mean["lost"],
        "reference": mean["reference_true"],
        "normalised_net": (mean["true"] - mean["twin_true"]) / spread if spread >= 1 else None,
        "raw_hits": mean["tested_hits"],
        "reach": {60: reach(result.protocol, k, 60, certificate=result.certificate)},
        "slots": rounds["proposal_slots"].sum() / n,
        "slots_in_reach": rounds.loc[near, "proposal_slots"].sum() / n,
        "filled": rounds["accepted"].sum() / n,
        "filled_in_reach": rounds.loc[near, "accepted"].sum() / n,
    }


def test_every_number_of_a_summary_follows_from_the_frames() -> None:
    result = run({"learner": "module-learner", "none": Nothing, "trouble": lambda: Planned([])})
    for name, arm in result.arms.items():
        expected = recomputed(result, name)
        assert set(expected) == {f.name for f in dataclasses.fields(arm)}
        for field, value in expected.items():
            assert getattr(arm, field) == pytest.approx(value), field
    learner = result.arms["learner"]
    assert 0 < learner.slots_in_reach < learner.slots
    assert learner.reference > learner.twin + 1


def test_a_summary_without_room_above_the_twin_has_no_normalised_net() -> None:
    result = run("random", certificate={"q": 1e-9})
    assert result.arms["random"].normalised_net is None
    assert "normalised net -;" in str(result)


def test_net_is_that_of_the_only_agent() -> None:
    assert run("random").net == run("random").arms["random"].net
    both = run(["random", "prior"])
    with pytest.raises(RunError, match=r"2 arms; take .arms.name..net: random, prior"):
        _ = both.net


def test_an_agent_that_proposes_nothing_nets_exactly_nothing() -> None:
    result = run(Nothing)
    assert (result.campaigns["net"] == 0).all()
    assert (result.campaigns["reads_sha256"] == result.campaigns["twin_reads_sha256"]).all()
    assert result.net.mean == result.net.low == result.net.high == 0.0


def test_an_arm_is_the_same_whatever_stands_beside_it() -> None:
    alone = run("module-learner").campaigns
    beside = run(["random", "module-learner", "module-learner"]).campaigns
    for name in ("module-learner", "module-learner-2"):
        rows = beside[beside["arm"] == name].reset_index(drop=True)
        pd.testing.assert_frame_equal(rows.drop(columns="arm"), alone.drop(columns="arm"))


def test_each_campaign_has_an_agent_of_its_own() -> None:
    built: list[int] = []

    class Counted(Nothing):
        def __init__(self) -> None:
            self.rounds: list[int] = []
            built.append(1)

        def propose(self, view: View) -> Sequence[str]:
            self.rounds.append(view.round)
            assert self.rounds == list(range(view.round + 1))
            return ()

    run(Counted)
    # One more is built to check its side tables before the first read.
    assert len(built) == len(SEEDS) + 1


def test_the_seed_of_an_agent_differs_between_campaigns_and_not_between_runs() -> None:
    seen: list[list[int]] = [[], []]
    for seeds in seen:

        def factory(seed: int, seeds: list[int] = seeds) -> Nothing:
            seeds.append(seed)
            return Nothing()

        run(factory)
    assert seen[0] == seen[1]
    assert len(set(seen[0])) == len(SEEDS)


def test_the_text_of_a_result_names_net_interval_and_scope() -> None:
    text = str(run("random"))
    assert text.startswith("tiny on tinies (named identifiers, over 3 registries), q = 0.3")
    assert "random: net " in text
    assert "n = 4 in 3 registries, detectable" in text


def test_a_failed_campaign_is_reported_and_never_averaged_in() -> None:
    class Flaky(Nothing):
        def propose(self, view: View) -> Sequence[str]:
            if view.round == 3 and view.side_tables["prior"].values[0] == second:
                raise ProposerFailed("server down")
            return ()

    second = PANEL[1][0].side_tables["prior"].values[0]
    result = run({"flaky": Flaky, "none": Nothing})
    assert [tuple(f) for f in result.failures] == [("flaky", "tiny-1", 1, "server down")]
    assert (result.arms["flaky"].n, result.arms["flaky"].failed) == (3, 1)
    assert (result.arms["none"].n, result.arms["none"].failed) == (4, 0)
    flaky = result.campaigns[result.campaigns["arm"] == "flaky"]
    assert flaky["seed"].tolist() == [0, 2, 3]
    assert "failed: flaky, seed 1: server down" in str(result)
    assert result.arms["flaky"].net.n == 3


def test_a_run_whose_campaigns_all_failed_has_empty_frames_and_no_mean() -> None:
    result = run(lambda: Planned(ProposerFailed()))
    assert len(result.failures) == len(SEEDS)
    assert result.failures[0].reason == "no reason given"
    arm = result.arms["agent"]
    assert (arm.n, arm.failed, arm.fdr_bound, arm.normalised_net) == (0, 4, 1.0, None)
    assert np.isnan(arm.net.mean)
    for frame in (result.campaigns, result.rounds, result.declarations):
        assert len(frame) == 0
        assert list(frame.columns[:3]) == ["arm", "registry", "seed"]


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (ZeroDivisionError("mine"), "ZeroDivisionError: mine"),
        ("GENE001", "A proposal is a list of identifiers"),
        (b"GENE001", "A proposal is a list"),
        (None, ".*received a NoneType"),
        ([1, 2], "Entry 0 of the proposal is 1"),
        ((x for x in ("GENE001",)), ".*received a generator"),
        ({"GENE001"}, ".*received a set"),
        (Proposal, "received a type"),
    ],
)
def test_an_agents_own_mistake_stops_the_run_and_names_its_place(
    trouble: Any, message: str
) -> None:
    with pytest.raises(AgentError, match=f"'mine' broke in round 2 of seed 0: .*{message}"):
        run({"mine": lambda: Planned(trouble)})


def test_an_interrupt_is_not_turned_into_an_error_of_the_agent() -> None:
    with pytest.raises(KeyboardInterrupt):
        run(lambda: Planned(KeyboardInterrupt()))


def test_a_missing_side_table_is_refused_before_any_agent_is_asked() -> None:
    with pytest.raises(AgentError, match="needs the side table 'prior'"):
        run({"never": lambda: Planned(AssertionError("asked")), "prior": "prior"},
            identifiers="blinded")  # fmt: skip
    mixed = Panel.of([tiny_registry(), tiny_without_tables()], name="mixed")
    with pytest.raises(AgentError, match="'bare' does not have"):
        run("module-learner", registry=mixed, seeds=[0, 2, 1])
    with pytest.raises(RegistryError, match="'bare' has no side table 'prior'"):
        run({"never": lambda: Planned(AssertionError("asked"))}, registry=mixed, seeds=[0, 2, 1],
            identifiers="shuffled-within-prior")  # fmt: skip
    assert run("module-learner", registry=mixed, seeds=[0, 2]).net.n == 2


def tiny_without_tables() -> Any:
    registry, oracle = tiny_registry(seed=1)
    return dataclasses.replace(registry, name="bare", side_tables={}), oracle


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ([], "expected one or more whole numbers from 0"),
        ([-1, 0], r"seeds holds -1"),
        ([0.0], r"seeds holds 0.0"),
        ([True], r"seeds holds True"),
        (["1"], r"seeds holds '1'"),
        ([None], r"seeds holds None"),
        ([1, 2, 1], r"seeds repeats \[1\]"),
        (5, "seeds is 5; expected several whole numbers"),
        ("0-19", "seeds is '0-19'; expected several"),
        (None, "seeds is None"),
    ],
)
def test_unusable_seeds_are_refused(seeds: Any, message: str) -> None:
    with pytest.raises(RunError, match=message):
        run("random", seeds=seeds)


@pytest.mark.parametrize("seeds", [(s for s in (3, 1)), np.array([3, 1]), (3, 1), {3: 0, 1: 0}])
def test_seeds_may_come_in_any_iterable_and_keep_their_order(seeds: Any) -> None:
    result = run("random", seeds=seeds)
    assert result.campaigns["seed"].tolist() == [3, 1]
    assert result.campaigns["reads_sha256"].tolist() == [
        run("random", seeds=[seed]).campaigns["reads_sha256"][0] for seed in (3, 1)
    ]


def test_feedback_sets_both_feedbacks_of_the_protocol() -> None:
    result = run("random", feedback="permuted")
    assert result.protocol == PROTOCOL.override(feedback="permuted")
    assert result.protocol.feedback_proposer == result.protocol.feedback_reselection == "permuted"
    with pytest.raises(ProtocolError, match="feedback_proposer is 'half'"):
        run("random", feedback="half")


def test_a_certificate_changes_what_is_declared_and_never_a_read() -> None:
    strict, lax = run("random", certificate={"q": 0.01}), run("random", certificate={"q": 0.9})
    assert strict.campaigns["reads_sha256"].tolist() == lax.campaigns["reads_sha256"].tolist()
    assert strict.campaigns["declared"].sum() < lax.campaigns["declared"].sum()
    assert strict.certificate == Certificate(q=0.01)
    assert run("random", certificate=Certificate(q=0.9)).campaigns.equals(lax.campaigns)
    with pytest.raises(CertificateError, match="Unknown certificate field 'eps'"):
        run("random", certificate={"eps": 0.1})


def test_relabelled_identifiers_change_every_seed_and_pair_with_their_own_twin() -> None:
    named, shuffled = run(Nothing), run(Nothing, identifiers="shuffled")
    assert (shuffled.campaigns["net"] == 0).all()
    assert set(named.campaigns["reads_sha256"]).isdisjoint(shuffled.campaigns["reads_sha256"])
    # What is public stays as it is: names and tables tell as little as their order.
    assert named.campaigns["registry_hash"].equals(shuffled.campaigns["registry_hash"])
    within = run(Nothing, identifiers="shuffled-within-prior")
    assert set(within.campaigns["reads_sha256"]).isdisjoint(shuffled.campaigns["reads_sha256"])
    assert set(within.campaigns["reads_sha256"]).isdisjoint(named.campaigns["reads_sha256"])
    blinded = run("random", identifiers="blinded")
    assert {name[0] for name in blinded.declarations["identifier"]} <= {"C"}
    assert (shuffled.identifiers, blinded.identifiers) == ("shuffled", "blinded")


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"jobs": 0}, RunError, "jobs=0 is not usable"),
        ({"identifiers": "shufled"}, RunError, "Did you mean 'shuffled'"),
        ({"registry": "no-such-thing"}, RegistryError, "no-such-thing"),
        ({"registry": tiny_registry()[0]}, RegistryError, "pass the pair"),
        ({"protocol": "standrad"}, ProtocolError, "Did you mean 'standard'"),
        ({"protocol": tiny_protocol(law="none")}, ProtocolError, "contamination law"),
    ],
)
def test_an_unusable_argument_is_refused_before_any_agent_is_asked(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    class Never(Nothing):
        def propose(self, view: View) -> Sequence[str]:
            raise AssertionError

    with pytest.raises(error, match=message):
        run(Never, **changes)


def test_a_pair_is_a_panel_of_one() -> None:
    result = run("random", registry=tiny_registry(name="alone"))
    assert result.panel == "alone"
    assert set(result.campaigns["registry"]) == {"alone"}


def test_registries_of_different_sizes_may_be_evaluated_together() -> None:
    panel = Panel.of([tiny_registry(), tiny_registry(30, 5, name="small")], name="unequal")
    result = run("random", registry=panel)
    assert result.campaigns["m"].tolist() == [60, 30, 60, 30]


def test_progress_is_told_after_every_campaign() -> None:
    told: list[tuple[int, int, str]] = []
    run(["random", "prior"], seeds=[0, 1], progress=lambda *now: told.append(now))
    assert told == [(1, 4, "random"), (2, 4, "prior"), (3, 4, "random"), (4, 4, "prior")]

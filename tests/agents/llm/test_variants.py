"""Variants of the LLM agent: what each changes, and that nothing else does."""

import numpy as np
import pytest

import cads_env
from cads_agents.llm import (
    HandoffProposer,
    LLMProposer,
    NoHistoryProposer,
    RetryProposer,
    ShortlistProposer,
)
from cads_agents.llm.options import option_names
from cads_agents.prior import PriorRanking
from cads_env.errors import AgentError
from cads_env.run.agents import AgentSpec, agent_names
from cads_env.testing import check_agent, tiny_protocol, tiny_registry
from tests.agents.llm.stub import StubClient, tiny_view

VARIANTS = {
    "llm": LLMProposer,
    "llm-shortlist": ShortlistProposer,
    "llm-handoff": HandoffProposer,
    "llm-retry": RetryProposer,
    "llm-no-history": NoHistoryProposer,
}
FULL = "GENE011, GENE012, GENE013, GENE014"


@pytest.mark.parametrize("name", VARIANTS)
def test_each_keeps_the_contract_of_a_proposer(name):
    client = StubClient()
    check_agent(lambda: VARIANTS[name]("m", client=client))
    assert client.asked


@pytest.mark.parametrize("name", VARIANTS)
def test_each_is_installed_under_its_name_with_all_options(name):
    assert name in agent_names()
    spec = AgentSpec(name, name, VARIANTS[name], {"model": "m"})
    assert {"prompt", "guided", "base_url", "seed", "journal"} <= spec.parameters
    assert set(option_names(LLMProposer)) <= set(option_names(VARIANTS[name]))
    whole = spec.resolved().options
    assert whole["prompt"]["name"] == VARIANTS[name].default_prompt
    assert dict(spec.resolved().resolved().options) == dict(whole)
    with pytest.raises(AgentError, match="has no option 'shortlits'"):
        VARIANTS[name].resolve_options({"model": "m", "shortlits": 5})


def test_a_shortlist_is_the_best_untested_of_the_prior_in_its_order():
    view = tiny_view()
    client = StubClient(FULL)
    ShortlistProposer("m", client=client, shortlist=6).propose(view)
    scores = np.asarray(view.side_tables["prior"].values)
    best = [view.identifiers[i] for i in np.argsort(-scores, kind="stable")]
    expected = [name for name in best if name not in view.tested][:6]
    text = client.asked[0]["messages"][-1]["content"]
    assert f"promising public knowledge holds them: {', '.join(expected)}\n" in text
    assert f"low so far: {', '.join(view.low)}\n" in text


def test_a_shortlist_needs_its_side_table_and_a_prompt_that_shows_it():
    assert ShortlistProposer("m", table="essentiality").requires == ("essentiality",)
    with pytest.raises(AgentError, match=r"does not show \$candidates"):
        ShortlistProposer("m", prompt="informed")
    with pytest.raises(AgentError, match="at least 1"):
        ShortlistProposer("m", shortlist=0)


def test_a_retry_is_told_what_was_taken_and_what_was_refused_and_why():
    client = StubClient("GENE001, GENE011, GENE011, NOVEL7")
    proposal = RetryProposer("m", client=client).propose(tiny_view())
    assert proposal.attempts == 2
    system, user, answer, told = client.asked[1]["messages"]
    assert [system, user] == client.asked[0]["messages"]
    assert answer == {"role": "assistant", "content": "GENE001, GENE011, GENE011, NOVEL7"}
    assert "Taken: GENE011\n" in told["content"]
    assert "GENE001 (tested in an earlier round)" in told["content"]
    assert "NOVEL7 (no candidate of this screen)" in told["content"]
    assert "GENE011 (named before)" in told["content"]
    assert "Name 3 further candidates" in told["content"]


def test_a_retry_can_be_sent_whatever_the_model_wrote():
    client = StubClient("\ud800GENE0\x00, GENE011\n")
    proposal = RetryProposer("m", client=client).propose(tiny_view())
    told = "".join(m["content"] for m in client.asked[1]["messages"])
    assert told.encode("utf-8")
    assert r"\ud800GENE0\x00, GENE011" in told
    assert proposal.identifiers[0] == "GENE011"


def test_a_second_attempt_that_repeats_the_first_is_told_of_repeats():
    client = StubClient("GENE001, GENE011")
    RetryProposer("m", client=client, attempts=3).propose(tiny_view())
    told = client.asked[2]["messages"][-1]["content"]
    assert "GENE001 (tested in an earlier round); GENE001 (named before); GENE011" in told


def test_a_prompt_with_a_retry_text_retries_for_the_plain_agent_too():
    client = StubClient("none of them")
    LLMProposer("m", client=client, prompt="retry").propose(tiny_view())
    assert [len(one["messages"]) for one in client.asked] == [2, 4]
    with pytest.raises(AgentError, match="no text under `retry`"):
        RetryProposer("m", prompt="informed")


def test_no_history_tells_the_same_whatever_the_screen_found():
    client = StubClient(FULL)
    for view in (tiny_view(), tiny_view(high=(), low=(), tested=())):
        NoHistoryProposer("m", client=client).propose(view)
    assert client.asked[0]["messages"] == client.asked[1]["messages"]
    with pytest.raises(AgentError, match=r"shows \$high, \$tested"):
        NoHistoryProposer("m", prompt="informed")


def test_a_handoff_after_rounds_leaves_the_screen_to_the_prior():
    client = StubClient(FULL)
    proposer = HandoffProposer("m", client=client, after=3)
    assert proposer.propose(tiny_view(round=2)).identifiers == tuple(FULL.split(", "))
    view = tiny_view(round=3)
    handed = proposer.propose(view)
    assert handed.identifiers == tuple(PriorRanking().propose(view))
    assert handed.usage == {"requests": 0, "handed_off": 1}
    assert len(client.asked) == 1
    assert len(proposer.preview(tiny_view(round=2))["messages"]) == 2
    assert proposer.preview(view)["messages"] == []


def test_a_handoff_by_delivery_comes_after_the_first_answer_that_falls_short():
    """Two of four slots: enough for 0.5, too few for 0.6."""
    for below, rounds in ((0.5, 3), (0.6, 1)):
        client = StubClient("GENE011, GENE012, GENE001, NOVEL")
        proposer = HandoffProposer("m", client=client, below=below, attempts=1)
        for number in (1, 2, 3):
            proposer.propose(tiny_view(round=number))
        assert len(client.asked) == rounds, below


def test_a_handoff_to_the_learner_needs_modules_and_has_the_campaigns_seed():
    result = cads_env.evaluate(
        {"llm": lambda: HandoffProposer("m", client=StubClient(), to="module-learner", after=1)},
        registry=tiny_registry(), protocol=tiny_protocol(), seeds=range(2),
    )  # fmt: skip
    assert result.failures == ()
    assert HandoffProposer("m", to="module-learner").requires == ("module",)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"to": "priro"}, "Did you mean 'prior'"),
        ({"after": -1}, "0 or more"),
        ({"after": 1.5}, "whole number"),
        ({"below": 0}, "above 0"),
        ({"below": 2}, "at most 1"),
    ],
)
def test_an_unusable_handoff_is_refused(options, words):
    with pytest.raises(AgentError, match=words):
        HandoffProposer("m", **options)

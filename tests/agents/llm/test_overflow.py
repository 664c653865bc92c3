"""Prompts that are too long: which names leave, when, and how it is told and counted."""

import pytest

from cads_agents.llm import LLMProposer
from cads_agents.llm.overflow import (
    dropping_order,
    estimated_tokens,
    fewest_drops,
    likely_tokens,
    without,
)
from cads_env.errors import AgentError
from cads_env.proposer import ProposerFailed
from tests.agents.llm.stub import StubClient, tiny_view

ALL = {"high", "low", "tested"}


def names(*numbers: int) -> list[str]:
    return [f"GENE{n:03d}" for n in numbers]


def test_the_oldest_low_ones_leave_first_and_then_the_oldest_high_ones():
    order = dropping_order(tiny_view(), ALL, rule="oldest-low")
    assert order == names(1, 3, 5, 2, 4)


def test_by_age_alone_the_order_is_that_of_the_first_reads():
    assert dropping_order(tiny_view(), ALL, rule="oldest") == names(1, 2, 3, 4, 5)


def test_only_what_a_prompt_shows_can_leave_it():
    assert dropping_order(tiny_view(), {"high"}, rule="oldest-low") == names(2, 4)
    assert dropping_order(tiny_view(), {"low"}, rule="oldest-low") == names(1, 3, 5)
    assert dropping_order(tiny_view(), set(), rule="oldest-low") == []
    assert dropping_order(tiny_view(), ALL, rule="fail") == []


def test_withheld_results_leave_by_age():
    view = tiny_view(high=(), low=())
    assert dropping_order(view, ALL, rule="oldest-low") == names(1, 2, 3, 4, 5)


def test_what_is_left_out_is_counted_list_by_list():
    shown = without(tiny_view(), names(1, 2))
    assert shown.high == tuple(names(4))
    assert (shown.high_left_out, shown.low_left_out, shown.tested_left_out) == (1, 1, 2)


def test_the_estimate_counts_characters_and_messages():
    assert estimated_tokens([{"role": "user", "content": "abcdef"}]) == 3 + 8


@pytest.mark.parametrize(
    ("content", "tokens"),
    [("", 0), ("abcdefgh", 2), ("TP53, MYC", 6), ("   \n", 0), ("\u03b1-1", 3), ("a", 1)],
)
def test_the_likely_number_counts_by_kinds_of_characters(content, tokens):
    message = {"role": "user", "content": content}
    assert likely_tokens([message, message]) == 2 * (tokens + 8)


@pytest.mark.parametrize("budget", [0, 1, 50, 99, 100, 1000])
def test_no_more_leaves_than_must(budget):
    drops = fewest_drops(lambda n: 100 - n, 60, budget=budget)
    assert drops == min(60, max(0, 100 - budget))


def test_a_known_context_shortens_a_prompt_before_it_is_sent():
    view = tiny_view(tested=tiny_view().identifiers[:40], low=tiny_view().identifiers[4:40])
    whole = estimated_tokens(LLMProposer("m", client=StubClient()).preview(view)["messages"])
    client = StubClient(context_tokens=whole - 50)
    proposer = LLMProposer(
        "m", client=client, context_tokens=whole - 50 + 700, prompt="informed", attempts=1
    )
    proposal = proposer.propose(view)
    assert proposal.usage["requests"] == 1
    dropped = proposal.usage["history_dropped"]
    assert 0 < dropped < 40
    text = client.asked[0]["messages"][-1]["content"]
    assert f"({dropped:.0f} earlier ones left out)" in text
    assert "GENE040" in text  # the latest ones stay
    assert "GENE002" in text  # and so do the high ones


def test_a_refused_prompt_is_halved_until_it_fits_and_no_longer_one_is_sent_again():
    view = tiny_view(tested=tiny_view().identifiers[:40], low=tiny_view().identifiers[4:40])
    whole = estimated_tokens(LLMProposer("m", client=StubClient()).preview(view)["messages"])
    client = StubClient("GENE050, GENE051, GENE052, GENE053", context_tokens=whole - 50)
    proposer = LLMProposer("m", client=client)
    first = proposer.propose(view)
    assert first.usage["requests"] == len(client.asked) == 2
    assert first.usage["history_dropped"] == 20
    assert first.attempts == 1
    second = proposer.propose(view)
    assert second.usage["requests"] == 1
    assert second.usage["history_dropped"] == 20


def test_a_prompt_that_does_not_fit_without_history_fails_the_campaign():
    proposer = LLMProposer("m", client=StubClient(context_tokens=10))
    with pytest.raises(ProposerFailed, match="longer than the context of 'stub'"):
        proposer.propose(tiny_view())


@pytest.mark.parametrize("known", [None, 760])
def test_the_rule_to_fail_drops_nothing(known):
    client = StubClient(context_tokens=60)
    proposer = LLMProposer("m", client=client, overflow="fail", context_tokens=known)
    with pytest.raises(ProposerFailed, match="overflow='fail'"):
        proposer.propose(tiny_view())
    assert len(client.asked) == (1 if known is None else 0)


def test_an_unknown_rule_or_an_impossible_context_is_refused():
    with pytest.raises(AgentError, match="Did you mean 'oldest-low'"):
        LLMProposer("m", overflow="oldest_low")
    with pytest.raises(AgentError, match=r"above max_tokens \(700\)"):
        LLMProposer("m", context_tokens=700)

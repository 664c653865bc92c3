"""Guided answers: what the server is told, and what is recorded of it."""

from typing import Any

import pytest

from cads_agents.llm import LLMProposer, ShortlistProposer
from cads_agents.llm.guided import guide_of, guided_kind, guided_names, names_sha256
from cads_env.errors import AgentError
from tests.agents.llm.stub import StubClient, tiny_view


class Keeper:
    """A journal that keeps the requests."""

    def __init__(self):
        self.requests: list[dict[str, Any]] = []

    def exchange(self, request, answer):
        self.requests.append(request)
        return answer()


def test_untested_leaves_out_what_was_tested():
    view = tiny_view()
    assert guide_of(view, "candidates").names == view.identifiers
    assert guide_of(view, "untested").names == list(view.identifiers[5:])


def test_the_schema_is_a_list_of_candidates_no_longer_than_the_slots():
    client = StubClient('["GENE010", "GENE011", "GENE012", "GENE013"]')
    LLMProposer("m", client=client, guided="untested").propose(tiny_view())
    schema = client.asked[0]["extra_body"]["structured_outputs"]["json"]
    assert schema["type"] == "array"
    assert schema["maxItems"] == 4
    assert schema["items"]["enum"] == list(tiny_view().identifiers[5:])


def test_the_record_holds_kind_number_and_hash_and_not_the_names():
    journal = Keeper()
    client = StubClient('["GENE010", "GENE011", "GENE012", "GENE013"]')
    LLMProposer("m", client=client, guided="candidates", journal=journal).propose(tiny_view())
    names = tiny_view().identifiers
    assert journal.requests[0]["guided"] == {
        "schema": "candidates",
        "count": 60,
        "sha256": names_sha256(names),
    }
    assert guided_names(client.asked[0]["extra_body"]) == list(names)


def test_a_free_request_tells_nothing_of_guiding():
    journal = Keeper()
    client = StubClient()
    LLMProposer("m", client=client, journal=journal, guided=False).propose(tiny_view())
    assert "guided" not in journal.requests[0]
    assert client.asked[0]["extra_body"] is None
    assert guided_names(None) is None
    assert guided_names({"top_k": 3}) is None


def test_a_guided_shortlist_is_kept_to_the_list():
    client = StubClient("[]")
    proposer = ShortlistProposer("m", client=client, guided="candidates", shortlist=7, attempts=1)
    proposer.propose(tiny_view())
    allowed = guided_names(client.asked[0]["extra_body"])
    assert allowed is not None
    assert len(allowed) == 7
    assert not set(allowed) & set(tiny_view().tested)


def test_the_option_is_one_of_two_kinds():
    assert guided_kind(True) == "candidates"
    assert guided_kind(None) is guided_kind(False) is None
    with pytest.raises(AgentError, match="Did you mean 'untested'"):
        guided_kind("untestd")


def test_the_arm_is_marked():
    assert LLMProposer.arm_suffix({"guided": "untested"}) == "+guided"
    assert LLMProposer.arm_suffix({}) == ""


@pytest.mark.parametrize("agent", [LLMProposer, ShortlistProposer])
def test_nothing_is_asked_where_no_candidate_is_left_to_name(agent):
    journal, client, view = Keeper(), StubClient(), tiny_view(tested=tiny_view().identifiers)
    proposer = agent("m", client=client, guided="untested", journal=journal)
    proposal = proposer.propose(view)
    assert (client.asked, journal.requests, proposal.identifiers) == ([], [], ())
    assert proposal.usage["requests"] == 0
    assert proposer.preview(view)["messages"] == []

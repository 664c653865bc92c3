"""What a run would ask, shown without asking it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from cads_env.errors import AgentError
from cads_env.proposer import View
from cads_env.run.agents import resolve_agents
from cads_env.run.preview import preview
from cads_env.testing import tiny_protocol, tiny_registry
from tests.run.talker import Talker

PAIR = tiny_registry()


def test_every_round_is_shown_and_nothing_is_asked() -> None:
    Talker.asked = 0
    specs = resolve_agents({"talker": Talker, "random": "random"})
    one, other = preview(specs, pair=PAIR, seed=3, protocol=tiny_protocol(attempts=4))
    assert Talker.asked == 0
    assert one.requests is not None
    assert [request.round for request in one.requests] == [0, 1, 2, 3, 4]
    assert one.requests[0].messages == (("user", "a thin prompt: "),)
    last = one.requests[-1].messages[0][1]
    named = last.removeprefix("a thin prompt: ").split(", ")
    assert set(named) <= set(PAIR[0].identifiers)
    assert (one.tokens_in, one.tokens_out_most, one.attempts) == (510, 250, 4)
    assert (other.arm, other.requests, other.tokens_in) == ("random", None, 0)


def test_a_round_without_slots_or_without_messages_is_not_counted() -> None:
    class Half(Talker):
        def preview(self, view: View) -> Mapping[str, Any]:
            return super().preview(view) if view.round < 2 else {}

    (half,) = preview(resolve_agents(Half), pair=PAIR, seed=0, protocol=tiny_protocol())
    assert [request.round for request in half.requests or ()] == [0, 1]
    rules = tiny_protocol(quota=0, first_quota=2)
    (quota,) = preview(resolve_agents(Talker), pair=PAIR, seed=0, protocol=rules)
    assert [request.round for request in quota.requests or ()] == [0]


def test_a_preview_of_another_form_is_refused() -> None:
    class Odd(Talker):
        def preview(self, view: View) -> Mapping[str, Any]:
            return {"messages": ["x"], "tokens_in": 1, "tokens_out_most": 1}

    with pytest.raises(AgentError, match=r"'Odd': preview\(view\) gave"):
        preview(resolve_agents(Odd), pair=PAIR, seed=0, protocol=tiny_protocol())

"""`check_agent`: passes agents that keep the contract and names the part that others break."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from cads_env.errors import AgentError
from cads_env.proposer import Proposal, ProposerFailed, View
from cads_env.run.agents import agent_names
from cads_env.testing import NO_POOLING, SAME_VIEW, check_agent, tiny_protocol, tiny_registry


def untested(view: View) -> list[str]:
    return [name for name in view.identifiers if name not in view.tested]


class Good:
    """First untested candidates, remembering its own campaign only."""

    def __init__(self) -> None:
        self.asked = 0

    def propose(self, view: View) -> Proposal:
        self.asked += 1
        assert self.asked == view.round + 1
        return Proposal(tuple(untested(view)), raw="text", attempts=2, usage={"tokens": 3})


class Pooling:
    """Avoids what any instance proposed before."""

    taken: ClassVar[set[str]] = set()

    def propose(self, view: View) -> Sequence[str]:
        names = [n for n in untested(view) if n not in Pooling.taken][: view.slots]
        Pooling.taken.update(names)
        return names


class PoolingWithinAStep:
    """Starts where other campaigns played beside it read high; forgets when a campaign begins."""

    high: ClassVar[set[str]] = set()

    def propose(self, view: View) -> Sequence[str]:
        if view.round == 0:
            PoolingWithinAStep.high = set()
        PoolingWithinAStep.high = PoolingWithinAStep.high | set(view.high)
        start = len(PoolingWithinAStep.high - set(view.high))
        names = untested(view)
        return [*names[start:], *names[:start]][: view.slots]


class Unseeded:
    def propose(self, view: View) -> Sequence[str]:
        return random.sample(untested(view), min(view.slots, len(untested(view))))


class Seeded:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def propose(self, view: View) -> Sequence[str]:
        return self._random.sample(untested(view), min(view.slots, len(untested(view))))


class Answers:
    def __init__(self, answer: Any, round: int = 0) -> None:
        self.answer, self.round = answer, round

    def propose(self, view: View) -> Any:
        return self.answer if view.round >= self.round else []


class Raises:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def propose(self, view: View) -> Sequence[str]:
        raise self.error


class NeedsHigh:
    """Breaks where nothing is released."""

    def propose(self, view: View) -> Sequence[str]:
        return [str(1 / (len(view.high) + len(view.low)))] if view.tested else []


class NeedsUntested:
    """Breaks on an exhausted registry."""

    def propose(self, view: View) -> Sequence[str]:
        return [untested(view)[0]]


class NeedsSlots:
    """Breaks where a quota leaves no slot."""

    def propose(self, view: View) -> Sequence[str]:
        return untested(view)[:: len(untested(view)) // view.slots or 1]


class Mutates:
    def __init__(self, how: str) -> None:
        self.how = how

    def propose(self, view: View) -> Sequence[str]:
        anything: Any = view
        if self.how == "field":
            anything.slots = 100
        elif self.how == "list":
            anything.tested.append("GENE001")
        elif self.how == "table":
            anything.side_tables["prior"] = None
        elif self.how == "values":
            anything.side_tables["prior"].values[:] = 0
        elif self.how == "writeable":
            anything.side_tables["prior"].values.setflags(write=True)
        return []


@pytest.mark.parametrize("agent", [Good, Seeded, lambda seed: Seeded(seed), {"a": Good}])
def test_an_agent_that_keeps_the_contract_passes(agent: object) -> None:
    check_agent(agent)


NEED_MORE = {"replay-list", *(name for name in agent_names() if name.startswith("llm"))}
"""Agents that cannot be built without options: a file, or a model that is served."""


@pytest.mark.parametrize("name", sorted(set(agent_names()) - NEED_MORE))
def test_every_installed_agent_passes(name: str) -> None:
    check_agent(name)


def test_odd_answers_are_counted_and_not_refused() -> None:
    check_agent(lambda: Answers(["GENE001"] * 100 + ["nobody", ""]))
    check_agent(lambda: Answers(np.array(["GENE001", "GENE002"])))


def test_several_agents_are_all_checked() -> None:
    with pytest.raises(AgentError, match="'bad'"):
        check_agent({"good": Good, "bad": lambda: Answers("GENE001")})


def test_an_agent_that_remembers_other_campaigns_is_caught() -> None:
    Pooling.taken.clear()
    with pytest.raises(AgentError, match=SAME_VIEW):
        check_agent(Pooling)


def test_an_agent_that_pools_campaigns_played_beside_each_other_is_caught() -> None:
    with pytest.raises(AgentError, match=NO_POOLING):
        check_agent(PoolingWithinAStep)


def test_an_agent_that_draws_without_its_seed_is_caught() -> None:
    with pytest.raises(AgentError, match=SAME_VIEW):
        check_agent(Unseeded)
    check_agent(Unseeded, deterministic=False)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("GENE001", "received the text"),
        (b"GENE001", "received the text"),
        (None, "received a NoneType"),
        ([1], "Entry 0 of the proposal is 1"),
        ({"GENE001"}, "received a set"),
        ((n for n in ("GENE001",)), "received a generator"),
    ],
)
def test_an_answer_that_is_no_proposal_is_caught_with_its_round(answer: Any, message: str) -> None:
    with pytest.raises(AgentError, match=f"Agent 'agent', round 2: .*{message}"):
        check_agent(lambda: Answers(answer, round=2))


@pytest.mark.parametrize("error", [KeyError("GENE001"), ProposerFailed("down"), SystemError("x")])
def test_an_exception_is_caught_with_its_kind_and_round(error: Exception) -> None:
    with pytest.raises(AgentError, match=f"raised {type(error).__name__} in round 0 under 'tiny'"):
        check_agent(lambda: Raises(error))


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        (NeedsHigh, "raised ZeroDivisionError in round 1"),
        (NeedsUntested, "raised IndexError in round"),
        (NeedsSlots, "raised ZeroDivisionError in round"),
    ],
)
def test_an_agent_that_breaks_only_on_odd_screens_is_caught(agent: type, message: str) -> None:
    with pytest.raises(AgentError, match=f"{message}.*A proposer answers every view"):
        check_agent(agent)


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("field", "FrozenInstanceError"),
        ("list", "AttributeError"),
        ("table", "TypeError"),
        ("values", "ValueError"),
        ("writeable", "ValueError"),
    ],
)
def test_an_agent_that_tries_to_change_its_view_is_caught(how: str, error: str) -> None:
    with pytest.raises(AgentError, match=f"raised {error} in round 0"):
        check_agent(lambda: Mutates(how))


def test_a_missing_side_table_and_an_instance_are_refused_as_in_a_run(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="needs the side table 'essentiality'"):
        check_agent("prior:table=essentiality")
    with pytest.raises(AgentError, match="Received an instance of Good"):
        check_agent(Good())
    with pytest.raises(AgentError, match="does not exist"):
        check_agent(tmp_path / "missing.py")


def test_a_tiny_registry_is_the_same_every_time_and_another_for_every_seed() -> None:
    (one, oracle), (again, same), (_, other) = (tiny_registry(seed=s) for s in (0, 0, 1))
    assert (one.hash, oracle.hash) == (again.hash, same.hash)
    assert oracle.hash != other.hash
    assert (one.m, oracle.hit_count, set(one.side_tables)) == (60, 12, {"prior", "module"})
    assert tiny_registry(7, 6)[1].hit_count == 6
    assert (
        float(oracle.signal[oracle.labels].min()) > 0 > float(oracle.signal[~oracle.labels].max())
    )


def test_a_tiny_protocol_takes_any_field() -> None:
    assert [plan.fresh for plan in tiny_protocol().plan(60)] == [6, 4, 4, 4, 4]
    assert tiny_protocol(rounds=3, name="mine").name == "mine"

"""The agents of the package: what each proposes, in which order, and what it needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from cads_agents.module_learner import ModuleLearner
from cads_agents.prior import PriorRanking
from cads_agents.random_order import RandomOrder
from cads_agents.ranking import first_untested
from cads_agents.replay_list import ReplayList
from cads_env.errors import AgentError
from cads_env.proposer import Proposer, View
from cads_env.registry import SideTable
from cads_env.run import evaluate
from cads_env.testing import check_agent, tiny_protocol, tiny_registry

NAMES = tuple("ABCDEFGH")
MODULES = ("m1", "m1", "m1", "m2", "m2", "m2", "m3", "m3")


def view(
    *, high: str = "", low: str = "", tested: str | None = None, slots: int = 3, **tables: Any
) -> View:
    columns = {"module": np.array(MODULES), "prior": np.arange(8.0)} | tables
    return View(
        identifiers=NAMES,
        description="",
        side_tables=MappingProxyType({k: SideTable("", v) for k, v in columns.items()}),
        high=tuple(high),
        low=tuple(low),
        tested=tuple(high + low if tested is None else tested),
        slots=slots,
    )


@pytest.fixture
def ranking(tmp_path: Path) -> Callable[[str], ReplayList]:
    def write(text: str, encoding: str = "utf-8") -> ReplayList:
        path = tmp_path / "ranking.txt"
        path.write_bytes(text.encode(encoding))
        return ReplayList(path)

    return write


def test_all_agents_propose_untested_candidates_only_and_as_many_as_there_are_slots(
    ranking: Callable[[str], ReplayList],
) -> None:
    agents: list[Callable[[], Proposer]] = [
        RandomOrder,
        PriorRanking,
        ModuleLearner,
        lambda: ranking("\n".join(NAMES)),
    ]
    for make in agents:
        agent = make()
        for slots, tested in ((3, ""), (8, "AB"), (2, "ABCDEFG"), (5, "ABCDEFGH"), (0, "A")):
            names = list(agent.propose(view(tested=tested, slots=slots)))  # type: ignore[arg-type]
            assert len(names) == len(set(names)) == min(slots, 8 - len(tested))
            assert not set(names) & set(tested)


def test_first_untested_keeps_the_order_of_the_ranking() -> None:
    assert first_untested("HCBA", view(tested="C", slots=2)) == ["H", "B"]
    assert first_untested([], view()) == []


def test_random_walks_one_seeded_order_through_the_campaign() -> None:
    one, same, other = RandomOrder(1), RandomOrder(1), RandomOrder(2)
    order = list(one.propose(view(slots=8)))
    assert sorted(order) == list(NAMES)
    assert list(same.propose(view(slots=8))) == order != list(other.propose(view(slots=8)))
    assert list(one.propose(view(tested=order[0], slots=3))) == order[1:4]


def test_random_nets_nothing_on_average() -> None:
    result = evaluate(
        "random",
        registry=tiny_registry(),
        protocol=tiny_protocol(reads_each=4, certificate={"q": 0.3}),
        seeds=range(60),
    )
    assert result.net.low < 0 < result.net.high


def test_prior_ranks_by_its_table_with_ties_in_index_order() -> None:
    assert list(PriorRanking().propose(view())) == ["H", "G", "F"]
    table = np.array([1.0, 5.0, 5.0, np.nan, 0.0, 5.0, -1.0, 2.0])
    agent = PriorRanking("mine")
    assert agent.requires == ("mine",)
    assert list(agent.propose(view(slots=8, mine=table))) == list("BCFHAEGD")


def test_prior_is_refused_without_its_table_and_under_blinded_names() -> None:
    with pytest.raises(AgentError, match=r"needs the side table 'prior'.*'blinded' drops every"):
        evaluate(
            "prior",
            registry=tiny_registry(),
            protocol=tiny_protocol(),
            seeds=[0],
            identifiers="blinded",
        )
    with pytest.raises(AgentError, match="needs the side table 'pan'"):
        evaluate("prior:table=pan", registry=tiny_registry(), protocol=tiny_protocol(), seeds=[0])


def test_a_good_prior_nets_and_a_reversed_one_harms() -> None:
    registry, oracle = tiny_registry()
    tables = {
        "truth": SideTable("", oracle.signal),
        "reverse": SideTable("", -oracle.signal),
    }
    told = type(registry)(registry.name, registry.identifiers, "", tables)
    result = evaluate(
        {"good": "prior:table=truth", "bad": "prior:table=reverse"},
        registry=(told, oracle),
        protocol=tiny_protocol(reads_each=4, certificate={"q": 0.3}),
        seeds=range(10),
    )
    assert result.arms["good"].net.low > 0
    assert result.arms["bad"].net.high < 0


def test_the_module_learner_goes_where_candidates_read_high() -> None:
    for seed in range(5):
        agent = ModuleLearner(seed)
        agent.propose(view())
        assert set(agent.propose(view(high="D", slots=2))) == {"E", "F"}
        assert set(agent.propose(view(high="G", low="D", slots=1))) == {"H"}
        assert not set(agent.propose(view(low="AD", slots=2))) & {"B", "C", "E", "F"}


def test_the_module_learner_weighs_highs_against_lows() -> None:
    # One high of one beats one of two, and either beats a module that nobody has seen.
    agent = ModuleLearner(0)
    names = list(agent.propose(view(high="AD", low="E", slots=5)))
    assert [set(names[:2]), set(names[2:3]), set(names[3:])] == [{"B", "C"}, {"F"}, {"G", "H"}]


def test_the_module_learner_learns_nothing_without_released_lists() -> None:
    blind = ModuleLearner(3)
    order = list(blind.propose(view(slots=8)))
    assert list(blind.propose(view(tested="AD", slots=6))) == [n for n in order if n not in "AD"]


def test_a_list_is_replayed_in_its_order_without_doubles_and_strangers(
    ranking: Callable[[str], ReplayList],
) -> None:
    agent = ranking("C\n\n  A  \nC\nnobody\nB\r\nH\n")
    assert list(agent.propose(view(slots=8))) == ["C", "A", "B", "H"]
    assert list(agent.propose(view(tested="CA", slots=1))) == ["B"]
    assert list(agent.propose(view(tested="CABH", slots=3))) == []


def test_a_byte_order_mark_is_not_part_of_a_name(
    ranking: Callable[..., ReplayList],
) -> None:
    assert list(ranking("A\nB\n", "utf-8-sig").propose(view())) == ["A", "B"]


def test_a_list_keeps_the_contract(tmp_path: Path) -> None:
    path = tmp_path / "ranking.txt"
    path.write_text("GENE003\nGENE001\nC00002\n", encoding="utf-8")
    check_agent(f"replay-list:path={path}")


def test_a_list_that_cannot_be_used_is_refused_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"needs a file: replay-list:path=ranking.txt"):
        ReplayList()
    with pytest.raises(AgentError, match=r"missing.txt' cannot be read"):
        ReplayList(tmp_path / "missing.txt")
    with pytest.raises(AgentError, match="cannot be read"):
        ReplayList(tmp_path)
    for content, message in ((b"", "is empty"), (b"\n  \n", "is empty"), (b"\xff\xfe", "cannot")):
        path = tmp_path / "ranking.txt"
        path.write_bytes(content)
        with pytest.raises(AgentError, match=message) as caught:
            ReplayList(path)
        assert str(path) in str(caught.value)


def test_a_list_of_strangers_is_refused_with_a_name_of_each_side(
    ranking: Callable[[str], ReplayList],
) -> None:
    agent = ranking("TP53\nKRAS\n")
    with pytest.raises(AgentError, match=r"None of the 2 names .*first: 'TP53'.*first: 'A'"):
        agent.propose(view())

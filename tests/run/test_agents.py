"""Finding agents: every form of reference, names of arms, seeds, options, and what goes wrong."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cads_agents.prior import PriorRanking
from cads_agents.random_order import RandomOrder
from cads_agents.replay_list import ReplayList
from cads_env.errors import AgentError
from cads_env.proposer import Nothing, View
from cads_env.registry import relabel
from cads_env.run.agents import AgentSpec, agent_names, resolve_agents
from cads_env.testing import tiny_registry

ONE_CLASS = """
from cads_env.proposer import Nothing  # imported, not defined here

class Mine:
    def propose(self, view):
        return []

class Helper:
    pass
"""
TWO_CLASSES = (
    ONE_CLASS
    + """
class Other(Mine):
    def __init__(self, seed=0, *, depth=1):
        self.seed, self.depth = seed, depth

def make(seed):
    return Other(seed, depth=3)

ready = Mine()
"""
)


class Local:
    """An agent of this module."""

    def __init__(self, *, depth: int = 1) -> None:
        self.depth = depth

    def propose(self, view: View) -> Sequence[str]:
        return ()


def seeded(seed: int) -> RandomOrder:
    return RandomOrder(seed)


def test_the_agents_of_the_package_are_found_by_name() -> None:
    assert set(agent_names()) >= {"module-learner", "nothing", "prior", "random", "replay-list"}
    assert agent_names() == tuple(sorted(agent_names()))
    spec = resolve_agents("prior")[0]
    assert (spec.name, spec.source) == ("prior", "cads_agents.prior:PriorRanking")
    assert isinstance(spec.build(0), PriorRanking)


def test_a_name_may_carry_options(tmp_path: Path) -> None:
    path = tmp_path / "ranking.txt"
    path.write_text("GENE001\n", encoding="utf-8")
    spec = resolve_agents(f"replay-list:path={path}")[0]
    assert (spec.name, spec.options) == ("replay-list", {"path": str(path)})
    assert isinstance(spec.build(0), ReplayList)
    learner = resolve_agents("module-learner:base_rate=0.3,strength=4,seed=9")[0]
    assert learner.options == {"base_rate": 0.3, "strength": 4, "seed": 9}
    assert [type(value) for value in learner.options.values()] == [float, int, int]


def test_an_agent_may_be_given_as_module_and_class() -> None:
    spec = resolve_agents("cads_agents.random_order:RandomOrder")[0]
    assert (spec.name, spec.factory) == ("RandomOrder", RandomOrder)
    assert spec.source == "cads_agents.random_order:RandomOrder"


@pytest.mark.parametrize("form", [str, Path])
def test_a_file_with_one_proposer_names_it(form: Callable[[Path], Any], tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(ONE_CLASS, encoding="utf-8")
    spec = resolve_agents(form(path))[0]
    assert (spec.name, spec.source) == ("Mine", str(path))
    assert type(spec.build(0)).__name__ == "Mine"


def test_a_file_with_two_proposers_needs_the_name_of_one(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(TWO_CLASSES, encoding="utf-8")
    with pytest.raises(AgentError, match=r"found: Mine, Other. Name one as .*mine.py:ClassName"):
        resolve_agents(str(path))
    assert resolve_agents(f"{path}:Other")[0].name == "Other"
    built: Any = resolve_agents(f"{path}:make")[0].build(5)
    assert (built.seed, built.depth) == (5, 3)
    with pytest.raises(AgentError, match="'ready' is not a class or factory"):
        resolve_agents(f"{path}:ready")


def test_two_files_of_one_name_stay_two_agents(tmp_path: Path) -> None:
    agents = []
    for folder in ("a", "b"):
        path = tmp_path / folder / "mine.py"
        path.parent.mkdir()
        path.write_text(ONE_CLASS + f"\nMine.home = {folder!r}\n", encoding="utf-8")
        agents.append(str(path))
    built: list[Any] = [spec.build(0) for spec in resolve_agents(agents)]
    assert [agent.home for agent in built] == ["a", "b"]


@pytest.mark.parametrize(
    ("agent", "name", "kind"),
    [
        (Local, "Local", Local),
        (Nothing, "Nothing", Nothing),
        (seeded, "seeded", RandomOrder),
        (lambda: Local(), "agent", Local),
        (functools.partial(Local, depth=4), "partial", Local),
        (AgentSpec("mine", "here", Local), "mine", Local),
    ],
)
def test_a_class_or_factory_is_an_agent(agent: object, name: str, kind: type) -> None:
    spec = resolve_agents(agent)[0]
    assert spec.name == name
    first, second = spec.build(0), spec.build(0)
    assert isinstance(first, kind)
    assert first is not second


def test_several_agents_come_as_a_sequence_or_with_names_of_their_own() -> None:
    assert [s.name for s in resolve_agents(["random", Local])] == ["random", "Local"]
    assert [s.name for s in resolve_agents(("random",))] == ["random"]
    named = resolve_agents({"a": "random", "b": Local, "c": "random"})
    assert [s.name for s in named] == ["a", "b", "c"]
    assert named[0].source == "cads_agents.random_order:RandomOrder"


def test_arms_of_one_name_are_numbered() -> None:
    names = [s.name for s in resolve_agents(["random", "random", Local, "random", Local])]
    assert names == ["random", "random-2", "Local", "random-3", "Local-2"]


def test_a_seed_is_passed_on_to_those_that_take_one() -> None:
    def takes_all(**options: Any) -> Local:
        assert options == {"seed": 7}
        return Local()

    def takes_none() -> Local:
        return Local()

    def positional(seed: int = 3, /) -> Local:
        assert seed == 3
        return Local()

    for factory in (takes_all, takes_none, positional):
        resolve_agents(factory)[0].build(7)
    one, other = (resolve_agents("random")[0].build(seed) for seed in (1, 2))
    view = View(identifiers=tuple("ABCDEFGHIJ"), description="", side_tables={}, slots=10)
    assert one.propose(view) != other.propose(view)
    fixed = resolve_agents("random:seed=1")[0].build(2)
    assert fixed.propose(view) == one.propose(view)


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ("randum", "Unknown agent 'randum'. Did you mean 'random'"),
        ("qqq", "Unknown agent 'qqq'. Available: .*module-learner"),
        ("random:seed", "Cannot read 'seed' in 'random:seed'; expected name:key=value"),
        ("random:1x=3", "Cannot read '1x=3'"),
        ("no_such_module_here:Agent", "module 'no_such_module_here' cannot be imported"),
        ("cads_agents.prior:PriorRankin", "Did you mean 'PriorRanking'"),
        ("cads_agents.prior:np", "'np' is not a class or factory"),
        ("nowhere/mine.py", "Agent file 'nowhere/mine.py' does not exist"),
        ("nowhere/mine.py:Mine", "Agent file 'nowhere/mine.py' does not exist"),
        (Local(), "instance of Local; every campaign needs a new one. Pass the class"),
        ([Nothing()], "instance of Nothing"),
        (3, "Cannot use 3 as an agent"),
        (None, "Cannot use None as an agent"),
        ([], "No agent was given"),
        ({}, "No agent was given"),
    ],
)
def test_what_names_no_agent_is_refused_with_what_to_do(agent: object, message: str) -> None:
    with pytest.raises(AgentError, match=message):
        resolve_agents(agent)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import no_such_module_here\n", "failed to load: ModuleNotFoundError"),
        ("def broken(:\n", "failed to load: SyntaxError"),
        ("raise RuntimeError('at import')\n", "failed to load: RuntimeError: at import"),
        ("x = 1\n", "must hold one class with a propose method; found: none"),
        ("from cads_env.proposer import Nothing\n", "found: none"),
    ],
)
def test_a_file_that_holds_no_agent_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(AgentError, match=message) as caught:
        resolve_agents(path)
    assert str(path) in str(caught.value)


def refuses() -> Local:
    raise OSError("no licence")


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        (refuses, r"'refuses' could not be built with {}: OSError: no licence"),
        (lambda: object(), "built a object without a propose"),
        (lambda: None, "built a NoneType without a propose"),
        ("prior:tabel=x", "could not be built with {'tabel': 'x'}: TypeError"),
        ("replay-list", "replay-list needs a file: replay-list:path=ranking.txt"),
    ],
)
def test_an_agent_that_cannot_be_built_says_why(agent: object, message: str) -> None:
    with pytest.raises(AgentError, match=message):
        resolve_agents(agent)[0].build(0)


def test_a_missing_side_table_is_named_with_those_that_exist() -> None:
    spec = resolve_agents("prior:table=pan")[0]
    registry, oracle = tiny_registry()
    with pytest.raises(AgentError, match=r"needs the side table 'pan'.*it has: module, prior"):
        spec.check_side_tables(spec.build(0), registry)
    blind, _ = relabel(registry, oracle, "blinded", 0)
    plain = resolve_agents("prior")[0]
    plain.check_side_tables(plain.build(0), registry)
    with pytest.raises(AgentError, match=r"needs the side table 'prior'.*it has: none"):
        plain.check_side_tables(plain.build(0), blind)
    with pytest.raises(AgentError, match=r"'prior', but identifiers='blinded' drops every side"):
        plain.check_side_tables(plain.build(0), blind, identifiers="blinded")

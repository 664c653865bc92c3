"""Arms by the values of an option, hooks of a factory, and what an agent is told at its start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cads_env.errors import AgentError
from cads_env.proposer import Unrecorded, View
from cads_env.run.agents import find_agents, resolve_agents
from cads_env.run.vary import vary, with_options
from tests.run.talker import Talker


class Told:
    """Is told of its campaign after it was built."""

    def __init__(self, depth: int = 1) -> None:
        self.told: dict[str, Any] = {}

    def begin(self, *, seed: int | None = None, journal: object = None) -> None:
        self.told = {"seed": seed, "journal": journal}

    def propose(self, view: View) -> Sequence[str]:
        return ()


class Child(Talker):
    """Hands its options on."""

    def __init__(self, *, depth: int = 1, **options: Any) -> None:
        super().__init__(**options)


def test_each_value_is_an_arm_of_those_that_have_the_option() -> None:
    specs = find_agents({"a": Talker, "b": "prior"})
    arms = vary(specs, "prompt", ["thin", "my/prompts/long.yaml"])
    assert [spec.name for spec in arms] == ["a/thin", "a/long", "b"]
    assert [spec.options.get("prompt") for spec in arms[:2]] == ["thin", "my/prompts/long.yaml"]
    assert vary(specs, "prompt", []) == specs


def test_arms_that_would_have_one_name_are_refused_and_so_is_an_option_that_nobody_has() -> None:
    with pytest.raises(AgentError, match="prompt has two values called 'thin'"):
        vary(find_agents(Talker), "prompt", ["thin", "a/thin.yaml"])
    with pytest.raises(AgentError, match=r"None of the agents \(prior\) has an option 'prompt'"):
        vary(find_agents("prior"), "prompt", ["thin"])
    with pytest.raises(AgentError, match=r"'cst'. Did you mean 'cost'"):
        with_options(find_agents(Talker), {"cst": 1})


def test_an_option_is_set_where_it_exists() -> None:
    arms = with_options(find_agents({"a": Talker, "b": "prior"}), {"cost": 2, "table": "x"})
    assert [dict(spec.options) for spec in arms] == [{"cost": 2}, {"table": "x"}]


@pytest.mark.parametrize("option", ["seed", "journal"])
def test_what_a_run_gives_each_campaign_is_no_option_of_all(option: str) -> None:
    with pytest.raises(AgentError, match=rf"'{option}' is given to each campaign by the run"):
        with_options(find_agents(Talker), {option: 1})


def test_a_class_that_hands_options_on_has_those_of_its_base() -> None:
    (spec,) = find_agents(Child)
    assert {"depth", "prompt", "seed", "journal"} <= spec.parameters
    assert not find_agents(lambda **options: Talker(**options))[0].accepts("prompt")
    built: Any = spec.build(7, Unrecorded())
    assert (built.seed, type(built.journal)) == (7, Unrecorded)


def test_options_are_resolved_once_and_the_arm_is_marked_once(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("my words")
    (spec,) = resolve_agents(vary(find_agents({"a": Talker}), "prompt", [str(path)]))
    assert spec.options == {"prompt": {"name": "mine", "text": "my words"}}
    path.unlink()
    assert resolve_agents([spec]) == [spec]
    (marked,) = resolve_agents(with_options([spec], {"guided": "candidates"}))
    assert marked.name == "a/mine+guided"
    assert resolve_agents([marked]) == [marked]


def test_a_hook_that_fails_names_the_agent() -> None:
    class Broken(Talker):
        @staticmethod
        def resolve_options(options: Mapping[str, Any]) -> Any:
            return options["prompt"]

    with pytest.raises(AgentError, match=r"'Broken' cannot use its options \{\}: KeyError"):
        resolve_agents(Broken)
    with pytest.raises(AgentError, match=r"resolve_options.* gave a str; expected a Mapping"):
        resolve_agents([{"agent": "prior"}, with_options(find_agents(Broken), {"prompt": "x"})[0]])


def test_an_agent_is_told_of_what_its_factory_did_not_take() -> None:
    journal = Unrecorded()
    told: Any = resolve_agents(Told)[0].build(5, journal)
    assert told.told == {"seed": 5, "journal": journal}
    outside: Any = resolve_agents(lambda: Told())[0].build(5)
    assert outside.told == {"seed": 5, "journal": None}

    def seeded(seed: int) -> Told:
        return Told()

    half: Any = resolve_agents(seeded)[0].build(5, journal)
    assert half.told == {"seed": None, "journal": journal}
    nothing: Any = resolve_agents(seeded)[0].build(5)
    assert nothing.told == {}


def test_a_journal_goes_to_a_parameter_of_its_name_and_to_no_other() -> None:
    journal = Unrecorded()
    talker: Any = resolve_agents(Talker)[0].build(5, journal)
    assert talker.journal is journal
    alone: Any = resolve_agents(Talker)[0].build(5)
    assert isinstance(alone.journal, Unrecorded)

    def any_option(**options: Any) -> Told:
        assert options == {"seed": 5}
        return Told()

    resolve_agents(any_option)[0].build(5, journal)

"""Agent files: what they may say, where they are looked for, and what is refused."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import yaml

from cads_env.errors import AgentError
from cads_env.run.agent_files import read_agent_file, shipped_agents
from cads_env.run.agents import agent_of_manifest, find_agents, resolve_agents
from tests.run.talker import Talker

TALKER = "tests.run.talker:Talker"


def write(path: Path, **content: Any) -> str:
    path.write_text(yaml.safe_dump(content))
    return str(path)


def test_a_file_names_agent_arm_and_options(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.yaml", agent="module-learner", options={"strength": 4})
    (spec,) = resolve_agents(path)
    assert (spec.name, spec.source) == ("mine", "cads_agents.module_learner:ModuleLearner")
    assert spec.options == {"strength": 4}
    named = write(tmp_path / "x.yml", agent="random:seed=3", arm="third", options={"seed": 4})
    (spec,) = resolve_agents([named])
    assert (spec.name, spec.options) == ("third", {"seed": 4})
    (spec,) = resolve_agents(f"{named}:seed=5")
    assert spec.options == {"seed": 5}


def test_a_mapping_has_the_form_of_a_file_and_a_mapping_of_mappings_names_arms() -> None:
    one = {"agent": TALKER, "arm": "one"}
    specs = resolve_agents([one, {"agent": "prior"}])
    assert [spec.name for spec in specs] == ["one", "prior"]
    assert [spec.name for spec in resolve_agents({"a": one, "b": "prior"})] == ["a", "b"]


def test_files_of_the_package_are_found_by_name_and_by_their_path() -> None:
    assert shipped_agents(), "the package comes with agent files"
    for name in shipped_agents():
        file = read_agent_file(name)
        assert file.arm == name or file.arm
        same = read_agent_file(f"configs/agents/{name}.yaml")
        assert (same.agent, same.options) == (file.agent, file.options)
        assert find_agents(name)[0].options == file.options


def test_a_file_of_ones_own_goes_before_one_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "configs" / "agents"
    folder.mkdir(parents=True)
    name = shipped_agents()[0]
    write(folder / f"{name}.yaml", agent="nothing")
    assert resolve_agents(f"configs/agents/{name}.yaml")[0].name == name
    assert resolve_agents(f"configs/agents/{name}.yaml")[0].source.endswith(":Nothing")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("agent: prior\nopts: {}\n", "unknown key 'opts'. Did you mean 'options'"),
        ("agent: prior\ntable: x\n", "unknown key 'table'.*Options of the agent go under options"),
        ("agents: [prior]\n", "with `agents` is that of a run: give it to `cads run`"),
        ("arm: x\n", "agent: None; expected an installed agent"),
        ("agent: prior\narm: [x]\n", r"arm: \['x'\]; expected a name"),
        ("agent: prior\noptions: [x]\n", r"options: \['x'\]; expected names with values"),
        ("agent: priro\n", "Unknown agent 'priro'. Did you mean 'prior'"),
        ("agent: other.yaml\n", "names the agent file 'other.yaml' as its agent"),
        ("- prior\n", "holds a list; expected a mapping"),
        ("agent: [\n", "is not valid YAML"),
    ],
)
def test_a_file_that_says_something_else_is_refused(
    text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(AgentError, match=message):
        resolve_agents(str(path))


def test_a_missing_file_names_those_that_exist() -> None:
    with pytest.raises(AgentError, match=f"does not exist.*{shipped_agents()[0]}"):
        resolve_agents("configs/agents/nowhere.yaml")


def test_a_spec_travels_with_the_options_of_its_file(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.yaml", agent=TALKER, options={"cost": 0.5, "guided": "yes"})
    (spec,) = resolve_agents(path)
    Path(path).unlink()
    again = pickle.loads(pickle.dumps(spec))
    assert (again.name, again.factory, again.options) == (spec.name, Talker, spec.options)
    assert again.name == "mine+guided"


def test_a_manifests_entry_gives_the_spec_back_without_its_file(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.yaml", agent=TALKER, options={"cost": 0.5})
    (spec,) = resolve_agents(path)
    Path(path).unlink()
    entry = {"arm": spec.name, "source": spec.source, "options": dict(spec.options)}
    assert agent_of_manifest(entry) == spec
    with pytest.raises(AgentError, match="made in Python"):
        agent_of_manifest({**entry, "source": "tests.x:<lambda>"})

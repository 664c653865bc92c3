"""Agent files, run files and scripts that come with the package load and say what is meant."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest

from cads_agents.serving.flags import LONGEST_CPU, LONGEST_GPU
from cads_agents.serving.recipes import RECIPES
from cads_env.cli.job import job_of
from cads_env.cli.run_file import Asked
from cads_env.run.agent_files import read_agent_file, shipped_agents
from cads_env.run.agents import resolve_agents

PAPER = Path(str(resources.files("cads_configs"))) / "paper"
PUBLISHED = ("qwen2.5-7b", "mistral-nemo", "llama-3.1-8b")


@pytest.mark.parametrize("name", shipped_agents())
def test_every_agent_file_makes_an_agent_without_asking_anybody(name: str) -> None:
    [spec] = resolve_agents(name)
    assert spec.name == name
    spec.build(0)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models_are_sampled_as_published(name: str) -> None:
    options = read_agent_file(name).options
    assert [options[key] for key in ("temperature", "top_p", "max_tokens")] == [0.7, 0.9, 700]
    assert options["context_tokens"] == LONGEST_GPU


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_what_cads_serve_makes_has_an_agent_file(name: str) -> None:
    options = read_agent_file(name).options
    assert options["model"] == name
    assert options["context_tokens"] == LONGEST_CPU


def test_the_run_file_of_the_paper_is_its_table() -> None:
    job = job_of(Asked(agents=("configs/paper/llm.yaml",)))
    arms = [spec.name for spec in job.specs]
    assert arms == [f"{model}/{prompt}" for model in PUBLISHED for prompt in ("thin", "informed")]
    assert [setting.name for setting in job.settings] == ["full", "none", "permuted"]
    assert list(job.seeds) == list(range(20))
    assert job.protocol.name == "proposer"


def test_the_run_file_at_equal_delivery_has_both_floors() -> None:
    job = job_of(Asked(agents=("configs/paper/matched-quota.yaml",)))
    arms = [spec.name for spec in job.specs]
    assert arms[-2:] == ["random", "prior"]
    assert len(arms) == 2 * len(PUBLISHED) + 2
    assert list(job.seeds) == list(range(20, 70))
    assert job.protocol.name == "matched-quota"


def test_a_model_on_the_command_line_replaces_those_of_a_run_file() -> None:
    job = job_of(Asked(agents=("configs/paper/llm.yaml", "qwen2.5-7b")))
    assert [spec.name for spec in job.specs] == ["qwen2.5-7b/thin", "qwen2.5-7b/informed"]


def test_the_script_of_the_paper_serves_each_model_of_its_agent_file() -> None:
    path = PAPER / "llm.sh"
    found = dict(re.findall(r"\[(\S+)\]=(\S+)", path.read_text(encoding="utf-8")))
    assert found == {name: read_agent_file(name).options["model"] for name in PUBLISHED}
    bash = shutil.which("bash")
    if bash is not None:
        subprocess.run([bash, "-n", str(path)], check=True)

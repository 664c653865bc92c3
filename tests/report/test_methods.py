"""The methods paragraph, the datasheet and the command that repeats a run."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from cads_env import RunResult
from cads_env.certificate import Certificate
from cads_env.report.datasheet import datasheet_sections
from cads_env.report.markdown import markdown_sections
from cads_env.report.methods import methods_paragraph
from cads_env.run import merge
from tests.report.conftest import PROTOCOL, Dead, Half, panel, play


def test_the_paragraph_names_what_a_reader_needs(run: RunResult) -> None:
    text = methods_paragraph(run)
    registries = run.manifest["registries"]
    for said in (
        "We evaluated 3 agents (random, prior and half) with cads-env ",
        "A campaign has 5 rounds; 8 candidates are read for the first time in the first and 4 in "
        "each later one",
        "the 6 best observed candidates are read 3 more times, ranked by their log evidence",
        "10 % of reads are contaminated (law uniform, low = 2, high = 4)",
        f"protocol hash {run.protocol.hash[:12]}",
        "Each agent played 8 campaigns, seeds 0-7",
        f"tiny-0 (m = 60 candidates, 15 hits, hash {registries[0]['hash'][:12]})",
        "FDR level q = 0.1",
        "The 3 contrasts, of each agent with its twin, form one family",
        "Holm",
        f"{len(run.failures)} campaign",
        "numpy ",
    ):
        assert said in text
    assert "  " not in text
    assert ".." not in text


def test_the_paragraph_is_grammatical_for_one_of_everything(tmp_path: Path) -> None:
    rules = PROTOCOL.override(
        rounds=2, first_fresh=1, fresh=1, reread_candidates=1, reads_each=1, epsilon=0.0, quota=1
    )
    result = play(
        {"prior": "prior"}, tmp_path / "run", seeds=[3], registry=panel(1), protocol=rules
    )
    text = methods_paragraph(result)
    for said in (
        "We evaluated 1 agent (prior)",
        "1 candidate is read for the first time in the first and 1 in each later one",
        "the best observed candidate is read once more",
        "Proposals fill at most all of the fresh slots in the first round and 1 in each later one",
        "without contamination",
        "Each agent played 1 campaign, seed 3",
        "The registry was tiny-0",
        "they hold for this registry alone",
        "The one contrast, of the agent with its twin, was not adjusted.",
        "No campaign failed.",
    ):
        assert said in text
    assert "1 candidates" not in text
    assert "1 campaigns" not in text


def test_many_registries_are_given_as_ranges(tmp_path: Path) -> None:
    result = play({"dead": Dead}, tmp_path / "run", registry=panel(6), seeds=range(6))
    text = methods_paragraph(result)
    assert "The 6 registries of tiny have m = 60 candidates and 15 hits each" in text
    assert "6 campaigns failed and were left out." in text


def test_a_cap_that_is_not_there_is_not_given_as_a_number(run: RunResult) -> None:
    open_cap = dataclasses.replace(run, certificate=Certificate(epsilon_bar=0.0))
    assert "without a cap" in methods_paragraph(open_cap)


def test_campaigns_are_counted_by_agent_where_they_differ(run: RunResult, tmp_path: Path) -> None:
    assert "of which 8 of random, 8 of prior and 6 of half were scored" in methods_paragraph(run)
    play({"random": "random"}, tmp_path / "a", seeds=range(4))
    play({"half": Half}, tmp_path / "b", seeds=range(2))
    text = methods_paragraph(merge([tmp_path / "a", tmp_path / "b"], tmp_path / "all"))
    assert "random played 4 campaigns, seeds 0-3; half played 2 campaigns, seeds 0-1" in text
    assert "Each agent played" not in text


@pytest.mark.parametrize("what", ["Motivation", "Composition", "Uses and limits", "Maintenance"])
def test_the_datasheet_answers_every_question(run: RunResult, what: str) -> None:
    assert f"## {what}\n" in markdown_sections("Datasheet", "Of.", datasheet_sections(run))


def test_the_datasheet_says_what_is_known_and_what_is_not(run: RunResult) -> None:
    text = markdown_sections("Datasheet", "Of.", datasheet_sections(run))
    for entry in run.manifest["registries"]:
        row = f"| {entry['name']} | 60 | 15 | 0 | prior, module | {entry['hash'][:16]} |"
        assert row in text
    assert "A made-up screen of 60 candidates; a hit reads above 0." in text
    assert "group label" in text
    assert text.count("not recorded") >= 4


def test_synthetic_registries_are_marked_as_such(tmp_path: Path) -> None:
    result = play(
        {"random": "random"},
        tmp_path / "run",
        registry="synthetic-depmap-6000/1",
        protocol="standard+rounds=2",
        seeds=[0],
    )
    text = markdown_sections("Datasheet", "Of.", datasheet_sections(result))
    assert "synthetic: plumbing and calibration, not biology" in text
    assert "effects drawn from the distribution of a DepMap screen" in text

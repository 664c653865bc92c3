"""The tables of a terminal at 80 columns: words whole, and nothing false below them."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from cads_env import RunResult
from cads_env.cli.compare import _table
from cads_env.inference import paired_t
from cads_env.report.terminal import detectable_words, run_table
from cads_env.run import compare, merge
from tests.report.conftest import Half, play


def shown(renderable: RenderableType) -> str:
    console = Console(width=80, file=io.StringIO(), record=True)
    console.print(renderable)
    return console.export_text()


def test_verdicts_and_long_names_are_whole_at_80_columns(tmp_path: Path) -> None:
    arms = {"module-learner": "prior", "random": "random", "a-name-of-thirty-two-characters": Half}
    folder = tmp_path / "run"
    play(arms, folder)
    found = compare(folder)
    text = shown(_table(found))
    assert max(map(len, text.splitlines())) <= 80
    for row in found.rows:
        assert f"{row.contrast.estimate.low:.2f}, {row.contrast.estimate.high:.2f}" in text
        for word in row.contrast.verdict.split():
            assert re.search(rf"\b{word}\b", text)
    assert "…" not in text


def test_campaigns_and_registries_that_were_scored_are_counted(tmp_path: Path) -> None:
    play({"random": "random"}, tmp_path / "a", seeds=[0, 2])
    play({"half": Half}, tmp_path / "b", seeds=[0])
    result = merge([tmp_path / "a", tmp_path / "b"], tmp_path / "all")
    text = " ".join(shown(run_table(result)).split())
    assert "n = 2 (random), 1 (half) campaigns, holds for this registry" in text


def test_few_units_are_not_said_to_have_the_power_of_many(run: RunResult) -> None:
    few = detectable_words([paired_t([1.0, 2.0, 4.0, 8.0])])
    assert "with so few seeds, 80 % power takes 1.52 times that at 4" in few
    many = detectable_words([paired_t([float(i % 7) for i in range(40)])])
    assert many == "det.: 2.80 standard errors, found with about 80 % power."
    assert "with so few registries" in " ".join(shown(run_table(run)).split())
    assert detectable_words([paired_t([1.0])]) == many


@pytest.mark.parametrize("count", [5, 9])
def test_many_counts_are_told_in_part(count: int) -> None:
    estimates = [paired_t([float(i % 3) for i in range(n)]) for n in range(4, 4 + count)]
    assert f"and more at {count - 3} other counts" in detectable_words(estimates)

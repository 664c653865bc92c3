"""The tables of a terminal at 80 columns: words whole, and nothing false below them."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from cads_env import RunResult
from cads_env.cli.compare import _notes, _table
from cads_env.inference import Contrast, paired_t, tost
from cads_env.report.assemble import build_report
from cads_env.report.terminal import detectable_words, run_table
from cads_env.report.verdict import verdicts
from cads_env.run import Comparison, compare, merge
from cads_env.run.compare import Row
from cads_env.run.load import load_run
from tests.report.conftest import Dead, Half, panel, play


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


def test_wide_figures_leave_a_verdict_its_words() -> None:
    rows = []
    for scale, holm in ((10, 0.2), (160, 0.001)):
        values = [-scale * x for x in (1.0, 0.2, -0.3, 0.9, 0.4, -0.1)]
        estimate = paired_t(values)
        within = tost(estimate, margin=1)
        name = "permuted:module-learner - full:module-learner"
        verdict = "equivalent within 1" if holm > 0.1 else "not decided"
        contrast = Contrast(name, estimate, holm, within, verdict)
        rows.append(Row(contrast, "a", "b", 1_096, 0, 0))
    text = shown(_table(Comparison(tuple(rows), "net", 1.0, ())))
    assert max(map(len, text.splitlines())) <= 80
    for word in ("equivalent", "within 1", "decided", "1096"):
        assert word in text
    for row in rows:
        estimate = row.contrast.estimate
        assert f"{estimate.low:.2f}, {estimate.high:.2f}" in text


def test_a_run_that_is_not_complete_says_so_first(tmp_path: Path) -> None:
    play({"random": "random"}, tmp_path / "a", seeds=[0, 2])
    play({"half": Half}, tmp_path / "b", seeds=[0])
    result = merge([tmp_path / "a", tmp_path / "b"], tmp_path / "all")
    text = " ".join(shown(run_table(result)).split())
    assert "NOT COMPLETE (interrupted): 3 of 4 campaigns are played." in text


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


def test_no_name_of_an_arm_moves_the_terminal(tmp_path: Path) -> None:
    arms = {"\x1b[2J\x07a": "prior", "\u202ea": "random"}
    result = play(arms, tmp_path / "run")
    for table in (run_table(result), _table(compare(tmp_path / "run"))):
        text = shown(table)
        assert all(x.isprintable() for x in text.replace("\n", ""))
        assert r"\x1b[2J" in "".join(line.split("  ")[0].strip() for line in text.splitlines())


def test_a_run_in_which_nothing_can_be_certified_tells_nothing(level: RunResult) -> None:
    assert level.arms["random"].slots > level.arms["random"].slots_in_reach == 0
    text = shown(run_table(level))
    assert "Cannot tell, no slot is in reach: random and prior." in " ".join(text.split())
    (row,) = (line for line in text.splitlines() if line.startswith(" random "))
    assert row.split()[1:] == ["0.00", "0.00", "0.393", "0.00", "+0.00", "-", "-", "0/16", "-"]
    assert {verdict.answer for verdict in verdicts(level)} == {"unknown"}
    assert {cards.word for cards in build_report(level).cards} == {"Cannot tell"}
    found = compare([level])
    assert [row.contrast.verdict for row in found.rows] == ["cannot tell: no slot is in reach"]
    line = shown(_table(found)).splitlines()[3]
    assert line.split()[:8] == ["prior", "-", "random", "+0.00", "-", "6", "-", "-"]
    assert "at least 1 declaration either way" in " ".join(_notes(found))


def test_an_arm_without_campaigns_leaves_the_notes_of_the_others(tmp_path: Path) -> None:
    play({"dead": Dead}, tmp_path / "a", registry=panel(1), seeds=range(4))
    play({"random": "random"}, tmp_path / "b", registry=panel(1), seeds=range(4))
    result = merge([tmp_path / "a", tmp_path / "b"], tmp_path / "all")
    assert list(result.arms) == ["dead", "random"]
    text = " ".join(shown(run_table(result)).split())
    assert "n = 4 campaigns (none of dead), holds for this registry, named" in text
    assert "with so few seeds" in text
    none = RunResult.of(
        {"campaigns": [], "rounds": [], "declarations": [], "failures": []}, result.manifest
    )
    text = " ".join(shown(run_table(none)).split())
    assert "No campaign is scored, so nothing is known yet" in text
    assert "nan" not in text


def test_names_are_broken_between_their_parts(tmp_path: Path) -> None:
    arms = {"smollm2-135m/informed": "random", "smollm2-135m/thin": "prior"}
    play(arms, tmp_path / "run", seeds=range(3))
    for table in (run_table(load_run(tmp_path / "run")), _table(compare(tmp_path / "run"))):
        text = shown(table)
        assert max(map(len, text.splitlines())) <= 80
        first = [line.strip().split(" ")[0] for line in text.splitlines()]
        assert "smollm2-135m/thin" in first
        assert {"informed", "smollm2-135m/informed"} & set(first)
        assert "…" not in text

"""The page of a grid: its numbers, what it says to be missing, and what it makes of bad days."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from cads_env import Panel, RunResult, load_protocol
from cads_env.errors import RunError
from cads_env.report.assemble import build_report
from cads_env.report.content import Figure, Report, Table
from cads_env.report.grid import summary_lines, write_grid_report
from cads_env.report.html import html_page
from cads_env.report.llm.arms import arms_of
from cads_env.report.llm.found import find_all
from cads_env.report.llm.page import build_grid_report
from cads_env.report.llm.published import preset_of, published_model, published_row
from cads_env.report.markdown import markdown
from cads_env.report.wording import interval, number, signed
from cads_env.report.write import write_report
from cads_env.run.grid import Grid, load_grid
from cads_env.testing import tiny_registry
from tests.report.conftest import HOSTILE, Page
from tests.report.llm_cases import ARMS, HERE, play_grid

QUESTIONS = (
    "Adds to its loop", "Gate", "Own feedback", "Prompts", "Identifiers", "Detectable", "False",
    "Failed campaigns", "Spent",
)  # fmt: skip


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Grid:
    """Every feedback; a model that breaks on some seeds and says hostile things."""
    folder = tmp_path_factory.mktemp("grids") / "feedback"
    return play_grid(folder, feedback=("full", "none", "permuted", "proposer=permuted"))


@pytest.fixture(scope="module")
def report(grid: Grid) -> Report:
    return report_of(grid)


def report_of(grid: Grid, natural: RunResult | None = None) -> Report:
    return build_grid_report(find_all(grid.runs, [s.name for s in grid.settings], natural))


def tables_of(report: Report) -> dict[str, Table]:
    found = {} if report.summary is None else {report.summary.caption: report.summary}
    for section in report.sections:
        for block in section.blocks:
            table = block.data if isinstance(block, Figure) else block
            if isinstance(table, Table):
                assert table.caption not in found
                found[table.caption] = table
    return found


def row_of(table: Table, name: str) -> dict[str, str]:
    (row,) = (row for row in table.rows if row[0] == name)
    assert len(row) == len(table.columns)
    return dict(zip(table.columns, row, strict=True))


def test_the_first_table_holds_what_the_rows_say(grid: Grid, report: Report) -> None:
    run = grid.runs["full"]
    assert report.summary is not None
    assert [row[0] for row in report.summary.rows] == list(run.arms)
    for arm in run.arms:
        rows = run.campaigns[run.campaigns["arm"] == arm]
        shown = row_of(report.summary, arm)
        by_registry = rows.groupby("registry")
        means = {c: by_registry[c].mean().mean() for c in ("gained", "lost", "true", "twin_true")}
        assert shown["gained / lost"] == f"{number(means['gained'])} / {number(means['lost'])}"
        both = f"{number(means['true'])} / {number(means['twin_true'])}"
        assert shown["certified / twin"] == both
        assert shown["originated"] == number(by_registry["originated"].mean().mean())
        assert shown["net"] == signed(by_registry["net"].mean().mean())
        filled, slots = rows["accepted"].sum(), rows["proposal_slots"].sum()
        n = len(rows)
        assert shown["slots filled"] == f"{number(filled / n, 1)}/{slots / n:g}"
        shares = (rows["proposed_hits"] / rows["accepted"]).groupby(rows["registry"]).mean()
        assert shown["precision"] == number(shares.mean(), 3)
        assert shown["n"] == str(n)
        assert shown["failed"] == str(8 - n)


def test_a_page_answers_every_question_in_words(report: Report) -> None:
    words = report.sections[0].blocks[0]
    assert tuple(name for name, _ in words.entries) == QUESTIONS  # type: ignore[union-attr]
    said = dict(words.entries)  # type: ignore[union-attr]
    assert "the loop without a proposer" in said["Gate"]
    assert "qwen/informed - qwen/thin" in said["Prompts"]
    assert said["Failed campaigns"].startswith("8 of 160 campaigns")
    assert "random" not in said["Own feedback"]


def test_the_gate_shows_the_loop_without_a_proposer_first(grid: Grid, report: Report) -> None:
    table = tables_of(report)["Certified hits under full feedback and without, a campaign"]
    assert table.rows[0][0] == "no proposer (the twin)"
    arm = row_of(table, "random")
    none = grid.runs["none"].campaigns
    rows = none[none["arm"] == "random"]
    assert arm["none"] == number(rows.groupby("registry")["true"].mean().mean())


def test_failures_stand_apart_with_their_reasons(report: Report) -> None:
    table = tables_of(report)["Failed campaigns by reason"]
    assert [row[:3] for row in table.rows] == [
        ("broken/thin", setting, "2")
        for setting in ("full", "none", "permuted", "proposer-permuted")
    ]
    assert all("alert" in row[3] for row in table.rows)
    assert any("left out of their arm" in text for text in report.warnings)


def test_what_was_not_played_is_missing_with_its_command(grid: Grid) -> None:
    alone = dataclasses.replace(grid, runs={"full": grid.runs["full"]})
    text = markdown(report_of(alone))
    assert "The gate needs none and permuted feedback." in text
    assert "--feedback full,none,permuted" in text
    assert "--feedback full,proposer=permuted" in text
    assert "--identifiers named,blinded,shuffled,shuffled-within-prior" in text
    assert "Not begun yet: none, permuted and proposer-permuted." in text
    assert "**Gate**: Not known" in text
    whole = markdown(report_of(grid))
    assert "The gate needs" not in whole
    assert "Not begun yet" not in whole


def test_a_grid_without_full_feedback_says_what_its_nets_are_of(grid: Grid) -> None:
    runs = {name: grid.runs[name] for name in ("none", "permuted")}
    report = report_of(dataclasses.replace(grid, runs=runs))
    assert any("nets are of none" in text for text in report.warnings)
    Page(html_page(report, title="no full"))


def test_a_grid_that_stopped_early_is_reported_as_far_as_it_got(grid: Grid, tmp_path: Path) -> None:
    place = tmp_path / "grid"
    shutil.copytree(str(grid.folder), place)
    shutil.rmtree(place / "permuted")
    manifest = json.loads((place / "none" / "manifest.json").read_text())
    manifest["status"] = "interrupted"
    (place / "none" / "manifest.json").write_text(json.dumps(manifest))
    lines = (place / "none" / "campaigns.jsonl").read_text().splitlines(keepends=True)
    (place / "none" / "campaigns.jsonl").write_text("".join(lines[:-9]))
    found = load_grid(place)
    written = write_grid_report(found)
    text = written[1].read_text()
    assert "Not begun yet: permuted." in text
    assert "none is not complete (status: interrupted): 31 of 40 campaigns are there." in text
    assert summary_lines(found)[0] == "Setting full:"


def test_a_grid_in_which_every_campaign_failed_makes_a_page(tmp_path: Path) -> None:
    arms = [{"agent": f"{HERE}:Dead", "arm": "dead/thin", "options": {"prompt": "thin"}}]
    grid = play_grid(tmp_path / "g", feedback=("full", "none"), arms=arms, seeds=[0, 1])
    report = report_of(grid)
    Page(html_page(report, title="dead"))
    assert report.summary is not None
    assert row_of(report.summary, "dead/thin")["net"] == "-"
    text = "\n".join(summary_lines(grid))
    assert "dead/thin: no campaign was scored" in text
    assert "4 of 4 campaigns" in text


def test_an_arm_without_a_scored_campaign_stays_in_its_family(grid: Grid) -> None:
    def without(run: RunResult) -> RunResult:
        rows = {
            kind: getattr(run, kind)[getattr(run, kind)["arm"] != "qwen/informed"].to_dict(
                "records"
            )
            for kind in ("campaigns", "rounds", "declarations")
        }
        return RunResult.of({**rows, "failures": []}, run.manifest)

    runs = {name: without(run) for name, run in grid.runs.items()}
    report = report_of(dataclasses.replace(grid, runs=runs))
    Page(html_page(report, title="part"))
    words = dict(report.sections[0].blocks[0].entries)  # type: ignore[union-attr]
    assert words["Prompts"] == "qwen/informed - qwen/thin: no campaign that both scored."
    shown = row_of(
        tables_of(report)["Prompt effects on the net, paired"], "qwen/informed - qwen/thin"
    )
    assert (shown["difference"], shown["verdict"]) == ("-", "not decided")
    assert shown["paired"] == "0 (8 left out)"


def test_probes_are_said_in_words_and_missing_ones_named(tmp_path: Path) -> None:
    grid = play_grid(tmp_path / "g", identifiers=("named", "shuffled"), arms=ARMS[:2])
    report = report_of(grid)
    words = dict(report.sections[0].blocks[0].entries)["Identifiers"]  # type: ignore[union-attr]
    nets = {
        name: run.campaigns[run.campaigns["arm"] == "qwen/informed"].groupby("registry")["net"]
        for name, run in grid.runs.items()
    }
    mean = (nets["named"].mean() - nets["shuffled"].mean()).mean()
    assert f"qwen/informed, named - shuffled: {signed(mean)} [" in words
    text = markdown(report)
    assert "Not played: blinded and shuffled-within-prior identifiers. Arms that need" in text
    # What is added stands alone: settings are every feedback with all identifiers.
    assert "--feedback full,none,permuted\n" in text
    assert "--identifiers named,shuffled,blinded,shuffled-within-prior\n" in text
    table = tables_of(report)["Net by identifiers, with its 95 % interval"]
    assert table.columns == ("arm", "named", "shuffled", "leak")


def test_a_grid_that_has_not_begun_is_an_error(grid: Grid, tmp_path: Path) -> None:
    empty = dataclasses.replace(grid, runs={})
    with pytest.raises(RunError, match="No setting of the grid"):
        write_grid_report(empty)
    with pytest.raises(RunError, match="No setting of the grid"):
        summary_lines(empty)
    with pytest.raises(RunError, match="has no folder"):
        write_grid_report(dataclasses.replace(grid, folder=None))
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(RunError, match="taken"):
        write_grid_report(grid, tmp_path / "taken")


def test_the_same_grid_gives_the_same_bytes(grid: Grid, tmp_path: Path) -> None:
    first = write_grid_report(grid, tmp_path / "a")
    second = write_grid_report(grid, tmp_path / "b")
    assert [path.name for path in first] == ["report.html", "report.md"]
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]


def test_the_page_is_sound_and_fetches_nothing(report: Report) -> None:
    text = html_page(report, title="A grid")
    page = Page(text)
    names = [a["id"] for _, a in page.elements if "id" in a]
    assert len(set(names)) == len(names)
    links = {str(a["href"]).removeprefix("#") for tag, a in page.elements if tag == "a"}
    assert links <= set(names)
    tags = {tag for tag, _ in page.elements}
    assert tags.isdisjoint({"script", "img", "link", "iframe", "object", "form", "base"})
    assert not re.search(r"https?://|@import|src=|\sstyle=|\son\w+=", text)
    for table in tables_of(report).values():
        assert table.caption in page.captions


def test_hostile_models_stay_text(report: Report) -> None:
    text = html_page(report, title="A grid")
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    written = text + markdown(report)
    assert not any(c in written for c in "\x1b\u202e")
    outside = re.sub(r"^```sh\n.*?\n```$", "", markdown(report), flags=re.S | re.M)
    assert "<script" not in outside.replace("\\<", "")


def test_markdown_rows_are_as_wide_as_their_heads(report: Report) -> None:
    for table in tables_of(report).values():
        assert {len(row) for row in table.rows} <= {len(table.columns)}, table.caption
        assert all(position < len(table.columns) for position in table.words)


def test_guided_arms_say_so(tmp_path: Path) -> None:
    arms = [
        *ARMS[:1],
        {"agent": f"{HERE}:LLMProposer", "arm": "qwen/thin+guided",
         "options": {"model": "Qwen/Qwen2.5-7B-Instruct", "prompt": "thin", "guided": True}},
    ]  # fmt: skip
    grid = play_grid(tmp_path / "g", arms=arms, seeds=range(3))
    report = report_of(grid)
    assert any(text.startswith("Guided arm: qwen/thin+guided.") for text in report.warnings)
    table = tables_of(report)["Prompt, model and setting: means a campaign"]
    assert [row[:2] for row in table.rows] == [("thin", "qwen"), ("thin (guided)", "qwen")]
    arm = arms_of(grid.runs["as-protocol"])["qwen/thin+guided"]
    assert arm.is_guided
    assert published_model(arm) == ""


LARGE: dict[str, Any] = {
    "registry": Panel.of([tiny_registry(400, 80, name="large")], name="large"),
    "seeds": range(3),
}


def test_published_figures_stand_beside_the_published_protocol_alone(tmp_path: Path) -> None:
    grid = play_grid(
        tmp_path / "g", feedback=("full", "none"), arms=ARMS, protocol="proposer", **LARGE
    )
    assert preset_of(grid.runs["none"].protocol) == "proposer"
    found = tables_of(report_of(grid))
    table = found["Prompt, model and setting: means a campaign"]
    shown = {
        (row[0], row[1], row[2]): dict(zip(table.columns, row, strict=True)) for row in table.rows
    }
    thin = shown["thin", "qwen", "full"]
    assert thin["slots, published"] == "57.7"
    assert thin["certified, published"] == "2.95"
    assert thin["naive FDR, published"] == "0.228"
    assert thin["net, published"] == "+0.35 [−1.05, 1.75]"
    assert shown["thin", "qwen", "none"]["certified, published"] == "0.30"
    assert shown["informed", "qwen", "full"]["certified, published"] == "-"
    assert shown["thin", "broken", "full"]["slots, published"] == "-"
    run = grid.runs["full"]
    arm = arms_of(run)["qwen/thin"]
    assert published_row(run.protocol, arm, feedback="full", identifiers="named")
    assert not published_row(run.protocol, arm, feedback="full", identifiers="shuffled")
    effects = row_of(found["Prompt effects on the net, paired"], "qwen/informed - qwen/thin")
    assert effects["published"] == "+2.55 [1.40, 3.70]"


def test_another_protocol_has_no_published_figures(report: Report) -> None:
    for table in tables_of(report).values():
        assert not any("published" in column for column in table.columns)


def test_the_matched_quota_has_its_table_and_both_effects(tmp_path: Path) -> None:
    quota = play_grid(tmp_path / "q", arms=ARMS, protocol="matched-quota", **LARGE)
    natural = play_grid(tmp_path / "n", arms=ARMS, protocol="proposer", **LARGE)
    free, run = natural.runs["as-protocol"], quota.runs["as-protocol"]
    found = tables_of(report_of(quota, free))
    table = found["At equal delivery: means a campaign"]
    rows = run.campaigns[run.campaigns["arm"] == "qwen/thin"]
    shown = next(dict(zip(table.columns, row, strict=True)) for row in table.rows)
    assert (shown["proposer"], shown["prompt"]) == ("qwen", "thin")
    assert shown["slots"] == number(rows["accepted"].mean(), 1)
    unfilled = (rows["proposal_slots"] - rows["accepted"]).mean()
    assert shown["unfilled"] == number(unfilled, 1)
    assert shown["unfilled, published"] == "40.7"
    assert row_of(table, "random")["certified, published"] == "1.74"
    effects = found["Prompt effects with delivery as it comes and at equal delivery"]
    (row,) = (dict(zip(effects.columns, r, strict=True)) for r in effects.rows)
    for name, played in (("natural", free), ("fixed", run)):
        nets = played.campaigns.pivot(index="seed", columns="arm", values="net")
        mean = (nets["qwen/informed"] - nets["qwen/thin"]).mean()
        assert row[name].startswith(signed(mean)), name
    assert row["natural, published"] == "+1.10 [−0.10, 2.28]"
    assert row["fixed, published"] == "+0.74 [−0.12, 1.66]"
    effect = row["natural"]
    (path, *_) = write_report(run, tmp_path / "page", natural=free)
    page = Page(path.read_text())
    shown_again = page.table(effects.caption)
    assert effect in shown_again[1]
    text = markdown(report_of(quota))
    assert "--natural RUN" in text
    assert "one-sided 95 % Clopper-Pearson bound" in text


def test_the_report_of_one_run_with_traces_has_its_own_sections(
    grid: Grid, run: RunResult, tmp_path: Path
) -> None:
    keys = [section.key for section in build_report(grid.runs["full"]).sections]
    assert keys.index("models") + 1 == keys.index("factors") < keys.index("registries")
    assert "models" not in [section.key for section in build_report(run).sections]
    (path, *_) = write_report(grid.runs["full"], tmp_path)
    page = Page(path.read_text())
    delivery = page.table("Delivery, means a campaign")
    rounds = grid.runs["full"].rounds
    mine = rounds[rounds["arm"] == "qwen/thin"]
    row = dict(zip(delivery[0], delivery[1], strict=True))
    assert row["entries"] == number(mine["raw"].sum() / 8, 1)
    assert row["fallback"] == number(mine["fallback"].sum() / 8, 1)
    assert row["attempts"] == "10.0"
    assert "Prompt, model and setting: means a campaign" in page.captions


def test_lines_for_a_terminal_hold_no_control_character(grid: Grid) -> None:
    lines = summary_lines(grid)
    for arm, summary in grid.runs["full"].arms.items():
        net = summary.net
        said = f"  {arm}: net {signed(net.mean)} {interval(net.low, net.high)}, n = {net.n}"
        assert said in lines
    assert all(line.isprintable() for line in lines)
    assert HOSTILE not in "".join(lines)


def test_a_grid_in_which_nothing_can_be_certified_says_that_it_cannot_tell(tmp_path: Path) -> None:
    protocol = load_protocol(
        "standard", rounds=2, first_fresh=8, fresh=8, reread_candidates=2, reads_each=1
    )
    grid = play_grid(
        tmp_path / "g",
        feedback=("full", "none", "permuted"),
        identifiers=("named", "shuffled"),
        arms=ARMS[:2],
        protocol=protocol,
    )
    report = report_of(grid)
    said = dict(report.sections[0].blocks[0].entries)  # type: ignore[union-attr]
    because = "Cannot tell (no slot is in reach): qwen/thin and qwen/informed."
    assert said["Adds to its loop"] == because
    assert said["Gate"] == "Cannot tell: no slot is in reach."
    assert said["Identifiers"].startswith("Not known: no slot is in reach.")
    assert "cannot tell: no slot is in reach" in said["Prompts"]
    text = markdown(report)
    assert "No slot is in reach, so nothing can be certified" in text
    assert "none of 2" not in text
    assert {row[2] for row in report.summary.rows} == {"-"}  # type: ignore[union-attr]
    assert "[0.00, 0.00]" not in " ".join(summary_lines(grid)[:3])


def test_one_campaign_of_a_leak_detector_is_not_said_to_be_none(tmp_path: Path) -> None:
    modes = ("named", "shuffled")
    grid = play_grid(tmp_path / "g", identifiers=modes, arms=ARMS[3:], seeds=[0])
    report = report_of(grid)
    said = dict(report.sections[0].blocks[0].entries)  # type: ignore[union-attr]
    assert said["Identifiers"] == "Not known: one campaign."
    text = markdown(report)
    assert "No arm with a language model was played." in text
    assert "prior adds them" not in text


def test_the_page_of_one_run_with_traces_says_first_what_each_arm_brings(grid: Grid) -> None:
    run = grid.runs["full"]
    beside = build_report(run).beside
    assert beside is not None
    rows = run.campaigns[run.campaigns["arm"] == "qwen/thin"]
    means = {c: rows.groupby("registry")[c].mean().mean() for c in ("gained", "lost", "originated")}
    shown = row_of(beside, "qwen/thin")
    assert shown["gained / lost"] == f"{number(means['gained'])} / {number(means['lost'])}"
    assert shown["originated"] == number(means["originated"])
    assert "--feedback full,none,permuted --identifiers named,shuffled" in beside.note
    other = build_report(grid.runs["none"]).beside
    assert other is not None
    assert "--feedback" not in other.note


def test_files_are_fenced_as_what_they_are(report: Report) -> None:
    text = markdown(report)
    assert re.search(r"yaml holds:\n\n```yaml\n", text)
    assert "```sh\ncads run " in text

"""Badges: found by the protocol's hash, readable without colour, up to date where shipped."""

from __future__ import annotations

import io
import json
import re
from importlib import resources
from pathlib import Path

import pytest
from rich.console import Console

import cads_env
from cads_env.report.assemble import build_report
from cads_env.report.badge import badge_line, badge_sentence, badge_warning
from cads_env.report.instrument import badge_svg
from cads_env.report.markdown import markdown
from cads_env.report.terminal import run_table
from cads_env.selfcheck import Badge, SelfCheck, badge_of, load_settings, selfcheck
from cads_env.selfcheck.badge import FOLDER, badge_from, record
from cads_env.testing import tiny_registry
from tests.selfcheck.test_selfcheck import PANEL, RULES

SHIPPED = sorted((resources.files("cads_configs") / FOLDER).iterdir(), key=lambda file: file.name)


@pytest.fixture(scope="module")
def outcome() -> SelfCheck:
    return selfcheck(RULES, PANEL, seeds=3, agents=["random"])


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CADS_HOME", str(tmp_path))
    return tmp_path


def test_a_protocol_that_nobody_checked_says_what_to_do() -> None:
    badge = badge_of(RULES)
    assert badge.state == "not self-checked"
    assert badge.text == f"not self-checked: run cads selfcheck --protocol {RULES.name}"
    assert not badge.is_ranked
    assert badge_line(RULES) == "Protocol not self-checked: cads selfcheck does it."
    assert badge_warning(RULES) == ""


def test_a_recorded_outcome_is_found_by_the_hash_alone(outcome: SelfCheck) -> None:
    record(outcome)
    other_name = cads_env.load_protocol({**RULES.to_dict(), "name": "mine"})
    badge = badge_of(other_name)
    assert (badge.state, badge.panel, badge.protocol) == (outcome.word, "tiny", "mine")
    assert badge.text == (
        f"self-check {outcome.word} | {outcome.passed_count}/{len(outcome.applicable)} | mine"
    )
    assert badge_of(RULES, panel="another").state == "not self-checked"
    assert badge_of(RULES.override(reads_each=3)).state == "not self-checked"


def test_recording_again_replaces_and_strange_files_are_passed_over(
    outcome: SelfCheck, home: Path
) -> None:
    path = record(outcome)
    (path.parent / "a.json").write_text("{")
    (path.parent / "b.json").write_text('{"kind": "cads-selfcheck", "schema_version": 1}')
    (path.parent / "c.json").write_text("[]")
    assert record(outcome) == path
    assert len(list(path.parent.iterdir())) == 4
    assert badge_of(RULES).state == outcome.word


def test_an_outcome_that_failed_is_not_hidden_by_one_that_passed(
    outcome: SelfCheck, home: Path
) -> None:
    data = json.loads(record(outcome).read_text())
    for name, verdict in (("0.json", "failed"), ("z.json", "passed")):
        (home / FOLDER / name).write_text(json.dumps(data | {"verdict": verdict}))
    assert badge_of(RULES).state == "failed"
    assert badge_warning(RULES) == data["says"]
    assert "may not be ranked" in badge_sentence(RULES)


@pytest.mark.parametrize("state", ["passed", "failed", "undecided", "not self-checked"])
def test_a_badge_says_in_words_what_its_colour_says(state: str) -> None:
    badge = Badge(state=state, protocol="<b>", passed=6, applicable=7)  # type: ignore[arg-type]
    svg = badge_svg(badge)
    words = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert words[0] == "self-check"
    assert state in words[1]
    assert "6/7 | &lt;b&gt;" in words[1]
    assert svg.count("<text") == 2


def test_the_badge_of_an_outcome_is_that_of_its_record(outcome: SelfCheck) -> None:
    record(outcome)
    assert badge_from(outcome) == badge_of(RULES)


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.name)
def test_a_shipped_record_is_of_todays_protocol_and_settings(file: Path) -> None:
    data = json.loads(file.read_text("utf-8"))
    assert data["settings"] == load_settings().to_json()
    assert data["cads_env"] == cads_env.__version__
    base, _, changes = data["protocol"].partition("+")
    protocol = cads_env.load_protocol(data["protocol"])
    assert protocol.hash == data["protocol_hash"], (base, changes)
    assert badge_of(protocol, panel=data["panel"]).state == data["verdict"]


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("standard", "passed"),
        ("sweep", "passed"),
        ("proposer", "failed"),
        ("matched-quota", "failed"),
    ],
)
def test_presets_have_their_badge(name: str, state: str) -> None:
    badge = badge_of(cads_env.load_protocol(name))
    assert (badge.state, badge.is_ranked) == (state, state == "passed")


def test_the_badge_of_a_failed_preset_gives_its_reason() -> None:
    said = badge_warning(cads_env.load_protocol("proposer"))
    assert said.startswith("Not a ranked protocol: proposer failed its self-check")
    assert "Only candidates first read in rounds 0-3 can be declared" in said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("proposer", "Not a ranked protocol: proposer failed its self-check"),
        ("standard", "Self-check passed: 7 of 7 checks on synthetic-depmap:dev."),
    ],
)
def test_a_run_says_what_its_protocol_is_worth(name: str, said: str) -> None:
    result = cads_env.evaluate("nothing", registry=tiny_registry(), protocol=name, seeds=range(2))
    console = Console(width=400, record=True, file=io.StringIO())
    console.print(run_table(result))
    assert said in console.export_text()
    report = markdown(build_report(result)).replace("\\", "")
    assert said in report
    assert f"The protocol {badge_of(result.protocol).state} its self-check" in report

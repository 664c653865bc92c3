"""The validity suite at its own size: the certificate holds, and whatever is broken shows."""

from __future__ import annotations

import pytest

from cads_env.studies.config import load_config
from cads_env.studies.study import Config, Summary
from cads_env.studies.tables import Table
from cads_env.studies.validity import STUDY, cell_name, fdr_end, scenarios

CHUNK = 250


@pytest.fixture(scope="module")
def config() -> Config:
    return load_config("validity")


@pytest.fixture(scope="module")
def summary(config: Config) -> Summary:
    played = Summary()
    for cell in STUDY.cells(config, ["validity"]):
        for start in range(0, len(cell.seeds), CHUNK):
            for row in STUDY.play(cell.settings, cell.seeds[start : start + CHUNK]):
                played.add(cell.name, row)
    return played


@pytest.mark.slow
def test_every_rule_does_what_is_expected_of_it_at_a_thousand_seeds(
    config: Config, summary: Summary
) -> None:
    table = STUDY.items["validity"](config, summary)
    assert isinstance(table, Table)
    assert {summary.of(cell, "fdp").n for cell in summary.cells} == {1000}
    assert [entry for entry in table.entries if entry.verdict == "off"] == []
    bounds = [entry for entry in table.entries if "FDR, " in entry.measure]
    assert len(bounds) == len(summary.cells)
    assert {entry.verdict for entry in bounds} == {"within"}


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["no-cap", "observed-family", "late-cap", "naive"])
def test_a_broken_rule_would_fail_wherever_it_is_shown(
    config: Config, summary: Summary, rule: str
) -> None:
    shown = [
        name
        for name, scenario in scenarios(config).items()
        if rule in scenario["breaks"] + scenario["comparators"]
    ]
    assert shown
    for name in shown:
        cell, q = cell_name(name, rule), config["scenarios"][name].get("q", 0.1)
        assert fdr_end(summary, cell, "upper", confidence=config["confidence"]) > q


@pytest.mark.slow
def test_the_suite_is_tight_enough_to_notice_twice_the_error(
    config: Config, summary: Summary
) -> None:
    whole = scenarios(config)
    assert whole["chase"]["law"] == "point-mass"
    for name in ("chase", "stubborn", "subthreshold", "uniform", "clean", "heavy"):
        cell, q = cell_name(name, "cads"), whole[name]["q"]
        assert fdr_end(summary, cell, "lower", confidence=config["confidence"]) > q / 3

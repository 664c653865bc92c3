"""The validity suite on a few seeds: its parts do what they say, and its checks can fail."""

from __future__ import annotations

import copy
import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cads_env.certificate import Certificate, e_bh
from cads_env.contamination import make_law
from cads_env.errors import StudyError
from cads_env.inference.binomial import clopper_pearson_upper
from cads_env.studies.config import load_config
from cads_env.studies.study import Summary
from cads_env.studies.tables import Entry
from cads_env.studies.validity import STUDY, cell_name, fdr_end, scenarios
from cads_env.studies.validity_adversary import Outcome, attack
from cads_env.studies.validity_reads import read_table, signals
from cads_env.studies.validity_rules import RULES
from cads_env.studies.validity_screens import null_registry, screened

SEEDS = 128


def config(scenario: str = "", **changes: Any) -> dict[str, Any]:
    """The config, of one scenario with changes when one is named."""
    whole = copy.deepcopy(dict(load_config("validity", {"seeds": SEEDS})))
    if scenario:
        whole["scenarios"] = {scenario: whole["scenarios"][scenario] | changes}
    return whole


def scenario(name: str, **changes: Any) -> dict[str, Any]:
    return scenarios(config(name, **changes))[name]


def certificate(given: dict[str, Any]) -> Certificate:
    return Certificate(epsilon_bar=given["epsilon_bar"], q=given["q"])


def played(given: dict[str, Any]) -> Summary:
    summary = Summary()
    for cell in STUDY.cells(given, ["validity"]):
        for row in STUDY.play(cell.settings, list(cell.seeds)):
            summary.add(cell.name, row)
    return summary


def entries(given: dict[str, Any]) -> list[Entry]:
    table: Any = STUDY.items["validity"](given, played(given))
    return list(table.entries)


def bound_verdicts(given: dict[str, Any]) -> list[str]:
    """Verdicts on the ends of the FDR, in the table's order."""
    return [entry.verdict for entry in entries(given) if "FDR, " in entry.measure]


def test_every_named_law_and_protocol_of_the_config_exists() -> None:
    whole = scenarios(config())
    for each in whole.values():
        make_law(each["law"], each["epsilon"], each["law_options"])
    broken = {rule for each in whole.values() for rule in each["breaks"] + each["comparators"]}
    assert broken == set(RULES) - {"cads"}


def test_cells_are_one_a_scenario_and_rule_and_have_the_seeds_of_the_config() -> None:
    cells = STUDY.cells(config(), ["validity"])
    names = [cell.name for cell in cells]
    assert len(set(names)) == len(names)
    assert {"chase/cads", "chase/no-cap", "one-coin/cads"} <= set(names)
    assert {len(cell.seeds) for cell in cells} == {SEEDS}


@pytest.mark.parametrize("name", ["mixed", "clusters", "chased", "sweep"])
def test_rows_do_not_depend_on_the_other_seeds_of_a_call(name: str) -> None:
    for cell in STUDY.cells(config(name), ["validity"]):
        together = list(STUDY.play(cell.settings, range(5, 17)))
        apart = [row for seed in range(5, 17) for row in STUDY.play(cell.settings, [seed])]
        assert together == apart


def test_contamination_at_the_cap_uses_the_whole_budget_of_a_null() -> None:
    given = scenario("chase")
    reads = read_table(given, range(400)).reads
    increments = np.exp(
        RULES["cads"].log_increments(reads, certificate(given), flag_at=given["flag_at"])
    )
    error = increments.std() / math.sqrt(increments.size)
    assert abs(increments.mean() - 1.0) < 4 * error < 0.01


def test_candidates_of_a_cluster_are_copies_and_clusters_are_not() -> None:
    reads = read_table(scenario("clusters"), range(2)).reads
    assert (reads[:, :10] == reads[:, :1]).all()
    assert (reads[:, 10] != reads[:, 0]).all()
    assert (reads[0] != reads[1]).any()


def test_hits_are_the_last_candidates_and_nulls_are_least_favourable() -> None:
    given = scenario("mixed")
    u = signals(given)
    assert (u[:-10] == 0).all()
    assert (u[-10:] == given["hit_signal"]).all()
    assert read_table(given, range(64)).reads[:, -10:].mean() > 0.9


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("chase", 0.1, 0.1),
        ("chased", 0.1, 0.1),
        ("aimed", 0.4, 0.4),
        ("one-coin", 0.2, 1.0),
        ("clean", 0.0, 0.0),
    ],
)
def test_conditional_rates_are_those_of_the_law(name: str, low: float, high: float) -> None:
    rates = read_table(scenario(name), range(40)).largest_rate
    assert (rates.min(), rates.max()) == (low, high)


def test_evidence_of_the_unbroken_rule_is_the_certificates() -> None:
    given = scenario("uniform")
    reads = read_table(given, [0]).reads
    log_e = RULES["cads"].evidence(reads, certificate(given), flag_at=1.0)
    m, visits = reads.shape[1:]
    record = OneRecord(reads[0].T.reshape(-1), np.tile(np.arange(m), visits), m)
    assert (log_e[0, :, -1] == certificate(given).log_evidence(record)).all()
    free = RULES["no-cap"].evidence(reads, certificate(given), flag_at=1.0)
    uncapped = Certificate(epsilon_bar=0.0).log_evidence(record)
    assert (free[0, :, -1] == uncapped).all()


@dataclasses.dataclass(frozen=True)
class OneRecord:
    values: NDArray[np.float64]
    slots: NDArray[Any]
    m: int

    @property
    def candidates(self) -> NDArray[np.int64]:
        return np.arange(self.m)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_a_cap_chosen_after_the_read_lies_between_the_cap_and_none(reads: list[float]) -> None:
    each = {
        name: RULES[name].log_increments(np.array(reads), Certificate(), flag_at=1.0)
        for name in ("cads", "late-cap", "no-cap")
    }
    assert (each["cads"] <= each["late-cap"]).all()
    assert (each["late-cap"] <= each["no-cap"]).all()
    assert (each["late-cap"] == each["cads"])[np.array(reads) > 1.0].all()


@given(st.lists(st.floats(-8, 12), min_size=1, max_size=12), st.integers(0, 30))
@settings(max_examples=60, deadline=None)
def test_a_family_of_observed_candidates_declares_no_less(log_e: list[float], more: int) -> None:
    values, observed, m = np.array(log_e), np.arange(len(log_e)), len(log_e) + more
    whole = RULES["cads"].declare(values, observed, m, Certificate())
    part = RULES["observed-family"].declare(values, observed, m, Certificate())
    assert set(whole) <= set(part)


@pytest.mark.parametrize("rule", ["cads", "no-cap", "observed-family", "late-cap", "naive"])
@pytest.mark.parametrize("name", ["mixed", "clusters", "stubborn"])
def test_the_quick_look_misses_no_declaration(name: str, rule: str) -> None:
    given = scenario(name)
    told = certificate(given)
    log_e = RULES[rule].evidence(read_table(given, range(12)).reads, told, flag_at=1.0)
    expected = [step_by_step(row, rule, told, given) for row in log_e]
    assert attack(log_e, RULES[rule], told, given) == expected


def step_by_step(
    log_e: NDArray[np.float64], rule: str, told: Certificate, given: dict[str, Any]
) -> Outcome:
    """The adversary against one campaign, the rule asked after every read."""
    m, visits, size = log_e.shape[0], log_e.shape[1] - 1, given["cluster"]
    seen, now, nulls = np.zeros(m, int), np.zeros(m), m - given["hits"]
    known: set[int] = set()
    reads = 0
    for _ in range(given["reads"]):
        worth = [
            -math.inf
            if i in known or seen[i] == visits
            else (now[i] if seen[i] else -given["patience"])
            for i in range(m)
        ]
        best = int(np.argmax(worth))
        if worth[best] == -math.inf:
            break
        for i in range(best // size * size, best // size * size + size):
            seen[i] += 1
            now[i] = log_e[i, seen[i]]
        reads += size
        observed = np.flatnonzero(seen)
        found = RULES[rule].declare(now[observed], observed, m, told)
        if (found < nulls).any():
            break
        known |= set(found.tolist())
    observed = np.flatnonzero(seen)
    found = RULES[rule].declare(now[observed], observed, m, told)
    return Outcome(int((found < nulls).sum()), len(found), reads)


def test_campaigns_stop_at_the_first_false_declaration_and_never_exceed_their_reads() -> None:
    given = scenario("uniform")
    told = certificate(given)
    for rule in ("cads", "no-cap"):
        log_e = RULES[rule].evidence(read_table(given, range(40)).reads, told, flag_at=1.0)
        for false, declared, reads in attack(log_e, RULES[rule], told, given):
            assert false == declared
            assert 0 < reads <= given["reads"]
            assert bool(false) == (reads < given["reads"])


def test_an_exhausted_registry_ends_a_campaign() -> None:
    given = scenario("chase", candidates=3, visits=2)
    log_e = RULES["cads"].evidence(read_table(given, [1]).reads, Certificate(), flag_at=1.0)
    assert attack(log_e, RULES["cads"], Certificate(), given) == [Outcome(0, 0, 6)]


def test_a_rule_that_judges_once_spends_every_read_first() -> None:
    given = scenario("uniform", stops=False)
    log_e = RULES["no-cap"].evidence(read_table(given, range(8)).reads, Certificate(), flag_at=1.0)
    outcomes = attack(log_e, RULES["no-cap"], Certificate(), given)
    assert {outcome.reads for outcome in outcomes} == {given["reads"]}
    assert all(outcome.false > 1 for outcome in outcomes)


def test_screens_of_nulls_have_one_hit_that_is_never_declared() -> None:
    registry, oracle = null_registry("test", 60)
    assert (registry.m, oracle.hit_count) == (60, 1)
    assert oracle.contrary_hit_count == 1
    assert (oracle.signal[~oracle.labels] == 0).all()


def test_screens_judge_by_the_certificate_or_without_its_cap() -> None:
    given = scenario("standard")
    kept = screened(given, "cads", Certificate(), range(24))
    lost = screened(given, "no-cap", Certificate(), range(24))
    assert sum(outcome.false > 0 for outcome in kept) <= 3
    assert all(outcome.false for outcome in lost)
    with pytest.raises(StudyError, match="late-cap"):
        screened(given, "late-cap", Certificate(), [0])


def test_the_suite_passes_on_a_scenario_and_its_broken_rules() -> None:
    assert bound_verdicts(config("uniform")) == ["within", "within"]


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("uniform", "no-cap"),
        ("stubborn", "observed-family"),
        ("subthreshold", "late-cap"),
        ("clean", "naive"),
        ("under-rated", "cads"),
        ("aimed", "cads"),
    ],
)
def test_a_broken_rule_fails_where_it_should_hold(name: str, rule: str) -> None:
    assert bound_verdicts(config(name, holds=[rule], breaks=[], outside=[], comparators=[])) == [
        "off"
    ]


@pytest.mark.parametrize("kind", ["breaks", "outside"])
def test_a_sound_rule_fails_where_it_should_break(kind: str) -> None:
    lists: dict[str, list[str]] = {"holds": [], "breaks": [], "outside": []} | {kind: ["cads"]}
    assert bound_verdicts(config("chase", **lists)) == ["off"]


def test_the_suite_fails_when_the_certificate_loses_its_cap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Certificate, "log_cap", property(lambda self: math.inf))
    for name in ("uniform", "standard"):
        assert "off" in bound_verdicts(config(name, breaks=[]))


def test_the_suite_fails_when_the_certificate_forgets_what_was_not_observed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def among_observed(
        self: Certificate, log_e: NDArray[np.float64], candidates: NDArray[np.int64], m: int
    ) -> NDArray[np.int64]:
        found: NDArray[np.int64] = candidates[e_bh(log_e, self.q, m=candidates.size)]
        return found

    monkeypatch.setattr(Certificate, "decide", among_observed)
    assert bound_verdicts(config("stubborn", breaks=[])) == ["off"]


def test_the_mean_increment_shows_a_cap_that_is_a_little_too_high(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def verdicts() -> set[str]:
        return {e.verdict for e in entries(config("chase")) if e.measure == "mean increment"}

    assert "off" not in verdicts()
    monkeypatch.setattr(Certificate, "log_cap", property(lambda self: math.log(3.7)))
    assert "off" in verdicts()


def test_fewer_seeds_than_the_suites_own_leave_a_check_open_and_do_not_fail_it() -> None:
    given = config("over-rated")
    table: Any = STUDY.items["validity"](given | {"seeds": SEEDS + 1}, played(given))
    assert {e.verdict for e in table.entries if "FDR, " in e.measure} == {"within"}
    few = given | {"seeds": 12}
    table = STUDY.items["validity"](given, played(few))
    held, broken = (e for e in table.entries if "FDR, " in e.measure)
    assert (held.verdict, broken.verdict) == ("explained", "within")
    assert held.note.startswith("12 seeds")
    table = STUDY.items["validity"](few, played(few))
    assert "off" in {e.verdict for e in table.entries}


def summary_of(fdps: list[float]) -> Summary:
    summary = Summary()
    for fdp in fdps:
        summary.add("x", {"any_false": float(fdp > 0), "fdp": fdp})
    return summary


def test_ends_of_the_fdr_are_exact_where_the_fdp_is_zero_or_one() -> None:
    none = summary_of([0.0] * 50)
    assert fdr_end(none, "x", "upper", confidence=0.95) == pytest.approx(1 - 0.05 ** (1 / 50))
    assert fdr_end(none, "x", "lower", confidence=0.95) == 0.0
    some = summary_of([1.0] * 3 + [0.0] * 47)
    assert fdr_end(some, "x", "upper", confidence=0.95) == clopper_pearson_upper(3, 50)
    every = summary_of([1.0] * 50)
    assert fdr_end(every, "x", "lower", confidence=0.95) == pytest.approx(0.05 ** (1 / 50))
    assert fdr_end(every, "x", "upper", confidence=0.95) == 1.0


def test_ends_of_the_fdr_are_those_of_a_mean_where_there_are_hits() -> None:
    fdps = [0.0, 0.5, 0.25, 0.0, 0.1]
    upper = fdr_end(summary_of(fdps), "x", "upper", confidence=0.95)
    lower = fdr_end(summary_of(fdps), "x", "lower", confidence=0.95)
    half = 2.131846786 * np.std(fdps, ddof=1) / math.sqrt(5)
    assert upper == pytest.approx(np.mean(fdps) + half)
    assert lower == pytest.approx(max(0.0, np.mean(fdps) - half))
    assert fdr_end(summary_of([0.5]), "x", "upper", confidence=0.95) == 1.0


def test_unusable_settings_and_rules_of_a_scenario_are_named() -> None:
    with pytest.raises(StudyError, match="no setting 'visit'"):
        scenarios(config("chase", visit=3))
    with pytest.raises(StudyError, match="clusters of 7"):
        scenarios(config("chase", cluster=7))
    with pytest.raises(StudyError, match="no rule 'no-cup'"):
        scenarios(config("chase", breaks=["no-cup"]))


def test_the_chart_shows_each_scenario_in_units_of_its_level() -> None:
    given = config("chase-05")
    summary = played(given)
    chart: Any = STUDY.items["figure-validity"](given, summary)
    sound, broken, level = chart.series
    fdr = summary.mean(cell_name("chase-05", "cads"), "fdp")
    assert (list(sound.x), sound.y) == (["chase-05"], [fdr / 0.05])
    assert broken.y[0] > sound.y[0]
    assert level.is_reference

"""The validity suite: the FDR bound against adversaries, and against rules broken on purpose.

Each scenario is played once a rule. Rules that must hold are judged by the upper end of their FDR,
those that must fail by the lower end, so a row can come out either way.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
from scipy.special import stdtrit

from cads_env.certificate import Certificate
from cads_env.errors import StudyError, suggest
from cads_env.inference.binomial import clopper_pearson, clopper_pearson_upper
from cads_env.studies.study import Cell, Config, Row, Study, Summary
from cads_env.studies.tables import Chart, Entry, Series, Table
from cads_env.studies.validity_adversary import Outcome, attack
from cads_env.studies.validity_reads import read_table
from cads_env.studies.validity_rules import RULES
from cads_env.studies.validity_screens import screened

_KINDS: Final = {
    "holds": "holds",
    "breaks": "broken",
    "outside": "not covered",
    "comparators": "comparator",
}
_OTHERS: Final = tuple(kind for kind in _KINDS if kind != "holds")
_BAR_SE: Final = 1.96
_COMMON: Final = ("theta", "s", "flag_at")
_DECIMALS: Final = 9
_SIDES: Final[tuple[Literal["lower", "upper"], ...]] = ("lower", "upper")


def scenarios(config: Config) -> dict[str, dict[str, Any]]:
    """The scenarios by name, with whatever they leave out filled in.

    Args:
        config: The study's config.

    Raises:
        StudyError: A scenario has a setting or a rule that does not exist, or broken clusters.
    """
    known = {*config["defaults"], "about", "protocol", "changes"}
    whole = {}
    for name, given in config["scenarios"].items():
        for setting in given:
            if setting not in known:
                msg = f"Scenario {name!r} has no setting {setting!r}. {suggest(setting, known)}"
                raise StudyError(msg)
        common = {key: config[key] for key in _COMMON}
        whole[name] = {"name": name, **common, **config["defaults"], **given}
        m, cluster, hits = (whole[name][key] for key in ("candidates", "cluster", "hits"))
        if m % cluster or hits % cluster or hits >= m:
            msg = (
                f"Scenario {name!r} has {m} candidates in clusters of {cluster}, {hits} of them "
                "hits; expected whole clusters of each and a null at least."
            )
            raise StudyError(msg)
        for kind in _KINDS:
            for rule in whole[name][kind]:
                if rule not in RULES:
                    msg = f"Scenario {name!r}: there is no rule {rule!r}. {suggest(rule, RULES)}"
                    raise StudyError(msg)
    return whole


def cell_name(scenario: str, rule: str) -> str:
    """The name of the cell of a rule in a scenario: `chase/no-cap`."""
    return f"{scenario}/{rule}"


def cells(config: Config, items: Collection[str]) -> list[Cell]:
    """One cell a scenario and rule; every item needs them all."""
    return [
        Cell(
            cell_name(name, rule),
            {key: value for key, value in scenario.items() if key not in _KINDS} | {"rule": rule},
            range(config["seeds"]),
        )
        for name, scenario in scenarios(config).items()
        for kind in _KINDS
        for rule in scenario[kind]
    ]


def play_cell(settings: Mapping[str, Any], seeds: Sequence[int]) -> list[Row]:
    """The rows of some seeds of a rule in a scenario.

    Args:
        settings: A scenario, and the name of the `rule`.
        seeds: Campaign seeds.

    Returns:
        A row a seed: `any_false` (0 or 1), `fdp`, `declared`, `reads`; on adversaries' reads also
        `increment`, the mean increment of all reads of nulls, and `largest_rate`, the largest
        probability given the past with which one of them was contaminated, where the law says it.
    """
    certificate = Certificate(
        epsilon_bar=settings["epsilon_bar"],
        theta=settings["theta"],
        s=settings["s"],
        q=settings["q"],
        audit=settings["audit"],
    )
    if "protocol" in settings:
        return [_row(x) for x in screened(settings, settings["rule"], certificate, seeds)]
    rule, flag_at = RULES[settings["rule"]], settings["flag_at"]
    table = read_table(settings, seeds)
    log_e = rule.evidence(table.reads, certificate, flag_at=flag_at)
    rows: list[dict[str, float]] = [_row(x) for x in attack(log_e, rule, certificate, settings)]
    nulls = table.reads[:, : settings["candidates"] - settings["hits"]]
    for row, reads, rate in zip(rows, nulls, table.largest_rate.tolist(), strict=True):
        if not rule.naive:
            increments = np.exp(rule.log_increments(reads, certificate, flag_at=flag_at))
            # exp differs between CPUs in its last bits.
            row["increment"] = round(float(increments.mean()), _DECIMALS)
        if not math.isnan(rate):
            row["largest_rate"] = rate
    return [*rows]


def _row(outcome: Outcome) -> dict[str, float]:
    return {
        "any_false": float(outcome.false > 0),
        "fdp": outcome.false / max(outcome.declared, 1),
        "declared": float(outcome.declared),
        "reads": float(outcome.reads),
    }


def fdr_end(
    summary: Summary, cell: str, side: Literal["upper", "lower"], *, confidence: float
) -> float:
    """One end of the FDR of a cell, one-sided.

    The FDP of a registry without hits is 0 or 1: Clopper-Pearson of the campaigns with a false
    declaration is exact. With hits it is the mean FDP and its t interval; where no campaign has a
    false declaration the upper end is Clopper-Pearson's, since FDR <= P(any false declaration).

    Args:
        summary: Of the played cells.
        cell: Name of the cell.
        side: Which end.
        confidence: One-sided coverage, in (0, 1).

    Returns:
        The end, in [0, 1].
    """
    any_false, fdp = summary.of(cell, "any_false"), summary.of(cell, "fdp")
    n, count = any_false.n, round(any_false.total)
    if fdp.total == any_false.total:
        if side == "upper":
            return clopper_pearson_upper(count, n, confidence=confidence)
        return clopper_pearson(count, n, confidence=2 * confidence - 1).low
    half = float(stdtrit(n - 1, confidence)) * fdp.mc_se if n > 1 else math.inf
    return min(1.0, fdp.mean + half) if side == "upper" else max(0.0, fdp.mean - half)


def table_validity(config: Config, summary: Summary) -> Table:
    """The FDR of every rule in every scenario, its bound against q, and the channel's own rate."""
    entries = []
    for name, scenario in scenarios(config).items():
        for kind, words in _KINDS.items():
            for rule in scenario[kind]:
                labels = (scenario["about"], f"{scenario['q']:g}", RULES[rule].title, words)
                entries += _entries(config, summary, scenario, (name, rule, kind), labels)
    return Table(
        title="Validity: the FDR bound against adversaries, and rules broken on purpose",
        label_columns=("scenario", "q", "rule", "kind"),
        entries=entries,
        caption=(
            "Nulls at u = 0. The adversary knows evidence and labels, reads on where luck was and "
            "stops at its first false declaration. A rule that holds must have the upper end of "
            f"its FDR, one-sided at {100 * config['confidence']:g} %, at most at q; one that is "
            "broken on purpose, a comparator, or not covered by the guarantee must have the lower "
            "end above q. The conditional rate is the largest probability, given the past, with "
            "which the channel contaminated a null's read; the guarantee asks for at most "
            "epsilon_bar. Then a null's mean increment, over all its reads, is at most 1."
        ),
    )


def _entries(
    config: Config,
    summary: Summary,
    scenario: Mapping[str, Any],
    at: tuple[str, str, str],
    labels: tuple[str, ...],
) -> list[Entry]:
    name, rule, kind = at
    cell, q, told = cell_name(name, rule), scenario["q"], scenario["epsilon_bar"]
    entries = [
        Entry(
            row=labels,
            measure="FDR",
            ours=summary.mean(cell, "fdp"),
            mc_se=summary.mc_se(cell, "fdp"),
        ),
        _end(config, summary, cell, (kind == "holds", q), labels),
    ]
    columns = summary.columns(cell)
    # Another family leaves the increments as they are.
    if "increment" in columns and RULES[rule].family == "registry":
        mean = (0.0, 1.0) if RULES[rule].capped == "all" else (1.0, math.inf)
        entries.append(
            Entry(
                row=labels,
                measure="mean increment",
                ours=summary.mean(cell, "increment"),
                mc_se=summary.mc_se(cell, "increment"),
                expected=None if kind == "outside" else mean,
            )
        )
    # The rules of a scenario share its channel.
    if "largest_rate" in columns and rule == "cads":
        entries.append(
            Entry(
                row=labels,
                measure="conditional rate",
                ours=summary.of(cell, "largest_rate").high,
                expected=_above(told) if kind == "outside" else (0.0, told),
            )
        )
    return entries


def _end(
    config: Config,
    summary: Summary,
    cell: str,
    must: tuple[bool, float],
    labels: tuple[str, ...],
) -> Entry:
    """The end of the FDR that must lie on one side of the level."""
    holds, q = must
    lower, upper = (
        fdr_end(summary, cell, side, confidence=config["confidence"]) for side in _SIDES
    )
    n = summary.of(cell, "fdp").n
    # Fewer seeds than the suite's own leave both answers open without being a failure.
    is_open = n < config["seeds"] and lower <= q < upper
    return Entry(
        row=labels,
        measure="FDR, upper end" if holds else "FDR, lower end",
        ours=upper if holds else lower,
        expected=(0.0, q) if holds else _above(q),
        note=f"{n:,} seeds are too few to tell {lower:.3f} from {upper:.3f}." if is_open else "",
        is_open=is_open,
    )


def _above(low: float, high: float = 1.0) -> tuple[float, float]:
    """The range above a number, which is not part of it."""
    return math.nextafter(low, math.inf), high


def figure_validity(config: Config, summary: Summary) -> Chart:
    """The FDR of the certificate and of the worst other rule in units of q, a scenario each."""
    whole = scenarios(config)
    series = []
    for title, kinds in (("certificate, covered", ("holds",)), ("worst other", _OTHERS)):
        shown = {
            name: max(
                (cell_name(name, rule) for kind in kinds for rule in scenario[kind]),
                key=lambda cell: summary.mean(cell, "fdp"),
                default="",
            )
            for name, scenario in whole.items()
        }
        at = {name: cell for name, cell in shown.items() if cell}
        series.append(
            Series(
                name=title,
                x=list(at),
                y=[summary.mean(cell, "fdp") / whole[name]["q"] for name, cell in at.items()],
                error=[
                    _BAR_SE * (summary.mc_se(cell, "fdp") or 0.0) / whole[name]["q"]
                    for name, cell in at.items()
                ],
            )
        )
    series.append(Series(name="q", x=list(whole), y=[1.0] * len(whole), is_reference=True))
    return Chart(
        title="Validity: the FDR in units of q",
        x_label="scenario",
        y_label="FDR / q",
        series=series,
        caption=(
            "The other rules are broken on purpose, comparators, or not covered by the guarantee "
            "there. Bars are 1.96 Monte Carlo standard errors, not confidence intervals."
        ),
        y_range=(0.0, math.ceil(max(y for line in series for y in line.y)) + 0.5),
    )


STUDY: Final = Study(
    name="validity",
    title="The validity suite: adversaries and rules broken on purpose",
    about=(
        "Registries of least favourable nulls, read by an adversary that chases lucky evidence and "
        "stops at the worst moment. The certificate must keep its level; without its cap, with a "
        "cap chosen after the read, or with the observed candidates as family it must lose it."
    ),
    items={"validity": table_validity, "figure-validity": figure_validity},
    cells=cells,
    play=play_cell,
    # Its campaigns are small: what is done once a call must not outweigh them.
    chunk=250,
)

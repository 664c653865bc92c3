"""The primary grid: validity and power of every rule at five epsilons and three levels.

One campaign a (seed, epsilon) serves all levels and rules, since a certificate never changes a
read. In every cell epsilon_bar = epsilon.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from cads_env.campaign import open_screen, play
from cads_env.certificate import Certificate
from cads_env.protocol import load_protocol
from cads_env.studies.registries import registry_of
from cads_env.studies.rules import RULE_TITLES, RULES, column, judge
from cads_env.studies.study import Cell, Config, Row, Study, Summary
from cads_env.studies.tables import Chart, Entry, Series, Table, near

_GRID_ITEMS: Final = {"table-s1", "figure-3a", "figure-3b"}
_BAR_SE: Final = 1.96
"""Published bars are the mean and 1.96 Monte Carlo standard errors."""


def play_cell(settings: Mapping[str, Any], seeds: Sequence[int]) -> list[Row]:
    """The rows of some seeds under one epsilon.

    Args:
        settings: `registry`, `protocol`, `epsilon`, `qs` and `lam`.
        seeds: Campaign seeds.

    Returns:
        A row a seed: `reads`, and the columns of `cads_env.studies.rules.judge`.
    """
    pair = registry_of(settings["registry"])
    protocol = load_protocol(settings["protocol"], epsilon=settings["epsilon"])
    batch = play(open_screen([pair] * len(seeds), list(seeds), protocol), [None] * len(seeds))
    certificate = Certificate(epsilon_bar=settings["epsilon"])
    reads = int(batch.values.shape[1])
    judged = judge(
        batch,
        pair[1].labels,
        certificate=certificate,
        qs=settings["qs"],
        lam=settings.get("lam"),
    )
    return [{"reads": reads, **row} for row in judged]


def cells(config: Config, items: Collection[str]) -> list[Cell]:
    """One cell an epsilon; Table 1 alone needs the primary one only."""
    wanted = config["epsilons"] if _GRID_ITEMS & set(items) else [config["primary"]["epsilon"]]
    return [
        Cell(
            _name(epsilon),
            {
                "registry": config["registry"],
                "protocol": config["protocol"],
                "epsilon": epsilon,
                "qs": config["qs"],
                "lam": config["lam"],
            },
            range(config["seeds"]),
        )
        for epsilon in wanted
    ]


def _name(epsilon: float) -> str:
    return f"epsilon={epsilon:g}"


def _range(config: Config, rule: str, measure: str, published: float) -> tuple[float, float]:
    """What agrees with a published figure of a rule."""
    tolerance = config["tolerance"]
    if measure == "fdr" and rule == "cads":
        return 0.0, tolerance["cads_fdr_below"]
    if measure in ("power", "fdr"):
        return near(published, tolerance[measure])
    # Counts of hits follow from power; counts of nulls from the FDR and the hits found.
    power = tolerance["power"] * config["published"]["hits"]
    return near(published, power if measure == "true" else 3 * power)


def _entry(
    config: Config,
    summary: Summary,
    labels: tuple[str, ...],
    at: tuple[float, float],
    rule: str,
    measure: str,
    published: float | None,
) -> Entry:
    epsilon, q = at
    cell, name = _name(epsilon), column(rule, q, "fdp" if measure == "fdr" else measure)
    expected = None if published is None else _range(config, rule, measure, published)
    return Entry(
        row=labels,
        measure={"fdr": "FDR", "true": "true", "false": "false"}.get(measure, measure),
        ours=summary.mean(cell, name),
        mc_se=summary.mc_se(cell, name),
        published=published,
        expected=expected,
    )


def table_1(config: Config, summary: Summary) -> Table:
    """FDR, power and declared counts of each rule at the primary point."""
    epsilon, q = config["primary"]["epsilon"], config["primary"]["q"]
    entries = [
        _entry(config, summary, (RULE_TITLES[rule],), (epsilon, q), rule, measure, value)
        for rule in RULES
        for measure, value in config["published"]["table1"][rule].items()
    ]
    reads = config["published"]["reads"]
    entries.append(
        Entry(
            row=("every campaign",),
            measure="reads",
            ours=summary.mean(_name(epsilon), "reads"),
            published=reads,
            expected=(reads, reads),
        )
    )
    return Table(
        title=f"Table 1: validity and power at epsilon = {epsilon:g}, q = {q:g}",
        label_columns=("rule",),
        entries=entries,
        caption=(
            f"{summary.of(_name(epsilon), 'reads').n:,} campaigns without a proposer on "
            f"{config['registry']}, which stands in for the published registry."
        ),
    )


_S1_COLUMNS: Final = (
    ("cads", "fdr", "cads_fdr"),
    ("cads", "power", "cads_power"),
    ("naive", "fdr", "naive_fdr"),
    ("naive", "power", ""),
    ("uncapped", "fdr", "uncapped_fdr"),
    ("uncapped", "power", ""),
    ("zhou-liu", "power", ""),
)


def table_s1(config: Config, summary: Summary) -> Table:
    """FDR and power of each rule in every cell of the grid."""
    published = {(row["q"], row["epsilon"]): row for row in config["published"]["table_s1"]}
    entries = [
        _entry(
            config,
            summary,
            (f"{q:g}", f"{epsilon:g}", RULE_TITLES[rule]),
            (epsilon, q),
            rule,
            measure,
            published.get((q, epsilon), {}).get(key),
        )
        for q in config["qs"]
        for epsilon in config["epsilons"]
        for rule, measure, key in _S1_COLUMNS
    ]
    worst = max(
        ((e, q) for e in config["epsilons"] for q in config["qs"]),
        key=lambda at: summary.mean(_name(at[0]), column("cads", at[1], "fdp")),
    )
    largest = config["published"]["largest_cads_fdr"]["fdr"]
    entries.append(
        _entry(
            config,
            summary,
            (f"{worst[1]:g}", f"{worst[0]:g}", "CADS, largest of the grid"),
            worst,
            "cads",
            "fdr",
            largest,
        )
    )
    return Table(
        title="Table S1: every epsilon against every q (epsilon_bar = epsilon)",
        label_columns=("q", "epsilon", "rule"),
        entries=entries,
        caption="Cells without a published figure are shown for completeness.",
    )


def _curves(config: Config, summary: Summary, measure: str) -> list[Series]:
    q, series = config["primary"]["q"], []
    for rule in RULES:
        name = column(rule, q, measure)
        at = [_name(epsilon) for epsilon in config["epsilons"]]
        series.append(
            Series(
                name=RULE_TITLES[rule],
                x=config["epsilons"],
                y=[summary.mean(cell, name) for cell in at],
                error=[_BAR_SE * (summary.mc_se(cell, name) or 0.0) for cell in at],
            )
        )
    return series


def figure_3a(config: Config, summary: Summary) -> Chart:
    """FDR against epsilon at the primary level."""
    q, epsilons = config["primary"]["q"], config["epsilons"]
    level = Series(name=f"q = {q:g}", x=epsilons, y=[q] * len(epsilons), is_reference=True)
    return Chart(
        title="Figure 3a: realised FDR against contamination",
        x_label="epsilon",
        y_label="FDR",
        series=[*_curves(config, summary, "fdp"), level],
        caption="Bars are 1.96 Monte Carlo standard errors, not confidence intervals.",
        y_range=(0.0, 1.0),
    )


def figure_3b(config: Config, summary: Summary) -> Chart:
    """Power against epsilon at the primary level."""
    return Chart(
        title="Figure 3b: power against contamination",
        x_label="epsilon",
        y_label="power",
        series=_curves(config, summary, "power"),
        caption="Bars are 1.96 Monte Carlo standard errors, not confidence intervals.",
        y_range=(0.0, 1.0),
    )


STUDY: Final = Study(
    name="primary",
    title="The primary grid: validity and power under contamination",
    about=(
        "The published sweep without a proposer: 45,899 reads on 6,000 candidates, judged by the "
        "certificate and its comparators on the same records."
    ),
    items={
        "table1": table_1,
        "table-s1": table_s1,
        "figure-3a": figure_3a,
        "figure-3b": figure_3b,
    },
    cells=cells,
    play=play_cell,
)

"""Contamination laws other than the reference, and whether each keeps the conditional bound.

Laws share seeds, noise and coins. The largest conditional rate is what a law says of the reads that
were played, so that no table types whether the bound holds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from cads_env.bound import play_watched
from cads_env.certificate import Certificate
from cads_env.protocol import load_protocol
from cads_env.studies.registries import registry_of
from cads_env.studies.rules import column, judge
from cads_env.studies.study import Cell, Config, Row, Study, Summary
from cads_env.studies.tables import Entry, Table, near

_FIGURES: Final = {
    "cads_fdr": ("CADS FDR", "cads_fdr"),
    "power": ("CADS power", "cads_power"),
    "naive_fdr": ("naive FDR", "naive_fdr"),
    "marginal_rate": ("marginal rate", "marginal_rate"),
}
"""Published figures: what they are called in the table, and their column in a row."""


def play_cell(settings: Mapping[str, Any], seeds: Sequence[int]) -> list[Row]:
    """The rows of some seeds under one law.

    Args:
        settings: `registry`, `protocol`, `epsilon`, `epsilon_bar`, `q`, `law` and `law_options`.
        seeds: Campaign seeds.

    Returns:
        A row a seed: `cads_fdr` (the false share of what is declared), `cads_power`, `naive_fdr`,
        `marginal_rate` (share of reads that were contaminated), `expected_rate` (the law's mean
        probability) and `largest_rate` (its largest probability on a null, given the past).
    """
    pair = registry_of(settings["registry"])
    protocol = load_protocol(
        settings["protocol"],
        epsilon=settings["epsilon"],
        law=settings["law"],
        law_options=settings["law_options"],
    )
    batch, watch = play_watched([pair] * len(seeds), list(seeds), protocol)
    q = settings["q"]
    rows = judge(
        batch,
        pair[1].labels,
        certificate=Certificate(epsilon_bar=settings["epsilon_bar"]),
        qs=[q],
        rules=("cads", "naive"),
    )
    return [
        {
            "cads_fdr": row[column("cads", q, "fdp")],
            "cads_power": row[column("cads", q, "power")],
            "naive_fdr": row[column("naive", q, "fdp")],
            "marginal_rate": int(watch.contaminated[i]) / int(watch.reads[i]),
            "expected_rate": float(watch.expected[i]) / int(watch.reads[i]),
            "largest_rate": float(watch.largest_rate[i]),
        }
        for i, row in enumerate(rows)
    ]


def cells(config: Config, items: Collection[str]) -> list[Cell]:
    """One cell a law."""
    common = {
        name: config[name] for name in ("registry", "protocol", "epsilon", "epsilon_bar", "q")
    }
    return [
        Cell(
            channel["name"],
            {**common, "law": channel["law"], "law_options": channel.get("law_options", {})},
            range(config["seeds"]),
        )
        for channel in config["channels"]
    ]


def _expected(config: Config, channel: Mapping[str, Any], figure: str) -> tuple[float, float]:
    """What agrees with a published figure of a law."""
    tolerance, published = config["tolerance"], channel["published"][figure]
    if figure != "cads_fdr":
        return near(published, tolerance[figure])
    if channel["law"] == "campaign-coin":
        return near(published, tolerance["campaign_coin_fdr"])
    if "open_note" in channel:
        return near(published, tolerance["cads_fdr_open"])
    return 0.0, tolerance["cads_fdr_below"]


def _entry(config: Config, summary: Summary, channel: Mapping[str, Any], figure: str) -> Entry:
    measure, key = _FIGURES[figure]
    published, note = channel.get("published", {}), channel.get("open_note", "")
    expected = _expected(config, channel, figure) if figure in published else None
    ours = summary.mean(channel["name"], key)
    return Entry(
        row=(channel["title"],),
        measure=measure,
        ours=ours,
        mc_se=summary.mc_se(channel["name"], key),
        published=published.get(figure),
        expected=expected,
        # A figure that agrees needs no explanation.
        note="" if expected is None or expected[0] <= ours <= expected[1] else note,
        is_open=bool(note),
    )


def _entries(config: Config, summary: Summary, channel: Mapping[str, Any]) -> list[Entry]:
    labels = (channel["title"],)
    largest = summary.of(channel["name"], "largest_rate").high
    holds = float(largest <= config["epsilon_bar"])
    return [
        *(_entry(config, summary, channel, figure) for figure in _FIGURES),
        Entry(row=labels, measure="largest conditional rate on nulls", ours=largest),
        Entry(row=labels, measure="bound holds (1 = yes)", ours=holds),
    ]


def table_s7(config: Config, summary: Summary) -> Table:
    """FDR and power under each law, beside the rates that decide whether the theorem applies."""
    entries = [
        entry for channel in config["channels"] for entry in _entries(config, summary, channel)
    ]
    return Table(
        title=(
            f"Table S7: other contamination laws at epsilon = epsilon_bar = {config['epsilon']:g}, "
            f"q = {config['q']:g}"
        ),
        label_columns=("law",),
        entries=entries,
        caption=(
            f"{summary.of(config['channels'][0]['name'], 'cads_fdr').n:,} campaigns a law, without "
            "a proposer. The certificate promises its level where the largest conditional rate on "
            "nulls is at most epsilon_bar; rates are computed from the law over every read that "
            "was played. Laws without published figures are ours."
        ),
    )


STUDY: Final = Study(
    name="contamination",
    title="Other contamination laws, and where the conditional bound breaks",
    about=(
        "The published sweep without a proposer under point masses, mixed signs, and laws that aim "
        "at re-reads, at the boundary or at whole campaigns."
    ),
    items={"table-s7": table_s7},
    cells=cells,
    play=play_cell,
)

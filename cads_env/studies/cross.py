"""Other screens: validity and power where effects are distributed otherwise.

The primary point of the grid on every registry of the study, those of a user among them. A
synthetic stand-in is tuned to the row that it is compared with, so agreement says that the rules
behave as published on such a screen, not that the screen is real.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from cads_env.campaign import open_screen, play
from cads_env.certificate import Certificate
from cads_env.protocol import load_protocol
from cads_env.studies.cross_registries import USER_LINE, is_subset, named_registries, title_of
from cads_env.studies.registries import registry_of
from cads_env.studies.rules import column, judge
from cads_env.studies.study import Cell, Config, Row, Study, Summary
from cads_env.studies.tables import Chart, Entry, Series, Table, near

_BAR_SE: Final = 1.96
"""Published bars are the mean and 1.96 Monte Carlo standard errors."""


class _Shown(NamedTuple):
    """A figure of the table: its rule and measure, its title, and its key among the published."""

    rule: str
    measure: str
    title: str
    key: str


_SHOWN: Final = (
    _Shown("naive", "fdp", "naive BH FDR", "naive_fdr"),
    _Shown("naive", "power", "naive BH power", ""),
    _Shown("uncapped", "fdp", "uncapped LR FDR", "uncapped_fdr"),
    _Shown("uncapped", "power", "uncapped LR power", ""),
    _Shown("cads", "fdp", "CADS FDR", "cads_fdr"),
    _Shown("cads", "power", "CADS power", "cads_power"),
)

_CHARTED: Final = (
    ("naive", "fdp", "naive BH FDR"),
    ("uncapped", "fdp", "uncapped LR e-BH FDR"),
    ("cads", "fdp", "CADS FDR"),
    ("cads", "power", "CADS power"),
)


def play_cell(settings: Mapping[str, Any], seeds: Sequence[int]) -> list[Row]:
    """The rows of some seeds on one registry.

    Args:
        settings: `registry`, `protocol`, `epsilon`, `q` and `zhou_liu_scales`.
        seeds: Campaign seeds.

    Returns:
        A row a seed: `m`, `hits`, `reads`, and the columns of `cads_env.studies.rules.judge`, with
        the rule `zhou-liu*0.5` for lambda = 0.5 sqrt(epsilon) / s.
    """
    pair = registry_of(settings["registry"])
    epsilon, q, labels = settings["epsilon"], settings["q"], pair[1].labels
    protocol = load_protocol(settings["protocol"], epsilon=epsilon)
    batch = play(open_screen([pair] * len(seeds), list(seeds), protocol), [None] * len(seeds))
    certificate = Certificate(epsilon_bar=epsilon)
    size = {"m": batch.m, "hits": pair[1].hit_count, "reads": int(batch.values.shape[1])}
    rules = ("cads", "naive", "uncapped")
    rows = judge(batch, labels, certificate=certificate, qs=[q], rules=rules)
    for scale in settings["zhou_liu_scales"]:
        lam = scale * math.sqrt(epsilon) / certificate.s
        found = judge(batch, labels, certificate=certificate, qs=[q], rules=("zhou-liu",), lam=lam)
        for row, more in zip(rows, found, strict=True):
            for measure in ("true", "false", "fdp", "power"):
                value = more[column("zhou-liu", q, measure)]
                row[column(_zhou_liu(scale), q, measure)] = value
    return [{**size, **row} for row in rows]


def cells(config: Config, items: Collection[str]) -> list[Cell]:
    """One cell a registry; table and figure share them all."""
    del items
    shared = {key: config[key] for key in ("protocol", "epsilon", "q", "zhou_liu_scales")}
    return [
        Cell(one.title, {"registry": one.registry, **shared}, range(config["seeds"]), one.absent)
        for one in named_registries(config)
    ]


def table_s2(config: Config, summary: Summary) -> Table:
    """FDR and power of each rule on every registry, beside the published row of its reference."""
    entries = [x for cell in summary.cells for x in _entries(config, summary, cell)]
    return Table(
        title=f"Table S2: other screens at epsilon = {config['epsilon']:g}, q = {config['q']:g}",
        label_columns=("registry", "reference"),
        entries=entries,
        caption=(
            "Campaigns without a proposer. Lines, T-cell-like and PRISM-like registries are "
            "synthetic and tuned to the row they are compared with: plumbing and calibration, not "
            "biology. Zhou-Liu evidence at multiples of lambda = sqrt(epsilon) / s: the published "
            "scale is not printed. #0 is the random subset of seed 0 of a larger screen."
            + _absent(summary)
        ),
    )


def figure_s1(config: Config, summary: Summary) -> Chart:
    """FDR of each rule and power of CADS on every registry."""
    x, q, series = list(summary.cells), config["q"], []
    for rule, measure, title in _CHARTED:
        name = column(rule, q, measure)
        error = [_BAR_SE * (summary.mc_se(cell, name) or 0.0) for cell in x]
        series.append(
            Series(name=title, x=x, y=[summary.mean(cell, name) for cell in x], error=error)
        )
    series.append(Series(name=f"q = {q:g}", x=x, y=[q] * len(x), is_reference=True))
    return Chart(
        title="Figure S1: realised FDR and certified power on other screens",
        x_label="registry",
        y_label="FDR or power",
        series=series,
        caption="Bars are 1.96 Monte Carlo standard errors, not confidence intervals."
        + _absent(summary),
        y_range=(0.0, 1.0),
    )


def _entries(config: Config, summary: Summary, cell: str) -> list[Entry]:
    """The figures of one registry."""
    reference = _reference(config, cell)
    labels = (cell, str(reference.get("reference", "none published")))
    candidates, wanted = summary.mean(cell, "m"), config["published"]["candidates"]
    is_small, note = candidates != wanted, ""
    if is_small:
        note = f"all {candidates:,.0f} candidates of the file; {wanted:,} were published"
    entries = [
        _entry(config, summary, cell, labels, shown, reference.get(shown.key), note)
        for shown in _SHOWN
    ]
    for scale in config["zhou_liu_scales"]:
        shown = _Shown(_zhou_liu(scale), "power", f"Zhou-Liu power (lambda x {scale:g})", "")
        # Only the default is compared; the other shows how much hangs on it.
        published = reference.get("zhou_liu_power") if scale == 1.0 else None
        entries.append(_entry(config, summary, cell, labels, shown, published, note))
    reads = None if is_small else config["published"]["reads"]
    entries.append(
        Entry(
            row=labels,
            measure="reads",
            ours=summary.mean(cell, "reads"),
            published=reads if reference else None,
            expected=None if reads is None else (reads, reads),
            is_own=_is_own(cell),
        )
    )
    return entries


def _entry(
    config: Config,
    summary: Summary,
    cell: str,
    labels: tuple[str, str],
    shown: _Shown,
    published: float | None,
    note: str,
) -> Entry:
    name, tolerance = column(shown.rule, config["q"], shown.measure), config["tolerance"]
    kind = "fdr" if shown.measure == "fdp" else "power"
    width = max(tolerance[kind], tolerance["subset"] if is_subset(cell) else 0.0)
    expected = None if published is None else near(published, width)
    is_other = published is not None and shown.key != "cads_fdr"
    if shown.key == "cads_fdr":
        # Valid whatever the registry, so this is expected everywhere.
        expected = (0.0, tolerance["cads_fdr_below"] if published is not None else config["q"])
    return Entry(
        row=labels,
        measure=shown.title,
        ours=summary.mean(cell, name),
        mc_se=summary.mc_se(cell, name),
        published=published,
        expected=expected,
        # Other candidates make another screen, of which validity is expected all the same.
        note=note if is_other else "",
        is_open=is_other and bool(note),
        is_own=_is_own(cell),
    )


def _is_own(cell: str) -> bool:
    """Whether a cell is of the reader's own files; see `cross_registries`."""
    return cell.startswith("your ")


def _reference(config: Config, cell: str) -> Mapping[str, Any]:
    """The published row that a cell is compared with; empty when there is none."""
    title = title_of(cell)
    rows: Sequence[Mapping[str, Any]] = config["published"]["rows"]
    if title.startswith(USER_LINE):
        line = title.removeprefix(USER_LINE)
        return next((row for row in rows if row.get("line") == line), {})
    shipped: Mapping[str, Any] = next(
        (one for one in config["registries"] if one["title"] == title), {}
    )
    wanted = shipped.get("reference")
    return next((row for row in rows if row["reference"] == wanted), {})


def _absent(summary: Summary) -> str:
    said = [f" Not played: {cell} ({reason})." for cell, reason in summary.absent.items()]
    return "".join(said)


def _zhou_liu(scale: float) -> str:
    return f"zhou-liu*{scale:g}"


STUDY: Final = Study(
    name="cross",
    title="Other screens: the same rules where effects are distributed otherwise",
    about=(
        "The published sweep without a proposer on stand-ins for the published cross-setting "
        "screens, on DepMap's mean effects, and on a user's own files."
    ),
    items={"table-s2": table_s2, "figure-s1": figure_s1},
    cells=cells,
    play=play_cell,
)

"""Audit-CADS: what blinded controls are worth, beside a cap that is known and one that is guessed.

One played campaign a seed serves every number of controls and every way to read them, since
controls change no test read. Never lets a round see its own controls: the certificate judges.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from cads_env.campaign import open_screen, play
from cads_env.certificate import AuditCap, Certificate
from cads_env.channel import audit_reads
from cads_env.protocol import Protocol, load_protocol
from cads_env.record import RecordBatch
from cads_env.registry import Oracle
from cads_env.studies.registries import registry_of
from cads_env.studies.study import Cell, Config, Row, Study, Summary
from cads_env.studies.tables import Chart, Entry, Series, Table, near

_BAR_SE: Final = 1.96
"""Published bars are the mean and 1.96 Monte Carlo standard errors."""

_ORACLE: Final = "oracle cap"
_BLIND: Final = "blind cap"

_TITLES: Final = {
    "final_bound": "final bound",
    "coverage": "coverage",
    "fdp": "FDR",
    "power": "power",
}


class Plan(NamedTuple):
    """One way to audit.

    Attributes:
        name: Its name in columns.
        controls: Number of controls.
        timing: "interleaved" or "front".
        audit: Fields of the audit beside its defaults.
        kappa: None for controls that are read; else a detector that flags a corrupted control with
            this probability and a clean one never, and an audit that knows it.
    """

    name: str
    controls: int
    timing: str = "interleaved"
    audit: Mapping[str, Any] = {}
    kappa: float | None = None

    def column(self, measure: str) -> str:
        """The name of a column: `as published@200.power`."""
        return f"{self.name}@{self.controls}.{measure}"

    @property
    def cap(self) -> AuditCap:
        """The audit of the certificate."""
        fields = dict(self.audit)
        if self.kappa is not None:
            plain = AuditCap()
            # The displacement that a read would be flagged at with the probability kappa.
            fields["Delta"] = plain.tau + Certificate().s * float(ndtri(self.kappa))
        return AuditCap(**fields)


def play_cell(settings: Mapping[str, Any], seeds: Sequence[int]) -> list[Row]:
    """The rows of some seeds under every audit of a cell.

    Args:
        settings: `registry`, `protocol`, `epsilon`, `q`, `blind_epsilon_bar`, and `plans`: fields
            of `Plan`.
        seeds: Campaign seeds.

    Returns:
        A row a seed: `fdp` and `power` of the oracle and the blind cap at the audits' level, and
        for every plan `final_bound`, `coverage` (whether no bound fell below epsilon), `fdp`,
        `power` and `gain` = power minus the blind cap's, under `Plan.column`.
    """
    pair = registry_of(settings["registry"])
    oracles = [pair[1]] * len(seeds)
    protocol = load_protocol(settings["protocol"], epsilon=settings["epsilon"])
    screen = open_screen([pair] * len(seeds), list(seeds), protocol)
    batch = play(screen, [None] * len(seeds))
    rows: list[dict[str, float]] = [{} for _ in seeds]
    level = AuditCap().level(settings["q"])
    for name, bound in ((_ORACLE, settings["epsilon"]), (_BLIND, settings["blind_epsilon_bar"])):
        certificate = Certificate(epsilon_bar=bound, q=level)
        _judge(batch, pair[1].labels, certificate, rows, f"{name}.")
    for row in rows:
        row["gap"] = row[f"{_ORACLE}.power"] - row[f"{_BLIND}.power"]
    for plan in (Plan(**fields) for fields in settings["plans"]):
        audited = _with_controls(batch, plan, oracles, seeds, protocol)
        certificate = Certificate(q=settings["q"], audit=plan.cap)
        _judge(audited, pair[1].labels, certificate, rows, plan.column(""))
        finals: list[float] = certificate.audit_bounds(audited).final.tolist()
        for row, final in zip(rows, finals, strict=True):
            row[plan.column("final_bound")] = final
            # Bounds never rise, so the last one is the smallest.
            row[plan.column("coverage")] = float(final >= settings["epsilon"])
            row[plan.column("gain")] = row[plan.column("power")] - row[f"{_BLIND}.power"]
    return list(rows)


def _with_controls(
    batch: RecordBatch,
    plan: Plan,
    oracles: Sequence[Oracle],
    seeds: Sequence[int],
    protocol: Protocol,
) -> RecordBatch:
    """The played records with the controls of a plan."""
    rules = protocol.override(audit_controls=plan.controls, audit_timing=plan.timing)
    if plan.kappa is None:
        values = audit_reads(oracles, seeds, rules)
    else:
        share = plan.kappa * max(0.0, protocol.epsilon - plan.cap.rho)
        detected = audit_reads(oracles, seeds, rules.override(audit_epsilon=share))
        clean = audit_reads(oracles, seeds, rules.override(audit_epsilon=0.0))
        # Corruption moves a read; what it does not touch is the clean read to the last bit.
        values = np.where(detected != clean, plan.cap.tau + 1.0, plan.cap.tau - 1.0)
    return replace(batch, audit_values=values, audit_starts=np.array(rules.audit_starts))


def _judge(
    batch: RecordBatch,
    labels: NDArray[np.bool_],
    certificate: Certificate,
    rows: Sequence[dict[str, float]],
    prefix: str,
) -> None:
    """Add FDP and power of a certificate to the rows."""
    hits = int(labels.sum())
    for row, declaration in zip(rows, certificate.declare_batch(batch), strict=True):
        true = int(np.count_nonzero(labels[declaration.indices]))
        row[f"{prefix}fdp"] = (len(declaration) - true) / max(len(declaration), 1)
        row[f"{prefix}power"] = true / hits


def _variant(config: Config, place: int) -> list[Plan]:
    """One way to audit at every number of controls; the first one is as published."""
    variant = config["variants"][place]
    return [
        Plan(variant["name"], n, variant["timing"], variant["audit"]) for n in config["controls"]
    ]


def _additions(config: Config) -> list[Plan]:
    places = range(1, len(config["variants"]))
    return [plan for place in places for plan in _variant(config, place)]


def _idealised(config: Config) -> Plan:
    ideal = config["idealised"]
    return Plan("idealised", ideal["controls"], kappa=ideal["kappa"])


def _boundary(config: Config) -> list[Plan]:
    grid = config["boundary"]
    return [
        Plan(
            f"kappa={point['kappa']:g},rho={point['rho']:g}",
            grid["controls"],
            audit={"rho": point["rho"]},
            kappa=point["kappa"],
        )
        for point in grid["points"]
    ]


def cells(config: Config, items: Collection[str]) -> list[Cell]:
    """The primary registry, the T-cell-like one, and the boundary grid, as items need them."""
    wanted = set(items)
    shared = {name: config[name] for name in ("protocol", "epsilon", "q", "blind_epsilon_bar")}

    def cell(name: str, registry: object, plans: Sequence[Plan], seeds: int) -> Cell:
        fields = [plan._asdict() for plan in plans]
        return Cell(name, {"registry": registry, **shared, "plans": fields}, range(seeds))

    found = []
    if wanted & {"table-s4", "audit-additions", "figure-s2"}:
        plans = [*_variant(config, 0), _idealised(config), *_additions(config)]
        found.append(cell("primary", config["registry"], plans, config["seeds"]))
    if "table-s4" in wanted:
        plans, seeds = _variant(config, 0), config["other_seeds"]
        found.append(cell("tcell", config["tcell"], plans, seeds))
    if "table-s5" in wanted:
        plans, seeds = _boundary(config), config["other_seeds"]
        found.append(cell("boundary", config["registry"], plans, seeds))
    return found


def _expected(config: Config, measure: str, published: float | None) -> tuple[float, float] | None:
    """What agrees: coverage and FDR with what the audit promises, the others with the paper."""
    tolerance = config["tolerance"]
    if measure == "coverage":
        return 1.0 - AuditCap().delta, 1.0
    if measure == "fdp":
        return 0.0, tolerance["fdr_below"]
    return None if published is None else near(published, tolerance[measure])


def _entries(
    config: Config,
    summary: Summary,
    cell: str,
    labels: tuple[str, ...],
    plan: Plan,
    published: Mapping[str, float],
) -> Iterator[Entry]:
    """The figures of one audit."""
    for measure, title in _TITLES.items():
        name, known = plan.column(measure), published.get(measure)
        yield Entry(
            row=labels,
            measure=title,
            ours=summary.mean(cell, name),
            mc_se=summary.mc_se(cell, name),
            published=known,
            expected=_expected(config, measure, known),
        )


def _caps(config: Config, summary: Summary, cell: str, title: str) -> Iterator[Entry]:
    """Power of the oracle and the blind cap at the audits' level."""
    published = config["published"] if cell == "primary" else {}
    for name, bound, key in (
        (_ORACLE, config["epsilon"], "oracle_cap_power"),
        (_BLIND, config["blind_epsilon_bar"], "blind_cap_power"),
    ):
        known = published.get(key)
        yield Entry(
            row=(title, f"{name}, epsilon_bar = {bound:g}", "-"),
            measure="power",
            ours=summary.mean(cell, f"{name}.power"),
            mc_se=summary.mc_se(cell, f"{name}.power"),
            published=known,
            expected=_expected(config, "power", known),
        )


def share_recovered(audit: float, oracle: float, blind: float) -> float:
    """The share of the power between a blind and the oracle cap that an audit gives back.

    Args:
        audit: Power with the audited cap.
        oracle: Power with the cap of the true contamination.
        blind: Power with the cap of a declared bound.

    Returns:
        (audit - blind) / (oracle - blind); NaN where the two caps do alike.
    """
    return (audit - blind) / (oracle - blind) if oracle != blind else math.nan


def _recovered(config: Config, summary: Summary, plan: Plan, title: str) -> Entry:
    """The share of the gap between blind and oracle cap that an audit recovers.

    A quotient of means; its error is that of the numerator alone.
    """
    gap = summary.mean("primary", "gap")
    gain = summary.of("primary", plan.column("gain"))
    is_published = plan == _variant(config, 0)[-1]
    known = config["published"]["recovered"] if is_published else None
    return Entry(
        row=(title, plan.name, f"{plan.controls:,}"),
        measure="share of the gap",
        ours=share_recovered(gain.mean, gap, 0.0),
        mc_se=gain.mc_se / gap if gap and gain.n > 1 else None,
        published=known,
        expected=None if known is None else near(known, config["tolerance"]["recovered"]),
    )


def table_s4(config: Config, summary: Summary) -> Table:
    """Final bound, coverage, FDR and power of the audit, beside the oracle and the blind cap."""
    published, entries = config["published"], list[Entry]()
    known = {row["controls"]: row for row in published["table_s4"]}
    tcell = {row["controls"]: row for row in published["tcell"]}
    primary, other, ideal = str(config["registry"]), str(config["tcell"]), _idealised(config)
    plans = _variant(config, 0)
    for plan in (*plans, ideal):
        values = published["idealised"] if plan == ideal else known.get(plan.controls, {})
        labels = (primary, plan.name, f"{plan.controls:,}")
        entries += _entries(config, summary, "primary", labels, plan, values)
    entries += [_recovered(config, summary, plan, primary) for plan in (plans[-1], ideal)]
    entries += _caps(config, summary, "primary", primary)
    for plan in plans:
        labels = (other, plan.name, f"{plan.controls:,}")
        values = tcell.get(plan.controls, {})
        entries += _entries(config, summary, "tcell", labels, plan, values)
    entries += _caps(config, summary, "tcell", other)
    return Table(
        title=f"Table S4: audited caps at epsilon = {config['epsilon']:g}, q = {config['q']:g}",
        label_columns=("registry", "audit", "controls"),
        entries=entries,
        caption=(
            "Campaigns without a proposer. Oracle cap: epsilon is known; blind cap: guessed; both "
            "at the level of the audited ones, q - delta. Idealised: every corrupted control is "
            "flagged and no clean one. Share of the gap: of the power between blind and oracle "
            "cap. Coverage: campaigns none of whose bounds fell below epsilon."
        ),
    )


def additions(config: Config, summary: Summary) -> Table:
    """The same for what the paper does not do: other looks, known false alarms, controls first."""
    entries: list[Entry] = []
    primary, plans = str(config["registry"]), _additions(config)
    for plan in plans:
        labels = (plan.name, f"{plan.controls:,}")
        entries += _entries(config, summary, "primary", labels, plan, {})
    for place in range(len(config["variants"])):
        last = _recovered(config, summary, _variant(config, place)[-1], primary)
        entries.append(replace(last, row=last.row[1:], published=None, expected=None))
    return Table(
        title="Audits beyond the published one",
        label_columns=("audit", "controls"),
        entries=entries,
        caption=(
            f"{primary}, as in Table S4. A look at every control takes the running minimum there; "
            "a known clean flag rate is taken off the bound; controls may all come before round "
            "0. All are valid and none was published."
        ),
    )


def table_s5(config: Config, summary: Summary) -> Table:
    """The boundary grid: an idealised detector, and controls cleaner than the reads by rho."""
    entries: list[Entry] = []
    grid = config["boundary"]
    for plan, point, values in zip(
        _boundary(config), grid["points"], config["published"]["table_s5"], strict=True
    ):
        share = max(0.0, config["epsilon"] - point["rho"])
        labels = (f"{point['kappa']:g}", f"{point['rho']:g}", f"{share:g}")
        entries += _entries(config, summary, "boundary", labels, plan, values)
    return Table(
        title=f"Table S5: the boundary of the audit's assumptions, {grid['controls']} controls",
        label_columns=("kappa", "rho", "epsilon of controls"),
        entries=entries,
        caption=(
            "A corrupted control is flagged with probability kappa exactly and a clean one never; "
            "the reads are contaminated with probability epsilon, the controls with rho less."
        ),
    )


def figure_s2(config: Config, summary: Summary) -> Chart:
    """Power against the number of controls, between the blind and the oracle cap."""
    x, series = config["controls"], list[Series]()
    for place, variant in enumerate(config["variants"]):
        names = [plan.column("power") for plan in _variant(config, place)]
        series.append(
            Series(
                name=variant["name"],
                x=x,
                y=[summary.mean("primary", name) for name in names],
                error=[_BAR_SE * (summary.mc_se("primary", name) or 0.0) for name in names],
            )
        )
    for name in (_ORACLE, _BLIND):
        power = summary.mean("primary", f"{name}.power")
        series.append(Series(name=name, x=x, y=[power] * len(x), is_reference=True))
    return Chart(
        title="Figure S2: power against the number of controls",
        x_label="controls",
        y_label="power",
        series=series,
        caption="Bars are 1.96 Monte Carlo standard errors, not confidence intervals.",
    )


STUDY: Final = Study(
    name="audit",
    title="Audit-CADS: the cap from blinded controls",
    about=(
        "Blinded controls pass the channel and bound its contamination, round by round, from what "
        "was revealed before; the sweep without a proposer is judged by the caps that follow."
    ),
    items={
        "table-s4": table_s4,
        "audit-additions": additions,
        "table-s5": table_s5,
        "figure-s2": figure_s2,
    },
    cells=cells,
    play=play_cell,
)

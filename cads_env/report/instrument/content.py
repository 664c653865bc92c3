"""What the page of a self-check says: its checks, their rows, and its charts as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cads_env.report.content import Block, Listing, Paragraph, Section, Table
from cads_env.report.wording import counted, interval, number, plain, signed, visible
from cads_env.selfcheck import Check, SelfCheck
from cads_env.selfcheck.claims import Row
from cads_env.selfcheck.outcome import Point
from cads_env.studies.tables import Chart, Series

MARKS: Final = {
    "pass": "pass",
    "fail": "FAIL",
    "undecided": "UNDECIDED",
    "not applicable": "not applicable",
}
"""How a verdict is written; what is not passed stands out without colour."""


def lead(outcome: SelfCheck) -> str:
    """What was played, in a line."""
    c = outcome.certificate
    synthetic = "; synthetic: plumbing and calibration, not biology"
    return (
        f"{visible(outcome.protocol, 160)} on {visible(outcome.panel, 160)} "
        f"({_registries(outcome)}), "
        f"{outcome.campaigns:,} campaigns, q = {plain(c['q'])}, epsilon_bar = "
        f"{plain(c['epsilon_bar'])}; the twin certifies {number(outcome.twin)} a campaign, and a "
        f"ladder campaign declares {number(outcome.false)} nulls"
        f"{synthetic if outcome.panel.startswith('synthetic-') else ''}."
    )


def _registries(outcome: SelfCheck) -> str:
    if outcome.registries == 1:
        return "1 registry, for which alone it holds"
    return counted(outcome.registries, "registry", "registries")


def chance(outcome: SelfCheck) -> str:
    """What the verdict risks, in a sentence or two."""
    share = outcome.settings["false_alarm"]
    return (
        f"A check fails when a row is beyond chance: a sound protocol fails any of them with a "
        f"chance of at most {plain(100 * share)} %, shared evenly over checks and rows, and each "
        "interval has the coverage of its row. A row that is not known well enough is undecided, "
        "which is no pass."
    )


def sections(outcome: SelfCheck) -> tuple[Section, ...]:
    """The page, a section a check after one that sums them up."""
    found = [
        Section(
            key="verdict",
            title="Verdict",
            blocks=(Paragraph(outcome.verdict), summary(outcome), Paragraph(chance(outcome))),
        )
    ]
    for i, check in enumerate(outcome.checks, 1):
        blocks: list[Block] = [Paragraph(check.asks), Paragraph(check.says)]
        if check.rows:
            blocks.append(_rows(check.rows))
        if check.notes:
            blocks.append(Listing(tuple(visible(note, 300) for note in check.notes)))
        found.append(Section(key=f"check-{i}", title=_title(check), blocks=tuple(blocks)))
    if any(point.series == "feedback" for point in outcome.points):
        blocks = [_grid(outcome, "feedback"), _grid(outcome, "names")]
        found.append(Section(key="surface", title="The surface", blocks=tuple(blocks)))
    return tuple(found)


def _title(check: Check) -> str:
    return f"{check.name.capitalize()}: {MARKS[check.verdict]}"


def summary(outcome: SelfCheck) -> Table:
    """A row a check."""
    return Table(
        caption="Checks",
        columns=("check", "verdict", "what was found"),
        rows=tuple((c.name, MARKS[c.verdict], visible(c.says, 400)) for c in outcome.checks),
        words=(1, 2),
    )


def _rows(rows: Sequence[Row]) -> Table:
    return Table(
        caption="Rows, in declarations a campaign",
        columns=("row", "expected", "mean", "interval", "campaigns", "registries", "verdict"),
        rows=tuple(
            (
                visible(row.name, 120),
                expected(row),
                signed(row.mean),
                interval(row.low, row.high),
                f"{row.n:,}",
                f"{row.registries:,}",
                MARKS[row.status],
            )
            for row in rows
        ),
        words=(1, 6),
    )


def expected(row: Row) -> str:
    """What a row must show, in a word or two."""
    bound = number(row.bound, 2).rstrip("0").rstrip(".")
    return {
        "above": f"above {bound}",
        "not above": f"at most {bound}",
        "not below": f"not below {bound}",
        "zero": "0",
    }[row.kind]


_GRIDS: Final = {
    "feedback": "What feedback is worth: a learner's certified hits with its feedback, less those "
    "with its feedback permuted; re-selection sees the true reads in both",
    "names": "What names are worth: net of a list memorised from other registries of the same kind",
}


def _grid(outcome: SelfCheck, series: str) -> Table:
    """Structure down, name information across; means with their 95 % intervals."""
    points = {(p.at, p.by): p for p in outcome.points if p.series == series}
    downs = sorted({p.at for p in points.values() if p.at is not None})
    acrosses = sorted({p.by for p in points.values() if p.by is not None})
    return Table(
        caption=_GRIDS[series],
        columns=("structure", *(f"names {plain(by)}" for by in acrosses)),
        rows=tuple((plain(at), *(_cell(points[(at, by)]) for by in acrosses)) for at in downs),
        note="Means over campaigns with 95 % intervals.",
    )


def _cell(point: Point) -> str:
    if point.low is None or point.high is None:
        return signed(point.mean)
    return f"{signed(point.mean)} {interval(point.low, point.high)}"


def charts(outcome: SelfCheck) -> dict[str, Chart]:
    """The figures of a self-check by file name without ending.

    Returns:
        The ladder, the late starters, and the two sides of the surface where it was played.
    """
    found = {"ladder": _ladder(outcome), "late": _late(outcome)}
    for series, about in (("feedback", "feedback"), ("names", "names")):
        points = [p for p in outcome.points if p.series == series]
        if points:
            found[f"surface-{series}"] = _surface(points, about)
    return found


def _ladder(outcome: SelfCheck) -> Chart:
    points = [p for p in outcome.points if p.series == "noise"]
    return Chart(
        title=f"Quality ladder under {visible(outcome.protocol, 80)}",
        x_label="noise on the true ranking, from perfect to random",
        y_label="net certified hits a campaign",
        series=(
            Series(
                name="mean and 95 % interval",
                x=[_noise(point) for point in points],
                y=[point.mean for point in points],
                error=[_half(point) for point in points],
            ),
        ),
        caption="A sound protocol never steps up to the right.",
    )


def _noise(point: Point) -> str:
    return "random" if point.at is None else "perfect" if point.at == 0 else f"sd {point.at:g}"


def _late(outcome: SelfCheck) -> Chart:
    points = [p for p in outcome.points if p.series == "late"]
    rounds = [point.at or 0.0 for point in points]
    return Chart(
        title=f"Late starters under {visible(outcome.protocol, 80)}",
        x_label="round from which the ranking is perfect",
        y_label="net certified hits a campaign",
        series=(
            Series(
                name="mean and 95 % interval",
                x=rounds,
                y=[point.mean for point in points],
                error=[_half(point) for point in points],
            ),
            Series(
                name="the twin",
                x=[min(rounds), max(rounds)],
                y=[0.0, 0.0],
                is_reference=True,
            ),
        ),
        caption="A sound protocol never falls below the twin: good picks do no harm.",
    )


def _surface(points: Sequence[Point], about: str) -> Chart:
    levels = sorted({p.by for p in points if p.by is not None})
    series = []
    for level in levels:
        own = sorted((p for p in points if p.by == level), key=lambda p: p.at or 0.0)
        series.append(
            Series(
                name=f"name information {level:g}",
                x=[p.at or 0.0 for p in own],
                y=[p.mean for p in own],
                error=[_half(p) for p in own],
            )
        )
    return Chart(
        title=f"What {'feedback is' if about == 'feedback' else 'names are'} worth",
        x_label="structure of the registry",
        y_label="certified hits a campaign",
        series=tuple(series),
        caption=_GRIDS[about] + ".",
    )


def _half(point: Point) -> float:
    return float("nan") if point.low is None or point.high is None else (
        point.high - point.low
    ) / 2  # fmt: skip

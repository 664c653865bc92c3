"""The chain of one run, arm by arm: hits read, certified, twin, net; and what they share.

Takes every number from the summaries and the campaign rows; computes means and adjusted p-values
alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cads_env.inference import holm
from cads_env.report.content import Figure, Paragraph, Section, Table
from cads_env.report.figures.chain import draw_chain, has_common_axis
from cads_env.report.figures.overlap import draw_overlap
from cads_env.report.wording import UNDEFINED, interval, number, p_cell, signed, visible
from cads_env.run.result import SMALLEST_RANGE, ArmResult, RunResult

ARMS_DRAWN = 12
"""Arms that get a picture of their own; tables hold all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """What an arm and its twin certify, mean hits a campaign.

    Attributes:
        arm: Name of the arm.
        gained: Certified by the arm alone.
        shared: Certified by both.
        lost: Certified by the twin alone.
        originated: Certified by the arm and named by the proposer first.
        by_fallback: Certified by the arm and drawn by the fallback first.
        displaced: The twin's minus `by_fallback`; may be negative.
    """

    arm: str
    gained: float
    shared: float
    lost: float
    originated: float
    by_fallback: float
    displaced: float


def overlaps(result: RunResult) -> tuple[Overlap, ...]:
    """The overlap of every arm with scored campaigns."""
    columns = ["gained", "shared", "lost", "originated", "by_fallback", "displaced"]
    groups = dict(tuple(result.campaigns.groupby("arm", sort=False)))
    return tuple(
        Overlap(arm=name, **{c: float(groups[name][c].mean()) for c in columns})
        for name in result.arms
        if name in groups
    )


def adjusted_p(arms: Sequence[ArmResult]) -> list[float]:
    """Holm's p of each arm's net over the family of all arms of the run; NaN where there is none.

    An arm whose net tells nothing stays in the family with p = 1.
    """
    raw = [arm.net.p_value if _tells(arm) else math.nan for arm in arms]
    adjusted = holm([1.0 if math.isnan(p) else p for p in raw])
    return [math.nan if math.isnan(p) else float(a) for p, a in zip(raw, adjusted, strict=True)]


def _tells(arm: ArmResult) -> bool:
    """Whether the interval and the p of an arm's net mean anything."""
    return not (arm.net.untold or arm.is_out_of_reach)


def chain_section(result: RunResult) -> Section:
    """Hits read, certified, twin and net of every arm."""
    arms = tuple(result.arms.values())
    drawn = arms[:ARMS_DRAWN]
    axes = "" if has_common_axis(drawn) else " Each picture has an axis of its own."
    figure = Figure(
        caption=(
            "Bars are means a campaign. The net is what lies between the arm's certified hits and "
            f"its twin's, with the 95 % interval on the net's end.{axes}"
        ),
        drawings=draw_chain(drawn),
        data=_chain_table(result, arms),
        key=(
            ("raw", "hits read"),
            ("arm", "certified"),
            ("twin", "its twin's"),
            ("gain", "net above 0"),
            ("loss", "net below 0"),
        ),
    )
    return Section(
        key="chain",
        title="From hits read to net",
        blocks=(
            Paragraph(
                "Hits that a campaign reads are not yet discoveries; the certificate declares "
                "those with enough evidence; the twin, the same loop with the proposer removed, "
                "declares some as well; what is left is the net." + _drawn_note(len(arms))
            ),
            figure,
        ),
    )


def _drawn_note(count: int) -> str:
    if count <= ARMS_DRAWN:
        return ""
    return f" Pictures show the first {ARMS_DRAWN} of {count:,} arms; the tables hold all."


def _chain_table(result: RunResult, arms: Sequence[ArmResult]) -> Table:
    rows = []
    for arm, adjusted in zip(arms, adjusted_p(arms), strict=True):
        net = arm.net
        rows.append(
            (
                visible(arm.arm),
                f"{arm.n:,}",
                number(arm.raw_hits),
                number(arm.true),
                number(arm.false),
                number(arm.fdr_bound, 3) if arm.n else UNDEFINED,
                number(arm.twin),
                signed(net.mean),
                interval(net.low, net.high) if _tells(arm) else UNDEFINED,
                p_cell(net.p_value) if _tells(arm) else UNDEFINED,
                p_cell(adjusted),
                number(arm.normalised_net),
            )
        )
    spread = result.reference - result.twin
    whole = "1.00" if spread >= SMALLEST_RANGE else UNDEFINED
    reference = ("reference*", "", "", number(result.reference), "", "", number(result.twin))
    rows.append((*reference, signed(spread), "", "", "", whole))
    return Table(
        caption="Means a campaign",
        columns=(
            "arm",
            "n",
            "hits read",
            "certified hits",
            "certified nulls",
            "P(any null) ≤",
            "twin",
            "net",
            "95 % interval",
            "p",
            "p (Holm)",
            "norm. net",
        ),
        rows=tuple(rows),
        note=(
            "P(any null) ≤: one-sided 95 % Clopper-Pearson bound, which bounds the FDR. p (Holm): "
            "adjusted over all arms of this run. norm. net = net / (reference - twin). "
            "* proposes by the true effects: no agent, the yardstick of the normalised net."
            + _weights_note(arms)
        ),
    )


def _weights_note(arms: Sequence[ArmResult]) -> str:
    """Why a net is not the difference of the means beside it, where it is not."""
    if all(abs(arm.net.mean - (arm.true - arm.twin)) < 0.005 for arm in arms if arm.n):
        return ""
    return (
        " The net weighs every registry the same, so that it is not the difference of the means "
        "over campaigns where registries were played unequally often."
    )


def overlap_section(result: RunResult) -> Section:
    """Gained, shared and lost, and who named the certified hits first."""
    found = overlaps(result)
    largest = max((o.gained + o.shared + o.lost for o in found), default=1.0)
    drawings = tuple(
        draw_overlap(o.arm, gained=o.gained, shared=o.shared, lost=o.lost, largest=largest)
        for o in found[:ARMS_DRAWN]
    )
    table = Table(
        caption="Certified hits by who certifies them, means a campaign",
        columns=(
            "arm",
            "gained",
            "shared",
            "lost",
            "gained - lost",
            "originated",
            "by fallback",
            "displaced",
        ),
        rows=tuple(
            (
                visible(o.arm),
                number(o.gained),
                number(o.shared),
                number(o.lost),
                signed(o.gained - o.lost),
                number(o.originated),
                number(o.by_fallback),
                number(o.displaced),
            )
            for o in found
        ),
        note=(
            "gained - lost = originated - displaced. originated: named by the proposer "
            "first. displaced: the twin's minus those first drawn by the fallback; may be negative."
        ),
    )
    caption = "The bars lie over each other where arm and twin certify the same hits."
    key = (("arm", "the arm's certified hits"), ("twin", "the twin's"))
    return Section(
        key="overlap",
        title="Gained, shared, lost",
        blocks=(Figure(caption=caption, drawings=drawings, data=table, key=key),),
    )

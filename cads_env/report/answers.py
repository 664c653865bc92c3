"""The answers of a report in words: a card an arm, a table of all, and what to know beforehand.

Words for the numbers of `verdict`; computes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from cads_env.report.content import Answer, Card, Table
from cads_env.report.figures.answer import draw_answer
from cads_env.report.verdict import MARGIN, Verdict
from cads_env.report.wording import (
    UNDEFINED,
    counted,
    e_text,
    interval,
    listed,
    number,
    p_text,
    plain,
    signed,
    visible,
)
from cads_env.run.result import RunResult

CARDS_SHOWN: Final = 12
"""Arms with a card of their own; all stand in the table of answers."""

FEW: Final = 3
"""Up to as many arms, the cards alone stand side by side."""

WORDS: Final[dict[Answer, str]] = {
    "yes": "Yes",
    "harm": "No, it harms",
    "no": "No",
    "open": "Not decided",
    "unknown": "Not known",
}


def cards(result: RunResult, answers: Sequence[Verdict]) -> tuple[Card, ...]:
    """The cards of the first arms, on one axis.

    Args:
        result: The run.
        answers: Its answers.
    """
    shown = answers[:CARDS_SHOWN]
    ends = [x for v in shown for x in (v.arm.net.low, v.arm.net.high, v.arm.net.mean)]
    known = [x for x in ends if math.isfinite(x)] or [0.0]
    axis = (min(known), max(known))
    return tuple(_card(result, answer, axis) for answer in shown)


def _card(result: RunResult, verdict: Verdict, axis: tuple[float, float]) -> Card:
    estimate = verdict.arm.net
    has_interval = math.isfinite(estimate.low)
    measure = "net certified hits a campaign" if estimate.n else "no net"
    if has_interval:
        measure = f"{measure}, 95 % interval {interval(estimate.low, estimate.high)}"
    return Card(
        arm=verdict.arm.arm,
        answer=verdict.answer,
        word=WORDS[verdict.answer],
        figure=signed(estimate.mean),
        measure=measure,
        sentence=_sentence(verdict),
        facts=(
            ("How sure", _how_sure(verdict)),
            ("At what n", _at_what_n(result, verdict)),
            ("What would change it", _what_would_change(verdict)),
        ),
        drawing=draw_answer(verdict.arm.arm, estimate, reach_of_axis=axis) if estimate.n else None,
    )


def _sentence(verdict: Verdict) -> str:
    arm = verdict.arm
    if not arm.n:
        return "No campaign was scored, so there is nothing to compare."
    both = f"{number(arm.true)} certified hits a campaign against {number(arm.twin)} of its twin"
    if verdict.answer == "unknown":
        return f"{both}; one {_unit(verdict)} gives no interval."
    return {
        "yes": f"It adds to the loop: {both}.",
        "harm": f"The loop does better without it: {both}.",
        "no": f"It adds less than {number(MARGIN, 0)} certified hit either way: {both}.",
        "open": (f"Neither told from 0 nor shown to be within {number(MARGIN, 0)} of it: {both}."),
    }[verdict.answer]


def _unit(verdict: Verdict) -> str:
    return "registry" if verdict.arm.net.registries > 1 else "campaign"


def _how_sure(verdict: Verdict) -> str:
    estimate = verdict.arm.net
    if not verdict.arm.n:
        return "Unknown."
    parts = []
    if math.isfinite(estimate.low):
        parts.append(f"{p_text(estimate.p_value)} for a net of 0 ({estimate.method}).")
    parts.append(
        f"Beats its twin: {verdict.wins} won, {verdict.losses} lost, {verdict.ties} tied; "
        f"e = {e_text(verdict.log_e)} that it wins more campaigns than it loses"
        f" ({'at least' if verdict.log_e >= math.log(20) else 'below'} 20)."
    )
    return " ".join(parts)


def _at_what_n(result: RunResult, verdict: Verdict) -> str:
    n, failed = verdict.arm.n, verdict.arm.failed
    scope = "holds for this registry"
    if verdict.registries != 1:
        scope = f"on {counted(verdict.registries, 'registry', 'registries')}"
        # A panel without a name of its own is the list of its registries.
        scope += "" if ", " in result.panel else f" of {visible(result.panel, 120)}"
    text = f"{counted(n, 'campaign')}; {scope}." if n else "0 campaigns."
    if failed:
        text += f" {counted(failed, 'campaign')} failed and left out."
    return text


def _what_would_change(verdict: Verdict) -> str:
    arm, estimate = verdict.arm, verdict.arm.net
    if not arm.n:
        return "Campaigns that are scored."
    parts = []
    unit = _unit(verdict)
    units = "registries" if unit == "registry" else "campaigns"
    if estimate.sd == 0:
        parts.append(f"Every {unit} has the same net.")
    elif math.isfinite(estimate.sd):
        needed = [
            f"{counted(n, unit, units)} for {what}"
            for n, what in (
                (verdict.needed_for_one, "a net of 1"),
                (verdict.needed_for_seen, "the net seen"),
            )
            if n is not None
        ]
        takes = f"; it takes {listed(needed)}" if needed else ""
        parts.append(
            f"At this n a net of {number(estimate.detectable)} is found with 80 % power{takes}."
        )
    else:
        parts.append(f"A second {unit} would give an interval.")
    late = arm.slots - arm.slots_in_reach
    if late > 0:
        parts.append(
            f"{number(late, 0)} of {number(arm.slots, 0)} proposal slots come too late to be "
            "certified."
        )
    return " ".join(parts)


def summary_table(answers: Sequence[Verdict]) -> Table | None:
    """All answers in one table; None where a few cards say it all."""
    if len(answers) <= FEW:
        return None
    rows = tuple(
        (
            visible(v.arm.arm),
            WORDS[v.answer],
            signed(v.arm.net.mean),
            interval(v.arm.net.low, v.arm.net.high),
            f"{v.wins} / {v.losses} / {v.ties}" if v.arm.n else UNDEFINED,
            e_text(v.log_e) if v.arm.n else UNDEFINED,
            f"{v.arm.n:,}",
            f"{v.registries:,}",
            f"{v.arm.failed:,}",
        )
        for v in answers
    )
    return Table(
        caption="Did the proposer add anything?",
        columns=(
            "arm",
            "answer",
            "net",
            "95 % interval",
            "won / lost / tied",
            "e (wins > losses)",
            "campaigns",
            "registries",
            "failed",
        ),
        rows=rows,
        words=(1,),
        note=(
            "Each answer rests on the arm's own 95 % interval; p-values adjusted over all arms "
            "stand in the table of means."
        ),
    )


def warnings_of(result: RunResult) -> tuple[str, ...]:
    """What a reader must know before the figures."""
    certificate, protocol = result.certificate, result.protocol
    found = []
    if result.status != "complete":
        found.append(
            f"This run is not complete (status: {visible(result.status)}): "
            f"{len(result.campaigns) + len(result.failures):,} of "
            f"{counted(result.planned, 'campaign')} are there."
        )
    if certificate.epsilon_bar < protocol.epsilon:
        found.append(
            f"epsilon_bar = {plain(certificate.epsilon_bar)} is below the channel's contamination "
            f"{plain(protocol.epsilon)}: FDR <= q is not guaranteed."
        )
    if certificate.s < protocol.noise_sd:
        found.append(
            f"s = {plain(certificate.s)} is below the channel's noise "
            f"{plain(protocol.noise_sd)}: FDR <= q is not guaranteed."
        )
    if result.panel.startswith("synthetic-"):
        found.append(f"{visible(result.panel)}: synthetic: plumbing and calibration, not biology.")
    failed = len(result.failures)
    if failed:
        found.append(
            f"{counted(failed, 'campaign')} failed. They are left out of their arm, and an arm "
            "that fails where it would have done badly looks better than it is."
        )
    if result.identifiers != "named":
        found.append(
            f"Identifiers were {visible(result.identifiers)}: the expected net of every honest "
            "agent is 0."
        )
    return tuple(found)

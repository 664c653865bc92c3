"""The answers of a report in words: a card an arm, a table of all, and what to know beforehand.

Words for the numbers of `verdict`; computes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from cads_env.report.badge import badge_warning
from cads_env.report.change import what_would_change
from cads_env.report.content import Answer, Card, Table
from cads_env.report.figures.answer import draw_answer
from cads_env.report.verdict import (
    MARGIN,
    Verdict,
    early_graduation,
    exhausted_registries,
    undeclared_contamination,
)
from cads_env.report.wording import (
    UNDEFINED,
    counted,
    e_text,
    interval,
    number,
    p_cell,
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
    "yes-small": f"Yes, but less than {MARGIN:g}",
    "harm": "No, it harms",
    "harm-small": f"No, it harms by less than {MARGIN:g}",
    "no": f"No, within {MARGIN:g} of 0",
    "open": "Not decided",
    "unknown": "Cannot tell",
}


def cards(result: RunResult, answers: Sequence[Verdict]) -> tuple[Card, ...]:
    """The cards of the first arms, each on an axis of its own.

    Args:
        result: The run.
        answers: Its answers.
    """
    return tuple(_card(result, answer) for answer in answers[:CARDS_SHOWN])


def _card(result: RunResult, verdict: Verdict) -> Card:
    estimate = verdict.arm.net
    has_interval = math.isfinite(estimate.low) and not verdict.untold
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
            ("How sure", _how_sure(result, verdict)),
            ("False", _in_error(verdict)),
            ("At what n", _at_what_n(verdict)),
            ("What would change it", what_would_change(result, verdict)),
        ),
        drawing=draw_answer(verdict.arm.arm, estimate, margin=MARGIN) if estimate.n else None,
    )


def _sentence(verdict: Verdict) -> str:
    arm = verdict.arm
    if not arm.n:
        return "No campaign was scored, so there is nothing to compare."
    both = f"{number(arm.true)} certified hits a campaign against {number(arm.twin)} of its twin"
    if verdict.answer == "unknown":
        return f"Cannot tell, {verdict.untold}: {both}."
    margin = number(MARGIN, 0)
    return {
        "yes": f"It adds to the loop: {both}.",
        "yes-small": f"It adds, and less than {margin} certified hit: {both}.",
        "harm": f"The loop does better without it: {both}.",
        "harm-small": f"The loop does better without it, by less than {margin} hit: {both}.",
        "no": f"It adds less than {margin} certified hit either way: {both}.",
        "open": f"Neither told from 0{_together(verdict)} nor shown to be within {margin} of it: "
        f"{both}.",
    }[verdict.answer]


def _together(verdict: Verdict) -> str:
    """A word on an interval that leaves out 0 where Holm's p over all arms does not."""
    net = verdict.arm.net
    return " (over all arms together)" if net.low > 0 or net.high < 0 else ""


def _how_sure(result: RunResult, verdict: Verdict) -> str:
    estimate = verdict.arm.net
    if not verdict.arm.n:
        return "Unknown."
    parts = []
    if math.isfinite(estimate.low) and not verdict.untold:
        adjusted = ""
        if len(result.arms) > 1:
            adjusted = f", {p_text(verdict.holm)} by Holm over {len(result.arms):,} arms"
        parts.append(f"{p_text(estimate.p_value)} for a net of 0{adjusted} ({estimate.method}).")
    parts.append(
        f"{verdict.wins:,} won, {verdict.losses:,} lost, {verdict.ties:,} tied; "
        f"e\u00a0=\u00a0{e_text(verdict.log_e)}."
    )
    return " ".join(parts)


def _in_error(verdict: Verdict) -> str:
    arm = verdict.arm
    if not arm.n:
        return "Unknown."
    return f"{number(arm.false)} nulls a campaign, P(any)\u00a0≤\u00a0{number(arm.fdr_bound, 3)}."


def _at_what_n(verdict: Verdict) -> str:
    n, failed = verdict.arm.n, verdict.arm.failed
    scope = "on one registry"
    if verdict.registries != 1:
        scope = f"on {counted(verdict.registries, 'registry', 'registries')}"
    text = f"{counted(n, 'campaign')} {scope}." if n else "0 campaigns."
    if failed:
        text += f" {counted(failed, 'campaign')} failed and left out."
    return text


def key_of(result: RunResult) -> tuple[tuple[str, str], ...]:
    """What the words and numbers of the cards mean, in a line each.

    Args:
        result: The run.
    """
    margin = number(MARGIN, 0)
    key = [
        (
            f"Within {margin} of 0",
            f"the net's 90 % interval lies between −{margin} and {margin}: too little to matter.",
        ),
        (
            "e",
            "evidence that the arm wins more campaigns against its twin than it loses; luck alone "
            "reaches 20 at most once in 20 times.",
        ),
        (
            "P(any)",
            "chance that a campaign certifies any null, a 95 % upper bound.",
        ),
    ]
    if len(result.arms) > 1:
        text = (
            "intervals that overlap decide nothing, and no pair is tested here: cads compare does."
        )
        key.append(("Between arms", text))
    return tuple(key)


def summary_table(answers: Sequence[Verdict]) -> Table | None:
    """All answers in one table; None where a few cards say it all."""
    if len(answers) <= FEW:
        return None
    rows = tuple(
        (
            visible(v.arm.arm),
            WORDS[v.answer],
            signed(v.arm.net.mean),
            UNDEFINED if v.untold else interval(v.arm.net.low, v.arm.net.high),
            f"{v.wins} / {v.losses} / {v.ties}" if v.arm.n else UNDEFINED,
            e_text(v.log_e) if v.arm.n else UNDEFINED,
            p_cell(v.holm),
            number(v.arm.false) if v.arm.n else UNDEFINED,
            number(v.arm.fdr_bound, 3) if v.arm.n else UNDEFINED,
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
            "p (Holm)",
            "nulls",
            "P(any null) ≤",
            "campaigns",
            "registries",
            "failed",
        ),
        rows=rows,
        words=(1,),
        note=(
            "Yes and harm need the arm's 95 % interval off 0 and p (Holm), adjusted over all "
            "arms, at most .05."
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
    if (told := undeclared_contamination(result)) is not None:
        found.append(
            f"{told} is below the channel's contamination "
            f"{plain(protocol.epsilon)}: FDR <= q is not guaranteed."
        )
    if told := badge_warning(protocol):
        found.append(told)
    if (early := early_graduation(result)) is not None:
        found.append(early)
    if certificate.s < protocol.noise_sd:
        found.append(
            f"s = {plain(certificate.s)} is below the channel's noise "
            f"{plain(protocol.noise_sd)}: FDR <= q is not guaranteed."
        )
    if result.panel.startswith("synthetic-"):
        found.append(f"{visible(result.panel)}: synthetic: plumbing and calibration, not biology.")
    found += _exhausted(result)
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


def _exhausted(result: RunResult) -> list[str]:
    """That nothing is left to choose where every candidate is read anyway."""
    whole = exhausted_registries(result)
    if not whole:
        return []
    played = result.campaigns["registry"].nunique()
    where = f" on {len(whole):,} of {played:,} registries" if len(whole) < played else ""
    return [
        f"Every campaign{where} read every candidate: the twin reads all of them too, and a "
        "proposer can only change their order."
    ]

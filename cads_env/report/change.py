"""What would change the answer for an arm: what overturns a yes, what settles an open question.

Words for the numbers of `verdict`; computes nothing.
"""

from __future__ import annotations

import math

from cads_env.report.verdict import MARGIN, Verdict
from cads_env.report.wording import number, plain, signed
from cads_env.run.result import RunResult


def unit_of(verdict: Verdict, *, several: bool = False) -> str:
    """What the interval counts as independent: registries if there are several, else seeds."""
    if verdict.arm.net.registries > 1:
        return "registries" if several else "registry"
    return "seeds" if several else "seed"


def what_would_change(result: RunResult, verdict: Verdict) -> str:
    """Two or three short sentences.

    Args:
        result: The run.
        verdict: The answer for one of its arms.
    """
    match verdict.answer:
        case _ if not verdict.arm.n:
            return "Campaigns that are scored."
        case "unknown" if verdict.arm.is_out_of_reach:
            return "A protocol with slots in reach: more rounds, or more reads a candidate."
        case "unknown" if verdict.arm.net.untold:
            return f"More {unit_of(verdict, several=True)}: so few that are alike show no spread."
        case "unknown":
            return f"A second {unit_of(verdict)} would give an interval."
        case "yes" | "yes-small" | "harm" | "harm-small":
            parts = [_distance(verdict), _scope(verdict), _what_voids(result, verdict)]
        case "no":
            parts = [_margin(verdict), _scope(verdict), _too_late(verdict)]
        case _:
            parts = [_more_units(verdict), _too_late(verdict)]
    return " ".join(part for part in parts if part)


def _distance(verdict: Verdict) -> str:
    """How far the interval is from 0, and which margin it lies within."""
    net = verdict.arm.net
    near = net.low if net.low > 0 else net.high
    text = f"The interval must reach 0; it ends at {signed(near)}."
    if verdict.answer.endswith("small"):
        text += f" With a margin below {number(verdict.margin_needed)} it is not small."
    return text


def _scope(verdict: Verdict) -> str:
    units = verdict.arm.net.registries
    if units > 1:
        return f"It holds for registries drawn like these {units:,}."
    return "It holds for this registry alone."


def _what_voids(result: RunResult, verdict: Verdict) -> str:
    """What the certificate and the comparison take for granted."""
    c = result.certificate
    corruption = f"contamination above epsilon_bar = {plain(c.epsilon_bar)}"
    if c.audit is not None:
        corruption = f"corruption that moves controls by less than Delta = {plain(c.audit.Delta)}"
    limits = f"{corruption}, noise above s = {plain(c.s)}"
    if not verdict.answer.startswith("yes"):
        return f"It falls with {limits.replace(', noise', ' or noise')}."
    seen = "these registries" if verdict.registries != 1 else "this registry"
    arm = f"an arm that saw {seen} (public priors are no leak)"
    if result.identifiers != "named":
        return f"It falls with {limits} or {arm}."
    control = "a net other than 0 with --identifiers shuffled, the control to run"
    return f"It falls with {limits}, {arm}, or {control}."


def _margin(verdict: Verdict) -> str:
    needed = verdict.margin_needed
    if needed == 0:
        return "No margin above 0: every net is the same."
    return f"A margin below {number(needed)} in place of {number(MARGIN, 0)}."


def _more_units(verdict: Verdict) -> str:
    """More of which units, and how many."""
    units = unit_of(verdict, several=True)
    here = verdict.arm.net.units
    more = f"More {units}"
    if verdict.arm.net.registries > 1:
        more += f" (more seeds on these {here:,} are no more registries)"
    else:
        more += ", for this registry alone"
    aims = ((verdict.needed_for_one, "a net of 1"), (verdict.needed_for_seen, "the net seen"))
    needed = [
        f"{n:,} for {what}" if n > here else f"these {here:,} for {what}"
        for n, what in aims
        if n is not None
    ]
    takes = f": 80 % power takes {' and '.join(needed)}" if needed else ""
    now = ""
    if math.isfinite(verdict.found_now):
        now = f"; these {here:,} find {number(verdict.found_now)}"
    return f"{more}{takes}{now}."


def _too_late(verdict: Verdict) -> str:
    arm = verdict.arm
    late = arm.slots - arm.slots_in_reach
    if not late > 0:
        return ""
    return (
        f"Earlier picks: {number(late, 0)} of {number(arm.slots, 0)} slots come too late to be "
        "certified."
    )

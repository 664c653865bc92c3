"""The answer for each arm in numbers: did the proposer add anything, and what would change it.

Computes from an arm's summary and campaigns; `answers` puts it into words. Never decides more than
the interval does, nor more than Holm's p over the arms of the run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import pandas as pd

from cads_env.inference import Estimate, beats_twin, n_to_detect, t_detectable, tost
from cads_env.report.chain import adjusted_p
from cads_env.report.content import Answer
from cads_env.report.wording import number, plain
from cads_env.run.result import NO_SLOT, ArmResult, RunResult

MARGIN: Final = 1.0
"""A net within as many discoveries of 0 counts as nothing added (two one-sided tests at .05)."""


LEVEL: Final = 0.05
"""Level of the family of all arms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer for one arm, in numbers.

    Attributes:
        arm: Its summary.
        answer: "yes" if the interval of the net lies above 0 and "harm" if below, and Holm's p
            over the arms is at most `LEVEL`; each "-small" where the net is also within `MARGIN`
            of 0 by two one-sided tests at .05; "no" if it is within but not told from 0, else
            "open"; "unknown" where nothing could be told.
        untold: Why nothing could be told; empty where something could.
        wins: Campaigns in which it certified more hits than its twin.
        losses: Campaigns in which it certified fewer.
        ties: Campaigns in which it certified as many.
        log_e: Natural log of the e-value that it wins more campaigns than it loses.
        registries: Registries among its campaigns.
        holm: Holm's p over the arms of the run; NaN where there is none.
        found_now: Net found with 80 % power at this n, by the t test; NaN if the spread is not
            known.
        margin_needed: Smallest margin within which the net would count as nothing added, the
            larger end of its 90 % interval; NaN without one.
        needed_for_one: Units at which a net of 1 would be found with 80 % power; None if no study
            is large enough or the spread is not known.
        needed_for_seen: The same for the net that was seen.
    """

    arm: ArmResult
    answer: Answer
    untold: str
    wins: int
    losses: int
    ties: int
    log_e: float
    registries: int
    holm: float
    found_now: float
    margin_needed: float
    needed_for_one: int | None
    needed_for_seen: int | None


def judge(arm: ArmResult, campaigns: pd.DataFrame, *, holm: float = math.nan) -> Verdict:
    """The answer for an arm from its campaign rows.

    Args:
        arm: Its summary.
        campaigns: Its rows, in the order of the seeds; columns `net` and `registry`.
        holm: Holm's p of its net over the arms of its run.
    """
    nets = campaigns["net"].to_numpy(dtype=float)
    names = campaigns["registry"].tolist()
    registries = len(set(names))
    wins, losses = int((nets > 0).sum()), int((nets < 0).sum())
    estimate = arm.net
    has_spread = math.isfinite(estimate.sd)
    within = tost(estimate, margin=MARGIN)
    untold = why_untold(arm)
    return Verdict(
        arm=arm,
        answer="unknown" if untold else _answer(estimate, holm),
        untold=untold,
        wins=wins,
        losses=losses,
        ties=len(nets) - wins - losses,
        log_e=beats_twin(wins, losses),
        registries=registries,
        holm=holm,
        found_now=t_detectable(estimate.sd, estimate.units) if has_spread else math.nan,
        margin_needed=max(abs(within.low), abs(within.high)),
        needed_for_one=n_to_detect(1.0, sd=estimate.sd) if has_spread else None,
        needed_for_seen=n_to_detect(estimate.mean, sd=estimate.sd) if has_spread else None,
    )


def why_untold(arm: ArmResult) -> str:
    """Why the net of an arm tells nothing of its proposer; empty where it could tell something.

    Args:
        arm: Its summary.
    """
    if not arm.n:
        return "no campaign was scored"
    if arm.is_out_of_reach:
        return NO_SLOT
    if arm.net.untold:
        return arm.net.untold
    return "" if math.isfinite(arm.net.low) else "one campaign"


def _answer(estimate: Estimate, holm: float) -> Answer:
    is_small = tost(estimate, margin=MARGIN).is_equivalent
    # With several arms, chance alone takes some interval off 0: Holm's p decides then.
    if estimate.low > 0 and not holm > LEVEL:
        return "yes-small" if is_small else "yes"
    if estimate.high < 0 and not holm > LEVEL:
        return "harm-small" if is_small else "harm"
    return "no" if is_small else "open"


def scored_scope(result: RunResult) -> str:
    """How far the scored campaigns reach: `holds for this registry` or `over 8 registries`."""
    count = result.campaigns["registry"].nunique()
    if not count:
        return "so nothing is known yet"
    return "holds for this registry" if count == 1 else f"over {count:,} registries"


def exhausted_registries(result: RunResult) -> tuple[str, ...]:
    """Registries of which every campaign read every candidate, in the order of the campaigns.

    A proposer can only change the order of reads there, never what is read.
    """
    frame = result.campaigns
    is_whole = frame["observed"] >= frame["m"]
    found = is_whole.groupby(frame["registry"], sort=False).all()
    return tuple(str(name) for name, whole in found.items() if whole)


def undeclared_contamination(result: RunResult) -> str | None:
    """What was told of the contamination where it is less than there is; None where it is enough.

    An audit vouches for the contamination of its controls and `rho` more.
    """
    certificate, protocol = result.certificate, result.protocol
    told, words = certificate.epsilon_bar, f"epsilon_bar = {plain(certificate.epsilon_bar)}"
    if certificate.audit is not None:
        controls = protocol.epsilon if protocol.audit_epsilon is None else protocol.audit_epsilon
        told = controls + certificate.audit.rho
        words = f"audit_epsilon + rho = {plain(told)}"
    # .07 + .03 and the like must not fall below .1 by rounding.
    return words if told < protocol.epsilon - 1e-12 else None


def early_graduation(result: RunResult) -> str | None:
    """That candidates stop being read before audited caps can declare them; None if they do not.

    Graduation goes by the protocol's own frozen evidence, and an audit's caps are smaller wherever
    its bound is above that evidence's epsilon_bar.
    """
    protocol, frame = result.protocol, result.campaigns
    if result.certificate.audit is None or not protocol.graduation or not len(frame):
        return None
    bound = float(frame["audit_bound"].mean())
    if bound <= protocol.rank_epsilon_bar:
        return None
    return (
        f"Candidates graduate by evidence under rank_epsilon_bar = "
        f"{plain(protocol.rank_epsilon_bar)}, while the audit's bound ends at {number(bound)} on "
        "average: many stop being read before they can be declared. Set rank_epsilon_bar to about "
        "the bound that the audit can reach (`cads audit plan`)."
    )


def verdicts(result: RunResult) -> tuple[Verdict, ...]:
    """The answers of a run, in the order of the arms."""
    groups = dict(tuple(result.campaigns.groupby("arm", sort=False)))
    none = result.campaigns.iloc[:0]
    adjusted = adjusted_p(list(result.arms.values()))
    return tuple(
        judge(arm, groups.get(name, none), holm=p)
        for (name, arm), p in zip(result.arms.items(), adjusted, strict=True)
    )

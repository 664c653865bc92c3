"""The answer for each arm in numbers: did the proposer add anything, and what would change it.

Computes from an arm's summary and campaigns; `answers` puts it into words. Never decides more than
the interval does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import pandas as pd

from cads_env.inference import Estimate, beats_twin, n_to_detect, tost
from cads_env.report.content import Answer
from cads_env.run.result import ArmResult, RunResult

MARGIN: Final = 1.0
"""A net within as many discoveries of 0 counts as nothing added (two one-sided tests at .05)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer for one arm, in numbers.

    Attributes:
        arm: Its summary.
        answer: "yes" if the interval of the net lies above 0, "harm" if below, "no" if the net is
            within `MARGIN` of 0 by two one-sided tests at .05, else "open"; "unknown" without an
            interval.
        wins: Campaigns in which it certified more hits than its twin.
        losses: Campaigns in which it certified fewer.
        ties: Campaigns in which it certified as many.
        log_e: Natural log of the e-value that it wins more campaigns than it loses.
        registries: Registries among its campaigns.
        needed_for_one: Units at which a net of 1 would be found with 80 % power; None if no study
            is large enough or the spread is not known.
        needed_for_seen: The same for the net that was seen.
    """

    arm: ArmResult
    answer: Answer
    wins: int
    losses: int
    ties: int
    log_e: float
    registries: int
    needed_for_one: int | None
    needed_for_seen: int | None


def judge(arm: ArmResult, campaigns: pd.DataFrame) -> Verdict:
    """The answer for an arm from its campaign rows.

    Args:
        arm: Its summary.
        campaigns: Its rows, in the order of the seeds; columns `net` and `registry`.
    """
    nets = campaigns["net"].to_numpy(dtype=float)
    names = campaigns["registry"].tolist()
    registries = len(set(names))
    wins, losses = int((nets > 0).sum()), int((nets < 0).sum())
    estimate = arm.net
    has_spread = math.isfinite(estimate.sd)
    return Verdict(
        arm=arm,
        answer=_answer(estimate),
        wins=wins,
        losses=losses,
        ties=len(nets) - wins - losses,
        log_e=beats_twin(wins, losses),
        registries=registries,
        needed_for_one=n_to_detect(1.0, sd=estimate.sd) if has_spread else None,
        needed_for_seen=n_to_detect(estimate.mean, sd=estimate.sd) if has_spread else None,
    )


def _answer(estimate: Estimate) -> Answer:
    if not math.isfinite(estimate.low):
        return "unknown"
    if estimate.low > 0:
        return "yes"
    if estimate.high < 0:
        return "harm"
    return "no" if tost(estimate, margin=MARGIN).is_equivalent else "open"


def verdicts(result: RunResult) -> tuple[Verdict, ...]:
    """The answers of a run, in the order of the arms."""
    groups = dict(tuple(result.campaigns.groupby("arm", sort=False)))
    none = result.campaigns.iloc[:0]
    return tuple(judge(arm, groups.get(name, none)) for name, arm in result.arms.items())

"""What feedback does: the gate of a loop, and the contrast that isolates a proposer's use of it.

Pure functions of the runs of a grid. The loop without a proposer passes the gate too, so its own
gate stands beside every arm's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from cads_env.inference import Estimate
from cads_env.report.llm.arms import SettingRun, find
from cads_env.report.llm.factors import (
    LEVEL,
    Paired,
    Scores,
    estimate_of,
    flat_p,
    paired,
    scores,
    twin_scores,
)
from cads_env.run.result import RunResult

CONTROLS: Final = ("none", "permuted")
"""Feedbacks that the gate sets against the full one."""

SPLIT: Final = ("permuted", "none")
"""Feedbacks of the proposer alone, with re-selection's full, that isolate its use of feedback."""


class Gate(NamedTuple):
    """Certified hits under full feedback against the same loop without.

    Attributes:
        arm: Its name; empty for the twin, the loop without a proposer.
        full: Certified hits under full feedback.
        controls: Certified hits under each control that was played.
        contrasts: Full minus each of these, paired.
        passes: Whether the lower ends of both intervals are above 0; None where a control or an
            interval is missing or has no width for want of units, and with no slot in reach.
    """

    arm: str
    full: Estimate
    controls: Mapping[str, Estimate]
    contrasts: Mapping[str, Paired]
    passes: bool | None


class Split(NamedTuple):
    """What a proposer makes of its feedback: its own taken away, re-selection's full in both.

    Attributes:
        arm: Its name.
        proposer: What it was shown instead: "permuted" or "none".
        full: Certified hits under full feedback.
        split: Certified hits with the proposer's taken away.
        contrast: The first minus the second, paired.
    """

    arm: str
    proposer: str
    full: Estimate
    split: Estimate
    contrast: Paired


def gates(settings: Sequence[SettingRun]) -> tuple[Gate, ...]:
    """The gate of the twin and of every arm of the full setting; empty without that or a control.

    Args:
        settings: Of a grid.
    """
    full = find(settings)
    runs = {mode: find(settings, mode) for mode in CONTROLS}
    controls = {mode: found.run for mode, found in runs.items() if found is not None}
    if full is None or not controls:
        return ()
    arms = full.run.arms
    found = [_gate("", twin_scores(full.run), {m: twin_scores(run) for m, run in controls.items()})]
    for arm in arms:
        of_arm = {mode: scores(run, arm, "true") for mode, run in controls.items()}
        found.append(_gate(arm, scores(full.run, arm, "true"), of_arm))
    if nothing_in_reach(full.run):
        return tuple(gate._replace(passes=None) for gate in found)
    return tuple(found)


def nothing_in_reach(run: RunResult) -> bool:
    """Whether no arm with scored campaigns has a slot in reach, nor a net but 0."""
    scored = [arm for arm in run.arms.values() if arm.n]
    return bool(scored) and all(arm.is_out_of_reach for arm in scored)


def _gate(arm: str, full: Scores, controls: Mapping[str, Scores]) -> Gate:
    contrasts = {mode: paired(full, control) for mode, control in controls.items()}
    lows = [_low(full, controls[mode]) if mode in controls else math.nan for mode in CONTROLS]
    passes = None if any(math.isnan(low) for low in lows) else all(low > 0 for low in lows)
    means = {mode: estimate_of(control) for mode, control in controls.items()}
    return Gate(arm, estimate_of(full), means, contrasts, passes)


def _low(full: Scores, control: Scores) -> float:
    """The lower end of full minus control; NaN where it has no width and could be chance."""
    differences = {key: value - control[key] for key, value in full.items() if key in control}
    flat, estimate = flat_p(differences), estimate_of(differences)
    # The sign test decides about equal values off 0; about equal zeros nothing does.
    is_empty = estimate.untold and estimate.mean == 0
    return math.nan if is_empty or (flat or 0) > LEVEL else estimate.low


def splits(settings: Sequence[SettingRun]) -> tuple[Split, ...]:
    """The split-feedback contrast of every arm; empty where the settings for it are missing.

    Args:
        settings: Of a grid.
    """
    full = find(settings)
    found = []
    for mode in SPLIT:
        other = find(settings, mode, "full")
        if full is None or other is None:
            continue
        for arm in full.run.arms:
            mine, theirs = scores(full.run, arm, "true"), scores(other.run, arm, "true")
            found.append(
                Split(arm, mode, estimate_of(mine), estimate_of(theirs), paired(mine, theirs))
            )
    return tuple(found)

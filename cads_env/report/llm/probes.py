"""Identifier probes: what names bring, and whether anything leaks.

Under blinded or shuffled identifiers untested candidates are exchangeable, so the expected net of
every agent is 0: these are leak detectors and negative controls, no measure of feedback.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from cads_env.inference import Estimate, holm
from cads_env.report.llm.arms import SettingRun, find, primary
from cads_env.report.llm.factors import LEVEL, Paired, estimate_of, flat_p, paired, scores
from cads_env.run.result import NO_SLOT, ArmResult

MODES: Final = ("named", "blinded", "shuffled", "shuffled-within-prior")
"""Identifier modes in the order of the table."""

DETECTORS: Final = ("blinded", "shuffled")
"""Modes under which the expected net of every agent is 0."""

BRINGS: Final[Mapping[str, str]] = {
    "shuffled": "what names bring",
    "shuffled-within-prior": "knowledge of this screen beyond general biology",
}
"""What named minus a mode measures."""


class Probe(NamedTuple):
    """The net of one arm under one identifier mode.

    Attributes:
        arm: Its name.
        mode: Identifier mode.
        net: Mean net with its interval.
        holm: Holm's p of net = 0 over all arms and both detectors; NaN for other modes and without
            an interval.
        is_clean: Whether the interval covers 0; None for modes that are no detector, where nothing
            could be told, and where equal registry means leave it without a width by chance.
        untold: Why nothing could be told; empty where something could.
    """

    arm: str
    mode: str
    net: Estimate
    holm: float
    is_clean: bool | None
    untold: str

    @property
    def is_decided(self) -> bool:
        """Whether the net is told from 0 over all detectors together."""
        return self.is_clean is False and self.holm <= LEVEL


class Value(NamedTuple):
    """What names bring to one arm.

    Attributes:
        arm: Its name.
        mode: The mode that is subtracted from named.
        meaning: What the difference measures.
        contrast: Net with names minus net under the mode, paired by registry and seed.
    """

    arm: str
    mode: str
    meaning: str
    contrast: Paired


def probe_settings(settings: Sequence[SettingRun]) -> dict[str, SettingRun]:
    """The settings by identifier mode, all of the feedback of the primary one, in table order."""
    base = primary(tuple(settings))
    found = {m: find(settings, base.proposer, base.reselection, m) for m in MODES}
    return {mode: setting for mode, setting in found.items() if setting is not None}


def probes(settings: Sequence[SettingRun]) -> tuple[Probe, ...]:
    """The net of every arm under every mode that was played; empty without a mode beside named.

    Args:
        settings: Of a grid, at least one.
    """
    played = probe_settings(settings)
    if not set(played) - {"named"}:
        return ()
    arms = dict.fromkeys(arm for setting in played.values() for arm in setting.run.arms)
    values = {
        (arm, mode): scores(setting.run, arm, "net")
        for arm in arms
        for mode, setting in played.items()
    }
    nets = {key: estimate_of(own) for key, own in values.items()}
    flat = {key: flat_p(own) for key, own in values.items()}
    family = [key for key in nets if key[1] in DETECTORS]
    raw = [nets[key].p_value if (p := flat[key]) is None else p for key in family]
    adjusted = dict(
        zip(family, holm([1.0 if math.isnan(p) else p for p in raw]).tolist(), strict=True)
    )
    found = []
    for (arm, mode), net in nets.items():
        untold = _untold(net, played[mode].run.arms.get(arm), flat[arm, mode])
        is_known = mode in DETECTORS and not untold
        is_clean = net.low <= 0 <= net.high if is_known else None
        p = adjusted[arm, mode] if is_known else math.nan
        found.append(Probe(arm, mode, net, p, is_clean, untold))
    return tuple(found)


def _untold(net: Estimate, arm: ArmResult | None, flat: float | None) -> str:
    """Why a net says nothing of leaks; empty where it does.

    Args:
        net: Mean net.
        arm: Summary of its arm, where there is one.
        flat: From `flat_p`.
    """
    if not net.n:
        return "no campaign was scored"
    if math.isnan(net.low):
        return "one campaign"
    if net.mean == 0 and not net.sd > 0 and arm is not None and arm.is_out_of_reach:
        return NO_SLOT
    # The sign test decides about equal nets off 0; about equal zeros nothing does.
    if (flat or 0) > LEVEL:
        return net.untold or f"no spread in {net.units} registries"
    return net.untold if net.mean == 0 else ""


def values_of_names(settings: Sequence[SettingRun]) -> tuple[Value, ...]:
    """Named minus each mode that measures something, for every arm.

    Args:
        settings: Of a grid, at least one.
    """
    played = probe_settings(settings)
    named = played.get("named")
    found = []
    for mode, meaning in BRINGS.items():
        other = played.get(mode)
        if named is None or other is None:
            continue
        for arm in named.run.arms:
            pair = paired(scores(named.run, arm, "net"), scores(other.run, arm, "net"))
            found.append(Value(arm, mode, meaning, pair))
    return tuple(found)

"""Scores that a protocol might have given, without playing it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cads_env
from cads_env import Panel
from cads_env.proposer import Nothing
from cads_env.run.agents import resolve_agents
from cads_env.selfcheck.arms import Listed, Scene
from cads_env.selfcheck.checks import drafts_of
from cads_env.selfcheck.config import Settings, load_settings
from cads_env.selfcheck.draft import Check
from cads_env.selfcheck.instrument import judged
from cads_env.selfcheck.play import TWIN, Played, Scores, Task
from cads_env.selfcheck.scenes import (
    EVAL,
    LADDER,
    LEARNER,
    MEMORISER,
    OWN,
    PERFECT,
    PERMUTED,
    REVERSE,
    SHUFFLED,
    Cell,
    Stage,
    noise_name,
    start_name,
)
from cads_env.testing import tiny_registry

SEEDS = range(32)
TWIN_TRUE = 10.0
PANEL = Panel.of([tiny_registry()], name="made")
SETTINGS = load_settings(
    {
        "ladder": {"noise": [0.0, 1.0, float("inf")], "late": [0, 1, 2], "late_of": 3},
        "surface": {"structure": [0.0, 0.4], "name_information": [0.0, 0.25]},
    }
)
PROTOCOL = cads_env.load_protocol("standard", rounds=3)

# Net of each arm by scene, as a sound protocol has them.
SOUND: dict[str, dict[str, float]] = {
    LADDER: {
        PERFECT: 60.0, noise_name(1.0): 30.0, noise_name(float("inf")): 0.0,
        start_name(1): 40.0, start_name(2): 0.0, REVERSE: -8.0,
    },
    SHUFFLED: {"nothing": 0.0, MEMORISER: 0.0},
    OWN: {MEMORISER: 50.0},
    EVAL: {MEMORISER: 0.0},
    "structure 0, names 0": {LEARNER: 0.0, PERMUTED: 0.0, MEMORISER: 0.0},
    "structure 0, names 0.25": {LEARNER: 0.0, PERMUTED: 0.0, MEMORISER: 20.0},
    "structure 0.4, names 0": {LEARNER: 9.0, PERMUTED: 0.0, MEMORISER: 0.0},
    "structure 0.4, names 0.25": {LEARNER: 9.0, PERMUTED: 0.0, MEMORISER: 20.0},
}  # fmt: skip


def stage(*, with_generator: bool = True) -> Stage:
    """A stage whose panels are never played."""
    more: dict[str, Any] = {"without_splits": "no splits", "without_cells": "no generator"}
    if with_generator:
        cells = {
            Cell(structure=s, name_information=v): PANEL
            for s in SETTINGS.surface.structure
            for v in SETTINGS.surface.name_information
        }
        more = {"train": PANEL, "evaluation": PANEL, "cells": cells}
    return Stage(
        panel=PANEL, protocol=PROTOCOL, settings=SETTINGS,
        agents=resolve_agents({"nothing": Nothing}), **more,
    )  # fmt: skip


def scores(
    changes: Mapping[tuple[str, str], float] | None = None, *, failures: Mapping[str, str] = {}
) -> dict[str, Scores]:
    """Scores of every scene; nets of (scene, arm) may be changed."""
    nets = {scene: dict(arms) for scene, arms in SOUND.items()}
    for (scene, arm), net in (changes or {}).items():
        nets[scene][arm] = net
    return {name: _scores(name, arms, failures) for name, arms in nets.items()}


def _scores(name: str, nets: Mapping[str, float], failures: Mapping[str, str]) -> Scores:
    arms = tuple(Listed(name=arm, names=()) for arm in nets)
    scene = Scene(name=name, panel=PANEL, seeds=SEEDS, arms=arms)
    played = []
    for seed in SEEDS:
        # Up and down by one, in another rhythm for each arm, so that means are exact.
        wobble = {a: 1 if (seed >> i % 3) & 1 else -1 for i, a in enumerate(nets)}
        true = {arm: int(TWIN_TRUE + net + wobble[arm]) for arm, net in nets.items()}
        true[TWIN] = int(TWIN_TRUE)
        false = dict.fromkeys(true, 0)
        played.append(Played(Task(name, seed), seed, true, false, dict(failures), ()))
    return Scores(scene, played)


def checks(
    changes: Mapping[tuple[str, str], float] | None = None,
    *,
    with_generator: bool = True,
    failures: Mapping[str, str] = {},
    settings: Settings = SETTINGS,
) -> dict[str, Check]:
    """The checks of such scores, by name."""
    found = scores(changes, failures=failures)
    drafts = drafts_of(stage(with_generator=with_generator), found, {}, "Only round 0 counts.")
    ahead = float(found[LADDER].net(PERFECT).mean())
    return {check.name: check for check in judged(drafts, settings, ahead)}

"""The self-check itself: play the scenes, judge the checks.

What a protocol must show before anybody is ranked under it: its scores rise with skill and with
nothing else. Writes no file and prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cads_env import __version__
from cads_env.certificate import Certificate
from cads_env.certificate.reach import reach
from cads_env.errors import RunError
from cads_env.inference import clustered
from cads_env.panel import Panel
from cads_env.protocol import Protocol, load_protocol
from cads_env.run.executors import HERE, Executor
from cads_env.score import resolve_certificate
from cads_env.selfcheck.arms import Scene
from cads_env.selfcheck.checks import drafts_of, surface_values
from cads_env.selfcheck.claims import Bounds
from cads_env.selfcheck.config import Settings, load_settings
from cads_env.selfcheck.draft import Check, Draft
from cads_env.selfcheck.outcome import Point, SelfCheck
from cads_env.selfcheck.play import TWIN, Scores, play_scenes
from cads_env.selfcheck.scenes import (
    LADDER,
    PERFECT,
    Stage,
    choose_agents,
    make_stage,
    noise_name,
    start_name,
)

Progress = Callable[[int, int], None]
"""Called with (seeds of scenes done, seeds of scenes in all)."""


def selfcheck(
    protocol: str | Path | Mapping[str, Any] | Protocol = "standard",
    panel: object = "synthetic-depmap:dev",
    *,
    agents: Sequence[object] | None = None,
    executor: Executor = HERE,
    seeds: int | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> SelfCheck:
    """Check that the scores of a protocol rise with skill and with nothing else.

    Seven checks: rankings from random to perfect, perfect rankings that start late, an agent that
    learns, every agent under shuffled names, an agent that proposes nulls, a memorised list, and
    the value of feedback and of names over a grid of registries. Those that need a generator are
    not applicable on other panels.

    Args:
        protocol: Preset name, path, mapping or `Protocol`, judged by its own certificate.
        panel: A panel, or whatever `load_panel` takes.
        agents: Played under shuffled names; None for every installed agent that needs no options.
        executor: Where it is played; the outcome does not depend on it.
        seeds: Campaigns of every scene in place of the settings' numbers, at least 2. Few leave
            checks undecided.
        settings: Sizes and thresholds; None for those of `cads_configs/selfcheck.yaml`.
        progress: Called as the campaigns are played.

    Returns:
        Every check with its numbers; `passed` when all that apply are.

    Raises:
        ProtocolError: The protocol is invalid.
        RegistryError: The panel is unusable.
        AgentError: An agent that was named is unknown or cannot be built.
        RunError: Seeds or settings are unusable, or a process died.
    """
    rules = load_protocol(protocol)
    sizes = load_settings() if settings is None else settings
    if seeds is not None:
        if type(seeds) is not int or seeds < 2:
            msg = f"seeds={seeds!r} is not usable; expected a whole number of at least 2."
            raise RunError(msg)
        sizes = sizes.with_seeds(seeds)
    judge = resolve_certificate(None, rules)
    specs, left_out = choose_agents(agents)
    stage = make_stage(Panel.resolve(panel), rules, sizes, specs)
    scores = _play(stage, judge, executor, progress)
    return _judge(stage, scores, judge, left_out)


def _play(
    stage: Stage, judge: Certificate, executor: Executor, progress: Progress | None
) -> dict[str, Scores]:
    first = stage.first()
    # The number of scenes to come does not depend on the lists.
    later = stage.second({scene.name: () for scene in first})
    total = sum(len(scene.seeds) for scene in (*first, *later))
    done = 0

    def step(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done, total)

    def played(scenes: Sequence[Scene]) -> dict[str, Scores]:
        return play_scenes(
            scenes, protocol=stage.protocol, certificate=judge, executor=executor, progress=step
        )

    memories = played(first)
    lists = {name: found.names() for name, found in memories.items()}
    return memories | played(stage.second(lists))


def _judge(
    stage: Stage, scores: Mapping[str, Scores], judge: Certificate, left_out: Mapping[str, str]
) -> SelfCheck:
    ladder = scores[LADDER]
    arms = [arm.name for arm in ladder.scene.arms]
    ahead = float(ladder.net(PERFECT).mean())
    last = _last_in_reach(stage, ladder)
    drafts = drafts_of(stage, scores, left_out, last)
    return SelfCheck(
        protocol=stage.protocol.name,
        protocol_hash=stage.protocol.hash,
        certificate=stage.protocol.certificate._asdict(),
        panel=stage.panel.name,
        registries=min(len(stage.panel), len(ladder.scene.seeds)),
        checks=judged(drafts, stage.settings, ahead),
        points=(*_ladder_points(stage, ladder), *_surface_points(stage, scores)),
        twin=float(ladder.true(TWIN).mean()),
        false=float(np.mean([ladder.false(arm).mean() for arm in arms])),
        campaigns=sum(len(s.scene.seeds) * (1 + len(s.scene.arms)) for s in scores.values()),
        settings=stage.settings.to_json(),
        version=__version__,
        protocol_fields=stage.protocol.to_dict(),
    )


def judged(drafts: Sequence[Draft], settings: Settings, ahead: float) -> tuple[Check, ...]:
    """The checks, each row at its share of the false alarms.

    Args:
        drafts: Every check.
        settings: The thresholds.
        ahead: Mean net of the perfect ranking, by which resolution is measured.
    """
    count = sum(not draft.inapplicable for draft in drafts)
    resolution = max(settings.least_resolution, settings.resolution * ahead)
    checks = []
    for draft in drafts:
        rows = max(1, len(draft.claims))
        level = settings.false_alarm / (count * rows)
        bounds = Bounds(1 - level, resolution, settings.least_campaigns)
        checks.append(draft.judged(bounds))
    return tuple(checks)


def _last_in_reach(stage: Stage, ladder: Scores) -> str:
    """A sentence on the last round whose candidates can still be declared."""
    m = stage.panel.m
    expected = min(max(1.0, float(ladder.true(PERFECT).mean())), float(m))
    last = reach(stage.protocol, expected, m)
    if last >= stage.protocol.rounds - 1:
        return ""
    span = "No candidate can" if last < 0 else f"Only candidates first read in rounds 0-{last} can"
    return (
        f"{span} be declared in time (with {expected:.1f} declarations); a good pick after that "
        "takes reads from those that can."
    )


def _ladder_points(stage: Stage, ladder: Scores) -> list[Point]:
    sizes = stage.settings.ladder
    noise = [(noise_name(sd), "noise", sd) for sd in sizes.noise]
    late = [(PERFECT, "late", 0.0)]
    late += [(start_name(s), "late", float(s)) for s in sizes.starts(stage.protocol.rounds)]
    return [
        Point.of(
            clustered(ladder.net(name), ladder.positions),
            series=series,
            label=name,
            at=at if np.isfinite(at) else None,
        )
        for name, series, at in (*noise, *late)
    ]


def _surface_points(stage: Stage, scores: Mapping[str, Scores]) -> list[Point]:
    points = []
    for cell in stage.cells:
        positions = scores[cell.scene].positions
        for series, values in zip(("feedback", "names"), surface_values(scores, cell), strict=True):
            points.append(
                Point.of(
                    clustered(values, positions),
                    series=series,
                    label=cell.scene,
                    at=cell.structure,
                    by=cell.name_information,
                )
            )
    return points

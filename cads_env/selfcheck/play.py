"""Playing scenes: one seed of one scene is a task, all of whose arms share a screen.

A pure function of scene, protocol and seed, in whatever process it happens. Judges nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cads_env.campaign import open_screen, play
from cads_env.certificate import Certificate
from cads_env.errors import RunError
from cads_env.proposer import Proposer
from cads_env.protocol import Feedback, Protocol
from cads_env.registry import Oracle, Registry, relabel
from cads_env.run.executors import Executor, execute
from cads_env.score import score
from cads_env.selfcheck.arms import Arm, Guarded, Scene

TWIN = "twin"
"""Name under which the twin's own declarations stand."""


class Task(NamedTuple):
    """One seed of one scene."""

    scene: str
    seed: int


class Played(NamedTuple):
    """What a task gave.

    Attributes:
        task: The task.
        position: The registry's place in the panel.
        true: Declared hits by arm; `twin` is the twin's.
        false: Declared nulls by arm.
        failures: Why an agent broke, by arm.
        names: What the arms declared, where the scene keeps it.
    """

    task: Task
    position: int
    true: dict[str, int]
    false: dict[str, int]
    failures: dict[str, str]
    names: tuple[str, ...]


class Scores:
    """The scores of one scene, in the order of its seeds."""

    def __init__(self, scene: Scene, played: Sequence[Played]) -> None:
        """Sort what the tasks gave.

        Args:
            scene: The scene.
            played: One entry a seed, in any order.
        """
        self.scene = scene
        self._played = sorted(played, key=lambda one: one.task.seed)
        self.positions = [one.position for one in self._played]

    def true(self, arm: str) -> NDArray[np.float64]:
        """Declared hits of an arm, one a seed."""
        return np.array([one.true[arm] for one in self._played], np.float64)

    def false(self, arm: str) -> NDArray[np.float64]:
        """Declared nulls of an arm, one a seed."""
        return np.array([one.false[arm] for one in self._played], np.float64)

    def net(self, arm: str) -> NDArray[np.float64]:
        """Declared hits of an arm less its twin's, one a seed."""
        return self.true(arm) - self.true(TWIN)

    def failure(self, arm: str) -> str:
        """Why an agent broke in some campaign, or empty."""
        return next((one.failures[arm] for one in self._played if arm in one.failures), "")

    def names(self) -> tuple[str, ...]:
        """What was declared, most often first; ties in order of first declaration."""
        counts: Counter[str] = Counter()
        for one in self._played:
            counts.update(one.names)
        return tuple(name for name, _ in counts.most_common())


@dataclass(frozen=True, kw_only=True)
class Work:
    """Plays tasks of some scenes under one protocol; travels to other processes.

    Attributes:
        protocol: The protocol that is checked.
        certificate: What judges.
        scenes: By name.
    """

    protocol: Protocol
    certificate: Certificate
    scenes: Mapping[str, Scene]

    def play(self, task: Task) -> Played:
        """Play the twin and every arm of a scene on one seed, and count their declarations."""
        scene, seed = self.scenes[task.scene], task.seed
        position = seed % len(scene.panel)
        registry, oracle = relabel(*scene.panel[position], scene.identifiers, seed)
        true: dict[str, int] = {}
        false: dict[str, int] = {}
        failures: dict[str, str] = {}
        names: list[str] = []
        for feedback in dict.fromkeys([None, *(arm.feedback for arm in scene.arms)]):
            arms = [arm for arm in scene.arms if arm.feedback == feedback]
            found = self._play(arms, registry, oracle, seed, feedback)
            for name, declared in found.declared.items():
                true[name] = int(declared.is_hit.sum())
                false[name] = int((~declared.is_hit).sum())
                if scene.keeps_names and name != TWIN:
                    names += [registry.identifiers[i] for i in declared.indices.tolist()]
            failures |= found.failures
        return Played(task, position, true, false, failures, tuple(names))

    def _play(
        self,
        arms: Sequence[Arm],
        registry: Registry,
        oracle: Oracle,
        seed: int,
        feedback: Feedback | None,
    ) -> _Found:
        rules = self.protocol
        if feedback is not None:
            rules = rules.override(feedback_proposer=feedback)
        built: list[Proposer | None] = [arm.build(registry, oracle, seed) for arm in arms]
        proposers = [None, *built]
        rows = len(proposers)
        records = play(open_screen([(registry, oracle)] * rows, [seed] * rows, rules), proposers)
        declared = {}
        for name, record in zip([TWIN, *(arm.name for arm in arms)], records, strict=True):
            scored = score(record, records[0], oracle, self.certificate)
            declared[name] = _Declared(scored.declaration.indices, scored.is_hit)
        failures = {
            arm.name: one.failure
            for arm, one in zip(arms, built, strict=True)
            if isinstance(one, Guarded) and one.failure
        }
        return _Found(declared, failures)


class _Declared(NamedTuple):
    """What one campaign declared."""

    indices: NDArray[np.int64]
    is_hit: NDArray[np.bool_]


class _Found(NamedTuple):
    """What some arms declared on one seed."""

    declared: dict[str, _Declared]
    failures: dict[str, str]


def play_scenes(
    scenes: Sequence[Scene],
    *,
    protocol: Protocol,
    certificate: Certificate,
    executor: Executor,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Scores]:
    """Play every seed of every scene.

    Args:
        scenes: With distinct names.
        protocol: The protocol that is checked.
        certificate: What judges.
        executor: Where it is played; the scores do not depend on it.
        progress: Called with the number of campaigns that a task played.

    Returns:
        The scores of each scene by name.

    Raises:
        RunError: Two scenes have one name, or a process died.
    """
    by_name = {scene.name: scene for scene in scenes}
    if len(by_name) != len(scenes):
        msg = f"Scenes share a name: {[s.name for s in scenes]}; expected distinct names."
        raise RunError(msg)
    work = Work(protocol=protocol, certificate=certificate, scenes=by_name)
    tasks = [Task(scene.name, seed) for scene in scenes for seed in scene.seeds]
    played: dict[str, list[Played]] = {name: [] for name in by_name}
    for one in execute(work, tasks, executor=executor):
        played[one.task.scene].append(one)
        if progress is not None:
            progress(1)
    return {name: Scores(scene, played[name]) for name, scene in by_name.items()}

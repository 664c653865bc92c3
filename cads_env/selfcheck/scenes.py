"""Which scenes a self-check plays on a panel under a protocol.

First those whose declarations become a memoriser's list, then all others. What a panel's source
cannot give, such as another structure, is left out with the reason. Plays nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from cads_env.errors import CadsError, RegistryError
from cads_env.panel import Panel
from cads_env.protocol import Protocol
from cads_env.run.agents import AgentSpec, agent_names, resolve_agents
from cads_env.selfcheck.arms import Arm, Installed, Listed, Noisy, Reverse, Scene
from cads_env.selfcheck.config import Settings
from cads_env.selfcheck.play import TWIN

LADDER = "ladder"
SHUFFLED = "shuffled"
EVAL = "eval"
OWN = "own"
TRAIN = "train"
OWN_TRAIN = "own train"

PERFECT = "perfect ranking"
RANDOM = "random ranking"
REVERSE = "reverse of the truth"
MEMORISER = "memoriser"
LEARNER = "learner"
PERMUTED = "learner, feedback permuted"

Lists = Mapping[str, tuple[str, ...]]


FEWEST_REGISTRIES: Final = 8
"""Registries from which on claims about structure and names are made of a panel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One place of the surface.

    Attributes:
        structure: The generator's `structure`.
        name_information: The generator's `name_information`.
    """

    structure: float
    name_information: float

    @property
    def scene(self) -> str:
        """Name of the scene that is played in it."""
        return f"structure {self.structure:g}, names {self.name_information:g}"

    @property
    def train(self) -> str:
        """Name of the scene that its memoriser learns from."""
        return f"train, {self.scene}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The panels and arms of one self-check.

    Attributes:
        panel: The panel that is checked on.
        protocol: The protocol that is checked.
        settings: Sizes.
        agents: What is played under shuffled names.
        train: Where a memoriser learns; None where the source has no splits.
        evaluation: Where it plays.
        cells: The surface, and each cell's panel; empty where the source has no generator.
        without_splits: Why there is no `train`, or empty.
        without_cells: Why there are no `cells`, or empty.
    """

    panel: Panel
    protocol: Protocol
    settings: Settings
    agents: Sequence[AgentSpec]
    train: Panel | None = None
    evaluation: Panel | None = None
    cells: Mapping[Cell, Panel] = field(default_factory=dict)
    without_splits: str = ""
    without_cells: str = ""

    def first(self) -> list[Scene]:
        """The scenes that make lists."""
        sizes = self.settings.memory
        perfect = (Noisy(name=PERFECT, sd=0.0),)
        # Seeds after those that the list will be played on: noise is not shared, hits are.
        own_seeds = range(sizes.own_seeds, sizes.own_seeds + sizes.own_train_seeds)
        scenes = [_memory(OWN_TRAIN, self.panel.only(0), own_seeds, perfect)]
        if self.train is not None:
            scenes.append(_memory(TRAIN, self.train, range(sizes.train_seeds), perfect))
        for cell, panel in self.cells.items():
            seeds = range(self.settings.surface.train_seeds)
            scenes.append(_memory(cell.train, panel.split("train"), seeds, perfect))
        return scenes

    def second(self, lists: Lists) -> list[Scene]:
        """The scenes that are judged.

        Args:
            lists: What was declared in each scene of `first`, most often first.
        """
        sizes, panel = self.settings, self.panel
        remembered = Listed(name=MEMORISER, names=lists.get(TRAIN, lists[OWN_TRAIN]))
        own = Listed(name=MEMORISER, names=lists[OWN_TRAIN])
        shuffled: tuple[Arm, ...] = (
            *(Installed(name=_name_of(s), spec=s) for s in self.agents),
            remembered,
        )
        scenes = [
            Scene(name=LADDER, panel=panel, seeds=range(sizes.ladder.seeds), arms=self._ladder()),
            Scene(
                name=SHUFFLED,
                panel=panel,
                seeds=range(sizes.shuffled.seeds),
                arms=shuffled,
                identifiers="shuffled",
            ),
            Scene(name=OWN, panel=panel.only(0), seeds=range(sizes.memory.own_seeds), arms=(own,)),
        ]
        if self.evaluation is not None:
            seeds = range(sizes.memory.eval_seeds)
            scenes.append(Scene(name=EVAL, panel=self.evaluation, seeds=seeds, arms=(remembered,)))
        learner = resolve_agents(sizes.surface.learner)[0] if self.cells else None
        for cell, place in self.cells.items():
            if learner is None:
                continue
            arms: tuple[Arm, ...] = (
                Installed(name=LEARNER, spec=learner),
                Installed(name=PERMUTED, spec=learner, feedback="permuted"),
                Listed(name=MEMORISER, names=lists[cell.train]),
            )
            scenes.append(
                Scene(name=cell.scene, panel=place, seeds=range(sizes.surface.seeds), arms=arms)
            )
        return scenes

    def _ladder(self) -> tuple[Arm, ...]:
        ladder = self.settings.ladder
        noisy = [Noisy(name=noise_name(sd), sd=sd) for sd in ladder.noise]
        late = [
            Noisy(name=start_name(start), sd=0.0, first_round=start)
            for start in ladder.starts(self.protocol.rounds)
        ]
        return (*noisy, *late, Reverse(name=REVERSE))


def _name_of(spec: AgentSpec) -> str:
    """An agent's name, which must not pose as the list that is played beside it."""
    return f"agent {spec.name}" if spec.name in (MEMORISER, TWIN) else spec.name


def noise_name(sd: float) -> str:
    """What a ranking by the truth plus noise is called."""
    return PERFECT if sd == 0 else RANDOM if math.isinf(sd) else f"ranking with noise {sd:g}"


def start_name(start: int) -> str:
    """What a perfect ranking from a later round on is called."""
    return f"perfect from round {start}"


def make_stage(
    panel: Panel, protocol: Protocol, settings: Settings, agents: Sequence[AgentSpec]
) -> Stage:
    """The stage of a panel, as far as its source goes."""
    train, evaluation, cells = None, None, {}
    without_splits = without_cells = ""
    try:
        train, evaluation = (_without_names(panel.split(name)) for name in ("train", "eval"))
    except RegistryError:
        without_splits = "the panel's source has no train and eval splits"
    try:
        cells = _cells(panel, settings)
    except RegistryError:
        without_cells = "the panel's source is no generator with structure and name_information"
    if cells and len(panel) < FEWEST_REGISTRIES:
        # A fixed list nets something on any one registry, and its interval over seeds is none over
        # registries.
        cells = {}
        without_cells = (
            f"what structure and names bring shows over {FEWEST_REGISTRIES} registries or more; "
            f"the panel has {len(panel)}"
        )
    return Stage(
        panel=panel,
        protocol=protocol,
        settings=settings,
        agents=agents,
        train=train,
        evaluation=evaluation,
        cells=cells,
        without_splits=without_splits,
        without_cells=without_cells,
    )


def _without_names(panel: Panel) -> Panel:
    """The panel with names that tell nothing, where its generator can make them tell something."""
    try:
        return panel.varied(name_information=0.0)
    except RegistryError:
        return panel


def _cells(panel: Panel, settings: Settings) -> dict[Cell, Panel]:
    surface, cells = settings.surface, {}
    for structure in surface.structure:
        for information in surface.name_information:
            cell = Cell(structure=structure, name_information=information)
            place = panel.varied(structure=structure, name_information=information)
            # A value that the generator refuses is refused now.
            cells[cell] = place if place[0] and place.split("train") else panel
    return cells


def _memory(name: str, panel: Panel, seeds: range, arms: tuple[Arm, ...]) -> Scene:
    return Scene(name=name, panel=panel, seeds=seeds, arms=arms, keeps_names=True)


def choose_agents(agents: Sequence[object] | None) -> tuple[list[AgentSpec], dict[str, str]]:
    """The agents to play under shuffled names, and why others are left out.

    Args:
        agents: As `resolve_agents` takes them; None for every installed one.

    Returns:
        Specs with distinct names, and the reason by name of each installed agent that cannot be
        built without options.

    Raises:
        AgentError: One that was named is unknown or cannot be built.
    """
    if agents is not None:
        specs = resolve_agents(list(agents)) if agents else []
        for spec in specs:
            spec.build(0)
        return specs, {}
    chosen, left_out = [], {}
    for name in agent_names():
        try:
            spec = resolve_agents(name)[0]
            spec.build(0)
        except CadsError as error:
            left_out[name] = str(error)
        else:
            chosen.append(spec)
    return chosen, left_out

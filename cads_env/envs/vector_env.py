"""`ScreenVectorEnv`: n campaigns at once on the native engine, with the certificate built in.

Campaigns that started together are stepped as one screen. Rows are byte-equal to those of single
environments. Holds no score of its own: the certificate wrapper's functions settle each campaign.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import gymnasium as gym
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from cads_env.campaign import open_screen
from cads_env.certificate import Certificate
from cads_env.delivery import Answer
from cads_env.envs.one_screen import checked_pair, registry_position
from cads_env.envs.skin import (
    Info,
    Observation,
    action_space,
    drawn_seed,
    infos,
    observation_space,
    observations,
    read_action,
)
from cads_env.errors import ActionError, suggest
from cads_env.panel import Panel
from cads_env.protocol import Protocol
from cads_env.registry import Oracle, Registry
from cads_env.screen import Screen
from cads_env.wrappers.certificate import check_reward, settle, unscored


@dataclass
class _Cohort:
    """Campaigns that started together.

    Attributes:
        rows: Their positions in the vector env.
        pairs: Their registries and oracles.
        seeds: Their campaign seeds.
        screen: Their screen.
    """

    rows: NDArray[np.int64]
    pairs: list[tuple[Registry, Oracle]]
    seeds: list[int]
    screen: Screen

    def without(self, rows: set[int]) -> _Cohort:
        """The cohort less some of its campaigns."""
        kept = np.array([i for i, row in enumerate(self.rows.tolist()) if row not in rows], int)
        pairs, seeds = [self.pairs[i] for i in kept], [self.seeds[i] for i in kept]
        return _Cohort(self.rows[kept], pairs, seeds, self.screen.take(kept))


_OF_A_CAMPAIGN: Final[Mapping[str, Callable[[_Cohort], Sequence[Any]]]] = MappingProxyType(
    {
        "view": lambda cohort: cohort.screen.views(),
        "record": lambda cohort: list(cohort.screen.records()),
        "campaign_seed": lambda cohort: cohort.seeds,
        "registry": lambda cohort: [registry for registry, _ in cohort.pairs],
        "oracle": lambda cohort: [oracle for _, oracle in cohort.pairs],
        "identifiers": lambda cohort: [registry.identifiers for registry, _ in cohort.pairs],
    }
)
_OF_ALL: Final = ("m", "batch", "panel", "protocol", "certificate", "reward")


class ScreenVectorEnv(gym.vector.VectorEnv[Any, Any, Any]):
    """`num_envs` campaigns in one engine; made by `gym.make_vec("CADSScreen-v0", num_envs=n)`.

    What it returns equals, in every value, what `gymnasium.vector.SyncVectorEnv` over the same
    environments returns, in every autoreset mode. A refused action or reset leaves every
    campaign as it was.
    `get_attr("view")` works as in the other vector environments.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        panel: Panel,
        protocol: Protocol,
        certificate: Certificate,
        *,
        num_envs: int,
        reward: str = "net",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    ) -> None:
        """A vector environment over one panel.

        Args:
            panel: Registries of one size.
            protocol: The rules.
            certificate: What judges.
            num_envs: Number of campaigns, at least 1.
            reward: "net", "certified" or "none".
            autoreset_mode: An `AutoresetMode` or its value: "NextStep", "SameStep", "Disabled".

        Raises:
            ActionError: `num_envs`, `reward` or `autoreset_mode` is unusable.
            RegistryError: The registries are known to differ in size.
        """
        if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
            msg = f"num_envs is {num_envs!r}; expected a whole number of at least 1."
            raise ActionError(msg)
        try:
            mode = AutoresetMode(autoreset_mode)
        except ValueError as error:
            values = ", ".join(repr(m.value) for m in AutoresetMode)
            msg = f"autoreset_mode is {autoreset_mode!r}; expected one of {values}."
            raise ActionError(msg) from error
        super().__init__()
        panel.check_common_size()
        self.panel, self.protocol, self.certificate = panel, protocol, certificate
        self.reward, self.num_envs, self.autoreset_mode = check_reward(reward), num_envs, mode
        self.metadata = {**type(self).metadata, "autoreset_mode": mode}
        self.m = panel.m
        self.single_observation_space = observation_space(protocol, self.m)
        self.single_action_space = action_space(protocol, self.m)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.batch = int(self.single_action_space.nvec.size)
        open_screen([panel[0]], [0], protocol)
        self._generators: list[np.random.Generator | None] = [None] * num_envs
        self._cohorts: list[_Cohort] = []

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, Info]:
        """Start campaigns.

        Args:
            seed: One seed (campaigns seed, seed + 1, ...), one a campaign, or None to draw them.
            options: `reset_mask`, shape (num_envs,), bool: which ones start anew (others go on);
                `registry`: position in the panel for all that start.

        Raises:
            ActionError: Seeds or options do not fit.
        """
        if options is not None and not isinstance(options, Mapping):
            msg = f"reset options are {options!r}; expected a mapping such as {{'registry': 0}}."
            raise ActionError(msg)
        options = dict(options or {})
        rows = self._rows_to_reset(options.pop("reset_mask", None))
        self._start(rows, self._seeds(seed), options)
        seen, notes = self._states()
        # As in Gymnasium, info speaks of the campaigns that were reset, and masks the others.
        started = set(rows)
        return self._batched(
            seen, [note if row in started else {} for row, note in enumerate(notes)]
        )

    def _rows_to_reset(self, mask: object) -> list[int]:
        if mask is None:
            return list(range(self.num_envs))
        chosen = np.asarray(mask)
        if chosen.shape != (self.num_envs,) or chosen.dtype != np.bool_ or not chosen.any():
            msg = f"reset_mask must be {self.num_envs} booleans, at least one True; got {mask!r}."
            raise ActionError(msg)
        if not self._cohorts and not chosen.all():
            msg = "The first reset starts every campaign; leave reset_mask out."
            raise ActionError(msg)
        return [int(row) for row in np.flatnonzero(chosen)]

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int) and not isinstance(seed, bool):
            return [seed + row for row in range(self.num_envs)]
        if not isinstance(seed, Sequence) or len(seed) != self.num_envs:
            msg = f"seed is {seed!r}; expected an int, None, or {self.num_envs} of them."
            raise ActionError(msg)
        return list(seed)

    def _start(self, rows: list[int], seeds: list[int | None], options: dict[str, Any]) -> None:
        generators = [self._generator(row, seeds[row]) for row in rows]
        wanted = [seeds[row] for row in rows]
        numbers = [
            drawn_seed(generator) if seed is None else seed
            for seed, generator in zip(wanted, generators, strict=True)
        ]
        positions = [registry_position(options, number, self.panel) for number in numbers]
        pairs = [checked_pair(self.panel, position, self.m) for position in positions]
        screen = open_screen(pairs, numbers, self.protocol)
        for row, generator in zip(rows, generators, strict=True):
            self._generators[row] = generator
        started = set(rows)
        kept = [c for c in self._cohorts if not started.issuperset(c.rows.tolist())]
        self._cohorts = [
            c if started.isdisjoint(c.rows.tolist()) else c.without(started) for c in kept
        ]
        self._cohorts.append(_Cohort(np.array(rows, np.int64), pairs, numbers, screen))

    def _generator(self, row: int, seed: int | None) -> np.random.Generator:
        """The generator that a row draws from after a reset with this seed."""
        generator = self._generators[row]
        if seed is not None or generator is None:
            # Gymnasium's own check of the seed is here.
            generator, _ = seeding.np_random(seed)
        return generator

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Info]:
        """Play one round of every campaign.

        Args:
            actions: Shape (num_envs, batch), whole numbers from 0 to m.

        Raises:
            ActionError: Wrong shape or range, no reset before, or a campaign that is over while
                autoreset is disabled.
        """
        if not self._cohorts:
            msg = "No campaign is running; call reset() first."
            raise ActionError(msg)
        expected = (self.num_envs, self.batch)
        try:
            shape = np.shape(actions)
        except ValueError as error:
            msg = f"actions are no array: {error}. Expected shape {expected}."
            raise ActionError(msg) from error
        if shape != expected:
            msg = f"actions have shape {shape}; expected {expected}, one row a campaign."
            raise ActionError(msg)
        over = [cohort for cohort in self._cohorts if cohort.screen.is_done]
        if over and self.autoreset_mode == AutoresetMode.DISABLED:
            msg = f"Campaigns {over[0].rows.tolist()} are over; reset them with reset_mask."
            raise ActionError(msg)
        # Read every action before playing one, so that a bad one leaves all campaigns as they were.
        running = [cohort for cohort in self._cohorts if not cohort.screen.is_done]
        answers = [
            [
                self._answer(actions, row, pair[0])
                for row, pair in zip(cohort.rows.tolist(), cohort.pairs, strict=True)
            ]
            for cohort in running
        ]
        for cohort in over:
            self._start(cohort.rows.tolist(), [None] * self.num_envs, {})
        for cohort, given in zip(running, answers, strict=True):
            cohort.screen.step(given)
        return self._outcomes(running)

    def _answer(self, actions: Any, row: int, registry: Registry) -> Answer:
        try:
            return read_action(actions[row], registry, self.batch)
        except ActionError as error:
            msg = f"Campaign {row}: {error}"
            raise ActionError(msg) from error

    def _outcomes(self, played: list[_Cohort]) -> tuple[Any, Any, Any, Any, Info]:
        rewards = np.zeros(self.num_envs)
        terminated = np.zeros(self.num_envs, np.bool_)
        outcomes: dict[int, Info] = {}
        for cohort in played:
            if not cohort.screen.is_done:
                continue
            for record, row, pair, seed in zip(
                cohort.screen.records(),
                cohort.rows.tolist(),
                cohort.pairs,
                cohort.seeds,
                strict=True,
            ):
                rewards[row], outcomes[row] = settle(
                    record, pair, self.protocol, seed, self.certificate, self.reward
                )
                terminated[row] = True
        seen, notes = self._states()
        for row, outcome in outcomes.items():
            notes[row] |= outcome
        if outcomes and self.autoreset_mode == AutoresetMode.SAME_STEP:
            final = {row: {"final_obs": seen[row], "final_info": notes[row]} for row in outcomes}
            self._start(sorted(outcomes), [None] * self.num_envs, {})
            seen, notes = self._states()
            for row, extra in final.items():
                notes[row] |= extra
        batched, info = self._batched(seen, notes)
        return batched, rewards, terminated, np.zeros(self.num_envs, np.bool_), info

    def _states(self) -> tuple[list[Observation], list[Info]]:
        seen: list[Observation] = [{}] * self.num_envs
        notes: list[Info] = [{}] * self.num_envs
        for cohort in self._cohorts:
            pairs = zip(observations(cohort.screen), infos(cohort.screen), strict=True)
            for row, (observation, info) in zip(cohort.rows.tolist(), pairs, strict=True):
                seen[row], notes[row] = observation, info | unscored(self.certificate)
        return seen, notes

    def _batched(self, seen: list[Observation], notes: list[Info]) -> tuple[Any, Info]:
        batched = {key: np.stack([one[key] for one in seen]) for key in seen[0]}
        info: Info = {}
        for row, note in enumerate(notes):
            info = self._add_info(info, note, row)
        return batched, info

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """One value a campaign, as `SyncVectorEnv.get_attr` gives them.

        Args:
            name: "view", "record", "campaign_seed", "registry", "identifiers" or "oracle" (for
                scoring after the end; agents must not have it), or what all campaigns share: "m",
                "batch", "panel", "protocol", "certificate", "reward".

        Raises:
            ActionError: No campaign is running.
            AttributeError: There is no such value.
        """
        if name in _OF_ALL:
            return (getattr(self, name),) * self.num_envs
        if name not in _OF_A_CAMPAIGN:
            msg = f"No campaign has {name!r}. {suggest(name, {*_OF_A_CAMPAIGN, *_OF_ALL})}"
            raise AttributeError(msg)
        if not self._cohorts:
            msg = "No campaign is running; call reset() first."
            raise ActionError(msg)
        values: list[Any] = [None] * self.num_envs
        for cohort in self._cohorts:
            of_cohort = _OF_A_CAMPAIGN[name](cohort)
            for row, value in zip(cohort.rows.tolist(), of_cohort, strict=True):
                values[row] = value
        return tuple(values)

    def render(self) -> None:
        """Nothing: render single environments."""
        return

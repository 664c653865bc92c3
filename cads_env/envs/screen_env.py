"""`ScreenEnv`: one screen as a Gymnasium environment.

It pays no reward and knows no score: the certificate wrapper around it does. Its docstring is its
specification.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cads_env.campaign import open_screen
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
from cads_env.errors import ActionError, ProposalError, RegistryError
from cads_env.panel import Panel
from cads_env.proposer import View
from cads_env.protocol import Protocol
from cads_env.record import Record
from cads_env.registry import Oracle, Registry
from cads_env.screen import HIGH, LOW, TESTED, UNSEEN, Screen

RENDER_MODES: Final = ("ansi", "rgb_array")
_COLOURS: Final = {
    UNSEEN: (238, 238, 238),
    TESTED: (136, 136, 136),
    LOW: (68, 119, 170),
    HIGH: (204, 102, 17),
}
_PIXELS: Final = 4


class ScreenEnv(gym.Env[Observation, NDArray[np.int64]]):
    """A discovery screen: each round, name candidates to read; see which ones read high or low.

    ## Description

    A screen spends noisy reads on m registered candidates, some of which are hits. Each round has
    fresh slots (candidates read for the first time) and further reads, which a fixed re-selection
    policy spends on promising candidates. You fill the fresh slots; a seeded label-free fallback
    fills those you leave empty. What counts is decided after the last round: a certificate declares
    candidates from the reads with FDR <= q, and the net is your true declarations minus those of
    the twin, the same loop without you on the same registry, seed and noise.

    ## Action Space

    `MultiDiscrete([m + 1] * batch)`: registry indices in order of preference, m = no proposal.
    `batch` is the schedule's largest number of fresh slots. The first valid entries, up to
    `proposal_slots`, are accepted; later ones are over-delivered. Repeats and candidates already
    read get no slot. All of it is counted.

    ## Observation Space

    A flat `Dict`:

    * `status`, `Box(0, 3, (m,), int8)`: 0 unseen, 1 tested and not released (feedback "none"), 2
      low, 3 high. High means that the mean read exceeds the protocol's `high_above`.
    * `round`, `Discrete(rounds + 1)`: the coming round; `rounds` after the last.
    * `fresh_slots`, `Discrete(batch + 1)`: fresh slots of the coming round.
    * `proposal_slots`, `Discrete(batch + 1)`: how many of them are yours.

    The wrapper `cads_env.wrappers.IdentifierLists` gives the lists of identifiers instead.

    ## Starting State

    Nothing is read. `reset(seed=k)` plays campaign k on registry `panel[k % len(panel)]`: the same
    registry, seed, protocol and actions give the same bytes. `reset()` draws k from `np_random`.
    `options={"registry": i}` names a position in the panel instead.

    ## Rewards

    0 in every step. `CertificateWrapper`, which `gym.make` puts around this environment, pays the
    net (or the certified discoveries) at the end.

    ## Episode End

    `terminated` after the last round; never truncated. A further step raises `ActionError`.

    ## Information

    Python numbers under the same keys in every reset and step: `rounds`, `observed` (candidates
    read), `reads`, and of the last round `last_` + `fresh_slots`, `proposal_slots`, `raw`, `valid`,
    `invalid`, `duplicate`, `already_tested`, `over_delivered`, `accepted`, `fallback`, `unspent`,
    `attempts`.

    ## Arguments

    `gym.make("CADSScreen-v0", registry=..., protocol=..., reward=..., render_mode=...,
    **overrides)`:

    * `registry`: name or path of a registry or panel, default "synthetic-depmap:train".
    * `protocol`: preset name or path, default "standard".
    * `reward`: "net" (default), "certified" or "none".
    * `render_mode`: "ansi", "rgb_array" or None.
    * `q`, `epsilon_bar`, `theta`, `s`: fields of the certificate.
    * any field of the protocol, e.g. `rounds=24`, and `feedback`, which sets both feedbacks.

    ## Version History

    * v0: first version. A change that may change results raises the number.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 1}  # noqa: RUF012

    def __init__(self, panel: Panel, protocol: Protocol, *, render_mode: str | None = None) -> None:
        """An environment over a panel whose registries have one size.

        Args:
            panel: The registries; campaign k plays number k % len(panel).
            protocol: The rules.
            render_mode: "ansi", "rgb_array" or None.

        Raises:
            RegistryError: The registries are known to differ in size.
            ProtocolError: The protocol's law is unusable.
            ActionError: Unknown render mode.
        """
        if render_mode is not None and render_mode not in RENDER_MODES:
            msg = f"render_mode is {render_mode!r}; expected None, 'ansi' or 'rgb_array'."
            raise ActionError(msg)
        panel.check_common_size()
        self.panel, self.protocol, self.render_mode = panel, protocol, render_mode
        registry, oracle = panel[0]
        self._m = registry.m
        self._pair: tuple[Registry, Oracle] = (registry, oracle)
        # Opened once to find an unusable protocol before the first reset.
        open_screen([self._pair], [0], protocol)
        self._screen: Screen | None = None
        self._seed = 0
        self.observation_space: spaces.Dict = observation_space(protocol, self._m)
        self.action_space: spaces.MultiDiscrete = action_space(protocol, self._m)

    @property
    def m(self) -> int:
        """Number of candidates."""
        return self._m

    @property
    def batch(self) -> int:
        """Length of an action."""
        return int(self.action_space.nvec.size)

    @property
    def identifiers(self) -> tuple[str, ...]:
        """Identifiers of the present registry, by index."""
        return self._pair[0].identifiers

    @property
    def registry(self) -> Registry:
        """The public half of the present campaign's registry."""
        return self._pair[0]

    @property
    def oracle(self) -> Oracle:
        """The private half, for scoring after the end. Agents must not have it."""
        return self._pair[1]

    @property
    def campaign_seed(self) -> int:
        """The number of the present campaign."""
        return self._seed

    @property
    def view(self) -> View:
        """What a proposer may know now: the same that `evaluate` hands to agents."""
        return self._running().views()[0]

    @property
    def record(self) -> Record:
        """The present campaign's record so far."""
        return self._running().records()[0]

    def action_for(self, identifiers: Iterable[str]) -> NDArray[np.int64]:
        """The action that proposes these identifiers, in order.

        Args:
            identifiers: At most `batch` identifiers of the registry.

        Returns:
            Shape (batch,), padded with m.

        Raises:
            ProposalError: An identifier is unknown, or there are too many.
        """
        if isinstance(identifiers, str):
            msg = f"Received the text {identifiers[:80]!r}; expected a list of identifiers."
            raise ProposalError(msg)
        names = list(identifiers)
        if len(names) > self.batch:
            msg = f"Received {len(names)} identifiers; an action holds {self.batch}."
            raise ProposalError(msg)
        index = self.registry.index
        unknown = [name for name in names if name not in index]
        if unknown:
            msg = f"{unknown[0]!r} is no identifier of registry {self.registry.name!r}."
            raise ProposalError(msg)
        action = np.full(self.batch, self.m, np.int64)
        action[: len(names)] = [index[name] for name in names]
        return action

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Start a campaign.

        Args:
            seed: The campaign; None draws one from `np_random`.
            options: `{"registry": i}` plays position i of the panel.

        Raises:
            ActionError: Unknown option or position.
            RegistryError: The registry has another size than the panel's first.
        """
        super().reset(seed=seed)
        number = drawn_seed(self.np_random) if seed is None else int(seed)
        position = registry_position(options, number, self.panel)
        pair = checked_pair(self.panel, position, self.m)
        screen = open_screen([pair], [number], self.protocol)
        # Nothing is replaced before all of it is there: a refused reset leaves the campaign as it
        # was.
        self._seed, self._pair, self._screen = number, pair, screen
        return observations(screen)[0], infos(screen)[0]

    def step(self, action: object) -> tuple[Observation, float, bool, bool, Info]:
        """Play one round.

        Args:
            action: Shape (batch,), whole numbers from 0 to m.

        Raises:
            ActionError: Wrong type, shape or range, or the campaign is over.
        """
        screen = self._running()
        if screen.is_done:
            msg = f"The campaign ended after {screen.round} rounds; call reset() before step()."
            raise ActionError(msg)
        screen.step([read_action(action, self.registry, self.batch)])
        return observations(screen)[0], 0.0, screen.is_done, False, infos(screen)[0]

    def _running(self) -> Screen:
        if self._screen is None:
            msg = "No campaign is running; call reset() first."
            raise ActionError(msg)
        return self._screen

    def render(self) -> Any:
        """The state as text ("ansi") or as a picture of every candidate's status ("rgb_array")."""
        screen = self._running()
        status = screen.statuses()[0]
        if self.render_mode == "rgb_array":
            return _picture(status)
        if self.render_mode == "ansi":
            return self._text(screen, status)
        return None

    def _text(self, screen: Screen, status: NDArray[np.int8]) -> str:
        count = {code: int(np.count_nonzero(status == code)) for code in _COLOURS}
        return (
            f"{self.m} candidates under {self.protocol.name}: round {screen.round} of "
            f"{len(screen.plans)}\n"
            f"unseen {count[UNSEEN]}, tested and not released {count[TESTED]}, "
            f"low {count[LOW]}, high {count[HIGH]}\n"
            f"coming round: {screen.fresh_slots} fresh slots, {screen.proposal_slots} to propose\n"
        )


def _picture(status: NDArray[np.int8]) -> NDArray[np.uint8]:
    """A square of one coloured cell a candidate, in index order, row by row."""
    side = math.ceil(math.sqrt(status.size))
    palette = np.array([_COLOURS[code] for code in range(HIGH + 1)], np.uint8)
    cells = np.full((side * side, 3), 255, np.uint8)
    cells[: status.size] = palette[status]
    picture = cells.reshape(side, side, 3)
    return picture.repeat(_PIXELS, axis=0).repeat(_PIXELS, axis=1)


def registry_position(options: dict[str, Any] | None, seed: int, panel: Panel) -> int:
    """The position in the panel that a reset plays.

    Raises:
        ActionError: Unknown option, or a position outside the panel.
    """
    if options is not None and not isinstance(options, Mapping):
        msg = f"reset options are {options!r}; expected a mapping such as {{'registry': 0}}."
        raise ActionError(msg)
    unknown = set(options or {}) - {"registry"}
    if unknown:
        msg = f"Unknown reset option {min(map(str, unknown))!r}; expected 'registry'."
        raise ActionError(msg)
    if not options or "registry" not in options:
        return seed % len(panel)
    position = options["registry"]
    whole = isinstance(position, (int, np.integer)) and not isinstance(position, bool)
    if not whole or not 0 <= position < len(panel):
        msg = (
            f"options['registry'] is {position!r}; expected a position from 0 to {len(panel) - 1} "
            f"in {panel.name!r}."
        )
        raise ActionError(msg)
    return int(position)


def checked_pair(panel: Panel, position: int, m: int) -> tuple[Registry, Oracle]:
    """A registry of the panel, refused when its size does not fit the spaces.

    Raises:
        RegistryError: It has another size than m.
    """
    registry, oracle = panel[position]
    if registry.m != m:
        msg = (
            f"Registry {registry.name!r} has {registry.m} candidates and the environment's spaces "
            f"{m}; a panel of unequal sizes runs in cads_env.evaluate, not in gym.make."
        )
        raise RegistryError(msg)
    return registry, oracle

"""`OneScreenEnv`: what every single environment shares, whatever its observations and actions are.

It opens campaigns, plays rounds and shows them; subclasses translate between a screen and the types
of Gymnasium. It pays no reward and knows no score.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from cads_env.campaign import open_screen
from cads_env.delivery import Answer
from cads_env.envs.skin import Info, drawn_seed, infos
from cads_env.errors import ActionError, RegistryError
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

Seen = TypeVar("Seen")
Done = TypeVar("Done")


class OneScreenEnv(gym.Env[Seen, Done]):
    """One campaign at a time over a panel; see `ScreenEnv` and `TextScreenEnv`."""

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

    @property
    def m(self) -> int:
        """Number of candidates."""
        return self._m

    @property
    def batch(self) -> int:
        """The schedule's largest number of fresh slots."""
        return self.protocol.batch(self._m)

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

    def _start(self, seed: int | None, options: dict[str, Any] | None) -> tuple[Screen, Info]:
        """Start a campaign; to be called after `gym.Env.reset` has seeded the generator.

        Args:
            seed: The campaign; None draws one from `np_random`.
            options: `{"registry": i}` plays position i of the panel.

        Raises:
            ActionError: Unknown option or position.
            RegistryError: The registry has another size than the panel's first.
        """
        number = drawn_seed(self.np_random) if seed is None else int(seed)
        position = registry_position(options, number, self.panel)
        pair = checked_pair(self.panel, position, self.m)
        screen = open_screen([pair], [number], self.protocol)
        # Nothing is replaced before all of it is there: a refused reset leaves the campaign as it
        # was.
        self._seed, self._pair, self._screen = number, pair, screen
        return screen, infos(screen)[0]

    def _going_on(self) -> Screen:
        """The screen, if a round of it is left.

        Raises:
            ActionError: No campaign is running, or it is over.
        """
        screen = self._running()
        if screen.is_done:
            msg = f"The campaign ended after {screen.round} rounds; call reset() before step()."
            raise ActionError(msg)
        return screen

    def _played(self, answer: Answer) -> Info:
        """Play one round with this answer, and its counts."""
        screen = self._running()
        screen.step([answer])
        return infos(screen)[0]

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

"""`ScreenEnv`: one screen as a Gymnasium environment.

It pays no reward and knows no score: the certificate wrapper around it does. Its docstring is its
specification.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cads_env.envs.one_screen import OneScreenEnv
from cads_env.envs.skin import (
    Info,
    Observation,
    action_space,
    observation_space,
    observations,
    read_action,
)
from cads_env.errors import ProposalError
from cads_env.panel import Panel
from cads_env.protocol import Protocol


class ScreenEnv(OneScreenEnv[Observation, NDArray[np.int64]]):
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
        super().__init__(panel, protocol, render_mode=render_mode)
        self.observation_space: spaces.Dict = observation_space(protocol, self.m)
        self.action_space: spaces.MultiDiscrete = action_space(protocol, self.m)

    @property
    def batch(self) -> int:
        """Length of an action."""
        return int(self.action_space.nvec.size)

    @property
    def no_proposal(self) -> NDArray[np.int64]:
        """The action that proposes nothing."""
        return np.full(self.batch, self.m, np.int64)

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
        screen, info = self._start(seed, options)
        return observations(screen)[0], info

    def step(self, action: object) -> tuple[Observation, float, bool, bool, Info]:
        """Play one round.

        Args:
            action: Shape (batch,), whole numbers from 0 to m.

        Raises:
            ActionError: Wrong type, shape or range, or the campaign is over.
        """
        screen = self._going_on()
        info = self._played(read_action(action, self.registry, self.batch))
        return observations(screen)[0], 0.0, screen.is_done, False, info

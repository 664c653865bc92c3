"""What the single and the vector environment share: spaces, observations, actions, info.

Translates between a screen and Gymnasium's types. Everything it returns is new: no live array of a
screen leaves, and nothing that depends on an oracle.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cads_env.delivery import Answer
from cads_env.errors import ActionError
from cads_env.protocol import Protocol
from cads_env.record import Delivery
from cads_env.registry import Registry
from cads_env.screen import HIGH, UNSEEN, Screen

Observation = dict[str, Any]
Info = dict[str, Any]

_NO_DELIVERY: Final = Delivery(fresh_slots=0, proposal_slots=0)


def observation_space(protocol: Protocol, m: int) -> spaces.Dict:
    """The flat observation space of one campaign on a registry of m candidates."""
    batch = protocol.batch(m)
    return spaces.Dict(
        {
            "status": spaces.Box(UNSEEN, HIGH, (m,), np.int8),
            "round": spaces.Discrete(protocol.rounds + 1),
            "fresh_slots": spaces.Discrete(batch + 1),
            "proposal_slots": spaces.Discrete(batch + 1),
        }
    )


def action_space(protocol: Protocol, m: int) -> spaces.MultiDiscrete:
    """Registry indices in order of preference; m stands for "no proposal"."""
    return spaces.MultiDiscrete(np.full(protocol.batch(m), m + 1, np.int64))


def observations(screen: Screen) -> list[Observation]:
    """The observation of each campaign of a screen."""
    return [
        {
            "status": status,
            "round": np.int64(screen.round),
            "fresh_slots": np.int64(screen.fresh_slots),
            "proposal_slots": np.int64(screen.proposal_slots),
        }
        for status in screen.statuses()
    ]


def infos(screen: Screen) -> list[Info]:
    """Counts of each campaign of a screen: Python numbers under keys that never change."""
    shared = {
        "rounds": len(screen.plans),
        "observed": screen.observed_count,
        "reads": screen.read_count,
    }
    return [
        shared | {f"last_{name}": value for name, value in (last or _NO_DELIVERY).counts().items()}
        for last in screen.last_deliveries()
    ]


def drawn_seed(generator: np.random.Generator) -> int:
    """A campaign seed, from 0 to 2**31 - 1, for a reset that names none.

    Raw bits of the bit generator: unlike a distribution's, they are the same under every NumPy.
    """
    return int(generator.bit_generator.random_raw()) & (2**31 - 1)


def read_action(action: object, registry: Registry, batch: int) -> Answer:
    """An action as a resolved answer.

    Args:
        action: Shape (batch,), whole numbers from 0 to m; m is no proposal.
        registry: The registry it refers to.
        batch: Length of an action.

    Raises:
        ActionError: Wrong type, shape or range; the message names the first bad entry.
    """
    m = registry.m
    try:
        entries: NDArray[Any] = np.asarray(action)
    except (TypeError, ValueError) as error:
        msg = f"The action is not an array: {error}. Expected {batch} whole numbers from 0 to {m}."
        raise ActionError(msg) from error
    if entries.shape != (batch,) or entries.dtype.kind not in "iu":
        msg = (
            f"The action has shape {entries.shape} and type {entries.dtype}; expected ({batch},) "
            f"whole numbers: registry indices 0 to {m - 1}, or {m} for no proposal."
        )
        raise ActionError(msg)
    bad = np.flatnonzero((entries < 0) | (entries > m))
    if bad.size:
        at = int(bad[0])
        msg = (
            f"Entry {at} of the action is {entries[at]}; expected a registry index from 0 to "
            f"{m - 1}, or {m} for no proposal."
        )
        raise ActionError(msg)
    indices = entries[entries != m].tolist()
    return Answer(indices, [registry.identifiers[i] for i in indices])

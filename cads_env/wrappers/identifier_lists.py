"""`IdentifierLists`: observations as lists of identifiers instead of a status code a candidate.

The lists are those of the proposer's view; nothing is added to what the codes say.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

_LISTS = ("high", "low", "tested")


class IdentifierLists(gym.ObservationWrapper[Any, Any, Any], RecordConstructorArgs):
    """Replaces `status` by the tuples `high`, `low` and `tested`, in first-read order.

    `tested` holds every candidate read so far; under feedback "none" the other two are empty.
    Actions stay registry indices; `env.unwrapped.action_for(names)` makes one from identifiers.

        >>> import gymnasium as gym, cads_env
        >>> from cads_env.wrappers import IdentifierLists
        >>> env = IdentifierLists(gym.make("CADSScreenPublished-v0"))
        >>> obs, info = env.reset(seed=0)
        >>> obs["high"], int(obs["proposal_slots"])
        ((), 40)
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        """Wrap a screen environment, possibly wrapped already.

        Args:
            env: A `ScreenEnv` or a wrapper around one.
        """
        RecordConstructorArgs.__init__(self)
        gym.ObservationWrapper.__init__(self, env)
        screen: Any = env.unwrapped
        names = screen.identifiers
        text = spaces.Text(
            max(map(len, names)), charset=frozenset("".join(names)) or frozenset("a")
        )
        inner = screen.observation_space
        kept = {name: inner[name] for name in inner if name != "status"}
        self.observation_space = spaces.Dict(
            {**{name: spaces.Sequence(text) for name in _LISTS}, **kept}
        )

    def observation(self, observation: Any) -> dict[str, Any]:
        """The lists with the other entries."""
        screen: Any = self.env.unwrapped
        view = screen.view
        kept = {name: value for name, value in observation.items() if name != "status"}
        return {name: getattr(view, name) for name in _LISTS} | kept

"""`IdentifierLists`: observations as lists of identifiers instead of a status code a candidate.

The lists are those of the proposer's view; nothing is added to what the codes say.
"""

from __future__ import annotations

from typing import Any, Final

import gymnasium as gym
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from cads_env.wrappers.screen_of import screen_of

_LISTS = ("high", "low", "tested")
_USUAL_CHARACTERS: Final = frozenset(map(chr, range(32, 127)))
_USUAL_LENGTH: Final = 64


class IdentifierLists(gym.ObservationWrapper[Any, Any, Any], RecordConstructorArgs):
    """Replaces `status` by the tuples `high`, `low` and `tested`, in first-read order.

    `tested` holds every candidate read so far; under feedback "none" the other two are empty. The
    space holds any printable ASCII names up to 64 characters; a registry with longer or other names
    widens it when it is first played.
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
        screen = screen_of(env, "IdentifierLists")
        self._hold(spaces.Text(_USUAL_LENGTH, charset=_USUAL_CHARACTERS))
        self._fit(screen.identifiers)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start a campaign; see `ScreenEnv.reset`."""
        observation, info = self.env.reset(seed=seed, options=options)
        screen: Any = self.env.unwrapped
        self._fit(screen.identifiers)
        return self.observation(observation), info

    def _fit(self, names: tuple[str, ...]) -> None:
        """Widen the space for names that are very long or hold other than printable ASCII."""
        length = max(self._text.max_length, max(map(len, names)))
        characters = self._text.character_set.union(*names)
        if (length, characters) != (self._text.max_length, self._text.character_set):
            self._hold(spaces.Text(length, charset=characters))

    def _hold(self, text: spaces.Text) -> None:
        self._text = text
        screen: Any = self.env.unwrapped
        inner = screen.observation_space
        kept = {name: inner[name] for name in inner if name != "status"}
        lists = {name: spaces.Sequence(text) for name in _LISTS}
        self.observation_space = spaces.Dict({**lists, **kept})

    def observation(self, observation: Any) -> dict[str, Any]:
        """The lists with the other entries."""
        screen: Any = self.env.unwrapped
        view = screen.view
        kept = {name: value for name, value in observation.items() if name != "status"}
        return {name: getattr(view, name) for name in _LISTS} | kept

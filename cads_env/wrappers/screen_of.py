"""The screen inside a wrapped environment, or a clear refusal."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from cads_env.protocol import Protocol


def screen_of(env: gym.Env[Any, Any], needed_by: str) -> Any:
    """The `ScreenEnv` inside an environment.

    Args:
        env: Any environment.
        needed_by: Who asks, for the message.

    Raises:
        TypeError: It is no screen environment.
    """
    screen = env.unwrapped
    # By what it has: the environments' module imports wrappers, so this one cannot import it.
    if not isinstance(getattr(screen, "protocol", None), Protocol):
        msg = f"{needed_by} needs a CADSScreen environment; received {type(screen).__name__}."
        raise TypeError(msg)
    return screen

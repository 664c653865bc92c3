"""The twin as an environment: the same campaign with whatever is proposed thrown away."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from cads_env.wrappers.certificate import CertificateWrapper
from cads_env.wrappers.screen_of import screen_of


class IgnoreActions(gym.ActionWrapper[Any, Any, Any], RecordConstructorArgs):
    """Replaces every action by "no proposal", so that the fallback fills every slot."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        """Wrap a screen environment.

        Args:
            env: A `ScreenEnv` or `TextScreenEnv`.
        """
        RecordConstructorArgs.__init__(self)
        gym.ActionWrapper.__init__(self, env)
        screen_of(env, "IgnoreActions")

    def action(self, action: Any) -> Any:
        """The action that proposes nothing."""
        screen: Any = self.env.unwrapped
        return screen.no_proposal


def make_twin(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """The proposer-removed twin of an environment, as an environment of its own.

    Args:
        env: A screen environment, wrapped or not; it is left alone.

    Returns:
        A new environment over the same panel and protocol that ignores its actions. When `env`
        carries a certificate, so does the twin: its `true` is then the twin's, and its net is 0.

    Raises:
        TypeError: `env` is no screen environment.
    """
    screen = screen_of(env, "make_twin")
    bare = type(screen)(screen.panel, screen.protocol, render_mode=screen.render_mode)
    twin: gym.Env[Any, Any] = IgnoreActions(bare)
    layer: gym.Env[Any, Any] = env
    while isinstance(layer, gym.Wrapper):
        if isinstance(layer, CertificateWrapper):
            return CertificateWrapper(twin, certificate=layer.certificate, reward=layer.reward)
        layer = layer.env
    return twin

"""The factories behind the environment ids: names and plain numbers in, environments out.

Registry and protocol are given by name or path, so that no oracle lands in `env.spec`; objects go
through `make`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode

from cads_env.certificate import Certificate
from cads_env.envs.screen_env import ScreenEnv
from cads_env.envs.text_env import TextScreenEnv
from cads_env.envs.vector_env import ScreenVectorEnv
from cads_env.errors import CertificateError, ProtocolError, RegistryError, suggest
from cads_env.panel import Panel, load_panel
from cads_env.protocol import BOTH_FEEDBACKS, Protocol, load_protocol
from cads_env.registry import Oracle, Registry
from cads_env.score import resolve_certificate
from cads_env.wrappers.certificate import CertificateWrapper

DEFAULT_REGISTRY: Final = "synthetic-depmap:train"
DEFAULT_PROTOCOL: Final = "standard"
_FIELDS: Final = tuple(field.name for field in dataclasses.fields(Certificate))
_OVERRIDES: Final = {
    *(field.name for field in dataclasses.fields(Protocol)),
    BOTH_FEEDBACKS,
    *_FIELDS,
} - {"name"}
_ARGUMENTS: Final = ("registry", "protocol", "reward", "render_mode")


class ScoredScreen(CertificateWrapper):
    """The certificate wrapper that belongs to an id: the entry point makes it anew each time.

    `env.spec` therefore leaves it out, and works in `gym.make` with other arguments and in
    `gym.make_vec`.
    """

    @property
    def spec(self) -> EnvSpec | None:  # type: ignore[override]
        """The spec of the environment inside."""
        return self.env.spec


def make_env(
    *,
    registry: str = DEFAULT_REGISTRY,
    protocol: str = DEFAULT_PROTOCOL,
    reward: str = "net",
    render_mode: str | None = None,
    **overrides: Any,
) -> gym.Env[Any, Any]:
    """The entry point of `CADSScreen-v0`; see `ScreenEnv` for the arguments.

    Raises:
        RegistryError: `registry` is no name or path, or cannot be loaded.
        ProtocolError: `protocol` or an override is unusable.
        CertificateError: A field of the certificate is out of range.
    """
    panel, rules, fields = _named(registry, protocol, overrides)
    env = ScreenEnv(panel, rules, render_mode=render_mode)
    return ScoredScreen(env, reward=reward, **fields)


# Gymnasium looks here for what can be rendered, and then offers "human" and "rgb_array_list" too.
make_env.metadata = ScreenEnv.metadata  # type: ignore[attr-defined]


def make_text_env(
    *,
    registry: str = DEFAULT_REGISTRY,
    protocol: str = DEFAULT_PROTOCOL,
    reward: str = "net",
    render_mode: str | None = None,
    **overrides: Any,
) -> gym.Env[Any, Any]:
    """The entry point of `CADSScreenText-v0`; see `TextScreenEnv` for the arguments.

    Raises:
        RegistryError: `registry` is no name or path, or cannot be loaded.
        ProtocolError: `protocol` or an override is unusable.
        CertificateError: A field of the certificate is out of range.
    """
    panel, rules, fields = _named(registry, protocol, overrides)
    env = TextScreenEnv(panel, rules, render_mode=render_mode)
    return ScoredScreen(env, reward=reward, **fields)


make_text_env.metadata = TextScreenEnv.metadata  # type: ignore[attr-defined]


def make_vector_env(
    *,
    num_envs: int,
    registry: str = DEFAULT_REGISTRY,
    protocol: str = DEFAULT_PROTOCOL,
    reward: str = "net",
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    render_mode: str | None = None,
    **overrides: Any,
) -> ScreenVectorEnv:
    """The vector entry point of `CADSScreen-v0`: n campaigns on the native engine.

    Args:
        num_envs: Number of campaigns.
        registry: Name or path.
        protocol: Name or path.
        reward: "net", "certified" or "none".
        autoreset_mode: Gymnasium's mode or its value.
        render_mode: Must be None; single environments render.
        **overrides: Protocol and certificate fields.

    Raises:
        RegistryError: `registry` cannot be loaded.
        ProtocolError: `protocol`, an override or `render_mode` is unusable.
    """
    if render_mode is not None:
        msg = f"render_mode is {render_mode!r}; the vector environment does not render."
        raise ProtocolError(msg)
    panel, rules, fields = _named(registry, protocol, overrides)
    return ScreenVectorEnv(
        panel,
        rules,
        resolve_certificate(fields, rules),
        num_envs=num_envs,
        reward=reward,
        autoreset_mode=autoreset_mode,
    )


def make(
    registry: Panel | tuple[Registry, Oracle] | str | Path | Sequence[str],
    protocol: Protocol | str = DEFAULT_PROTOCOL,
    *,
    certificate: Certificate | None = None,
    reward: str = "net",
    render_mode: str | None = None,
    text: bool = False,
    **overrides: Any,
) -> gym.Env[Any, Any]:
    """An environment from objects instead of names; it has no `env.spec`.

    Args:
        registry: A panel, a (registry, oracle) pair, or whatever `load_panel` takes.
        protocol: A protocol or its name.
        certificate: What judges; None for the protocol's default.
        reward: "net", "certified" or "none".
        render_mode: "ansi", "rgb_array" or None.
        text: Whether observations and actions are text.
        **overrides: Protocol and certificate fields.

    Returns:
        A certificate wrapper around a `ScreenEnv` or `TextScreenEnv`.
    """
    fields, changes = _split(overrides)
    rules = load_protocol(protocol, **changes)
    panel = Panel.resolve(registry)
    kind = TextScreenEnv if text else ScreenEnv
    env: gym.Env[Any, Any] = kind(panel, rules, render_mode=render_mode)
    return CertificateWrapper(env, certificate=certificate, reward=reward, **fields)


def _split(overrides: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields of the certificate, and changes to the protocol."""
    for name in overrides:
        if name not in _OVERRIDES:
            options = _OVERRIDES.union(_ARGUMENTS)
            msg = f"Unknown argument {name!r} of the environment. {suggest(name, options)}"
            raise ProtocolError(msg)
    fields = {k: v for k, v in overrides.items() if k in _FIELDS}
    return fields, {k: v for k, v in overrides.items() if k not in fields}


def _named(
    registry: object, protocol: object, overrides: Mapping[str, Any]
) -> tuple[Panel, Protocol, dict[str, Any]]:
    for what, value, error in (
        ("registry", registry, RegistryError),
        ("protocol", protocol, ProtocolError),
    ):
        if not isinstance(value, str):
            msg = (
                f"{what} is a {type(value).__name__}; gym.make takes a name or path as text. "
                "Objects go through cads_env.envs.make."
            )
            raise error(msg)
    fields, changes = _split(overrides)
    audit = fields.get("audit")
    if not isinstance(audit, bool | Mapping | None):
        msg = (
            f"audit is a {type(audit).__name__}; gym.make takes a mapping of its fields, such as "
            "{'tau': 1.0}, or True. Objects go through cads_env.envs.make."
        )
        raise CertificateError(msg)
    return load_panel(str(registry)), load_protocol(str(protocol), **changes), fields

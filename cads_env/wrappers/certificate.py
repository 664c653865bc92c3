"""`CertificateWrapper`: at the end of a campaign it declares, scores, plays the twin and pays.

Before the end its info holds zeros and its reward is 0, so nothing that depends on an oracle is
seen while choices are still to be made.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from cads_env.certificate import Certificate
from cads_env.errors import ActionError, suggest
from cads_env.protocol import Protocol
from cads_env.record import Record
from cads_env.registry import Oracle, Registry
from cads_env.score import TWINS, Outcome, resolve_certificate, score
from cads_env.wrappers.screen_of import screen_of

REWARDS: Final = ("net", "certified", "none")
OUTCOME_KEYS: Final = tuple(field.name for field in dataclasses.fields(Outcome))
UNSCORED: Final[dict[str, Any]] = {"scored": False} | dict.fromkeys(OUTCOME_KEYS, 0)
"""What info holds of the outcome until the end, without an audit; see `unscored`."""
AUDIT_KEYS: Final = ("audit_flags", "audit_bound")
"""Keys of info that only an audited certificate adds: flagged controls, and the final bound of
contamination."""


def check_reward(reward: str) -> str:
    """The reward's name, if it is one.

    Raises:
        ActionError: It is not.
    """
    if reward not in REWARDS:
        msg = f"reward is {reward!r}; expected one of {', '.join(REWARDS)}. "
        raise ActionError(msg + suggest(str(reward), REWARDS))
    return reward


def settle(
    record: Record,
    pair: tuple[Registry, Oracle],
    protocol: Protocol,
    seed: int,
    certificate: Certificate,
    reward: str,
) -> tuple[float, dict[str, Any]]:
    """The terminal reward and outcome of a finished campaign.

    Args:
        record: Its record.
        pair: Its registry and oracle.
        protocol: Its protocol.
        seed: Its seed.
        certificate: What judges.
        reward: One of `REWARDS`.

    Returns:
        Reward and the outcome's info keys, Python numbers.
    """
    twin = TWINS.get(*pair, protocol, seed)
    outcome = score(record, twin, pair[1], certificate).outcome
    paid = {"net": outcome.net, "certified": outcome.true, "none": 0}[reward]
    values = {name: int(getattr(outcome, name)) for name in OUTCOME_KEYS}
    audited: dict[str, Any] = {}
    if certificate.audit is not None:
        found = certificate.audit_outcome(record)
        audited = dict(zip(AUDIT_KEYS, (found.flag_count, found.final_bound), strict=True))
    return float(paid), {"scored": True} | values | audited


def unscored(certificate: Certificate) -> dict[str, Any]:
    """What info holds of the outcome until the end, zeros of every key that comes then."""
    audited = {} if certificate.audit is None else dict(zip(AUDIT_KEYS, (0, 0.0), strict=True))
    return UNSCORED | audited


def _inner_certificate(env: gym.Env[Any, Any]) -> Certificate | None:
    """The certificate of the outermost certificate wrapper in `env`, if any."""
    while isinstance(env, gym.Wrapper):
        if isinstance(env, CertificateWrapper):
            return env.certificate
        env = env.env
    return None


class CertificateWrapper(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Declares and scores a campaign when it ends, and pays for it.

    The outcome's keys (see `cads_env.score.Outcome`) and `scored` are in every info; they are zero
    and False until the end. A second wrapper around the first judges the same record with other
    numbers:

        >>> import gymnasium as gym, cads_env
        >>> from cads_env.wrappers import CertificateWrapper
        >>> env = gym.make("CADSScreenPublished-v0")
        >>> stricter = CertificateWrapper(env, q=0.05)
        >>> stricter.certificate.q
        0.05
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        *,
        certificate: Certificate | None = None,
        reward: str = "net",
        **fields: Any,
    ) -> None:
        """Wrap a screen environment.

        Args:
            env: A `ScreenEnv`, possibly wrapped.
            certificate: What judges; None for that of a certificate wrapper inside, else the
                protocol's default.
            reward: "net" (true declarations minus the twin's), "certified" (true declarations) or
                "none".
            **fields: Fields of the certificate to change: `q`, `epsilon_bar`, `theta`, `s`,
                `audit`.

        Raises:
            CertificateError: Unknown field or value out of range, or an audit without controls.
            ActionError: Unknown reward.
        """
        arguments: dict[str, Any] = {"certificate": certificate, "reward": reward, **fields}
        RecordConstructorArgs.__init__(self, **arguments)
        gym.Wrapper.__init__(self, env)
        screen = screen_of(env, "CertificateWrapper")
        inherited = _inner_certificate(env) if certificate is None else certificate
        base = resolve_certificate(inherited, screen.protocol)
        self.certificate = resolve_certificate(base.to_dict() | fields, screen.protocol)
        self.reward = check_reward(reward)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a campaign; see `ScreenEnv.reset`."""
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, info | unscored(self.certificate)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one round; after the last one, declare, score and pay."""
        observation, _, terminated, truncated, info = self.env.step(action)
        if not terminated:
            return observation, 0.0, terminated, truncated, info | unscored(self.certificate)
        screen: Any = self.env.unwrapped
        reward, outcome = settle(
            screen.record,
            (screen.registry, screen.oracle),
            screen.protocol,
            screen.campaign_seed,
            self.certificate,
            self.reward,
        )
        return observation, reward, terminated, truncated, info | outcome

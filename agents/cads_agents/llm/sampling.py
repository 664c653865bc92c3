"""How a model is sampled, and the seed of every generation.

What is said here goes into every request, so that no server's default decides anything. Knows no
chat model and no file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from cads_agents.llm.numbers import is_number
from cads_env.errors import AgentError, quoted, suggest

_SEED_BITS: Final = 31
"""Servers keep a seed as a signed number of 32 or 64 bits; this many fit each of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """What every request says of its sampling.

    Attributes:
        temperature: From 0 to 2. None: not sent, for models that refuse it.
        top_p: Above 0, at most 1. None: not sent.
        max_tokens: Tokens of one answer, at most.
        seed: Whether a generation seed is sent; false for providers that refuse one.
    """

    temperature: float | None = 0.7
    top_p: float | None = 0.9
    max_tokens: int = 700
    seed: bool = True

    def __post_init__(self) -> None:
        """Check types and ranges.

        Raises:
            AgentError: A value is not of its type or outside its range; the message names it.
        """
        for name, low, high in (("temperature", 0.0, 2.0), ("top_p", 0.0, 1.0)):
            value = getattr(self, name)
            if value is None:
                continue
            is_inside = is_number(value) and low <= value <= high
            if not is_inside or (name == "top_p" and value == 0):
                msg = (
                    f"sampling.{name} is {quoted(value)}; expected a number from {low:g} to "
                    f"{high:g}{' and above 0' if name == 'top_p' else ''}, or null to send none."
                )
                raise AgentError(msg)
            object.__setattr__(self, name, float(value))
        if type(self.max_tokens) is not int or self.max_tokens < 1:
            msg = (
                f"sampling.max_tokens is {quoted(self.max_tokens)}; expected a whole number of at "
                "least 1."
            )
            raise AgentError(msg)
        if type(self.seed) is not bool:
            msg = f"sampling.seed is {quoted(self.seed)}; expected true or false."
            raise AgentError(msg)

    @classmethod
    def of(cls, given: Sampling | Mapping[str, Any] | None) -> Sampling:
        """Sampling settings from what a config holds.

        Args:
            given: Settings, a mapping of some of them, or None for the defaults.

        Raises:
            AgentError: An unknown key, or a value outside its range.
        """
        if isinstance(given, Sampling):
            return given
        if given is None:
            return cls()
        if not isinstance(given, Mapping):
            msg = f"sampling is {quoted(given)}; expected a mapping such as {{temperature: 0.7}}."
            raise AgentError(msg)
        names = [field.name for field in fields(cls)]
        for key in given:
            if key not in names:
                msg = f"sampling has no setting {quoted(key)}. {suggest(str(key), names)}"
                raise AgentError(msg)
        return cls(**given)

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON values."""
        return asdict(self)


def generation_seed(base: int, *, round: int, attempt: int) -> int:
    """The seed that a request sends: a hash of the arm's seed, the round and the attempt.

    Args:
        base: The seed that the campaign gave its proposer.
        round: The round, counting from 0.
        attempt: The attempt within the round, counting from 0.

    Returns:
        A whole number of 31 bits.
    """
    text = f"cads-generation-1:{base}:{round}:{attempt}"
    digest = hashlib.sha256(text.encode("ascii")).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - _SEED_BITS)

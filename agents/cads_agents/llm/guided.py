"""Guided decoding: the server lets the model write nothing but a JSON list of candidates.

A marked arm, since it takes delivery out of the model's hands: an answer cannot be invalid. The
request that is recorded names the kind, the number and the hash of the list, not 18,000 names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from cads_env.errors import AgentError, quoted, suggest
from cads_env.proposer import View

GUIDED_KINDS: Final = ("candidates", "untested")
"""Every candidate of the registry may be written, or those alone that were not tested yet."""


class Guide(NamedTuple):
    """What the model may write in one round.

    Attributes:
        kind: One of `GUIDED_KINDS`.
        names: The candidates that it may name.
        sha256: Of the names as a JSON list.
    """

    kind: str
    names: Sequence[str]
    sha256: str

    def request(self) -> dict[str, Any]:
        """The part of a recorded request that tells of it."""
        return {"schema": self.kind, "count": len(self.names), "sha256": self.sha256}

    def extra_body(self, slots: int) -> Mapping[str, Any]:
        """The field of vLLM's chat request that guides.

        Args:
            slots: Candidates asked for: the list is no longer than that.
        """
        schema = {
            "type": "array",
            "items": {"type": "string", "enum": list(self.names)},
            "minItems": 1,
            "maxItems": slots,
        }
        return {"structured_outputs": {"json": schema}}


def guided_kind(value: object) -> str | None:
    """The option `guided` as one of `GUIDED_KINDS` or None; `true` is short for "candidates".

    Raises:
        AgentError: It is something else.
    """
    if value is None or value is False:
        return None
    if value is True:
        return GUIDED_KINDS[0]
    if not isinstance(value, str) or value not in GUIDED_KINDS:
        msg = (
            f"guided is {quoted(value)}; expected true, which means {GUIDED_KINDS[0]}, false, or a "
            f"kind. {suggest(str(value), GUIDED_KINDS)}"
        )
        raise AgentError(msg)
    return str(value)


def guide_of(view: View, kind: str, names: Sequence[str] | None = None) -> Guide:
    """What the model may write in this round.

    Args:
        view: The state of the screen.
        kind: One of `GUIDED_KINDS`.
        names: The candidates to choose from; None for the whole registry.
    """
    allowed: Sequence[str] = view.identifiers if names is None else names
    if kind == "untested":
        tested = set(view.tested)
        allowed = [name for name in allowed if name not in tested]
    return Guide(kind, allowed, names_sha256(allowed))


def names_sha256(names: Sequence[str]) -> str:
    """SHA-256 of names as a JSON list."""
    return _sha256(names) if isinstance(names, tuple) else _sha256.__wrapped__(tuple(names))


@lru_cache(maxsize=8)
def _sha256(names: tuple[str, ...]) -> str:
    return hashlib.sha256(json.dumps(names).encode("ascii")).hexdigest()


def guided_names(extra_body: Mapping[str, Any] | None) -> Sequence[str] | None:
    """The names that `Guide.extra_body` holds; None where it guides nothing."""
    try:
        names: Sequence[str] = (extra_body or {})["structured_outputs"]["json"]["items"]["enum"]
    except (KeyError, TypeError):
        return None
    return names

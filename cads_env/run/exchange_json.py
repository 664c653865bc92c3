"""The JSON of an exchange: request, answer and failure, as a line of a trace holds them.

What is no JSON, or too long for a line, is refused in words that an agent's author understands.
Reads and writes no file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cads_env.errors import AgentError, readable
from cads_env.proposer import ProposerFailed
from cads_env.run.traces import MOST_LINE_BYTES, canonical, distinct_names
from cads_env.values import said

_NAMED: Final = ("round", "attempt")
"""Keys of a request that a message names."""
_ROOM: Final = 1_024
"""Bytes of a line beside its request and its answer, at most."""


class Answer(NamedTuple):
    """An answer as it is kept, and as an agent gets it back.

    Attributes:
        text: Its JSON.
        value: Read from that text, so that a live answer and a recorded one are the same.
    """

    text: str
    value: dict[str, Any]


def request_json(request: object) -> str:
    """The canonical JSON of a request.

    Raises:
        AgentError: It is none, or too long.
    """
    try:
        if isinstance(request, Mapping):
            text = canonical(dict(request))
            check_length(len(text), "A request")
            return text
    except (TypeError, ValueError, RecursionError) as error:
        msg = f"A request to the journal is no JSON: {error}. Hand over plain values."
        raise AgentError(msg) from error
    msg = f"A request to the journal is a {type(request).__name__}; expected a mapping."
    raise AgentError(msg)


def answer_json(answer: object) -> Answer:
    """An answer through its JSON.

    Raises:
        AgentError: It is none.
    """
    try:
        if isinstance(answer, Mapping):
            text = json.dumps(
                dict(answer), ensure_ascii=True, allow_nan=False, separators=(",", ":")
            )
            return Answer(text, json.loads(text, object_pairs_hook=distinct_names))
    except (TypeError, ValueError, RecursionError) as error:
        msg = f"An answer to the journal is no JSON: {error}. Hand over plain values."
        raise AgentError(msg) from error
    msg = f"An answer to the journal is a {type(answer).__name__}; expected a mapping."
    raise AgentError(msg)


def check_length(size: int, what: str) -> None:
    """Raise when something is too long for a line of a trace.

    Args:
        size: In bytes.
        what: Begins the message.

    Raises:
        AgentError: It is.
    """
    # Room for what else stands in the line.
    if size > MOST_LINE_BYTES - _ROOM:
        msg = (
            f"{what} to the journal takes {size:,} bytes; a trace holds at most "
            f"{MOST_LINE_BYTES:,} in a line. Ask in smaller pieces."
        )
        raise AgentError(msg)


def failed_json(failure: ProposerFailed) -> str:
    """A failure with what went wrong on the way, where the proposer tells it as `errors`."""
    try:
        # Whole: what is cut once must not be cut again when it is replayed.
        reason = json.dumps(str(failure), ensure_ascii=True)
    # Somebody's __str__ raises whatever it likes.
    except Exception:
        reason = json.dumps(said(failure), ensure_ascii=True)
    errors = getattr(failure, "errors", ())
    try:
        told = canonical(list(errors)) if errors else ""
    except (TypeError, ValueError, RecursionError):
        told = ""
    return f'"failed":{reason}' + (f',"errors":{told}' if told else "")


def place_of(request: Mapping[str, Any]) -> str:
    """Where in its campaign a request stands, as far as it says it."""
    told = [f"{name} {readable(str(request[name]))[:40]}" for name in _NAMED if name in request]
    return ", ".join(told).capitalize() or "An exchange"

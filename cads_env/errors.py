"""One error class per kind of mistake, and the suggestion of a near name.

A message says what happened, what was received, what was expected and what to do. Errors that name
a bad value are `ValueError`s as well, so that a caller who knows nothing of this package still
catches them. Whatever a message quotes, it stays short and printable.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, Final

MESSAGE_LIMIT: Final = 2_000
"""Characters of a message, at most."""

_ENTRY_LIMIT: Final = 80
_NAMES_LISTED: Final = 40


class CadsError(Exception):
    """Base of every error that cads-env raises on purpose; the message is made `readable`."""

    def __init__(self, *args: object, **more: Any) -> None:
        """An error; a text among the arguments may quote what a file or a person wrote."""
        super().__init__(*(readable(x) if isinstance(x, str) else x for x in args), **more)


class RegistryError(CadsError, ValueError):
    """A registry, panel or source file is unusable; the message lists the offending entries."""


class HitlessError(RegistryError):
    """A registry has no hit or no null, most often because of its threshold."""


class ProtocolError(CadsError, ValueError):
    """A protocol or schedule is invalid; the message names the field."""


class CertificateError(CadsError, ValueError):
    """A parameter of the certificate is outside its range."""


class ReadError(CadsError, ValueError):
    """A read or an e-value is not usable; the message names its position."""


class ActionError(CadsError, ValueError):
    """An action does not fit the action space, or came after the end of the campaign."""


class ProposalError(CadsError, ValueError):
    """A proposer answered with something that is not a proposal."""


class AgentError(CadsError):
    """An agent is unknown, cannot be loaded or built, or raised an exception of its own."""


class RecordError(CadsError, ValueError):
    """A record or a results file is malformed or of another schema version."""


class InferenceError(CadsError, ValueError):
    """Numbers given to an interval or a test are not usable; the message names the first."""


class ReplayError(CadsError):
    """What is replayed asks for something else than what was recorded; the message names both."""


class RunError(CadsError):
    """A run cannot be started or written as asked."""


class StudyError(CadsError):
    """A study or its config is unknown or unusable, or a study's folder does not hold together."""


class MissingExtraError(CadsError, ImportError):
    """An optional package is needed; the message gives the one line that installs it."""


class InvariantError(CadsError):
    """An identity that must hold on every campaign is broken: a bug in cads-env; report it."""


def suggest(word: str, options: Iterable[str]) -> str:
    """The sentence that names the nearest option, or lists the options when none is near.

    Args:
        word: What was received.
        options: What exists.

    Returns:
        `Did you mean 'x'?` or `Available: a, b, c.`
    """
    names = sorted(options)
    near = difflib.get_close_matches(word, names, n=1)
    if near:
        return f"Did you mean {quoted(near[0])}?"
    shown = ", ".join(quoted(name)[1:-1] for name in names[:_NAMES_LISTED])
    rest = len(names) - _NAMES_LISTED
    return f"Available: {shown or 'none'}{f' and {rest:,} more' if rest > 0 else ''}."


def quoted(value: object) -> str:
    """What was received, as a message quotes it: its repr, cut after 80 characters."""
    if isinstance(value, str) and len(value) > _ENTRY_LIMIT:
        return repr(f"{value[: _ENTRY_LIMIT - 3]}...")
    text = repr(value)
    return text if len(text) <= 4 * _ENTRY_LIMIT else f"{text[: _ENTRY_LIMIT - 3]}..."


def printable(text: str) -> str:
    """The text on one line: white space as spaces, whatever else takes no ink escaped."""
    if text.isprintable():
        return text
    return "".join(
        x if x.isprintable() else " " if x.isspace() and x not in "\x1c\x1d\x1e\x1f\x85"
        else repr(x)[1:-1]
        for x in text
    )  # fmt: skip


def readable(text: str) -> str:
    """A message as printable lines of 2,000 characters at most in all, cut in its middle."""
    if text.isprintable() and len(text) <= MESSAGE_LIMIT:
        return text
    # What to do stands at the end of a message, so both of its ends are kept.
    cut = text if len(text) <= 2 * MESSAGE_LIMIT else f"{text[:1_400]} ... {text[-400:]}"
    cut = "\n".join(map(printable, cut.split("\n")))
    return cut if len(cut) <= MESSAGE_LIMIT else f"{cut[:1_400]} ... {cut[-400:]}"


def error_text(error: Exception) -> str:
    """What an exception says, without the number and path of an operating system's error."""
    return str(getattr(error, "strerror", None) or error)

"""One error class per kind of mistake, and the suggestion of a near name.

A message says what happened, what was received, what was expected and what to do. Errors that name
a bad value are `ValueError`s as well, so that a caller who knows nothing of this package still
catches them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class CadsError(Exception):
    """Base of every error that cads-env raises on purpose."""


class RegistryError(CadsError, ValueError):
    """A registry, panel or source file is unusable; the message lists the offending entries."""


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


class RunError(CadsError):
    """A run cannot be started or written as asked."""


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
        return f"Did you mean {near[0]!r}?"
    return f"Available: {', '.join(names) or 'none'}."


def error_text(error: Exception) -> str:
    """What an exception says, without the number and path of an operating system's error."""
    return str(getattr(error, "strerror", None) or error)

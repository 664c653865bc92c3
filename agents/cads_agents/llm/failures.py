"""What goes wrong between a proposer and its model, in seven kinds, and how long it is tried again.

Four kinds of trouble may pass and are tried again (timeout, connection, rate_limit, server) and so
may a body that is no answer (malformed); what the server refuses, and a prompt that is too long,
stay as they are. Knows the exceptions of LangChain and of HTTP clients by name alone: it imports
none of them.
"""

from __future__ import annotations

import email.utils
import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from cads_agents.llm.numbers import is_number
from cads_env.errors import AgentError, printable, quoted
from cads_env.proposer import ProposerFailed
from cads_env.values import plain_text, said

RETRIED: Final = frozenset({"timeout", "connection", "rate_limit", "server", "malformed"})
"""Kinds that are tried again."""

_SAID: Final = 300
"""Characters of a server's words that a failure keeps."""

_OVERFLOW: Final = re.compile(
    r"maximum context length|context[_ ]length[_ ]exceeded|context window|prompt is too long"
    r"|input (?:is too long|tokens exceed|token count)|reduce the length of the (?:input|messages)"
    r"|ContextWindowExceeded",
    re.IGNORECASE,
)
"""What vLLM, OpenAI, Anthropic, Google and gateways say of a prompt that is too long."""

_STATUS_AGAIN: Final = re.compile(r"^Error code: \d{3}(?: - )?")
"""How OpenAI's client begins; the status is told apart."""

_NO_CREDIT: Final = ("insufficient_quota", "billing_hard_limit_reached")
"""Codes of a 429 that no waiting mends."""

_BROKEN_BODY: Final = frozenset(
    {"ValueError", "KeyError", "TypeError", "IndexError", "AttributeError"}
)
"""What a client raises when it reads a body that is no chat completion."""


class Failure(NamedTuple):
    """One failed request.

    Attributes:
        kind: "timeout", "connection", "rate_limit", "server", "malformed", "refused", "overflow"
            or "broken" (the chat model itself raised something that no server caused).
        status: HTTP status, None where no answer came.
        said: What the server or the client said, on one line.
        retry_after_s: How long the server asks to wait, in seconds; None where it does not say.
    """

    kind: str
    status: int | None
    said: str
    retry_after_s: float | None = None

    @property
    def is_retried(self) -> bool:
        """True where trying again may help."""
        return self.kind in RETRIED


class ModelFailed(ProposerFailed):
    """The model's infrastructure is broken for good; the campaign fails with this reason.

    Attributes:
        kind: Of the last failure.
        errors: Every failed request as JSON values (`error`, `status`, `wait_s`, `said`).
    """

    def __init__(
        self, reason: str, *, kind: str = "refused", errors: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        """A failure with its reason."""
        super().__init__(reason)
        self.kind = kind
        self.errors = tuple(dict(error) for error in errors)


class ContextOverflow(ModelFailed):
    """The prompt is longer than the model's context; a shorter one may be answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often and how long a request is tried again.

    Attributes:
        retries: Further tries after the first; 0 or more.
        backoff_s: Seconds before the first further try; doubled for each one after it.
        longest_wait_s: Seconds of one wait, at most; also caps what a server asks for.
    """

    retries: int = 6
    backoff_s: float = 1.0
    longest_wait_s: float = 60.0

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            AgentError: A number is negative, not finite or not of its type.
        """
        if type(self.retries) is not int or self.retries < 0:
            msg = f"retries is {quoted(self.retries)}; expected a whole number of at least 0."
            raise AgentError(msg)
        for name in ("backoff_s", "longest_wait_s"):
            value = getattr(self, name)
            if not is_number(value) or value < 0:
                msg = f"{name} is {quoted(value)}; expected seconds, 0 or more."
                raise AgentError(msg)

    def wait_s(self, failure: Failure, *, tried: int, key: str) -> float:
        """Seconds to wait before the next try.

        The backoff lies between half of and the whole of `backoff_s * 2**(tried - 1)`, at a point
        that a hash of the key decides: campaigns that fail together do not come back together,
        and a run that is played again waits the same.

        Args:
            failure: What went wrong.
            tried: Requests so far, at least 1.
            key: Decides the jitter.

        Returns:
            What the server asked for where that is more, at most `longest_wait_s`.
        """
        digest = hashlib.sha256(f"cads-backoff-1:{key}:{tried}".encode()).digest()
        share = 0.5 + digest[0] / 512
        # A power beyond this one is over any cap, and would not fit a float.
        backoff = self.backoff_s * 2.0 ** min(tried - 1, 60) * share
        return min(max(backoff, failure.retry_after_s or 0.0), self.longest_wait_s)


def classify(error: BaseException, *, now: datetime | None = None) -> Failure:
    """What an exception of a chat model means.

    Args:
        error: As raised by LangChain, a provider's client or an HTTP client.
        now: The time that dates in Retry-After are measured from; None: the clock.

    Returns:
        The failure. Its words may hold what the server said, secrets included; see `Client`.
    """
    names = {cls.__name__ for one in _chain(error) for cls in type(one).__mro__}
    text = _words(error)
    status = _status(error)
    own = {cls.__name__ for cls in type(error).__mro__}
    if "ContextOverflowError" in own or (status in (400, 413) and _OVERFLOW.search(text)):
        return Failure("overflow", status, text)
    if status is not None and status >= 300:
        wait = _retry_after(error, now=now or datetime.now(UTC))
        return Failure(_kind_of_status(status, text), status, text, wait)
    if names & {"ModelTimeoutError", "APITimeoutError", "TimeoutException", "TimeoutError"}:
        return Failure("timeout", None, text)
    if names & {"RemoteProtocolError", "DecodingError", "BodyTooLong"} and not _is_silence(error):
        return Failure("malformed", None, text)
    if names & {"ModelConnectionError", "APIConnectionError", "ConnectionError", "TransportError"}:
        return Failure("connection", None, text)
    if "ModelRateLimitError" in own:
        return Failure("rate_limit", None, text)
    if "ModelAPIError" in own:
        return Failure("server", None, text)
    if "ModelError" in own:
        return Failure("refused", None, text)
    # A keyword that the model does not take is the caller's mistake, not the server's.
    if own & _BROKEN_BODY and "unexpected keyword" not in text:
        return Failure("malformed", status, text)
    return Failure("broken", status, text)


def is_refused_connection(error: BaseException) -> bool:
    """True where nothing listens at the address."""
    return any(
        isinstance(one, ConnectionRefusedError) or "connection refused" in said(one).lower()
        for one in _chain(error)
    )


def scrubbed(text: str, secrets: Sequence[str]) -> str:
    """Text without secrets.

    Args:
        text: What a server or a client said.
        secrets: Keys that must not be shown; those under 6 characters would hit plain words.
    """
    for secret in secrets:
        if len(secret) >= 6:
            text = text.replace(secret, "[key]")
    return re.sub(r"(?i)(bearer\s+|\bsk-)[\w.*-]{6,}", r"\1[key]", text)


def _kind_of_status(status: int, text: str) -> str:
    if status == 429:
        return "refused" if any(code in text for code in _NO_CREDIT) else "rate_limit"
    if status == 408:
        return "timeout"
    return "server" if status >= 500 or status in (409, 425) else "refused"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and what caused it."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or one.__context__


def _words(error: BaseException) -> str:
    """What the exception and its root say, on one line; a client's wrapper often says nothing."""
    text = said(error) or type(error).__name__
    if _status(error) is not None:
        # The server spoke: what the client adds says nothing more.
        told = plain_text(printable(" ".join(_STATUS_AGAIN.sub("", text).split())), _SAID)
        return told or "the server gives no reason"
    words = said(list(_chain(error))[-1])
    if words and words not in text:
        text = f"{text} ({words})"
    return plain_text(printable(" ".join(text.split())), _SAID)


def _status(error: BaseException) -> int | None:
    """The HTTP status of an exception, or of the one that it was raised from."""
    one: BaseException | None = error
    while one is not None:
        response = getattr(one, "response", None)
        for value in (
            getattr(one, "status_code", None),
            getattr(response, "status_code", None),
            getattr(one, "code", None),
        ):
            if type(value) is int and 100 <= value <= 599:
                return value
        one = one.__cause__
    return None


def _is_silence(error: BaseException) -> bool:
    """True where the connection closed before a first byte: nobody answered."""
    return any("without sending a response" in said(one) for one in _chain(error))


def _retry_after(error: BaseException, *, now: datetime) -> float | None:
    """Seconds that a Retry-After header asks for, as a number or as an HTTP date."""
    value = None
    one: BaseException | None = error
    while one is not None and value is None:
        headers = getattr(getattr(one, "response", None), "headers", None)
        value = headers.get("retry-after") if headers is not None else None
        one = one.__cause__
    if not isinstance(value, str):
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            when = email.utils.parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = (when - now).total_seconds() if when.tzinfo else math.nan
    return max(0.0, seconds) if math.isfinite(seconds) else None

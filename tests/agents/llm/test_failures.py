from __future__ import annotations

import pickle
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from cads_agents.llm.failures import (
    ContextOverflow,
    Failure,
    ModelFailed,
    Patience,
    classify,
    scrubbed,
)
from cads_env.errors import AgentError
from cads_env.proposer import ProposerFailed

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


class StatusError(Exception):
    """What a provider's client raises on an HTTP status."""

    def __init__(self, status: int, said: str = "no", headers: dict[str, str] | None = None):
        super().__init__(f"Error code: {status} - {said}")
        self.response = SimpleNamespace(status_code=status, headers=headers or {})


def _named(name: str, said: str = "x") -> Exception:
    kind: Any = type(name, (Exception,), {})
    error: Exception = kind(said)
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (StatusError(429), "rate_limit"),
        (StatusError(429, "insufficient_quota: add credit"), "refused"),
        (StatusError(500), "server"),
        (StatusError(503), "server"),
        (StatusError(529), "server"),
        (StatusError(408), "timeout"),
        (StatusError(401), "refused"),
        (StatusError(404), "refused"),
        (StatusError(422), "refused"),
        (StatusError(302), "refused"),
        (StatusError(400, "bad value"), "refused"),
        (StatusError(400, "This model's maximum context length is 9 tokens"), "overflow"),
        (StatusError(400, "code context_length_exceeded"), "overflow"),
        (StatusError(400, "prompt is too long: 9 tokens > 8 maximum"), "overflow"),
        (_named("ContextOverflowError"), "overflow"),
        (_named("ModelTimeoutError"), "timeout"),
        (TimeoutError("late"), "timeout"),
        (_named("ModelConnectionError"), "connection"),
        (ConnectionRefusedError(111, "Connection refused"), "connection"),
        (_named("ModelRateLimitError"), "rate_limit"),
        (_named("ModelAPIError"), "server"),
        (_named("ModelError"), "refused"),
        (_named("RemoteProtocolError", "peer closed connection"), "malformed"),
        (_named("BodyTooLong"), "malformed"),
        (KeyError("choices"), "malformed"),
        (IndexError("list index out of range"), "malformed"),
        (TypeError("f() got an unexpected keyword argument 'seed'"), "broken"),
        (RuntimeError("odd"), "broken"),
    ],
)
def test_an_exception_has_one_kind(error: Exception, kind: str) -> None:
    assert classify(error).kind == kind


def test_the_status_is_found_on_what_an_error_was_raised_from() -> None:
    wrapper = _named("ModelAPIError", "Error calling model")
    wrapper.__cause__ = StatusError(503, headers={"retry-after": "4"})
    failure = classify(wrapper)
    assert (failure.kind, failure.status, failure.retry_after_s) == ("server", 503, 4.0)


def test_a_server_that_hangs_up_before_a_byte_was_not_reached() -> None:
    silent = _named("RemoteProtocolError", "Server disconnected without sending a response.")
    wrapper = _named("APIConnectionError", "Connection error.")
    wrapper.__cause__ = silent
    failure = classify(wrapper)
    assert failure.kind == "connection"
    assert "without sending a response" in failure.said


def test_a_body_cut_in_two_is_malformed_though_the_client_calls_it_a_connection_error() -> None:
    wrapper = _named("ModelConnectionError", "Connection error.")
    wrapper.__cause__ = _named("RemoteProtocolError", "peer closed connection without sending")
    assert classify(wrapper).kind == "malformed"


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("Mon, 30 Nov 2026 12:00:09 GMT", 9.0),
        ("Mon, 30 Nov 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        ("nan", None),
        ("Mon, 30 Nov 2026 12:00:09 -0000", None),
    ],
)
def test_retry_after_is_read_as_seconds_and_as_a_date(header: str, seconds: float | None) -> None:
    failure = classify(StatusError(429, headers={"retry-after": header}), now=NOW)
    assert failure.retry_after_s == seconds


def test_the_clients_own_preface_is_not_the_servers_words() -> None:
    assert classify(StatusError(500, "the engine is dead")).said == "the engine is dead"


def test_words_are_one_short_printable_line() -> None:
    said = classify(StatusError(500, "a\nb\x07" + "c" * 10_000)).said
    assert said.isprintable()
    assert len(said) < 400


def test_waits_double_with_a_jitter_that_the_key_decides() -> None:
    patience = Patience(backoff_s=1.0, longest_wait_s=100.0)
    failure = Failure("server", 500, "x")
    waits = [patience.wait_s(failure, tried=n, key="a") for n in range(1, 6)]
    assert waits == [patience.wait_s(failure, tried=n, key="a") for n in range(1, 6)]
    assert waits != [patience.wait_s(failure, tried=n, key="b") for n in range(1, 6)]
    for tried, wait in enumerate(waits):
        assert 0.5 * 2**tried <= wait <= 2**tried


def test_no_wait_is_longer_than_declared_whatever_the_server_asks_for() -> None:
    patience = Patience(backoff_s=1.0, longest_wait_s=5.0)
    assert patience.wait_s(Failure("rate_limit", 429, "x", 3_600.0), tried=1, key="a") == 5.0
    assert patience.wait_s(Failure("server", 500, "x"), tried=10_000, key="a") == 5.0


def test_a_server_that_asks_for_a_wait_gets_it() -> None:
    patience = Patience(backoff_s=0.1, longest_wait_s=60.0)
    assert patience.wait_s(Failure("rate_limit", 429, "x", 7.0), tried=1, key="a") == 7.0


@pytest.mark.parametrize(
    "setting", [{"retries": -1}, {"retries": 1.5}, {"backoff_s": -1}, {"longest_wait_s": "x"}]
)
def test_an_impossible_patience_is_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(AgentError, match=next(iter(setting))):
        Patience(**setting)


def test_secrets_leave_no_trace_in_words() -> None:
    said = "Incorrect API key provided: topsecret1; Bearer abcdefgh12; sk-proj-AAAA1111"
    clean = scrubbed(said, ["topsecret1"])
    for secret in ("topsecret1", "abcdefgh12", "AAAA1111"):
        assert secret not in clean


def test_an_overflow_that_nobody_catches_fails_the_campaign_and_survives_pickling() -> None:
    error = ContextOverflow("too long", kind="overflow", errors=[{"error": "overflow"}])
    assert isinstance(error, ModelFailed)
    assert isinstance(error, ProposerFailed)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.kind, copy.errors) == ("too long", "overflow", error.errors)

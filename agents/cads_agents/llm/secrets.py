"""What looks like a key among the settings of a model, which are stored with every run.

Looks at names and values; knows no provider's client. Never repeats what it found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from cads_env.errors import AgentError, quoted

KEYLESS: Final = "EMPTY"
"""The key that servers without keys are sent; the one literal key that a config may hold."""

_ADVICE: Final = (
    "settings are stored with every run. Use `api_key_env`, or build the chat model in Python and "
    "hand over the object."
)
_NAME: Final = re.compile(
    r"api[-_]?key|secret|password|passwd|authorization|cookie|bearer|credential"
    r"|(?:access|auth|id|private|refresh|session|security)[-_]?token|subscription[-_]?key",
    re.IGNORECASE,
)
_HEADER: Final = re.compile(r"(?:^|[-_])(?:token|key|auth|pass|pwd|signature)$", re.IGNORECASE)
"""What headers and queries call a key besides; elsewhere such a name may mean anything."""

_VALUE: Final = re.compile(
    r"(?<![\w-])(?:sk-(?=[\w-]*\d)[\w-]{10,}|hf_\w{8,}|gh[pousr]_\w{16,}|glpat-[\w-]{8,}|xai-\w{16,}"
    r"|gsk_\w{16,}|nvapi-[\w-]{16,}|r8_\w{16,}|AIza[\w-]{20,}|AKIA[0-9A-Z]{12,}|eyJ[\w-]{10,}\."
    r"|bearer\s+[\w.~+/-]{6,})",
    re.IGNORECASE,
)
"""How the keys of providers begin."""

_USER_IN_URL: Final = re.compile(r"://[^/\s?#]*@")
_VARIABLE: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def check_secrets(given: Mapping[str, Any]) -> None:
    """Raise `AgentError` where the settings of a model hold a key; the message has none.

    Args:
        given: As `model_settings` takes them, of the right types.
    """
    if given.get("api_key") not in (None, KEYLESS):
        msg = (
            "The settings of a model hold an API key; they are stored with every run. Put the key "
            "into an environment variable and name it: `api_key_env: MY_KEY`."
        )
        raise AgentError(msg)
    variable = given.get("api_key_env")
    if variable is not None and (_holds_key(variable) or not _VARIABLE.fullmatch(variable)):
        msg = (
            "api_key_env holds what is no name of a variable, perhaps the key itself. Put the key "
            "into an environment variable and name that one: `api_key_env: MY_KEY`."
        )
        raise AgentError(msg)
    _check_url(given.get("base_url") or "")
    for path, name, value in _leaves(given, ""):
        if name in ("api_key", "api_key_env") and not path:
            continue
        is_named = _NAME.search(f"{path}.{name}") or (
            _HEADER.search(name) and re.search("header|query", path, re.IGNORECASE)
        )
        if (is_named and value not in (None, "", KEYLESS)) or _holds_key(value):
            where = f"{path} has {quoted(name)}, which" if path else name
            msg = f"{where} holds a secret; {_ADVICE}"
            raise AgentError(msg)


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        msg = f"base_url is no address ({error}); expected one such as http://127.0.0.1:8000/v1."
        raise AgentError(msg) from None
    if "@" in parts.netloc:
        msg = (
            "base_url holds a user name or a password; settings are stored with every run. Put "
            "the key into an environment variable and name it with `api_key_env`."
        )
        raise AgentError(msg)
    if parts.query or parts.fragment:
        msg = (
            "base_url goes on after a ? or a #, where a path is added to it; expected an address "
            "such as http://127.0.0.1:8000/v1. A key belongs into an environment variable, named "
            "with `api_key_env`; other parameters into `options: {default_query: {...}}`."
        )
        raise AgentError(msg)


def _holds_key(value: object) -> bool:
    return isinstance(value, str) and bool(_VALUE.search(value) or _USER_IN_URL.search(value))


def _leaves(value: object, path: str) -> Iterator[tuple[str, str, object]]:
    """Every value that is no container: where it stands, under which name, and itself."""
    where, _, last = path.rpartition(".")
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if _holds_key(str(name)):
                # A key in a name's place; the name is not shown.
                yield path, "a name", name
            yield from _leaves(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for inner in value:
            yield from _leaves(inner, path)
    else:
        yield where, last, value


def check_json(value: object, *, name: str) -> None:
    """Raise `AgentError` where a setting is no JSON: it could not be stored with the run."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        msg = f"model's setting {name} is no JSON ({error}); expected plain, finite values."
        raise AgentError(msg) from None

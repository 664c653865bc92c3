"""A chat model from what a config says: a name, a mapping, or an object that is used as given.

Settings are plain JSON values and hold no key: keys come from the environment. Importing this file
imports no LangChain; building a model does.
"""

from __future__ import annotations

import ipaddress
import math
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from cads_agents.llm.failures import scrubbed
from cads_agents.llm.secrets import KEYLESS, check_json, check_secrets
from cads_env.errors import AgentError, MissingExtraError, error_text, quoted, suggest

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

OPENAI_API: Final = "https://api.openai.com/v1"

_SETTINGS: Final = (
    "provider", "model", "base_url", "api_key", "api_key_env", "extra_body", "default_headers",
    "options",
)  # fmt: skip
_PROVIDERS: Final = frozenset(
    "anthropic anthropic_bedrock azure_ai azure_openai bedrock bedrock_converse cohere deepseek "
    "fireworks google_anthropic_vertex google_genai google_vertexai groq huggingface ibm litellm "
    "mistralai nvidia ollama openai openrouter perplexity together upstage xai".split()
)
"""Those that LangChain's `init_chat_model` knows."""

_BOUNDED: Final = {"anthropic": 0, "google_genai": 1, "groq": 0, "mistralai": 0}
"""What `max_retries` of these providers' classes must be for one request and no further one."""


def model_settings(model: str | Mapping[str, Any]) -> dict[str, Any]:
    """A model's settings in full, as JSON values; settings in full stay as they are.

    Args:
        model: "openai:NAME" or "PROVIDER:NAME" as LangChain's `init_chat_model` takes it, NAME
            alone for OpenAI's and compatible servers, or a mapping: `model`, `provider` ("openai"),
            `base_url`, `api_key_env` (name of the variable that holds the key), `extra_body`,
            `default_headers`, `options` (further arguments of the provider's class).

    Raises:
        AgentError: An unknown setting, a value of another type, or a key in the settings.
    """
    given: Mapping[str, Any] = {"model": model} if isinstance(model, str) else model
    if not isinstance(given, Mapping):
        msg = (
            f"model is a {type(model).__name__}; expected a LangChain chat model, a name such as "
            "'openai:gpt-4o-mini', or a mapping such as {model: NAME, base_url: URL}."
        )
        raise AgentError(msg)
    for key in given:
        if key not in _SETTINGS:
            msg = f"model has no setting {quoted(key)}. {suggest(str(key), _SETTINGS)}"
            raise AgentError(msg)
    _check_types(given)
    check_secrets(given)
    name, provider = given["model"], given.get("provider")
    # A colon may belong to the name (qwen:7b); known providers alone stand before one.
    before, _, after = name.partition(":")
    if provider is None and after and before in _PROVIDERS:
        name, provider = after, before
    settings = {"provider": provider or "openai", "model": name}
    return settings | {
        key: given[key] for key in _SETTINGS[2:] if key != "api_key" and given.get(key)
    }


def build_model(settings: Mapping[str, Any], *, timeout_s: float) -> BaseChatModel:
    """The LangChain chat model that settings describe.

    Args:
        settings: As `model_settings` gives them.
        timeout_s: Seconds until a request counts as failed.

    Raises:
        MissingExtraError: A package is not installed; the message has the line that installs it.
        AgentError: The key's variable is not set, or the class refuses the settings.
    """
    try:
        if settings["provider"] == "openai":
            return _openai(settings, timeout_s=timeout_s)
        return _other(settings, timeout_s=timeout_s)
    except (AgentError, MissingExtraError):
        raise
    except ImportError as error:
        raise _missing(settings["provider"], error) from error
    # Somebody's class checks its own arguments in its own way.
    except Exception as error:
        key = os.environ.get(settings.get("api_key_env") or "OPENAI_API_KEY", "")
        words = scrubbed(error_text(error), [key])
        msg = f"The chat model {quoted(settings['model'])} cannot be built: {words}"
        # The cause may quote the key.
        raise AgentError(msg) from None


def is_local(url: str | None) -> bool:
    """True for an address of this machine or of a private network: its tokens cost nothing."""
    host = urlsplit(url).hostname if url else None
    if host is None:
        return False
    if host == "localhost" or host.endswith((".localhost", ".local", ".internal", ".lan")):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        # A bare name is a machine of this network or a container's.
        return "." not in host
    return address.is_private or address.is_loopback or address.is_link_local


def is_openai_family(model: object) -> bool:
    """True for LangChain's chat models over OpenAI's protocol."""
    return any(cls.__name__ == "BaseChatOpenAI" for cls in type(model).__mro__)


def _openai(settings: Mapping[str, Any], *, timeout_s: float) -> BaseChatModel:
    """ChatOpenAI, or what serves the same protocol: no retries of its own, bounded bodies."""
    import openai

    from cads_agents.llm.transport import bounded_body, chat_class

    # The environment's address is made explicit, so that the settings and the key agree on it.
    url = settings.get("base_url") or os.environ.get("OPENAI_BASE_URL") or None
    client = openai.DefaultHttpxClient(
        timeout=timeout_s, event_hooks={"response": [bounded_body(timeout_s)]}
    )
    given = {
        "model": settings["model"],
        "base_url": url,
        "api_key": _key(settings, url=url),
        "timeout": timeout_s,
        "max_retries": 0,
        "use_responses_api": False,
        "extra_body": settings.get("extra_body"),
        "default_headers": settings.get("default_headers"),
        "http_client": client,
    }
    built: BaseChatModel = chat_class()(**(given | settings.get("options", {})))
    return built


def _other(settings: Mapping[str, Any], *, timeout_s: float) -> BaseChatModel:
    """Another provider's model through LangChain's `init_chat_model`.

    Retries of its own are off and the time is bounded where the class is known to take both.
    """
    from langchain.chat_models import init_chat_model

    given: dict[str, Any] = {
        key: settings[key] for key in ("base_url", "default_headers") if key in settings
    }
    if settings["provider"] in _BOUNDED:
        # Some classes take whole seconds alone.
        given |= {"max_retries": _BOUNDED[settings["provider"]], "timeout": math.ceil(timeout_s)}
    elif settings["provider"] == "ollama":
        given["client_kwargs"] = {"timeout": timeout_s}
    if "extra_body" in settings:
        msg = (
            f"extra_body is sent to OpenAI-compatible servers alone, not to {settings['provider']}."
            " Put further arguments of the provider's class under `options`."
        )
        raise AgentError(msg)
    if "api_key_env" in settings:
        given["api_key"] = _key(settings, url=None)
    model: BaseChatModel = init_chat_model(
        settings["model"],
        model_provider=settings["provider"],
        **(given | settings.get("options", {})),
    )
    return model


def _key(settings: Mapping[str, Any], *, url: str | None) -> str:
    """The key from the environment; servers of one's own may need none."""
    variable = settings.get("api_key_env") or "OPENAI_API_KEY"
    key = os.environ.get(variable, "").strip()
    if not key and "api_key_env" not in settings and is_local(url):
        return KEYLESS
    if not key:
        msg = (
            f"No API key for {url or OPENAI_API}: the variable {variable} is not set. "
            f"Set it, or name another with `api_key_env`."
        )
        raise AgentError(msg)
    return key


def _check_types(given: Mapping[str, Any]) -> None:
    """Raise `AgentError` where a setting is of another type."""
    if not isinstance(given.get("model"), str) or not given["model"].strip():
        msg = f"model's setting `model` is {quoted(given.get('model'))}; expected a name."
        raise AgentError(msg)
    for key in ("provider", "base_url", "api_key", "api_key_env"):
        value = given.get(key)
        if value is not None and (not isinstance(value, str) or not value):
            msg = f"model's setting {key} is {quoted(value)}; expected text."
            raise AgentError(msg)
    for key in ("extra_body", "default_headers", "options"):
        if not isinstance(given.get(key, {}), Mapping):
            msg = f"model's setting {key} is a {type(given[key]).__name__}; expected a mapping."
            raise AgentError(msg)
        check_json(given.get(key, {}), name=key)
    url = given.get("base_url")
    if url is not None and not re.match(r"https?://[^/?#]", url):
        shown = quoted(re.sub(r".*@", "...@", url))
        msg = f"base_url is {shown}; expected an address such as http://127.0.0.1:8000/v1."
        raise AgentError(msg)


def _missing(provider: str, error: ImportError) -> MissingExtraError:
    # LangChain's own message names the package of a provider.
    line = (
        "pip install 'cads-env[llm]'"
        if provider == "openai"
        else f"pip install langchain langchain-{provider.replace('_', '-')}"
    )
    msg = f"Chat models of {quoted(provider)} need another package ({error_text(error)}): {line}"
    return MissingExtraError(msg)

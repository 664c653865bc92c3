"""What may be said of a chat model object, and what must not: its class, name, address; its keys.

Knows LangChain's classes by their fields alone and imports none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from cads_agents.llm.model import KEYLESS, is_openai_family


def object_settings(model: Any) -> dict[str, Any]:
    """The settings of a chat model that was built elsewhere: `class`, `model`, `base_url`."""
    name = next(
        (
            value
            for field in ("model_name", "model", "model_id", "repo_id")
            if isinstance(value := getattr(model, field, None), str) and value
        ),
        type(model).__name__,
    )
    about = {"class": f"{type(model).__module__}.{type(model).__qualname__}", "model": name}
    url = getattr(model, "openai_api_base", None) or getattr(model, "base_url", None)
    return about | ({"base_url": _without_user(url)} if isinstance(url, str) else {})


def without_own_retries(model: Any) -> Any:
    """The chat model without retries of its own: the client's are counted and written down."""
    if not is_openai_family(model) or getattr(model, "root_client", None) is None:
        return model
    root = model.root_client.with_options(max_retries=0)
    return model.model_copy(update={"root_client": root, "client": root.chat.completions})


def secrets_of(model: Any) -> tuple[str, ...]:
    """Every secret that a chat model holds, so that no message repeats one."""
    found: list[object] = [getattr(getattr(model, "root_client", None), "api_key", None)]
    for name in type(model).model_fields:
        value: Any = getattr(model, name, None)
        if hasattr(value, "get_secret_value"):
            found.append(value.get_secret_value())
        elif name in ("default_headers", "default_query") and isinstance(value, Mapping):
            found.extend(value.values())
    return tuple({one for one in found if isinstance(one, str) and one != KEYLESS})


def url_of(model: Any, about: Mapping[str, Any]) -> str:
    """The address that is asked, without a user's name or password; for messages and prices."""
    url = getattr(getattr(model, "root_client", None), "base_url", None) or about.get("base_url")
    return (
        _without_user(str(url)).rstrip("/") if url else f"its {about.get('provider', 'provider')}"
    )


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

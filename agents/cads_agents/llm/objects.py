"""What may be said of a chat model object, and what must not: its class, name, address; its keys.

Knows LangChain's classes by their fields alone and imports none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from cads_agents.llm.chat import SAMPLING_FIELDS
from cads_agents.llm.model import is_openai_family
from cads_agents.llm.secrets import KEYLESS

_MOST_PARTS: Final = 50
"""Parts of a chain that are looked at."""

_MAIN: Final = ("bound", "runnable", "first", "middle", "last")
"""Fields in which wrappers hold the model that is asked first: arguments and retries, a model with
others to fall back on, chains."""


def object_settings(model: Any) -> dict[str, Any]:
    """The settings of a chat model that was built elsewhere: `class`, `model`, `base_url`.

    A model with bound arguments or retries is called as the model inside.
    """
    inside = parts_of(model)
    named = (
        value
        for one in inside
        for field in ("model_name", "model", "model_id", "repo_id")
        if isinstance(value := getattr(one, field, None), str) and value
    )
    name = next(named, type(model).__name__)
    about = {"class": f"{type(model).__module__}.{type(model).__qualname__}", "model": name}
    url = next(filter(None, map(_own_url, inside)), None)
    return about | ({"base_url": _bare(url)} if url else {})


def own_sampling(model: Any) -> dict[str, Any]:
    """The temperature, top_p and max_tokens that a chat model object was built or bound with.

    What its class fills in by itself is not its own. The outermost of several parts wins, as it
    does when LangChain calls them. Settings of a model, which are no object, have none.
    """
    if isinstance(model, str | Mapping):
        return {}
    found: dict[str, Any] = {}
    for one in parts_of(model, fields=_MAIN):
        bound = vars(one).get("kwargs") if hasattr(one, "__dict__") else None
        given: dict[str, Any] = dict(bound) if isinstance(bound, Mapping) else {}
        chosen = getattr(one, "model_fields_set", None)
        if isinstance(chosen, (set, frozenset)):
            given |= {x: getattr(one, x, None) for x in chosen}
        for setting in ("temperature", "top_p", "max_tokens"):
            values = [given[x] for x in SAMPLING_FIELDS[setting] if given.get(x) is not None]
            if values:
                found.setdefault(setting, values[0])
    return found


def parts_of(model: Any, *, fields: tuple[str, ...] = (*_MAIN, "fallbacks")) -> list[Any]:
    """A chat model and those inside it: LangChain's wrappers hold others.

    Args:
        model: The outermost.
        fields: Where others are looked for.
    """
    found: list[Any] = []
    waiting = [model]
    while waiting and len(found) < _MOST_PARTS:
        one = waiting.pop(0)
        found.append(one)
        for field in fields:
            inner = vars(one).get(field) if hasattr(one, "__dict__") else None
            if inner is not None:
                waiting += inner if isinstance(inner, (list, tuple)) else [inner]
    return found


def _own_url(model: Any) -> str | None:
    url = getattr(model, "openai_api_base", None) or getattr(model, "base_url", None)
    return url if isinstance(url, str) else None


def without_own_retries(model: Any) -> Any:
    """The chat model without retries of its own: the client's are counted and written down."""
    if not is_openai_family(model) or getattr(model, "root_client", None) is None:
        return model
    root = model.root_client.with_options(max_retries=0)
    return model.model_copy(update={"root_client": root, "client": root.chat.completions})


def secrets_of(model: Any) -> tuple[str, ...]:
    """Every secret that a chat model holds, so that no message repeats one."""
    found: list[object] = []
    for one in parts_of(model):
        found.append(getattr(getattr(one, "root_client", None), "api_key", None))
        for name in getattr(type(one), "model_fields", ()):
            value: Any = getattr(one, name, None)
            if hasattr(value, "get_secret_value"):
                found.append(value.get_secret_value())
            elif name in ("default_headers", "default_query") and isinstance(value, Mapping):
                found.extend(value.values())
    return tuple({one for one in found if isinstance(one, str) and one != KEYLESS})


def url_of(model: Any, about: Mapping[str, Any]) -> str:
    """The address that is asked, without a user's name, a password or a query; for messages."""
    url = getattr(getattr(model, "root_client", None), "base_url", None) or about.get("base_url")
    return _bare(str(url)).rstrip("/") if url else f"its {about.get('provider', 'provider')}"


def _bare(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

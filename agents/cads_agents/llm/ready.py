"""Whether a server is there and serves the model: asked once, before the first read of a run.

Sends no prompt. Looks at OpenAI-compatible servers alone; other providers are taken at their word.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from cads_agents.llm.failures import Failure, ModelFailed, classify, is_refused_connection
from cads_env.errors import quoted

READY_TIMEOUT_S: Final = 10.0
"""Seconds for the list of models, at most."""

_LISTED: Final = 10
_LAST_PORT: Final = 65_535


class Served(NamedTuple):
    """What a server says of the model that is asked for.

    Attributes:
        names: Every name that it serves.
        aliases: Names of the same weights as the model's, its own among them.
        context_tokens: Tokens of a prompt and its answer together; None where it does not say.
        root: The weights behind the name; empty where it does not say.
    """

    names: tuple[str, ...]
    aliases: tuple[str, ...]
    context_tokens: int | None
    root: str


def ask_served(model: Any, *, name: str) -> Served:
    """What `GET /models` says; raises whatever the client raises.

    Args:
        model: A ChatOpenAI; its own client is used, with its key and headers.
        name: The model that is asked for.
    """
    client = model.root_client.with_options(timeout=READY_TIMEOUT_S, max_retries=0)
    cards = [card.model_dump() for card in client.models.list().data or ()]
    names = tuple(card["id"] for card in cards if isinstance(card.get("id"), str))
    own: dict[str, Any] = next((card for card in cards if card.get("id") == name), {})
    length, root = own.get("max_model_len"), own.get("root")
    same = {c["id"] for c in cards if root and c.get("root") == root and c.get("id") in names}
    return Served(
        names=names,
        aliases=tuple(sorted(same | {name})),
        context_tokens=length if type(length) is int and length > 0 else None,
        root=root if isinstance(root, str) else "",
    )


def is_served_below(model: Any, *, url: str) -> bool:
    """True where the list of models is at `url`/v1 and not at `url`: a base_url cut short.

    Args:
        model: As in `ask_served`.
        url: The address that lacks something.
    """
    if not lacks_version(url):
        return False
    root = model.root_client.with_options(
        timeout=READY_TIMEOUT_S, max_retries=0, base_url=f"{url}/v1"
    )
    # Whatever goes wrong there: it is not the address that was meant.
    with contextlib.suppress(Exception):
        return bool(root.models.list().data)
    return False


def lacks_version(url: str) -> bool:
    """True where an address's path has no version such as v1, nor Azure's deployments."""
    return not re.search(r"/v\d|/deployments/", urlsplit(url).path)


def check_served(
    ask: Callable[[], Served],
    *,
    name: str,
    url: str,
    scrub: Callable[[str], str],
    is_below: Callable[[], bool],
) -> Served:
    """What a server serves, checked.

    Args:
        ask: Asks the server.
        name: The model that is asked for.
        url: The server's address, for messages.
        scrub: Takes secrets out of a server's words.
        is_below: Whether the server is at `url`/v1; asked where it is not at `url`.

    Raises:
        ModelFailed: Nobody answers, the key is refused, the address lacks /v1, or another model is
            served.
    """
    try:
        served = ask()
    # Whatever a client raises is classified; what the user needs is the address and the command.
    except Exception as error:
        failure = classify(error)
        if (failure.status == 404 or failure.kind == "malformed") and is_below():
            raise ModelFailed(_cut_short(url), kind="refused") from None
        if failure.status in (404, 405, 501):
            # A server without that list may still answer prompts.
            return Served((), (name,), None, "")
        msg = _unready(failure, error, name=name, url=url, words=scrub(failure.said))
        raise ModelFailed(msg, kind=failure.kind) from None
    if not served.names and is_below():
        raise ModelFailed(_cut_short(url), kind="refused")
    if served.names and name not in served.names:
        raise ModelFailed(_not_served(name, url, served.names), kind="refused")
    return served


def start_command(name: str, url: str, *, is_taken: bool = False) -> str:
    """The command that starts a server for a model at an address.

    Args:
        name: The model.
        url: The address.
        is_taken: Whether something listens there: the command then names the next port.
    """
    port = urlsplit(url).port
    if port and is_taken:
        port += 1 if port < _LAST_PORT else -1
    return f"cads serve {name}{f' --port {port}' if port else ''}"


def _cut_short(url: str) -> str:
    return f"base_url {url} lacks /v1: give {url}/v1 (`-A base_url={url}/v1`)."


def _unready(failure: Failure, error: Exception, *, name: str, url: str, words: str) -> str:
    if is_refused_connection(error):
        return (
            f"No server answers at {url} (connection refused). "
            f"Start one with: {start_command(name, url)}"
        )
    if failure.status in (401, 403):
        return (
            f"The server at {url} refuses the API key (HTTP {failure.status}: {words}). Set the "
            "variable that holds it: OPENAI_API_KEY, or the one that `api_key_env` names."
        )
    return (
        f"The server at {url} is not ready ({failure.kind}"
        f"{f', HTTP {failure.status}' if failure.status else ''}: {words}). Wait until it has "
        f"loaded its model, or start one with: {start_command(name, url, is_taken=True)}"
    )


def _not_served(name: str, url: str, names: Sequence[str]) -> str:
    shown = ", ".join(quoted(one) for one in names[:_LISTED])
    rest = len(names) - _LISTED
    return (
        f"The server at {url} does not serve {quoted(name)}; it serves "
        f"{shown}{f' and {rest:,} more' if rest > 0 else ''}. Ask for one of these with "
        "`-A model=NAME`, or start another server, which has an address of its own: "
        f"{start_command(name, url, is_taken=True)}"
    )

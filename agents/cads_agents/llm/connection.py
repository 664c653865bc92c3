"""An agent's way to its model, opened when something is asked: a replay opens none.

So a run is replayed where neither the server nor LangChain is there. Keeps nothing of what is
asked and answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from cads_agents.llm.client import Client, shared_client
from cads_agents.llm.failures import Patience
from cads_agents.llm.numbers import check_positive
from cads_agents.llm.pace import Pace
from cads_agents.llm.prices import Price, price_of
from cads_env.errors import AgentError, quoted

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from cads_agents.llm.sampling import Sampling


class ChatClient(Protocol):
    """What asks the model: the connection of this package, or another with these three."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        seed: int,
        extra_body: Mapping[str, Any] | None = None,
    ) -> Mapping[str, Any]:
        """One answer: `text`, `finish_reason`, `usage` and more, as JSON values.

        Raises:
            ProposerFailed: Infrastructure is broken for good.
            ContextOverflow: The prompt is longer than the model's context.
        """
        ...

    def check_ready(self) -> None:
        """Raise `ProposerFailed` when nothing answers there."""
        ...


class Connection:
    """The process's shared client for a model and its settings, from the first need on."""

    def __init__(
        self,
        model: BaseChatModel | Mapping[str, Any],
        *,
        sampling: Sampling,
        **settings: Any,
    ) -> None:
        """Keep what the client is made of.

        Args:
            model: A chat model, or settings as `model_settings` gives them.
            sampling: As `Client` takes it.
            **settings: As `check_settings` takes them.

        Raises:
            AgentError: A setting is not usable.
        """
        check_settings(**settings)
        settings["sampling"] = sampling
        self._model, self._settings = model, settings
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        """The client.

        Raises:
            AgentError: A setting is not usable.
            MissingExtraError: LangChain is not installed.
        """
        if self._client is None:
            self._client = shared_client(self._model, **self._settings)
        return self._client

    @property
    def name(self) -> str:
        """The model's name; from its settings it is known without a client."""
        if isinstance(self._model, Mapping):
            return str(self._model["model"])
        return self.client.name

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        seed: int,
        extra_body: Mapping[str, Any] | None = None,
    ) -> Mapping[str, Any]:
        """One answer; see `Client.complete`."""
        return self.client.complete(messages, seed=seed, extra_body=extra_body)

    def check_ready(self) -> None:
        """See that the model can be reached; see `Client.check_ready`."""
        self.client.check_ready()


def check_settings(
    *,
    timeout_s: float,
    retries: int,
    backoff_s: float,
    longest_wait_s: float,
    requests_per_second: float | None,
    prices: Mapping[str, Any] | Price | None,
    reported_as: Sequence[str],
) -> None:
    """Raise unless a client can be made of these, so that a run is refused before it begins.

    Args:
        timeout_s: This and all others as `Client` takes them.
        retries: See there.
        backoff_s: See there.
        longest_wait_s: See there.
        requests_per_second: See there.
        prices: See there.
        reported_as: See there.

    Raises:
        AgentError: Names the setting, what it holds and what was expected.
    """
    check_positive(timeout_s, name="timeout_s")
    Patience(retries=retries, backoff_s=backoff_s, longest_wait_s=longest_wait_s)
    Pace(requests_per_second)
    if prices is not None:
        price_of("", prices=prices)
    is_list = isinstance(reported_as, Sequence) and not isinstance(reported_as, (str, bytes))
    if not is_list or not all(isinstance(name, str) for name in reported_as):
        msg = f"reported_as is {quoted(reported_as)}; expected a list of names, such as [gpt-4o]."
        raise AgentError(msg)

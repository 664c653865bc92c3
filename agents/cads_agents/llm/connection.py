"""An agent's way to its model, opened when something is asked: a replay opens none.

So a run is replayed where neither the server nor LangChain is there. Keeps nothing of what is
asked and answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from cads_agents.llm.client import Client, check_settings, shared_client

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

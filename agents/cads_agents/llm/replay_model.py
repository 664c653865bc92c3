"""Recorded answers as a LangChain chat model: `ReplayChatModel(folder)` asks nobody.

It answers a request that the run's traces hold, and raises for any other. This is the one module
of the package that imports LangChain when it is imported, since its class derives from LangChain's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cads_agents.llm.guided import guided_names, names_sha256
from cads_agents.llm.recorded import Recorded, Recordings
from cads_env.errors import MissingExtraError, RecordError, ReplayError

try:
    from langchain_core.callbacks import CallbackManagerForLLMRun
    from langchain_core.exceptions import ContextOverflowError
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
    from langchain_core.outputs import ChatGeneration, ChatResult
    from pydantic import PrivateAttr
except ImportError as _error:
    _msg = "ReplayChatModel is a LangChain chat model: pip install 'cads-env[llm]'"
    raise MissingExtraError(_msg) from _error

_ROLES: Final = {"system": "system", "human": "user", "ai": "assistant"}
_SAMPLING: Final = ("temperature", "top_p", "max_tokens", "seed")


class ReplayChatModel(BaseChatModel):
    """Answers from the traces of a run.

    A request is the same when its messages, its model and the sampling arguments that it brings
    (`temperature`, `top_p`, `max_tokens`, `seed`) are. As the model of an `LLMProposer` it answers
    the requests of the campaigns that were recorded:

        LLMProposer(ReplayChatModel("runs/qwen"), prompt="informed")

    Attributes:
        folder: Of the run or the grid.
        model_name: The model that was asked.
    """

    folder: str
    model_name: str
    _recordings: Recordings = PrivateAttr()

    def __init__(self, folder: str | Path, *, model: str | None = None, **more: Any) -> None:
        """Read the traces.

        Args:
            folder: Of a run of an LLM agent, or of a grid of runs.
            model: Which model's answers, where the run asked several; None: the only one.
            **more: As any LangChain chat model takes them (`callbacks`, `tags`, ...).

        Raises:
            RecordError: There are no traces, they are damaged, or of other or several models.
        """
        recordings = Recordings(Path(folder))
        models = recordings.models
        if model is None and len(models) > 1:
            msg = f"{str(folder)!r} holds answers of {', '.join(models)}; expected model= with one."
            raise RecordError(msg)
        name = models[0] if model is None else model
        if name not in models:
            msg = f"{str(folder)!r} holds no answer of {name!r}, but of {', '.join(models)}."
            raise RecordError(msg)
        super().__init__(**{**more, "folder": str(folder), "model_name": name})
        self._recordings = recordings

    @property
    def _llm_type(self) -> str:
        return "cads-replay"

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        return {"folder": self.folder, "model_name": self.model_name}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        """The recorded answer.

        Raises:
            ReplayError: No recorded request is the same; names the nearest and the difference.
            ContextOverflowError: The server refused this prompt as too long.
        """
        names = guided_names(kwargs.get("extra_body"))
        found = self._recordings.find(
            [_plain(message) for message in messages],
            model=self.model_name,
            sampling={name: kwargs[name] for name in _SAMPLING if name in kwargs},
            guided_sha256=None if names is None else names_sha256(names),
        )
        if found.answer.get("overflow") is True:
            raise ContextOverflowError(str(found.answer.get("said", "")))
        message = _message(found)
        return ChatResult(generations=[ChatGeneration(message=message)])


def _plain(message: BaseMessage) -> dict[str, str]:
    if message.type not in _ROLES or not isinstance(message.content, str):
        msg = (
            f"A {message.type} message with content of type {type(message.content).__name__} was "
            "never recorded; expected system, human and ai messages of text."
        )
        raise ReplayError(msg)
    return {"role": _ROLES[message.type], "content": message.content}


def _message(found: Recorded) -> AIMessage:
    answer = found.answer
    usage: Mapping[str, Any] = answer.get("usage", {})
    about = {
        "finish_reason": answer.get("finish_reason"),
        "model_name": answer.get("model"),
        "system_fingerprint": answer.get("fingerprint"),
        "id": answer.get("id"),
    }
    thinking = answer.get("thinking")
    return AIMessage(
        content=answer["text"],
        additional_kwargs={"reasoning_content": thinking} if thinking else {},
        response_metadata={name: value for name, value in about.items() if value is not None},
        usage_metadata=None if answer.get("usage_missing") else _usage(usage),
    )


def _usage(usage: Mapping[str, Any]) -> UsageMetadata:
    tokens_in, tokens_out = usage.get("tokens_in", 0), usage.get("tokens_out", 0)
    return UsageMetadata(
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        total_tokens=tokens_in + tokens_out,
        input_token_details=InputTokenDetails(cache_read=usage.get("tokens_cached", 0)),
    )

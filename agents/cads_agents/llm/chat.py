"""One request and one answer, as LangChain's messages and as the plain values that a trace keeps.

Reads nothing out of the text: that is the parser's work, done anew at every use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from cads_agents.llm.sampling import Sampling
from cads_env.errors import AgentError, quoted

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage

SAMPLING_FIELDS: Final = {
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "max_tokens": ("max_tokens", "max_output_tokens", "max_new_tokens", "num_predict"),
    "seed": ("seed", "random_seed"),
}
"""What providers' classes call a sampling setting."""

_NAME: Final = 200
"""Characters of a name or a number that a server gives, at most."""

_BY_KEYWORD: Final = frozenset({"BaseChatOpenAI", "ChatGroq"})
"""Classes that put the keywords of a call into the request, beside their own fields."""


class Ask:
    """A chat model with its sampling: each request sends all of it."""

    def __init__(self, model: BaseChatModel, sampling: Sampling) -> None:
        """See which of a model's fields take the sampling settings.

        Args:
            model: Any LangChain chat model.
            sampling: What is sent.
        """
        self.model = model
        self.sampling = sampling
        classes = {cls.__name__ for cls in type(model).__mro__}
        own = () if classes & _BY_KEYWORD else type(model).model_fields
        self._fields = {
            setting: name
            for setting, names in SAMPLING_FIELDS.items()
            for name in names
            if name in own
        }
        # A class without any of these fields takes them as keywords, or ignores them.
        self._by_keyword = not self._fields
        self.sends_seed = sampling.seed and (self._by_keyword or "seed" in self._fields)
        taken = SAMPLING_FIELDS if self._by_keyword else self._fields
        self.unsent = tuple(sorted(set(SAMPLING_FIELDS) - set(taken) - {"seed"}))

    def __call__(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        seed: int,
        max_tokens: int,
        extra_body: Mapping[str, Any] | None,
    ) -> BaseMessage:
        """The model's answer; raises whatever LangChain raises.

        Args:
            messages: Of `role` and `content`.
            seed: Generation seed.
            max_tokens: Tokens of the answer, at most.
            extra_body: Fields of vLLM's that OpenAI's protocol does not have.
        """
        given = {
            "temperature": self.sampling.temperature,
            "top_p": self.sampling.top_p,
            "max_tokens": max_tokens,
            "seed": seed if self.sends_seed else None,
        }
        said: dict[str, Any] = {name: x for name, x in given.items() if x is not None}
        chat = [_message(one) for one in messages]
        if self._by_keyword:
            if extra_body:
                # A keyword replaces the model's own field as a whole.
                own = getattr(self.model, "extra_body", None) or {}
                said["extra_body"] = {**own, **extra_body}
            answer: BaseMessage = self.model.invoke(chat, **said)
            return answer
        if extra_body:
            msg = (
                f"Guided decoding needs an OpenAI-compatible server; {type(self.model).__name__} "
                "takes no extra_body. Leave `guided` out."
            )
            raise AgentError(msg)
        # Other providers' classes read these as fields; a copy shares their connections.
        update = {self._fields[name]: said[name] for name in said if name in self._fields}
        answer = self.model.model_copy(update=update).invoke(chat)
        return answer


def answer_of(message: BaseMessage, *, model: str) -> dict[str, Any]:
    """An answer as a trace keeps it, without cost and retries.

    Args:
        message: What the chat model gave.
        model: The name that was asked for, where the answer reports none.

    Returns:
        JSON values; see the keys below. `usage_missing` where nobody counted tokens.
    """
    about = message.response_metadata or {}
    text, thinking = _parts(message)
    reason = about.get("finish_reason") or about.get("stop_reason") or about.get("done_reason")
    counts: Mapping[str, Any] = getattr(message, "usage_metadata", None) or {}
    usage = {
        "tokens_in": _count(counts.get("input_tokens")),
        "tokens_out": _count(counts.get("output_tokens")),
        "tokens_cached": _count((counts.get("input_token_details") or {}).get("cache_read")),
        "cost": 0.0,
    }
    answer: dict[str, Any] = {
        "text": text,
        "finish_reason": _reason(reason),
        "model": _short(about.get("model_name") or about.get("model")) or model,
        "fingerprint": _short(about.get("system_fingerprint")),
        "id": _own_id(about.get("id") or message.id),
        "usage": usage,
    }
    if not all(_is_count(counts.get(name)) for name in ("input_tokens", "output_tokens")):
        answer["usage_missing"] = True
    if thinking:
        answer["thinking"] = thinking
    return answer


def _message(one: Mapping[str, str]) -> BaseMessage:
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

    kinds = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
    if one.get("role") not in kinds:
        msg = f"A message has the role {quoted(one.get('role'))}; expected {', '.join(kinds)}."
        raise AgentError(msg)
    made: BaseMessage = kinds[one["role"]](content=one["content"])
    return made


def _parts(message: BaseMessage) -> tuple[str, str]:
    """The text of an answer and what the model thought before it, each as one text."""
    text, thinking = [], []
    blocks = message.content if isinstance(message.content, list) else [message.content]
    for block in blocks:
        if isinstance(block, str):
            text.append(block)
        elif isinstance(block, Mapping):
            # Names of providers: thinking (Anthropic), reasoning (LangChain), text (all).
            text.append(_text(block.get("text")) if block.get("type", "text") == "text" else "")
            thinking.append(_text(block.get("thinking") or block.get("reasoning")))
    thinking.append(_text(message.additional_kwargs.get("reasoning_content")))
    return "".join(text), "\n".join(part for part in thinking if part)


def _reason(reason: object) -> str:
    """Why the answer ended, in OpenAI's words."""
    words = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length"}
    said = _short(reason).lower()
    return words.get(said, said) or "unknown"


def _own_id(value: object) -> str:
    """The answer's number at the server; LangChain draws one where there is none."""
    text = _short(value)
    return "" if text.startswith(("lc_run-", "run-")) else text


def _short(value: object) -> str:
    """A name that a server gives, as far as any sensible one goes."""
    return _text(value)[:_NAME]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and _is_count(value) else 0


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0

"""What ChatOpenAI lacks: a bound on a body's size and time, and the reasoning of a served model.

Imported only where a model is built, since it needs the extra `llm`.
"""

from __future__ import annotations

import functools
import importlib
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

MOST_BODY_BYTES: Final = 8 * 2**20
"""Bytes of one response; an answer of 100,000 tokens takes under one million."""


class BodyTooLong(Exception):
    """A response went on beyond any answer that was asked for."""


def bounded_body(timeout_s: float) -> Callable[[Any], None]:
    """A hook that ends a response which drips on past its time or grows past any answer.

    A client's own timeout bounds the gap between two pieces; a server that sends a byte now and
    then would hold a campaign for ever.

    Args:
        timeout_s: Seconds from the headers to the end of the body.
    """

    def watch(response: Any) -> None:
        http = importlib.import_module(type(response).__module__.partition(".")[0])
        inner, ends = response.stream, time.monotonic() + timeout_s

        class Bounded(http.SyncByteStream):  # type: ignore[name-defined]
            """The response's stream, counted and timed."""

            def __iter__(self) -> Iterator[bytes]:
                size = 0
                for piece in inner:
                    size += len(piece)
                    if size > MOST_BODY_BYTES:
                        msg = f"the response has more than {MOST_BODY_BYTES:,} bytes"
                        raise BodyTooLong(msg)
                    if time.monotonic() > ends:
                        msg = f"the response was not complete after {timeout_s:g} s"
                        raise http.ReadTimeout(msg, request=response.request)
                    yield piece

            def close(self) -> None:
                inner.close()

        response.stream = Bounded()

    return watch


@functools.cache
def chat_class() -> Any:
    """ChatOpenAI that keeps the reasoning which servers give beside the answer.

    OpenAI's protocol has no field for it; vLLM calls it `reasoning`, earlier `reasoning_content`.
    """
    from langchain_openai import ChatOpenAI

    class ServedChat(ChatOpenAI):
        """ChatOpenAI over any server of its protocol."""

        def _create_chat_result(self, response: Any, generation_info: Any = None) -> Any:
            result = super()._create_chat_result(response, generation_info)
            choices = getattr(response, "choices", None) or []
            for generation, choice in zip(result.generations, choices, strict=False):
                extra = getattr(getattr(choice, "message", None), "model_extra", None) or {}
                said = extra.get("reasoning") or extra.get("reasoning_content")
                if isinstance(said, str):
                    generation.message.additional_kwargs["reasoning_content"] = said
            return result

    return ServedChat

"""A small server of OpenAI's protocol whose answers are a function of the request.

    with FakeServer() as server:
        ... server.url, server.requests, server.completed

`/v1/models` lists what it serves, as vLLM does; `/v1/chat/completions` answers.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.agents.llm.fault_proxy import Faults, FaultyServer, Reply, body_hash

JSON = {"content-type": "application/json"}


def picks(body: Mapping[str, Any], *, most: int = 8) -> str:
    """Names out of the last message, drawn by the hash of the request."""
    words = sorted(set(re.findall(r"[A-Za-z][\w.-]+", str(body["messages"][-1]["content"]))))
    key = body_hash(body)
    ranked = sorted(words, key=lambda word: hashlib.sha256(f"{key}{word}".encode()).digest())
    return ", ".join(ranked[:most])


class FakeServer(FaultyServer):
    """Serves models that answer at once.

    Args:
        answer: Gives a text, or a mapping that replaces parts of the completion's body, for a
            request's body; None: `picks`.
        faults: What goes wrong, one entry a completion.
        models: Names that it serves, or mappings of name to root.
        latency_s: Seconds before each answer.
        key: Key that it asks for; None: any.
        context_tokens: Longest prompt, in words; longer ones are refused as vLLM does.
        port: Port to listen at; 0: a free one.
    """

    def __init__(
        self,
        *,
        answer: Callable[[Mapping[str, Any]], str | Mapping[str, Any]] | None = None,
        faults: Faults = (),
        models: Sequence[str] | Mapping[str, str] = ("fake",),
        latency_s: float = 0.0,
        key: str | None = None,
        context_tokens: int = 4096,
        port: int = 0,
    ) -> None:
        super().__init__(faults=faults, port=port)
        self._answer = answer or picks
        self._models = (
            dict(models) if isinstance(models, Mapping) else {name: name for name in models}
        )
        self._latency_s = latency_s
        self._key = key
        self._context_tokens = context_tokens

    def reply(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        if self._key is not None and headers.get("authorization") != f"Bearer {self._key}":
            said = f"Incorrect API key provided: {headers.get('authorization')}"
            return _error(401, said, code="invalid_api_key")
        if method == "GET" and path.endswith("/models"):
            return self._cards()
        if not path.endswith("/chat/completions"):
            return _error(404, "Not Found", code="404")
        return self._complete(json.loads(body))

    def _cards(self) -> Reply:
        cards = [
            {"id": name, "object": "model", "created": 0, "owned_by": "tests"}
            | {"root": root, "max_model_len": self._context_tokens}
            for name, root in self._models.items()
        ]
        return Reply(200, JSON, json.dumps({"object": "list", "data": cards}).encode())

    def _complete(self, body: Mapping[str, Any]) -> Reply:
        if body.get("model") not in self._models:
            return _error(404, f"The model `{body.get('model')}` does not exist.", code="404")
        words = sum(len(str(one["content"]).split()) for one in body["messages"])
        if words > self._context_tokens:
            return _error(
                400,
                f"This model's maximum context length is {self._context_tokens} tokens. However, "
                f"your prompt contains {words} input tokens, which exceeds this limit even without "
                "any output tokens. Please reduce the length of the input prompt.",
                code="400",
            )
        time.sleep(self._latency_s)
        said = self._answer(body)
        text = said if isinstance(said, str) else ""
        whole = {
            "id": f"chatcmpl-{body_hash(body)[:12]}",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "system_fingerprint": "fake-1",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": "stop",
                }
            ],
            "usage": {
                "prompt_tokens": words,
                "completion_tokens": len(text.split()),
                "total_tokens": words + len(text.split()),
                "prompt_tokens_details": {"cached_tokens": words // 2},
            },
        }
        if isinstance(said, Mapping):
            whole |= said
        return Reply(200, JSON, json.dumps(whole).encode())


def _error(status: int, said: str, *, code: str) -> Reply:
    error = {"message": said, "type": "error", "param": None, "code": code}
    return Reply(status, JSON, json.dumps({"error": error}).encode())

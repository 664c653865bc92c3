"""A client that asks nobody: answers follow from the request alone, and every request is kept."""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cads_agents.llm.overflow import estimated_tokens
from cads_env.proposer import View
from cads_env.testing import tiny_registry

Answer = Callable[[Sequence[Mapping[str, str]], int], str]


def some_names(messages: Sequence[Mapping[str, str]], seed: int) -> str:
    """As many names as are asked for, some of them tested before or no candidates."""
    asked = int(re.findall(r"(?:Name|Choose) (\d+)", messages[-1]["content"])[-1])
    draw = random.Random(repr((list(map(dict, messages)), seed)))
    return ", ".join(f"GENE{draw.randrange(1, 66):03d}" for _ in range(asked))


class StubClient:
    """Answers by a function of messages and seed; refuses prompts beyond `context_tokens`."""

    name = "stub"

    def __init__(self, answer: Answer | str = some_names, context_tokens: int | None = None):
        self.answer, self.context_tokens = answer, context_tokens
        self.asked: list[dict[str, Any]] = []

    def check_ready(self) -> None:
        pass

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        seed: int,
        extra_body: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        from cads_agents.llm.failures import ContextOverflow

        self.asked.append({"messages": messages, "seed": seed, "extra_body": extra_body})
        tokens = estimated_tokens(messages)
        if self.context_tokens is not None and tokens > self.context_tokens:
            msg = f"maximum context length is {self.context_tokens}, received {tokens}"
            raise ContextOverflow(msg, kind="overflow")
        text = self.answer if isinstance(self.answer, str) else self.answer(messages, seed)
        return {
            "text": text,
            "finish_reason": "stop",
            "model": self.name,
            "fingerprint": "stub-1",
            "id": f"id-{len(self.asked)}",
            "usage": {"tokens_in": tokens, "tokens_out": 7, "tokens_cached": 3, "cost": 0.5},
            "retries": [],
        }


def tiny_view(**changes: Any) -> View:
    """The view of a tiny registry in its third round: two high, three low."""
    registry, _ = tiny_registry()
    names = registry.identifiers
    fields: dict[str, Any] = {
        "identifiers": names,
        "description": registry.description,
        "side_tables": registry.side_tables,
        "high": (names[1], names[3]),
        "low": (names[0], names[2], names[4]),
        "tested": names[:5],
        "round": 2,
        "rounds": 5,
        "slots": 4,
        "attempts": 2,
    }
    return View(**(fields | changes))

"""An agent that asks through its journal, without a model: what the run layer promises to one."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cads_env.proposer import Journal, Proposal, View


class Talker:
    """Asks one question a round; the answer is a function of question and seed."""

    asked = 0
    """Questions that were asked for real in this process."""
    _lock = threading.Lock()

    def __init__(
        self,
        *,
        prompt: Any = "thin",
        guided: str | None = None,
        cost: float = 0.01,
        seed: int = 0,
        journal: Journal | None = None,
    ) -> None:
        self.prompt, self.cost, self.seed, self.journal = prompt, cost, seed, journal

    @staticmethod
    def resolve_options(options: Mapping[str, Any]) -> dict[str, Any]:
        prompt = options.get("prompt", "thin")
        if isinstance(prompt, str):
            text = Path(prompt).read_text() if prompt.endswith(".yaml") else f"a {prompt} prompt"
            prompt = {"name": Path(prompt).stem, "text": text}
        return {**options, "prompt": prompt}

    @staticmethod
    def arm_suffix(options: Mapping[str, Any]) -> str:
        return "+guided" if options.get("guided") else ""

    def preview(self, view: View) -> Mapping[str, Any]:
        messages = self._request(view)["messages"]
        return {"messages": messages, "tokens_in": 100 + view.round, "tokens_out_most": 50}

    def propose(self, view: View) -> Proposal:
        request = self._request(view)

        def answer() -> Mapping[str, Any]:
            with Talker._lock:
                Talker.asked += 1
            key = hashlib.sha256(json.dumps([request, self.seed]).encode()).digest()
            start = int.from_bytes(key[:4]) % len(view.identifiers)
            left = [n for n in view.identifiers if n not in set(view.tested)]
            names = [left[(start + i) % len(left)] for i in range(view.slots)]
            usage = {"tokens_in": 100, "tokens_out": 20, "tokens_cached": 0, "cost": self.cost}
            return {"text": ",".join(names), "finish_reason": "stop", "usage": usage}

        assert self.journal is not None
        got = self.journal.exchange(request, answer)
        return Proposal(tuple(got["text"].split(",")), got["text"])

    def _request(self, view: View) -> dict[str, Any]:
        text = f"{self.prompt['text']}: {', '.join(view.high)}"
        return {
            "kind": "chat",
            "round": view.round,
            "attempt": 0,
            "model": "talker",
            "messages": [{"role": "user", "content": text}],
        }

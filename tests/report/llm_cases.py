"""A proposer that asks a made-up model through a journal, and grids of its runs."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cads_env.proposer import Journal, Proposal, ProposerFailed, Unrecorded, View
from cads_env.run.evaluate_grid import evaluate_grid
from cads_env.run.grid import Grid, load_grid
from cads_env.run.settings import settings_of
from tests.report.conftest import HOSTILE, PROTOCOL, panel

FAILS_AT = 3
"""Of every five seeds, the one on which the broken model's campaigns fail."""


class LLMProposer:
    """Answers from a hash: `informed` ranks by the prior, `thin` draws and repeats itself."""

    def __init__(
        self,
        model: str = "fake",
        prompt: str = "thin",
        guided: bool = False,
        seed: int = 0,
        journal: Journal | None = None,
    ) -> None:
        """Keep what decides the answers."""
        self.model, self.prompt, self.seed = model, prompt, seed
        self.journal = Unrecorded() if journal is None else journal

    def propose(self, view: View) -> Proposal:
        """As many attempts as the protocol allows while slots are open."""
        names: list[str] = []
        counts: dict[str, int] = {}
        taken: set[str] = set()
        for attempt in range(view.attempts):
            if len(taken) >= view.slots:
                break
            said = self.ask(view, attempt)
            entries = [entry for entry in str(said["text"]).split(",") if entry.strip()]
            names += entries
            counts[f"names_{attempt + 1}"] = len(entries)
            known = set(view.identifiers) - set(view.tested)
            taken |= known.intersection(entries)
        return Proposal(tuple(names), attempts=max(1, len(counts)), usage=counts)

    def ask(self, view: View, attempt: int) -> Mapping[str, Any]:
        request = {
            "kind": "chat",
            "round": view.round,
            "attempt": attempt,
            "model": self.model,
            "messages": [{"role": "user", "content": f"{self.prompt} {','.join(view.high)}"}],
            "sampling": {"temperature": 0.7, "seed": self.seed + attempt},
        }
        return self.journal.exchange(request, lambda: self.answer(view, attempt))

    def answer(self, view: View, attempt: int) -> dict[str, Any]:
        """What the made-up server says."""
        draw = self.draw(view, attempt)
        text = ",".join(self.names(view, attempt, draw))
        reason = "stop"
        if attempt == 0 and view.round == 2:
            text, reason = "  ", "length"
        return {
            "text": text,
            "finish_reason": reason,
            "model": f"{self.model}-as-served",
            "fingerprint": "server-1",
            "id": "x",
            "usage": {"tokens_in": 100, "tokens_out": 10, "tokens_cached": 60, "cost": 0.5},
            "retries": [{"error": "timeout", "status": None, "wait_s": 0.1, "said": "slow"}]
            if view.round == 1
            else [],
        }

    def draw(self, view: View, attempt: int) -> random.Random:
        key = f"{self.prompt} {self.seed} {view.round} {attempt}"
        return random.Random(hashlib.sha256(key.encode()).hexdigest())

    def names(self, view: View, attempt: int, draw: random.Random) -> Sequence[str]:
        if self.prompt == "informed" and "prior" in view.side_tables:
            prior = dict(zip(view.identifiers, view.side_tables["prior"].values, strict=True))
            ranked = sorted(set(view.identifiers) - set(view.tested), key=lambda n: -prior[n])
            return [*ranked[: view.slots - 1 + attempt], "NO GENE"]
        drawn = draw.sample(view.identifiers, k=max(2, view.slots // 2))
        return [*drawn, drawn[0], "NO GENE"]


class Broken(LLMProposer):
    """Breaks for good on some seeds and says what nobody should."""

    def answer(self, view: View, attempt: int) -> dict[str, Any]:
        """The answer, or none."""
        if self.seed % 5 == FAILS_AT and view.round == 1:
            raise ProposerFailed(HOSTILE)
        return {**super().answer(view, attempt), "model": HOSTILE, "fingerprint": HOSTILE}


class Dead(LLMProposer):
    """Nobody answers."""

    def answer(self, view: View, attempt: int) -> dict[str, Any]:
        """None."""
        msg = "No server answers."
        raise ProposerFailed(msg)


HERE = "tests.report.llm_cases"
ARMS: list[Any] = [
    {"agent": f"{HERE}:LLMProposer", "arm": "qwen/thin",
     "options": {"model": "Qwen/Qwen2.5-7B-Instruct", "prompt": "thin"}},
    {"agent": f"{HERE}:LLMProposer", "arm": "qwen/informed",
     "options": {"model": "Qwen/Qwen2.5-7B-Instruct", "prompt": "informed"}},
    {"agent": f"{HERE}:Broken", "arm": "broken/thin", "options": {"prompt": "thin"}},
    {"agent": "random", "arm": "random", "options": {}},
    {"agent": "prior", "arm": "prior", "options": {}},
]  # fmt: skip


def play_grid(
    folder: Path,
    *,
    feedback: Sequence[str | None] = (),
    identifiers: Sequence[str] = (),
    arms: Sequence[Any] = (),
    **options: Any,
) -> Grid:
    """A grid read back from its folder."""
    settings: dict[str, Any] = {"registry": panel(), "protocol": PROTOCOL, "seeds": range(8)}
    evaluate_grid(
        list(arms or ARMS),
        settings=settings_of(feedback, identifiers),
        out=folder,
        **(settings | options),
    )
    return load_grid(folder)

"""Factories of LLM agents for people who write Python: one model, one set of options."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cads_agents.llm.prompts import load_prompt
from cads_agents.llm.proposer import LLMProposer
from cads_env.proposer import Journal

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


def llm_agent(
    model: str | Mapping[str, Any] | BaseChatModel, **options: Any
) -> Callable[..., LLMProposer]:
    """A factory of LLM agents over one model, for `evaluate` and the like.

    Args:
        model: As in `LLMProposer`.
        **options: As in `LLMProposer`, less `seed` and `journal`, which each campaign gives.

    Returns:
        A function that takes `seed=` and `journal=`, named after the prompt. Where the model and
        the options are plain values, its attribute `agent_file` holds them, and a run of it is
        replayed by `cads replay`.
    """

    def build(*, seed: int, journal: Journal | None = None) -> LLMProposer:
        return LLMProposer(model, seed=seed, journal=journal, **options)

    prompt = load_prompt(options.get("prompt") or LLMProposer.default_prompt)
    build.__name__ = f"llm/{prompt.name}{LLMProposer.arm_suffix(options)}"
    told = {**options, "model": model, "prompt": prompt.mapping()}
    if _is_json(told):
        # So that a run says how its arm was made, and a replay can make it again.
        build.agent_file = {  # type: ignore[attr-defined]
            "agent": "llm", "arm": build.__name__, "options": told,
        }  # fmt: skip
    return build


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True

"""Factories of LLM agents for people who write Python: one model, one set of options."""

from __future__ import annotations

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
        A function that takes `seed=` and `journal=`, named after the prompt.
    """

    def build(*, seed: int, journal: Journal | None = None) -> LLMProposer:
        return LLMProposer(model, seed=seed, journal=journal, **options)

    prompt = load_prompt(options.get("prompt") or LLMProposer.default_prompt)
    build.__name__ = f"llm/{prompt.name}{LLMProposer.arm_suffix(options)}"
    return build

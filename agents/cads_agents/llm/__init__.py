"""Chat models as proposers: `LLMProposer`, its variants, and recorded answers as a chat model.

Importing this package imports no LangChain; asking a model does, replaying a run does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cads_agents.llm.factory import llm_agent
from cads_agents.llm.prompts import Prompt, load_prompt, prompt_names
from cads_agents.llm.proposer import LLMProposer
from cads_agents.llm.variants import (
    HandoffProposer,
    NoHistoryProposer,
    RetryProposer,
    ShortlistProposer,
)

if TYPE_CHECKING:
    from cads_agents.llm.replay_model import ReplayChatModel as ReplayChatModel

__all__ = [
    "HandoffProposer",
    "LLMProposer",
    "NoHistoryProposer",
    "Prompt",
    "RetryProposer",
    "ShortlistProposer",
    "llm_agent",
    "load_prompt",
    "prompt_names",
]


def __getattr__(name: str) -> Any:
    # Its class derives from one of LangChain's, so its module is the one that imports it.
    if name == "ReplayChatModel":
        from cads_agents.llm.replay_model import ReplayChatModel

        return ReplayChatModel
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)

"""The agents that come with cads-env, found through the entry-point group `cads_env.agents`.

They use what anyone's agent may use: the view of `cads_env.proposer`. None of them sees an oracle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cads_agents.llm import LLMProposer as LLMProposer
    from cads_agents.llm import ReplayChatModel as ReplayChatModel
    from cads_agents.llm import llm_agent as llm_agent

_LAZY: Final = ("LLMProposer", "ReplayChatModel", "llm_agent")


def __getattr__(name: str) -> Any:
    # Loaded when asked for, so that an agent without a model loads none of it.
    if name in _LAZY:
        import cads_agents.llm

        return getattr(cads_agents.llm, name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)

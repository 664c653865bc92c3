"""The options of LLM agents, made whole: no file is needed any more to play a run again.

Reads what options name (prompts, aliases, prices) and puts the content in its place. Asks no model.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from numbers import Integral
from types import MappingProxyType
from typing import Any, Final

from cads_agents.llm.aliases import load_aliases
from cads_agents.llm.guided import guided_kind
from cads_agents.llm.model import model_settings
from cads_agents.llm.overflow import OVERFLOW_RULES
from cads_agents.llm.prompts import load_prompt
from cads_agents.llm.sampling import Sampling
from cads_env.errors import AgentError, quoted, suggest

MODEL_OPTIONS: Final = (
    "provider", "base_url", "api_key", "api_key_env", "extra_body", "default_headers",
)  # fmt: skip
"""Settings of a model that may stand beside it among an agent's options."""

NOT_OPTIONS: Final = frozenset({"self", "journal", "options"})

MOST_ATTEMPTS: Final = 1_000

DEFAULT: Final = "default"
"""Stands for a sampling setting that nobody chose, where None means that it is not sent."""


def option_names(agent: type) -> tuple[str, ...]:
    """Names of an agent's options: its constructor's parameters, those of its base included."""
    names: dict[str, None] = {}
    for cls in agent.__mro__[:-1]:
        own = vars(cls).get("__init__")
        if own is None:
            continue
        parameters = inspect.signature(own).parameters
        names |= dict.fromkeys(name for name in parameters if name not in NOT_OPTIONS)
        if all(p.kind is not inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
            break
    return tuple(names)


def whole_options(
    options: Mapping[str, Any], *, names: tuple[str, ...], default_prompt: str
) -> dict[str, Any]:
    """Options as JSON values that need no file; whole options stay as they are.

    Args:
        options: As an agent file or a command gives them.
        names: The options that the agent has.
        default_prompt: Its prompt where the options name none.

    Raises:
        AgentError: An unknown option, or a value that the agent cannot use.
    """
    for key in options:
        if key not in names:
            msg = f"An LLM agent has no option {quoted(key)}. {suggest(str(key), names)}"
            raise AgentError(msg)
    if options.get("model") is None:
        msg = (
            "An LLM agent needs a model: --agent llm:model=NAME,base_url=URL, or `model:` under "
            "`options:` in its file."
        )
        raise AgentError(msg)
    whole = {key: value for key, value in options.items() if key not in MODEL_OPTIONS}
    whole["model"] = whole_model(options["model"], options)
    whole["prompt"] = load_prompt(options.get("prompt") or default_prompt).mapping()
    if options.get("aliases") is not None:
        whole["aliases"] = load_aliases(options["aliases"])
    if "guided" in options:
        whole["guided"] = guided_kind(options["guided"])
    sampling_of(options)
    return whole


def whole_model(model: Any, options: Mapping[str, Any]) -> Any:
    """A model's settings with those that stand beside it; an object stays as it is."""
    beside = {key: options[key] for key in MODEL_OPTIONS if options.get(key) is not None}
    if not isinstance(model, str | Mapping):
        if beside:
            msg = (
                f"{', '.join(beside)} stand beside a model that is an object; expected them in "
                "its own settings."
            )
            raise AgentError(msg)
        invoke = getattr(model, "invoke", None)
        is_async = not callable(invoke) and callable(getattr(model, "ainvoke", None))
        if is_async or inspect.iscoroutinefunction(invoke):
            msg = (
                f"model, a {type(model).__name__}, answers asynchronously alone; an LLM agent asks "
                "by `invoke`, from several threads. Give a model whose `invoke` returns a message."
            )
            raise AgentError(msg)
        if isinstance(model, type) or not callable(invoke):
            msg = (
                f"model is a {type(model).__name__}; expected a LangChain chat model (an object, "
                "not its class), a name such as 'openai:gpt-4o-mini', or a mapping such as {model: "
                "NAME, base_url: URL}."
            )
            raise AgentError(msg)
        return model
    given = {"model": model} if isinstance(model, str) else dict(model)
    return model_settings(given | beside)


def sampling_of(
    options: Mapping[str, Any], *, own: Mapping[str, Any] = MappingProxyType({})
) -> Sampling:
    """The sampling that flat options describe.

    Args:
        options: Of an agent; a value that is `DEFAULT` or missing is chosen here.
        own: What a chat model object was built with; it goes before our defaults.

    Raises:
        AgentError: A value is outside its range, or is not to be sent but the object sends it.
    """
    given = dict(own)
    for name in ("temperature", "top_p", "max_tokens", "send_seed"):
        value = options.get(name, DEFAULT)
        if value is None and own.get(name) is not None and name != "max_tokens":
            msg = (
                f"{name} is null, which sends none, but the chat model object carries "
                f"{quoted(own[name])} and would send it. Build the object without it."
            )
            raise AgentError(msg)
        is_chosen = value != DEFAULT and not (name == "max_tokens" and value is None)
        if is_chosen:
            given["seed" if name == "send_seed" else name] = value
    return Sampling.of(given)


def check_play(
    *,
    attempts: int | None,
    overflow: str,
    context_tokens: int | None,
    max_tokens: int,
    seed: int | None,
) -> None:
    """Raise unless the options that steer a round are in their ranges.

    Raises:
        AgentError: Names the option, what it holds and what was expected.
    """
    if attempts is not None and (type(attempts) is not int or not 1 <= attempts <= MOST_ATTEMPTS):
        msg = (
            f"attempts is {quoted(attempts)}; expected a whole number from 1 to {MOST_ATTEMPTS:,}, "
            "or null for as many as the protocol allows."
        )
        raise AgentError(msg)
    if overflow not in OVERFLOW_RULES:
        msg = f"overflow is {quoted(overflow)}. {suggest(str(overflow), OVERFLOW_RULES)}"
        raise AgentError(msg)
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, Integral)):
        msg = f"seed is {quoted(seed)}; expected a whole number, or null for the campaign's own."
        raise AgentError(msg)
    if context_tokens is None:
        return
    if type(context_tokens) is not int or context_tokens <= max_tokens:
        msg = (
            f"context_tokens is {quoted(context_tokens)}; expected a whole number above "
            f"max_tokens ({max_tokens}), or null where the server's refusals tell it."
        )
        raise AgentError(msg)

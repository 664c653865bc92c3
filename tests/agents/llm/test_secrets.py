from __future__ import annotations

from typing import Any

import pytest

from cads_agents import LLMProposer
from cads_agents.llm.model import model_settings
from cads_env.errors import AgentError

URL = "http://127.0.0.1:1/v1"
KEY = "sk-live-SECRET1234567890"
PLAIN = "abcdef123456"


@pytest.mark.parametrize(
    "given",
    [
        {"base_url": f"{URL}?api_key={KEY}"},
        {"base_url": f"{URL}?k={PLAIN}"},
        {"base_url": f"{URL}#{PLAIN}"},
        {"base_url": f"http://{PLAIN}@host/v1"},
        {"base_url": f"me:{PLAIN}@host/v1"},
        {"api_key_env": KEY},
        {"api_key_env": f"hf_{PLAIN}"},
        {"default_headers": {"X-Custom": KEY}},
        {"default_headers": {"X-Token": PLAIN}},
        {"default_headers": {"PRIVATE-TOKEN": PLAIN}},
        {"default_headers": {"Ocp-Apim-Subscription-Key": PLAIN}},
        {"default_headers": {"X-Auth": PLAIN}},
        {"default_headers": {KEY: "x"}},
        {"extra_body": {"a": [{"api_key": PLAIN}]}},
        {"extra_body": {"a": ["x", {"b": KEY}]}},
        {"options": {"default_query": {"key": PLAIN}}},
        {"options": {"authorization": {"value": PLAIN}}},
        {"options": {"openai_proxy": f"http://u:{PLAIN}@host/"}},
        {"model": KEY},
    ],
)
def test_a_key_anywhere_among_the_settings_is_refused_and_not_repeated(given: Any) -> None:
    with pytest.raises(AgentError) as caught:
        model_settings({"model": "m", **given})
    assert KEY not in str(caught.value)
    assert PLAIN not in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        {"model": "org/sk-translator-large"},
        {"api_key_env": "_MY_KEY2"},
        {"extra_body": {"max_tokens": 5, "stop_token_ids": [1], "prompt_cache_key": "screen"}},
        {"extra_body": {"chat_template_kwargs": {"eos_token": "</s>", "enable_thinking": False}}},
        {"default_headers": {"X-Title": "screen", "HTTP-Referer": "https://example.org/?a=1"}},
        {"options": {"default_query": {"api-version": "2024-10-21"}, "logprobs": True}},
    ],
)
def test_settings_without_a_key_are_taken(given: Any) -> None:
    assert model_settings({"model": "m", **given})


@pytest.mark.parametrize("url", ["http://[::1", "http://host:port/v1", "http://host:99999/v1"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(AgentError, match="base_url"):
        model_settings({"model": "m", "base_url": url})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("timeout_s", 0), ("timeout_s", "x"), ("timeout_s", float("nan")), ("retries", -1),
        ("retries", 1.0), ("backoff_s", float("inf")), ("longest_wait_s", 10**400),
        ("requests_per_second", 0), ("requests_per_second", True), ("prices", 3),
        ("prices", {"input": 1, "output": float("nan")}), ("reported_as", 5),
        ("reported_as", [5]), ("seed", "three"), ("seed", 1.0), ("temperature", 10**400),
        ("extra_body", {"top_k": float("nan")}), ("default_headers", {"X": object()}),
        ("context_tokens", 1), ("attempts", 1_001), ("max_tokens", 0),
    ],
)  # fmt: skip
def test_an_option_outside_its_range_is_refused_before_a_run(option: str, value: Any) -> None:
    with pytest.raises(AgentError, match=option):
        LLMProposer.resolve_options({"model": "m", "base_url": URL, option: value})


def test_what_is_no_chat_model_is_refused_when_the_agent_is_made() -> None:
    for model in (5, object, lambda messages: "TP53"):
        with pytest.raises(AgentError, match="LangChain chat model"):
            LLMProposer(model)  # type: ignore[arg-type]

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from cads_agents.llm.model import is_local, model_settings
from cads_agents.llm.sampling import Sampling, generation_seed
from cads_env.errors import AgentError


@pytest.mark.parametrize(
    ("given", "provider", "name"),
    [
        ("openai:gpt-4o-mini", "openai", "gpt-4o-mini"),
        ("anthropic:claude-opus-5", "anthropic", "claude-opus-5"),
        ("Qwen/Qwen2.5-7B-Instruct", "openai", "Qwen/Qwen2.5-7B-Instruct"),
        ("qwen:7b", "openai", "qwen:7b"),
        ({"model": "m", "provider": "ollama"}, "ollama", "m"),
        ({"model": "anthropic:m", "provider": "openai"}, "openai", "anthropic:m"),
    ],
)
def test_a_name_says_its_provider(given: Any, provider: str, name: str) -> None:
    settings = model_settings(given)
    assert (settings["provider"], settings["model"]) == (provider, name)


def test_settings_in_full_stay_as_they_are() -> None:
    given = {
        "model": "m", "base_url": "http://127.0.0.1:1/v1", "api_key": "EMPTY",
        "api_key_env": "MY_KEY", "extra_body": {"top_k": 3},
    }  # fmt: skip
    full = model_settings(given)
    assert model_settings(full) == full
    assert json.loads(json.dumps(full)) == full
    assert "api_key" not in full


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"model": "m", "api_key": "sk-123456"}, "api_key_env"),
        ({"model": "m", "base_url": "http://me:word@host/v1"}, "api_key_env"),
        ({"model": "m", "default_headers": {"Authorization": "Bearer x"}}, "Authorization"),
        ({"model": "m", "options": {"deep": {"x-api-key": "x"}}}, "x-api-key"),
        ({"model": "m", "extra_body": {"access_token": "x"}}, "access_token"),
        ({"model": "m", "base_uri": "x"}, "base_url"),
        ({"model": ""}, "expected a name"),
        ({}, "expected a name"),
        ({"model": "m", "base_url": "127.0.0.1:8000"}, "http://"),
        ({"model": "m", "extra_body": [1]}, "mapping"),
        (7, "init|LangChain"),
    ],
)
def test_settings_that_hold_a_key_or_make_no_sense_are_refused(given: Any, says: str) -> None:
    with pytest.raises(AgentError, match=says) as caught:
        model_settings(given)
    assert "sk-123456" not in str(caught.value)
    assert "word@" not in str(caught.value)


def test_max_tokens_among_a_models_options_is_no_secret() -> None:
    assert model_settings({"model": "m", "options": {"max_tokens": 5}})["options"]


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://localhost:8000/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://10.0.0.7/v1", True),
        ("http://gpu-node-3:8000/v1", True),
        ("http://8.8.8.8/v1", False),
        ("https://api.openai.com/v1", False),
        (None, False),
    ],
)
def test_ones_own_machines_are_told_from_the_internet(url: str | None, local: bool) -> None:
    assert is_local(url) is local


def test_importing_the_client_needs_no_langchain() -> None:
    code = (
        "import sys; import cads_agents.llm.client; "
        "print([m for m in sys.modules if m.startswith(('langchain', 'openai', 'httpx'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_generation_seeds_are_frozen_and_differ() -> None:
    assert generation_seed(3, round=2, attempt=1) == 907405168
    seeds = {
        generation_seed(base, round=r, attempt=a)
        for base in range(10)
        for r in range(12)
        for a in range(8)
    }
    assert len(seeds) == 10 * 12 * 8
    assert all(0 <= seed < 2**31 for seed in seeds)


@pytest.mark.parametrize(
    "given",
    [
        {"temperature": -0.1}, {"temperature": 2.1}, {"temperature": True}, {"top_p": 0},
        {"top_p": 1.1}, {"max_tokens": 0}, {"max_tokens": 1.0}, {"seed": 1}, {"top_q": 1}, [0.7],
        {"temperature": float("nan")},
    ],
)  # fmt: skip
def test_impossible_sampling_is_refused(given: Any) -> None:
    with pytest.raises(AgentError, match="sampling"):
        Sampling.of(given)


def test_sampling_travels_as_json() -> None:
    sampling = Sampling.of({"temperature": 1, "top_p": None})
    assert Sampling.of(json.loads(json.dumps(sampling.to_dict()))) == sampling
    assert Sampling.of(None) == Sampling(temperature=0.7, top_p=0.9, max_tokens=700, seed=True)

"""Flags and environment of a server: what each machine gets, and whose word wins."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cads_agents.serving.flags import Settings, server_environment, server_flags
from cads_env.errors import RunError


def pairs(settings: Settings) -> dict[str, str | None]:
    """Flags with their values; None for a flag without one."""
    found: dict[str, str | None] = {}
    last = ""
    for word in server_flags("m", settings):
        if word.startswith("--"):
            last = word
            found[last] = None
        else:
            found[last] = word
    return found


def test_every_server_has_what_makes_its_answers_repeatable() -> None:
    for settings in (Settings(), Settings(device="gpu")):
        flags = pairs(settings)
        assert flags["--seed"] == "0"
        assert flags["--generation-config"] == "vllm"
        assert "--enable-prompt-tokens-details" in flags
        assert json.loads(flags["--structured-outputs-config"] or "") == {
            "backend": "guidance",
            "disable_any_whitespace": True,
        }
        assert flags["--host"] == "127.0.0.1"
        environment = server_environment(settings)
        assert environment["VLLM_NO_USAGE_STATS"] == "1"
        assert environment["VLLM_HOST_IP"] == "127.0.0.1"
        assert "HF_HUB_OFFLINE" not in environment


def test_a_cpu_computes_in_float32_and_reads_prompts_whole() -> None:
    flags = pairs(Settings(max_model_len=20_000))
    assert flags["--dtype"] == "float32"
    assert "--no-enable-chunked-prefill" in flags
    assert flags["--max-num-batched-tokens"] == flags["--max-model-len"] == "20000"
    environment = server_environment(Settings(threads=1), is_local=True)
    assert environment["OMP_NUM_THREADS"] == "1"
    assert environment["HF_HUB_OFFLINE"] == "1"
    assert "VLLM_BATCH_INVARIANT" not in environment


def test_gpus_answer_the_same_whatever_else_is_asked_unless_told_otherwise() -> None:
    settings = Settings(device="gpu", gpus=4)
    assert pairs(settings)["--data-parallel-size"] == "4"
    assert "--dtype" not in pairs(settings)
    assert server_environment(settings)["VLLM_BATCH_INVARIANT"] == "1"
    loose = Settings(device="gpu", is_batch_invariant=False)
    assert "VLLM_BATCH_INVARIANT" not in server_environment(loose)
    assert "--data-parallel-size" not in pairs(loose)


@pytest.mark.parametrize(
    "extra",
    [("--max-model-len", "512"), ("--max_model_len=512",), ("--enable-chunked-prefill",)],
)
def test_a_flag_of_the_users_replaces_ours(extra: tuple[str, ...]) -> None:
    words = server_flags("m", Settings(extra=extra))
    stems = [w.partition("=")[0].replace("_", "-").replace("--no-", "--") for w in words]
    stem = extra[0].partition("=")[0].replace("_", "-")
    assert stems.count(stem) == 1
    assert words[-len(extra) :] == list(extra)


@pytest.mark.parametrize(
    ("host", "extra", "is_loopback"),
    [
        ("localhost", (), True),
        ("::1", (), True),
        ("0.0.0.0", (), False),
        ("127.0.0.1", ("--headless",), False),
        ("127.0.0.1", ("--data-parallel-address=10.0.0.1",), False),
        ("127.0.0.1", ("--data-parallel-backend=ray",), False),
        ("127.0.0.1", ("--data-parallel-backend", "ray"), False),
    ],
)
def test_a_server_of_one_machine_talks_to_itself_on_loopback(
    host: str, extra: tuple[str, ...], is_loopback: bool
) -> None:
    environment = server_environment(Settings(device="gpu", host=host, extra=extra))
    assert ("VLLM_HOST_IP" in environment) is is_loopback


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000/v1"),
        ("0.0.0.0", "http://127.0.0.1:8000/v1"),
        ("::", "http://[::1]:8000/v1"),
        ("::1", "http://[::1]:8000/v1"),
        ("node7", "http://node7:8000/v1"),
    ],
)
def test_the_address_for_clients_is_one_that_they_can_reach(host: str, url: str) -> None:
    assert Settings(host=host).base_url == url


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"port": 0}, "--port"),
        ({"port": 65_536}, "--port"),
        ({"gpus": 2}, "--gpus"),
        ({"device": "gpu", "gpus": 0}, "--gpus"),
        ({"max_model_len": -1}, "--max-model-len"),
        ({"cache_gib": 0}, "--cache-gib"),
    ],
)
def test_a_setting_outside_its_range_is_named(given: dict[str, Any], named: str) -> None:
    with pytest.raises(RunError, match=named):
        Settings(**given)


def test_a_host_that_is_no_address_is_refused() -> None:
    with pytest.raises(RunError, match="--host"):
        server_environment(Settings(host="http://x/"))

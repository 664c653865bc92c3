"""The verifiers environment under the real package, against a small model server of the test's."""

from __future__ import annotations

import asyncio
import importlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import gymnasium as gym
import pytest

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

REGISTRY = "synthetic-depmap-6000/0"
ANSWER = "TP53\nMYC\nKRAS"


def adapter() -> Any:
    pytest.importorskip("verifiers.v1", reason="verifiers is not installed")
    return importlib.import_module("cads_env.adapters.verifiers_env")


class Model(BaseHTTPRequestHandler):
    """Answers every chat alike and keeps what it was asked."""

    asked: list[dict[str, Any]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.asked.append(json.loads(body))
        message = {"role": "assistant", "content": ANSWER}
        answer = {
            "id": "x", "object": "chat.completion", "created": 0, "model": "tiny",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }  # fmt: skip
        raw = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    asked: list[dict[str, Any]] = []
    handler = type("Asked", (Model,), {"asked": asked})
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=http.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{http.server_address[1]}/v1", asked
    http.shutdown()
    http.server_close()
    thread.join()


def episodes(url: str, monkeypatch: pytest.MonkeyPatch, **arguments: Any) -> list[Any]:
    module = adapter()
    vf: Any = importlib.import_module("verifiers.v1")
    monkeypatch.setenv("TINY_KEY", "EMPTY")
    overrides = {"rounds": 3, **arguments.pop("overrides", {})}
    env = module.load_environment(registry=REGISTRY, seeds=2, overrides=overrides, **arguments)
    client = vf.EvalClientConfig(base_url=url, api_key_var="TINY_KEY")
    context = vf.ModelContext(model="tiny", client=client)

    async def play() -> list[Any]:
        async with env.serving():
            return [await env.run_episode(task, context) for task in env.taskset]

    return asyncio.run(play())


@pytest.mark.parametrize("reward", ["net", "certified"])
def test_an_episode_is_a_campaign_rewarded_like_the_environment(
    reward: str, server: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, asked = server
    played = episodes(url, monkeypatch, reward=reward)
    assert len(played) == 2
    for seed, episode in enumerate(played):
        assert episode.ok, episode.errors
        env = gym.make("CADSScreenText-v0", registry=REGISTRY, rounds=3, reward=reward)
        texts: list[Any] = [env.reset(seed=seed)[0]]
        for _ in range(3):
            seen, paid, *_, info = env.step(ANSWER)
            texts.append(seen)
        (trace,) = episode.traces
        assert trace.reward == paid
        assert trace.metrics["net"] == info["net"]
        assert trace.metrics["twin_true"] == info["twin_true"]
        own = asked[3 * seed : 3 * seed + 3]
        assert [len(request["messages"]) for request in own] == [1, 3, 5]
        users = [m["content"] for m in own[-1]["messages"] if m["role"] == "user"]
        assert users == texts[:3]


def test_a_campaign_without_a_server_is_a_failed_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    for episode in episodes("http://127.0.0.1:9/v1", monkeypatch):
        assert not episode.ok
        assert episode.errors

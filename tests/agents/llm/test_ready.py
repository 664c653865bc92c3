from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest

from cads_agents.llm.client import Client
from cads_agents.llm.failures import ModelFailed
from tests.agents.llm.asking import MESSAGES, client_of, free_port
from tests.agents.llm.fake_server import JSON, FakeServer
from tests.agents.llm.fault_proxy import Fault, Reply

pytest.importorskip("langchain_openai", reason="needs the extra llm")


def test_nobody_at_the_address_names_it_and_the_command_that_starts_a_server() -> None:
    port = free_port()
    client = Client(
        {"model": "fake", "base_url": f"http://127.0.0.1:{port}/v1"}, retries=1, backoff_s=0.01
    )
    with pytest.raises(ModelFailed) as caught:
        client.check_ready()
    assert str(caught.value) == (
        f"No server answers at http://127.0.0.1:{port}/v1 (connection refused). "
        f"Start one with: cads serve fake --port {port}"
    )
    with pytest.raises(ModelFailed, match=r"connection refused\), 2 times .*cads serve fake"):
        client.complete(MESSAGES, seed=5)


def test_a_server_that_comes_back_is_found_again() -> None:
    port = free_port()
    client = Client(
        {"model": "fake", "base_url": f"http://127.0.0.1:{port}/v1"}, retries=8, backoff_s=0.05
    )
    done: list[dict[str, Any]] = []
    asking = threading.Thread(target=lambda: done.append(client.complete(MESSAGES, seed=5)))
    asking.start()
    time.sleep(0.2)
    with FakeServer(port=port):
        asking.join()
    assert done[0]["text"]
    assert {note["error"] for note in done[0]["retries"]} == {"connection"}


def test_readiness_learns_the_context_and_the_weights() -> None:
    with FakeServer(models={"fake": "org/weights"}, context_tokens=2_048) as server:
        client = client_of(server)
        assert client.context_tokens is None
        client.check_ready()
        served = client.served()
        assert served is not None
        assert (client.context_tokens, served.root) == (2_048, "org/weights")
        assert client_of(server, context_tokens=99).context_tokens == 99
        assert not server.requests


def test_a_model_that_is_not_served_names_those_that_are() -> None:
    with FakeServer(models=("qwen", "llama")) as server:
        with pytest.raises(ModelFailed, match=r"does not serve 'fake'.*'qwen', 'llama'") as caught:
            client_of(server).check_ready()
    # The port of the running server is taken.
    port = int(server.url.split(":")[2].split("/")[0])
    assert f"cads serve fake --port {port + 1 if port < 65_535 else port - 1}" in str(caught.value)
    assert "-A model=NAME" in str(caught.value)


class _UnderV1(FakeServer):
    """Serves under /v1 alone, as vLLM does; elsewhere as `elsewhere` says."""

    elsewhere = Reply(404, JSON, b'{"detail": "Not Found"}')

    def reply(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        if not path.startswith("/v1/"):
            return self.elsewhere
        return super().reply(method, path, headers, body)


@pytest.mark.parametrize(
    "elsewhere",
    [
        Reply(404, JSON, b'{"detail": "Not Found"}'),
        Reply(200, JSON, b'{"name": "gateway"}'),
        Reply(200, {"content-type": "text/html"}, b"<html>Welcome</html>"),
    ],
)
def test_an_address_without_v1_is_told_before_a_run(elsewhere: Reply) -> None:
    with _UnderV1() as server:
        server.elsewhere = elsewhere
        short = server.url.removesuffix("/v1")
        client = Client({"model": "fake", "base_url": short}, retries=0)
        with pytest.raises(ModelFailed, match=rf"lacks /v1: give {server.url} "):
            client.check_ready()
        Client({"model": "fake", "base_url": server.url}, retries=0).check_ready()


@pytest.mark.parametrize("body", [b"", b'{"detail": "Not Found"}'])
def test_a_missing_page_names_the_address_and_what_it_may_lack(body: bytes) -> None:
    with _UnderV1() as server:
        server.elsewhere = Reply(404, JSON, body)
        short = server.url.removesuffix("/v1")
        with pytest.raises(ModelFailed) as caught:
            Client({"model": "fake", "base_url": short}, retries=0).complete(MESSAGES, seed=1)
        assert f"{short}/chat/completions" in str(caught.value)
        assert f"lacks /v1: give {server.url}" in str(caught.value)
        assert "HTTP 404:  " not in str(caught.value)
        with pytest.raises(ModelFailed) as other:
            Client({"model": "none", "base_url": server.url}).complete(MESSAGES, seed=1)
        assert "lacks" not in str(other.value)


def test_a_server_without_a_list_of_models_is_taken_at_its_word() -> None:
    class Listless(FakeServer):
        def reply(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
            if method == "GET":
                return Reply(404, JSON, b"{}")
            return super().reply(method, path, headers, body)

    with Listless() as server:
        for url in (server.url, server.url.removesuffix("/v1")):
            Client({"model": "fake", "base_url": url}, retries=0).check_ready()


def test_a_wrong_model_after_retries_keeps_their_notes() -> None:
    faults = [Fault(kind="status", status=503), Fault(kind="wrong_model", model="cheaper")]
    with FakeServer(faults=faults) as server:
        with pytest.raises(ModelFailed, match="cheaper") as caught:
            client_of(server).complete(MESSAGES, seed=5)
    assert [note["status"] for note in caught.value.errors] == [503]

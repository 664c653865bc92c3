from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from cads_agents import LLMProposer
from cads_agents.llm.client import Client, shared_client
from cads_agents.llm.failures import ContextOverflow, ModelFailed
from cads_env.errors import AgentError, MissingExtraError
from tests.agents.llm.fake_server import JSON, FakeServer
from tests.agents.llm.fault_proxy import Fault, FaultProxy, Reply
from tests.agents.llm.stub import tiny_view

pytest.importorskip("langchain_openai", reason="needs the extra llm")

KEY = "topsecret-key-0123"
MESSAGES = [
    {"role": "system", "content": "You screen genes."},
    {"role": "user", "content": "Choose among TP53 MYC RB1 CDK4."},
]


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as running:
        yield running


def _client(server: Any, **settings: Any) -> Client:
    quick = {"timeout_s": 20.0, "retries": 2, "backoff_s": 0.01, "longest_wait_s": 3.0}
    return Client({"model": "fake", "base_url": server.url}, **(quick | settings))


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def test_every_request_sends_its_whole_sampling(server: FakeServer) -> None:
    client = _client(server, sampling={"temperature": 0.3, "top_p": 0.8, "max_tokens": 44})
    answer = client.complete(MESSAGES, seed=17, extra_body={"structured_outputs": {"json": {}}})
    sent = server.count.bodies[0]
    assert sent["model"] == "fake"
    assert (sent["temperature"], sent["top_p"], sent["seed"]) == (0.3, 0.8, 17)
    assert sent.get("max_completion_tokens", sent.get("max_tokens")) == 44
    assert sent["structured_outputs"] == {"json": {}}
    assert sent["messages"] == MESSAGES
    assert server.count.headers[0]["authorization"] == "Bearer EMPTY"
    assert json.loads(json.dumps(answer)) == answer


def test_an_answer_holds_what_a_trace_keeps(server: FakeServer) -> None:
    answer = _client(server).complete(MESSAGES, seed=1)
    assert answer["text"]
    assert answer["finish_reason"] == "stop"
    assert (answer["model"], answer["fingerprint"]) == ("fake", "fake-1")
    assert answer["id"].startswith("chatcmpl-")
    usage = answer["usage"]
    assert usage == {
        "tokens_in": 9,
        "tokens_out": usage["tokens_out"],
        "tokens_cached": 4,
        "cost": 0.0,
    }
    assert usage["tokens_out"] > 0
    assert answer["retries"] == []
    assert not {"price_unknown", "usage_missing", "seed_sent", "thinking"} & set(answer)


def test_a_setting_that_a_model_refuses_can_be_left_out(server: FakeServer) -> None:
    client = _client(server, sampling={"temperature": None, "top_p": None, "seed": False})
    answer = client.complete(MESSAGES, seed=1)
    assert not {"temperature", "top_p", "seed"} & set(server.count.bodies[0])
    assert answer["seed_sent"] is False


TROUBLE = {
    "timeout": Fault(kind="hang", seconds=30.0),
    "connection": Fault(kind="reset"),
    "rate_limit": Fault(kind="status", status=429),
    "server": Fault(kind="status", status=503),
    "cut": Fault(kind="cut"),
    "garbage": Fault(kind="garbage"),
    "content_type": Fault(kind="content_type"),
    "list_body": Fault(kind="list_body"),
    "null_choices": Fault(kind="null_choices"),
    "no_choices": Fault(kind="no_choices"),
    "huge": Fault(kind="huge"),
    "drip": Fault(kind="drip", seconds=0.05),
}
KINDS = {name: name for name in ("timeout", "connection", "rate_limit", "server")} | {
    "drip": "timeout"
}


@pytest.mark.parametrize("name", TROUBLE)
def test_trouble_that_passes_is_tried_again_and_written_down(name: str) -> None:
    with FakeServer(faults=[TROUBLE[name]]) as server:
        slow = {"timeout_s": 1.0} if KINDS.get(name) == "timeout" else {}
        answer = _client(server, **slow).complete(MESSAGES, seed=5)
    with FakeServer() as calm:
        expected = _client(calm).complete(MESSAGES, seed=5)
    (note,) = answer.pop("retries")
    assert note["error"] == KINDS.get(name, "malformed")
    assert note["wait_s"] > 0
    assert note["said"]
    assert answer == {key: value for key, value in expected.items() if key != "retries"}
    assert sum(server.requests.values()) == 2
    assert sum(server.completed.values()) == 1


@pytest.mark.parametrize("name", TROUBLE)
def test_trouble_that_stays_fails_after_the_declared_tries(name: str) -> None:
    with FakeServer(faults=[TROUBLE[name]] * 9) as server:
        slow = {"timeout_s": 0.3} if KINDS.get(name) == "timeout" else {}
        client = _client(server, retries=1, **slow)
        with pytest.raises(ModelFailed) as caught:
            client.complete(MESSAGES, seed=5)
        asked = sum(server.requests.values())
    assert asked == 2
    assert len(caught.value.errors) == 2
    assert server.url in str(caught.value)
    assert "2 times in" in str(caught.value)
    assert caught.value.kind == KINDS.get(name, "malformed")


@pytest.mark.parametrize("as_date", [False, True])
def test_a_server_that_says_when_to_come_back_is_obeyed(as_date: bool) -> None:
    fault = Fault(kind="status", status=429, retry_after_s=2.0 if as_date else 0.4, as_date=as_date)
    with FakeServer(faults=[fault]) as server:
        answer = _client(server).complete(MESSAGES, seed=5)
        first, second = server.count.times
    # A date has no fractions of a second.
    assert second - first >= (0.9 if as_date else 0.4)
    assert answer["retries"][0]["status"] == 429


def test_a_longer_wait_than_declared_is_cut() -> None:
    fault = Fault(kind="status", status=429, retry_after_s=3_600.0)
    with FakeServer(faults=[fault]) as server:
        answer = _client(server, longest_wait_s=0.2).complete(MESSAGES, seed=5)
    assert answer["retries"][0]["wait_s"] == 0.2


def test_all_threads_wait_when_the_server_limits_their_rate() -> None:
    with FakeServer(faults=[Fault(kind="status", status=429, retry_after_s=1.0)]) as server:
        client = _client(server)
        first = threading.Thread(target=client.complete, args=(MESSAGES,), kwargs={"seed": 1})
        first.start()
        while client._pace._rest_s() <= 0:
            time.sleep(0.01)
        other = client.complete(MESSAGES, seed=2)
        first.join()
        times = server.count.times
    assert other["retries"] == []
    assert other["paced_s"] > 0
    assert len(times) == 3
    assert all(later - times[0] >= 1.0 for later in times[1:])


def test_requests_keep_their_declared_rate() -> None:
    with FakeServer() as server:
        client, began = _client(server, requests_per_second=20), time.monotonic()
        threads = [
            threading.Thread(target=client.complete, args=(MESSAGES,), kwargs={"seed": seed})
            for seed in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        times = sorted(server.count.times)
    for number, arrival in enumerate(times):
        assert arrival - began >= number / 20


@pytest.mark.parametrize("status", [400, 403, 404, 422])
def test_what_the_server_refuses_is_not_asked_again(status: int) -> None:
    with FakeServer(faults=[Fault(kind="status", status=status, said="no such setting")]) as server:
        with pytest.raises(ModelFailed, match="no such setting") as caught:
            _client(server).complete(MESSAGES, seed=5)
        assert sum(server.requests.values()) == 1
    assert caught.value.kind == "refused"
    assert f"HTTP {status}" in str(caught.value)


def test_a_prompt_that_is_too_long_is_told_apart() -> None:
    with FakeServer(context_tokens=5) as server:
        with pytest.raises(ContextOverflow, match="maximum context length"):
            _client(server).complete(MESSAGES, seed=5)
        assert sum(server.requests.values()) == 1


def test_another_model_than_asked_for_is_never_taken() -> None:
    with FakeServer(faults=[Fault(kind="wrong_model", model="cheaper")]) as server:
        with pytest.raises(ModelFailed, match=r"'fake'.*'cheaper'"):
            _client(server).complete(MESSAGES, seed=5)


def test_another_name_of_the_same_weights_is_the_same_model() -> None:
    models = {"fake": "/home/me/weights", "alias": "/home/me/weights", "fake-2": "others"}
    faults = [Fault(kind="wrong_model", model="alias"), Fault(kind="wrong_model", model="fake-2")]
    with FakeServer(models=models, faults=faults) as server:
        client = _client(server)
        answer = client.complete(MESSAGES, seed=5)
        assert (answer["model"], answer["revision"]) == ("alias", "weights")
        with pytest.raises(ModelFailed, match="fake-2"):
            client.complete(MESSAGES, seed=5)


@pytest.mark.parametrize("reported", ["fake-2026-11-30", "fake-20261130", "fake:latest"])
def test_a_dated_version_of_the_name_is_the_model(reported: str) -> None:
    with FakeServer(faults=[Fault(kind="wrong_model", model=reported)]) as server:
        assert _client(server).complete(MESSAGES, seed=5)["model"] == reported


def test_a_name_that_the_user_declared_is_the_model() -> None:
    with FakeServer(faults=[Fault(kind="wrong_model", model="cheaper")]) as server:
        client = _client(server, reported_as=["cheaper"])
        assert client.complete(MESSAGES, seed=5)["model"] == "cheaper"


def test_an_empty_answer_is_an_answer_and_nothing_is_made_up() -> None:
    faults = [Fault(kind="empty"), Fault(kind="no_reason"), Fault(kind="no_usage")]
    with FakeServer(faults=faults) as server:
        client = _client(server)
        empty, no_reason, no_usage = (client.complete(MESSAGES, seed=5) for _ in range(3))
    assert (empty["text"], empty["finish_reason"], empty["retries"]) == ("", "stop", [])
    assert no_reason["finish_reason"] == "unknown"
    assert no_usage["usage_missing"] is True
    assert no_usage["usage"]["tokens_in"] == 0


def _choice(**message: Any) -> dict[str, Any]:
    whole = {"role": "assistant", "content": None} | message
    return {"choices": [{"index": 0, "message": whole, "finish_reason": "length"}]}


def test_reasoning_is_kept_beside_the_answer_and_tool_calls_are_no_text() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    said: list[Mapping[str, Any]] = [
        _choice(content="TP53", reasoning="MYC is worse"),
        _choice(tool_calls=[call]),
    ]
    with FakeServer(answer=lambda _: said.pop(0)) as server:
        client = _client(server)
        thought, called = client.complete(MESSAGES, seed=1), client.complete(MESSAGES, seed=2)
    assert (thought["text"], thought["thinking"]) == ("TP53", "MYC is worse")
    assert thought["finish_reason"] == "length"
    assert called["text"] == ""


def test_a_price_is_charged_and_an_unknown_one_is_said(server: FakeServer) -> None:
    priced = _client(server, prices={"input": 1_000, "cached": 0, "output": 0})
    assert priced.complete(MESSAGES, seed=1)["usage"]["cost"] == pytest.approx(5 * 1_000 / 1e6)
    unknown = _client(server)
    unknown._price = None
    assert unknown.complete(MESSAGES, seed=1)["price_unknown"] is True


def test_nobody_at_the_address_names_it_and_the_command_that_starts_a_server() -> None:
    port = _free_port()
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
    port = _free_port()
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
        client = _client(server)
        assert client.context_tokens is None
        client.check_ready()
        served = client.served()
        assert served is not None
        assert (client.context_tokens, served.root) == (2_048, "org/weights")
        assert _client(server, context_tokens=99).context_tokens == 99
        assert not server.requests


def test_a_model_that_is_not_served_names_those_that_are() -> None:
    with FakeServer(models=("qwen", "llama")) as server:
        with pytest.raises(ModelFailed, match=r"does not serve 'fake'.*'qwen', 'llama'") as caught:
            _client(server).check_ready()
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
            _client(server).complete(MESSAGES, seed=5)
    assert [note["status"] for note in caught.value.errors] == [503]


def test_a_model_without_invoke_is_a_mistake_of_the_caller() -> None:
    from langchain_core.language_models import BaseChatModel

    class AsyncOnly(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "async-only"

        def _generate(self, *_: Any, **__: Any) -> Any:
            msg = "use ainvoke"
            raise NotImplementedError(msg)

    client = Client(AsyncOnly(), retries=3, backoff_s=5.0)
    with pytest.raises(AgentError, match=r"AsyncOnly.*`invoke` \(use ainvoke\)"):
        client.complete(MESSAGES, seed=1)


@pytest.mark.parametrize("wrap", ["none", "with_retry", "with_fallbacks"])
def test_an_objects_own_sampling_is_sent_and_recorded_and_an_option_wins(
    server: FakeServer, wrap: str
) -> None:
    from langchain_openai import ChatOpenAI

    chat: Any = ChatOpenAI(
        model="fake", base_url=server.url, api_key="EMPTY", temperature=0.0, max_tokens=50
    )
    chat = {
        "none": lambda: chat,
        "with_retry": chat.with_retry,
        "with_fallbacks": lambda: chat.with_fallbacks([chat.model_copy(update={"top_p": 0.2})]),
    }[wrap]()
    journal = _Requests()
    LLMProposer(chat, journal=journal, attempts=1).propose(tiny_view())
    LLMProposer(chat, journal=journal, attempts=1, temperature=0.3).propose(tiny_view())
    LLMProposer(chat.bind(top_p=0.5), journal=journal, attempts=1, max_tokens=9).propose(
        tiny_view()
    )
    with pytest.raises(AgentError, match=r"temperature is null.*carries 0\.0"):
        LLMProposer(chat, temperature=None)
    kept = [one["sampling"] for one in journal.requests]
    shown = [(one["temperature"], one["top_p"], one["max_tokens"]) for one in kept]
    assert shown == [(0.0, 0.9, 50), (0.3, 0.9, 50), (0.0, 0.5, 9)]
    sent = [
        (one["temperature"], one["top_p"], one.get("max_completion_tokens", one.get("max_tokens")))
        for one in server.count.bodies
    ]
    assert sent == shown


class _Requests:
    """A journal that keeps the requests."""

    def __init__(self) -> None:
        self.requests: list[Any] = []

    def exchange(self, request: Any, answer: Any) -> Any:
        self.requests.append(request)
        return answer()


def test_a_key_stays_out_of_all_that_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    with FakeServer(key="the right key") as server:
        model = {"model": "fake", "base_url": server.url, "api_key_env": "MY_KEY"}
        client = Client(model, retries=0)
        with pytest.raises(ModelFailed, match="refused") as asked:
            client.complete(MESSAGES, seed=5)
        with pytest.raises(ModelFailed, match="api_key_env") as ready:
            client.check_ready()
    # The server repeats the key in its words.
    assert "[key]" in str(asked.value)
    for kept in (repr(client), client.settings, str(ready.value), str(asked.value)):
        assert KEY not in str(kept)
    assert KEY not in str(asked.value.errors)
    assert asked.value.__cause__ is None
    assert asked.value.__suppress_context__
    monkeypatch.setenv("MY_KEY", "the right key")
    with FakeServer(key="the right key") as server:
        fine = Client(model | {"base_url": server.url})
        assert fine.complete(MESSAGES, seed=5)["text"]


def test_a_key_that_is_not_set_is_asked_for_by_its_variable() -> None:
    with pytest.raises(AgentError, match="NO_SUCH_KEY"):
        Client({"model": "fake", "base_url": "http://127.0.0.1:9/v1", "api_key_env": "NO_SUCH_KEY"})
    with pytest.raises(AgentError, match="OPENAI_API_KEY"):
        Client("openai:gpt-4o-mini")


def test_a_chat_model_object_is_used_as_given_and_retries_in_one_place(server: FakeServer) -> None:
    from langchain_openai import ChatOpenAI

    chat = ChatOpenAI(
        model="fake", base_url=server.url, api_key=KEY, extra_body={"top_k": 5}, max_retries=4
    )
    client = Client(chat, retries=1, backoff_s=0.01)
    answer = client.complete(MESSAGES, seed=5, extra_body={"min_p": 0.1})
    sent = server.count.bodies[0]
    assert (sent["top_k"], sent["min_p"], sent["seed"]) == (5, 0.1, 5)
    assert server.count.headers[0]["authorization"] == f"Bearer {KEY}"
    assert answer["model"] == client.name == "fake"
    assert client.settings["model"]["base_url"] == server.url
    assert KEY not in str(client.settings)
    with FakeServer(faults=[Fault(kind="status")] * 9) as broken:
        chat = ChatOpenAI(model="fake", base_url=broken.url, api_key=KEY, max_retries=4)
        with pytest.raises(ModelFailed):
            Client(chat, retries=1, backoff_s=0.01).complete(MESSAGES, seed=5)
        assert sum(broken.requests.values()) == 2


def test_any_chat_model_of_langchain_answers() -> None:
    from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
    from langchain_core.messages import AIMessage

    client = Client(FakeListChatModel(responses=["TP53, MYC"]))
    answer = client.complete(MESSAGES, seed=1)
    assert (answer["text"], answer["finish_reason"]) == ("TP53, MYC", "unknown")
    assert answer["usage_missing"] is True
    assert answer["price_unknown"] is True
    client.check_ready()
    blocks = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "RB1"}, ", CDK4"]
    spent = Client(GenericFakeChatModel(messages=iter([AIMessage(content=blocks)])), retries=3)
    answer = spent.complete(MESSAGES, seed=1)
    assert (answer["text"], answer["thinking"]) == ("RB1, CDK4", "hm")
    with pytest.raises(ModelFailed, match="raised"):
        spent.complete(MESSAGES, seed=1)


def test_a_providers_class_gets_its_sampling_through_its_own_fields() -> None:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    seen = []

    class Provider(BaseChatModel):
        """A class that takes no keyword and no top_p, as some providers' do."""

        model: str = "theirs"
        temperature: float = 1.0
        max_output_tokens: int = 9
        random_seed: int | None = None

        @property
        def _llm_type(self) -> str:
            return "provider"

        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None) -> ChatResult:
            seen.append((self.temperature, self.max_output_tokens, self.random_seed))
            return ChatResult(generations=[ChatGeneration(message=AIMessage(content="TP53"))])

    own = Provider()
    client = Client(own, sampling={"temperature": 0.2})
    answer = client.complete(MESSAGES, seed=7, max_tokens=33)
    assert seen == [(0.2, 33, 7)]
    assert (own.temperature, own.random_seed) == (1.0, None)
    assert answer["unsent"] == ["top_p"]
    # LangChain draws a number where the provider gives none; it would differ in every run.
    assert answer["id"] == ""
    assert "seed_sent" not in answer
    with pytest.raises(AgentError, match="extra_body"):
        client.complete(MESSAGES, seed=7, extra_body={"structured_outputs": {}})


def test_an_error_in_a_good_status_is_no_answer() -> None:
    said: list[Mapping[str, Any]] = [{"error": {"message": "overloaded"}, "choices": None}, {}]
    with FakeServer(answer=lambda _: said.pop(0)) as server:
        answer = _client(server).complete(MESSAGES, seed=1)
    assert [note["error"] for note in answer["retries"]] == ["malformed"]
    assert "overloaded" in answer["retries"][0]["said"]


def test_a_count_below_zero_is_a_missing_one_and_long_names_are_cut() -> None:
    said = {
        "usage": {"prompt_tokens": 9, "completion_tokens": -1, "total_tokens": 8},
        "system_fingerprint": "f" * 10_000,
    }
    with FakeServer(answer=lambda _: said) as server:
        answer = _client(server).complete(MESSAGES, seed=1)
    assert answer["usage_missing"] is True
    assert (answer["usage"]["tokens_in"], answer["usage"]["tokens_out"]) == (9, 0)
    assert len(answer["fingerprint"]) == 200


def test_a_message_of_no_known_role_is_a_mistake_of_the_caller(server: FakeServer) -> None:
    with pytest.raises(AgentError, match="role"):
        _client(server).complete([{"role": "boss", "content": "x"}], seed=1)


def test_without_langchain_the_line_that_installs_it_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'cads-env\[llm\]'"):
        Client({"model": "fake", "base_url": "http://127.0.0.1:9/v1"})


def test_a_stopped_client_waits_no_longer() -> None:
    with FakeServer(faults=[Fault(kind="status", status=503)] * 9) as server:
        client = _client(server, backoff_s=30.0, longest_wait_s=60.0)
        ended: list[BaseException] = []

        def ask() -> None:
            try:
                client.complete(MESSAGES, seed=5)
            except KeyboardInterrupt as stop:
                ended.append(stop)

        asking = threading.Thread(target=ask)
        asking.start()
        while not server.count.times:
            time.sleep(0.01)
        client.stop()
        asking.join(timeout=5)
    assert len(ended) == 1


def test_one_client_serves_all_who_ask_the_same(server: FakeServer) -> None:
    model = {"model": "fake", "base_url": server.url}
    first = shared_client(model, retries=1)
    made = []
    threads = [
        threading.Thread(target=lambda: made.append(shared_client(dict(model), retries=1)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {id(one) for one in made} == {id(first)}
    assert shared_client(model, retries=2) is not first
    assert shared_client(model, retries=1, sampling={"temperature": 0}) is not first


def test_many_threads_get_each_their_own_answer(server: FakeServer) -> None:
    client = _client(server, timeout_s=20)
    alone = [client.complete(MESSAGES, seed=seed) for seed in range(32)]
    together: dict[int, Any] = {}
    threads = [
        threading.Thread(
            target=lambda s=seed: together.update({s: client.complete(MESSAGES, seed=s)})
        )
        for seed in range(32)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[seed] for seed in range(32)] == alone


def test_a_proxy_shows_its_faults_and_counts_what_went_through(server: FakeServer) -> None:
    with FaultProxy(server.url, faults=[None, Fault(kind="cut"), None]) as proxy:
        client = _client(proxy)
        client.check_ready()
        first, second = client.complete(MESSAGES, seed=1), client.complete(MESSAGES, seed=1)
    assert first["text"] == second["text"]
    assert (len(first["retries"]), len(second["retries"])) == (0, 1)
    assert sum(proxy.requests.values()) == sum(server.requests.values()) == 3
    assert sum(proxy.completed.values()) == 2


def _chat_openai(url: str, key: str) -> Any:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model="fake", base_url=url, api_key=key)


def test_a_wrapped_chat_model_is_known_and_scrubbed_as_the_one_inside() -> None:
    key = "plain-password-77"
    faults = [Fault(kind="status", status=400, said=f"bad key {key}")]
    with FakeServer(faults=faults) as server:
        inside = _chat_openai(server.url, key)
        client = Client(inside.with_retry(stop_after_attempt=1), retries=0)
        assert client.name == "fake"
        assert client.settings["model"]["base_url"] == server.url
        with pytest.raises(ModelFailed, match=r"bad key \[key\]") as caught:
            client.complete(MESSAGES, seed=1)
        assert key not in str(caught.value)
        assert client.complete(MESSAGES, seed=1)["model"] == "fake"


def test_a_single_reported_name_is_a_list_of_one() -> None:
    with FakeServer(answer=lambda _: {"model": "renamed"}) as server:
        settings = {"model": "fake", "base_url": server.url}
        agent = LLMProposer(settings, reported_as="renamed")
        assert agent._client.complete(MESSAGES, seed=1)["model"] == "renamed"


def test_a_refused_setting_is_named_with_the_option_that_leaves_it_out() -> None:
    said = "Unsupported parameter: 'seed' is not supported with this model."
    with FakeServer(faults=[Fault(kind="status", status=400, said=said)]) as server:
        with pytest.raises(ModelFailed, match=r"takes no seed: `send_seed: false`"):
            _client(server).complete(MESSAGES, seed=1)
        sampling = {"seed": False}
        assert _client(server, sampling=sampling).complete(MESSAGES, seed=1)["text"]
    assert "seed" not in server.count.bodies[-1]

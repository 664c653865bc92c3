from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest

from cads_agents import LLMProposer
from cads_agents.llm.client import Client, shared_client
from cads_agents.llm.failures import ContextOverflow, ModelFailed
from cads_env.errors import AgentError, MissingExtraError
from tests.agents.llm.asking import MESSAGES, client_of
from tests.agents.llm.fake_server import FakeServer
from tests.agents.llm.fault_proxy import Fault, FaultProxy

pytest.importorskip("langchain_openai", reason="needs the extra llm")


def test_every_request_sends_its_whole_sampling(server: FakeServer) -> None:
    client = client_of(server, sampling={"temperature": 0.3, "top_p": 0.8, "max_tokens": 44})
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
    answer = client_of(server).complete(MESSAGES, seed=1)
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
    client = client_of(server, sampling={"temperature": None, "top_p": None, "seed": False})
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
        answer = client_of(server, **slow).complete(MESSAGES, seed=5)
    with FakeServer() as calm:
        expected = client_of(calm).complete(MESSAGES, seed=5)
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
        client = client_of(server, retries=1, **slow)
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
        answer = client_of(server).complete(MESSAGES, seed=5)
        first, second = server.count.times
    # A date has no fractions of a second.
    assert second - first >= (0.9 if as_date else 0.4)
    assert answer["retries"][0]["status"] == 429


def test_a_longer_wait_than_declared_is_cut() -> None:
    fault = Fault(kind="status", status=429, retry_after_s=3_600.0)
    with FakeServer(faults=[fault]) as server:
        answer = client_of(server, longest_wait_s=0.2).complete(MESSAGES, seed=5)
    assert answer["retries"][0]["wait_s"] == 0.2


def test_all_threads_wait_when_the_server_limits_their_rate() -> None:
    with FakeServer(faults=[Fault(kind="status", status=429, retry_after_s=1.0)]) as server:
        client = client_of(server)
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
        client, began = client_of(server, requests_per_second=20), time.monotonic()
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
            client_of(server).complete(MESSAGES, seed=5)
        assert sum(server.requests.values()) == 1
    assert caught.value.kind == "refused"
    assert f"HTTP {status}" in str(caught.value)


def test_a_prompt_that_is_too_long_is_told_apart() -> None:
    with FakeServer(context_tokens=5) as server:
        with pytest.raises(ContextOverflow, match="maximum context length"):
            client_of(server).complete(MESSAGES, seed=5)
        assert sum(server.requests.values()) == 1


def test_another_model_than_asked_for_is_never_taken() -> None:
    with FakeServer(faults=[Fault(kind="wrong_model", model="cheaper")]) as server:
        with pytest.raises(ModelFailed, match=r"'fake'.*'cheaper'"):
            client_of(server).complete(MESSAGES, seed=5)


def test_another_name_of_the_same_weights_is_the_same_model() -> None:
    models = {"fake": "/home/me/weights", "alias": "/home/me/weights", "fake-2": "others"}
    faults = [Fault(kind="wrong_model", model="alias"), Fault(kind="wrong_model", model="fake-2")]
    with FakeServer(models=models, faults=faults) as server:
        client = client_of(server)
        answer = client.complete(MESSAGES, seed=5)
        assert (answer["model"], answer["revision"]) == ("alias", "weights")
        with pytest.raises(ModelFailed, match="fake-2"):
            client.complete(MESSAGES, seed=5)


@pytest.mark.parametrize("reported", ["fake-2026-11-30", "fake-20261130", "fake:latest"])
def test_a_dated_version_of_the_name_is_the_model(reported: str) -> None:
    with FakeServer(faults=[Fault(kind="wrong_model", model=reported)]) as server:
        assert client_of(server).complete(MESSAGES, seed=5)["model"] == reported


def test_a_name_that_the_user_declared_is_the_model() -> None:
    with FakeServer(faults=[Fault(kind="wrong_model", model="cheaper")]) as server:
        client = client_of(server, reported_as=["cheaper"])
        assert client.complete(MESSAGES, seed=5)["model"] == "cheaper"


def test_an_empty_answer_is_an_answer_and_nothing_is_made_up() -> None:
    faults = [Fault(kind="empty"), Fault(kind="no_reason"), Fault(kind="no_usage")]
    with FakeServer(faults=faults) as server:
        client = client_of(server)
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
        client = client_of(server)
        thought, called = client.complete(MESSAGES, seed=1), client.complete(MESSAGES, seed=2)
    assert (thought["text"], thought["thinking"]) == ("TP53", "MYC is worse")
    assert thought["finish_reason"] == "length"
    assert called["text"] == ""


def test_a_price_is_charged_and_an_unknown_one_is_said(server: FakeServer) -> None:
    priced = client_of(server, prices={"input": 1_000, "cached": 0, "output": 0})
    assert priced.complete(MESSAGES, seed=1)["usage"]["cost"] == pytest.approx(5 * 1_000 / 1e6)
    unknown = client_of(server)
    unknown._price = None
    assert unknown.complete(MESSAGES, seed=1)["price_unknown"] is True


def test_an_error_in_a_good_status_is_no_answer() -> None:
    said: list[Mapping[str, Any]] = [{"error": {"message": "overloaded"}, "choices": None}, {}]
    with FakeServer(answer=lambda _: said.pop(0)) as server:
        answer = client_of(server).complete(MESSAGES, seed=1)
    assert [note["error"] for note in answer["retries"]] == ["malformed"]
    assert "overloaded" in answer["retries"][0]["said"]


def test_a_count_below_zero_is_a_missing_one_and_long_names_are_cut() -> None:
    said = {
        "usage": {"prompt_tokens": 9, "completion_tokens": -1, "total_tokens": 8},
        "system_fingerprint": "f" * 10_000,
    }
    with FakeServer(answer=lambda _: said) as server:
        answer = client_of(server).complete(MESSAGES, seed=1)
    assert answer["usage_missing"] is True
    assert (answer["usage"]["tokens_in"], answer["usage"]["tokens_out"]) == (9, 0)
    assert len(answer["fingerprint"]) == 200


def test_a_message_of_no_known_role_is_a_mistake_of_the_caller(server: FakeServer) -> None:
    with pytest.raises(AgentError, match="role"):
        client_of(server).complete([{"role": "boss", "content": "x"}], seed=1)


def test_without_langchain_the_line_that_installs_it_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'cads-env\[llm\]'"):
        Client({"model": "fake", "base_url": "http://127.0.0.1:9/v1"})


def test_a_stopped_client_waits_no_longer() -> None:
    with FakeServer(faults=[Fault(kind="status", status=503)] * 9) as server:
        client = client_of(server, backoff_s=30.0, longest_wait_s=60.0)
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
    client = client_of(server, timeout_s=20)
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
        client = client_of(proxy)
        client.check_ready()
        first, second = client.complete(MESSAGES, seed=1), client.complete(MESSAGES, seed=1)
    assert first["text"] == second["text"]
    assert (len(first["retries"]), len(second["retries"])) == (0, 1)
    assert sum(proxy.requests.values()) == sum(server.requests.values()) == 3
    assert sum(proxy.completed.values()) == 2


def test_a_single_reported_name_is_a_list_of_one() -> None:
    with FakeServer(answer=lambda _: {"model": "renamed"}) as server:
        settings = {"model": "fake", "base_url": server.url}
        agent = LLMProposer(settings, reported_as="renamed")
        assert agent._client.complete(MESSAGES, seed=1)["model"] == "renamed"


def test_a_refused_setting_is_named_with_the_option_that_leaves_it_out() -> None:
    said = "Unsupported parameter: 'seed' is not supported with this model."
    with FakeServer(faults=[Fault(kind="status", status=400, said=said)]) as server:
        with pytest.raises(ModelFailed, match=r"takes no seed: `send_seed: false`"):
            client_of(server).complete(MESSAGES, seed=1)
        sampling = {"seed": False}
        assert client_of(server, sampling=sampling).complete(MESSAGES, seed=1)["text"]
    assert "seed" not in server.count.bodies[-1]

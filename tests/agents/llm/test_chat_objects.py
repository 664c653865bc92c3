from __future__ import annotations

from typing import Any

import pytest

from cads_agents import LLMProposer
from cads_agents.llm.client import Client
from cads_agents.llm.failures import ModelFailed
from cads_env.errors import AgentError
from tests.agents.llm.asking import KEY, MESSAGES
from tests.agents.llm.fake_server import FakeServer
from tests.agents.llm.fault_proxy import Fault
from tests.agents.llm.stub import tiny_view

pytest.importorskip("langchain_openai", reason="needs the extra llm")


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

"""Whole runs through a server at which things go wrong: no campaign is silently wrong."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import cads_env
from cads_agents import llm_agent
from cads_env.report.write import write_report
from cads_env.run.replay import replay
from cads_env.testing import tiny_protocol, tiny_registry
from tests.agents.llm.fake_server import FakeServer
from tests.agents.llm.fault_proxy import Fault, FaultProxy, body_hash
from tests.agents.llm.test_served import names

pytest.importorskip("langchain_openai", reason="needs the extra llm")

SEEDS = range(4)
PASSING = {
    "hang": Fault(kind="hang", seconds=3.0),
    "reset": Fault(kind="reset"),
    "limit": Fault(kind="status", status=429, retry_after_s=0.01),
    "limit until a date": Fault(kind="status", status=429, retry_after_s=0.01, as_date=True),
    "dead engine": Fault(kind="status", status=500),
    "overload": Fault(kind="status", status=503),
    "cut": Fault(kind="cut"),
    "garbage": Fault(kind="garbage"),
    "null choices": Fault(kind="null_choices"),
    "no choices": Fault(kind="no_choices"),
    "content type": Fault(kind="content_type"),
}
AT_ONCE = {name: fault for name, fault in PASSING.items() if name != "hang"}
"""Those that take no time."""

Script = Callable[[int, Mapping[str, Any]], Fault | None]


def play(url: str, *, timeout_s: float = 20.0, **more: Any) -> Any:
    model = {"model": "fake", "base_url": url}
    patience = {"timeout_s": timeout_s, "retries": 1, "backoff_s": 0.01, "longest_wait_s": 0.05}
    return cads_env.evaluate(
        {"llm": llm_agent(model, **patience)},
        registry=tiny_registry(),
        protocol=tiny_protocol(),
        seeds=SEEDS,
        **more,
    )


@pytest.fixture(scope="module")
def clean() -> Any:
    with FakeServer(answer=names) as server:
        return play(server.url)


def rows_of(result: Any, seed: int) -> list[Any]:
    frames = (result.campaigns, result.rounds, result.declarations)
    return [f[f["seed"] == seed].drop(columns=["arm"]).to_dict("records") for f in frames]


def patience_for(name: str) -> float:
    """Seconds: long enough for a busy machine, unless the fault is to be waited out."""
    return 1.5 if name == "hang" else 20.0


def every(fault: Fault, *, first_tries: int) -> Script:
    """The fault at the first tries of each request."""
    tried: Counter[str] = Counter()
    lock = threading.Lock()

    def script(_: int, body: Mapping[str, Any]) -> Fault | None:
        with lock:
            key = body_hash(body)
            tried[key] += 1
            return fault if tried[key] <= first_tries else None

    return script


def of_some(faults: Mapping[str, Fault], *, share: int) -> Script:
    """One request in `share` has one of the faults at every try, another passes at the second."""
    tried: Counter[str] = Counter()
    lock = threading.Lock()
    kinds = list(faults.values())

    def script(_: int, body: Mapping[str, Any]) -> Fault | None:
        number = int(body_hash(body)[:8], 16)
        with lock:
            tried[body_hash(body)] += 1
            again = tried[body_hash(body)] > 1
        fault = kinds[number % len(kinds)]
        if number // 16 % share == 0:
            return fault
        return None if again or number // 16 % share > 3 else fault

    return script


@pytest.mark.parametrize("name", PASSING)
def test_a_fault_that_passes_changes_no_campaign(name: str, clean: Any) -> None:
    with (
        FakeServer(answer=names) as server,
        FaultProxy(server.url, faults=every(PASSING[name], first_tries=1)) as proxy,
    ):
        result = play(proxy.url, concurrency=8, timeout_s=patience_for(name))
        assert set(proxy.requests.values()) == {2}
    assert result.failures == ()
    assert [rows_of(result, s) for s in SEEDS] == [rows_of(clean, s) for s in SEEDS]


@pytest.mark.parametrize("name", PASSING)
def test_a_fault_that_stays_fails_every_campaign_with_its_reason(name: str) -> None:
    with (
        FakeServer(answer=names) as server,
        FaultProxy(server.url, faults=lambda *_: PASSING[name]) as proxy,
    ):
        result = play(proxy.url, concurrency=4, timeout_s=patience_for(name))
    assert len(result.campaigns) == 0
    assert [failure.seed for failure in result.failures] == list(SEEDS)
    assert all(proxy.url in failure.reason for failure in result.failures)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_of_mixed_faults_every_campaign_is_whole_or_failed_and_told_apart(
    concurrency: int, clean: Any, tmp_path: Path
) -> None:
    with (
        FakeServer(answer=names) as server,
        FaultProxy(server.url, faults=of_some(AT_ONCE, share=24)) as proxy,
    ):
        result = play(proxy.url, concurrency=concurrency, out=tmp_path)
    failed = {failure.seed for failure in result.failures}
    scored = set(result.campaigns["seed"])
    assert failed
    assert scored
    assert failed | scored == set(SEEDS)
    assert not failed & scored
    for seed in scored:
        assert rows_of(result, seed) == rows_of(clean, seed)
    write_report(result, tmp_path)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "Failed campaigns" in text
    for failure in result.failures:
        assert failure.reason[:60].split("http")[0].strip() in text
    assert replay(tmp_path, registry=tiny_registry()).byte_identical


def test_another_model_fails_and_an_empty_answer_is_counted(clean: Any) -> None:
    wrong = of_some({"wrong": Fault(kind="wrong_model")}, share=10)
    with (
        FakeServer(answer=names) as server,
        FaultProxy(server.url, faults=lambda n, body: wrong(n, body)) as proxy,
    ):
        result = play(proxy.url)
    assert result.failures
    assert all("another-model" in failure.reason for failure in result.failures)
    for seed in result.campaigns["seed"]:
        assert rows_of(result, seed) == rows_of(clean, seed)
    with (
        FakeServer(answer=names) as server,
        FaultProxy(server.url, faults=lambda *_: Fault(kind="empty")) as proxy,
    ):
        silent = play(proxy.url)
    assert silent.failures == ()
    usages = list(silent.rounds["usage"])
    assert all(usage["empty"] == usage["requests"] > 0 for usage in usages)
    assert set(silent.campaigns["net"]) == {0}

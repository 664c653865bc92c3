"""What an agent may not do with its journal: it is told, and its campaign is never scored."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cads_env.errors import AgentError, RecordError, ReplayError, RunError
from cads_env.proposer import Journal, ProposerFailed, View
from cads_env.run import evaluate, exchange_json, load_run, traces
from cads_env.run.executors import RunStopped, Stop, ThreadPool
from cads_env.run.file_journal import FileJournal
from cads_env.run.journal import MemoryJournal
from cads_env.run.meter import Meter, spent_of
from cads_env.run.replay import replay
from cads_env.run.traces import read_trace, trace_files
from cads_env.testing import tiny_protocol, tiny_registry
from tests.run.test_journal import line, request
from tests.truth_scan import reachable

PAIR = tiny_registry(80, 16)

Ask = Callable[[Journal, View], None]


def agent(ask: Ask) -> type:
    """An agent that does something with its journal and proposes nothing."""

    class Agent:
        def __init__(self, *, journal: Journal) -> None:
            self.journal = journal

        def propose(self, view: View) -> Sequence[str]:
            ask(self.journal, view)
            return ()

    return Agent


def play(ask: Ask, folder: Path) -> str:
    return evaluate(
        agent(ask), registry=PAIR, protocol=tiny_protocol(), seeds=[0], out=folder
    ).status


def asked(view: View, **more: Any) -> dict[str, Any]:
    return {"round": view.round, **more}


def broken() -> Mapping[str, Any]:
    msg = "slow"
    raise TimeoutError(msg)


def goes_on(error: type[BaseException], answer: Callable[[], Any]) -> Ask:
    def ask(journal: Journal, view: View) -> None:
        try:
            journal.exchange(asked(view), answer)
        except error:
            return

    return ask


@pytest.mark.parametrize(
    ("ask", "reason"),
    [
        (goes_on(TimeoutError, broken), "TimeoutError: slow"),
        (goes_on(Exception, lambda: {"text": float("nan")}), "is no JSON"),
        (goes_on(Exception, lambda: ["text"]), "is a list"),
        (goes_on(Exception, lambda: {"a": {"1": 1, 1: 2}}), "stands twice"),
    ],
)
def test_an_agent_that_goes_on_without_an_answer_is_not_scored(
    ask: Ask, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(AgentError, match=f"(?s)got no answer.*{reason}.*raise ProposerFailed"):
        play(ask, tmp_path / "run")
    assert load_run(tmp_path / "run").campaigns.empty


def test_an_agent_that_asks_the_same_again_is_scored_and_replays(tmp_path: Path) -> None:
    tries: list[int] = []

    def ask(journal: Journal, view: View) -> None:
        def answer() -> Mapping[str, Any]:
            tries.append(view.round)
            return broken() if tries.count(view.round) < 3 else {"text": "x"}

        for _ in range(3):
            try:
                journal.exchange(asked(view), answer)
            except TimeoutError:
                continue
            return

    assert play(ask, tmp_path / "run") == "complete"
    assert replay(tmp_path / "run", agents={"Agent": agent(ask)}, registry=PAIR).byte_identical


def test_a_failure_is_the_same_live_and_replayed(tmp_path: Path) -> None:
    class Down(ProposerFailed):
        pass

    def answer() -> Mapping[str, Any]:
        msg = "down"
        raise Down(msg)

    kinds: list[type] = []

    def ask(journal: Journal, view: View) -> None:
        try:
            journal.exchange(asked(view), answer)
        except ProposerFailed as failure:
            kinds.append(type(failure))

    assert play(ask, tmp_path / "run") == "complete"
    assert replay(tmp_path / "run", agents={"Agent": agent(ask)}, registry=PAIR).byte_identical
    assert set(kinds) == {ProposerFailed}


def test_two_exchanges_at_once_are_refused() -> None:
    journal = MemoryJournal()
    entered, told = threading.Event(), threading.Event()

    def slow() -> Mapping[str, Any]:
        entered.set()
        told.wait(5)
        return {}

    first = threading.Thread(target=journal.ticket.exchange, args=(request(0), slow))
    first.start()
    entered.wait(5)
    with pytest.raises(AgentError, match="under way"):
        journal.ticket.exchange(request(1), dict)
    told.set()
    first.join()
    with pytest.raises(AgentError, match="under way"):
        journal.end()
    assert len(journal.lines) == 1


def test_an_exchange_inside_another_is_refused(tmp_path: Path) -> None:
    def ask(journal: Journal, view: View) -> None:
        journal.exchange(asked(view), lambda: dict(journal.exchange(asked(view, inner=1), dict)))

    with pytest.raises(AgentError, match="under way"):
        play(ask, tmp_path / "run")
    assert trace_files(tmp_path / "run") == []


def test_what_comes_after_the_end_of_a_campaign_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    journal = FileJournal(path)
    journal.ticket.exchange(request(0), dict)
    entered, told = threading.Event(), threading.Event()
    heard: list[str] = []

    def slow() -> Mapping[str, Any]:
        entered.set()
        told.wait(5)
        return {}

    def late() -> None:
        try:
            journal.ticket.exchange(request(1), slow)
        except AgentError as error:
            heard.append(str(error))

    thread = threading.Thread(target=late)
    thread.start()
    entered.wait(5)
    with pytest.raises(AgentError, match="ended while an exchange of it was under way"):
        journal.end()
    told.set()
    thread.join()
    assert "is over" in heard[0]
    assert [exchange.n for exchange in read_trace(path)] == [0]


def test_threads_of_an_agent_may_ask_one_after_another(tmp_path: Path) -> None:
    def ask(journal: Journal, view: View) -> None:
        thread = threading.Thread(target=journal.exchange, args=(asked(view), dict))
        thread.start()
        thread.join()

    assert play(ask, tmp_path / "run") == "complete"
    assert replay(tmp_path / "run", agents={"Agent": agent(ask)}, registry=PAIR).byte_identical


def test_nothing_longer_than_a_line_is_asked_or_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange_json, "MOST_LINE_BYTES", 3_000)
    journal = MemoryJournal()
    asked_for: list[int] = []
    with pytest.raises(AgentError, match="A request to the journal takes"):
        journal.exchange(request(0, text="x" * 3_000), lambda: {"n": asked_for.append(1)})
    with pytest.raises(AgentError, match="An exchange to the journal takes"):
        journal.exchange(request(0), lambda: {"text": "x" * 3_000})
    assert asked_for == []
    assert journal.lines == []


def test_a_line_that_names_something_twice_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(line().replace(b'"answer"', b'"request": {"round": 9}, "answer"'))
    with pytest.raises(RecordError, match="line 1 is no exchange"):
        list(read_trace(path))


@pytest.mark.parametrize("count", [10**400, -1, float("inf"), float("nan"), True, "9", None])
def test_a_count_that_is_none_adds_nothing(count: Any) -> None:
    spent = spent_of({"usage": {"tokens_in": count, "cost": count}}, is_new_round=True)
    assert (spent.tokens, spent.cost) == (0, 0.0)


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), 10**400, True, "1"])
def test_a_limit_that_is_none_is_refused(limit: Any) -> None:
    with pytest.raises(RunError, match="is no limit"):
        Meter(max_cost=limit)


def test_a_journal_that_cannot_be_written_asks_nothing_more(tmp_path: Path) -> None:
    path = tmp_path / "secret--77" / "t.jsonl"
    path.parent.write_text("in the way")
    journal = FileJournal(path)
    asked_for: list[int] = []
    for answer in (dict, lambda: {"n": asked_for.append(1)}):
        with pytest.raises(RunError, match="cannot be written"):
            journal.ticket.exchange(request(0), answer)
    assert asked_for == []


def stopped() -> Stop:
    stop = Stop()
    stop.give("the run ends")
    return stop


@pytest.mark.parametrize(
    ("content", "how", "error"),
    [
        (None, {}, RunError),
        (b"damaged\n", {}, RecordError),
        (line(), {"mode": "replay"}, ReplayError),
        (line(request={"round": 7}, request_sha256="x"), {}, RecordError),
        (b"", {"mode": "replay"}, ReplayError),
        (b"", {"stop": stopped()}, RunStopped),
    ],
)
def test_no_error_of_a_journal_tells_the_agent_where_it_plays(
    content: bytes | None, how: dict[str, Any], error: type[BaseException], tmp_path: Path
) -> None:
    path = tmp_path / "secret--77" / "t.jsonl"
    if content is None:
        path.parent.write_text("in the way")
    else:
        path.parent.mkdir()
        path.write_bytes(content)
    journal = FileJournal(path, **how)
    with pytest.raises(error) as caught:
        journal.ticket.exchange(request(5), dict)
    told: list[BaseException] = [caught.value]
    while (inner := told[-1].__cause__ or told[-1].__context__) is not None:
        told.append(inner)
    texts = [v for one in told for v in (*reachable(one), str(one)) if isinstance(v, str)]
    assert texts
    assert not any("secret" in text for text in texts)


def test_a_stop_tells_agents_nothing_of_the_campaign_that_broke(tmp_path: Path) -> None:
    heard: list[str] = []
    first = threading.Lock()
    is_asking = threading.Event()

    def ask(journal: Journal, view: View) -> None:
        if first.acquire(blocking=False):
            assert is_asking.wait(20)
            msg = "tells 17 of something"
            raise ValueError(msg)
        try:
            while True:
                journal.exchange(asked(view), dict)
                is_asking.set()
        except RunStopped as stopped:
            heard.append(str(stopped))
            raise

    with ThreadPool(2) as pool, pytest.raises(AgentError, match="tells 17"):
        evaluate(
            agent(ask), registry=PAIR, protocol=tiny_protocol(), seeds=range(4),
            out=tmp_path / "run", pool=pool,
        )  # fmt: skip
    assert heard
    assert not any("17" in text or "seed" in text for text in heard)
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["status"] == "failed"
    assert traces.tally(tmp_path / "run").requests > 0


def test_what_is_no_file_is_no_trace(tmp_path: Path) -> None:
    play(lambda journal, view: journal.exchange(asked(view), dict) and None, tmp_path / "run")
    (only,) = trace_files(tmp_path / "run")
    os.mkfifo(only.parent / "pipe.jsonl")
    (only.parent / "folder.jsonl").mkdir()
    assert trace_files(tmp_path / "run") == [only]
    assert load_run(tmp_path / "run").status == "complete"


def test_arms_that_differ_in_case_alone_are_refused_where_they_keep_traces() -> None:
    how: dict[str, Any] = {"registry": PAIR, "protocol": tiny_protocol(), "seeds": [0]}
    kind = agent(lambda *_: None)
    with pytest.raises(AgentError, match="'One' and 'one' differ in upper and lower case"):
        evaluate({"One": kind, "one": kind}, **how)
    assert evaluate({"Random": "random", "random": "random"}, **how).status == "complete"


def test_an_agent_that_asks_while_it_is_built_asks_in_its_campaigns_alone(tmp_path: Path) -> None:
    seeds: list[int] = []

    class AsksFirst:
        requires = ("prior",)

        def __init__(self, *, journal: Journal, seed: int) -> None:
            journal.exchange({"seed": seed}, lambda: {"n": seeds.append(seed)})

        def propose(self, view: View) -> Sequence[str]:
            return ()

    def once(agents: object) -> str:
        return evaluate(
            agents, registry=PAIR, protocol=tiny_protocol(), seeds=range(2), out=tmp_path / "run"
        ).status

    assert once(AsksFirst) == once(AsksFirst) == "complete"
    assert len(seeds) == len(set(seeds)) == 2
    AsksFirst.requires = ("nothing like it",)
    with pytest.raises(AgentError, match="needs the side table 'nothing like it'"):
        once(AsksFirst)
    assert len(seeds) == 2


def test_a_process_that_an_agent_forked_asks_nothing(tmp_path: Path) -> None:
    def ask(journal: Journal, view: View) -> None:
        if (child := os.fork()) == 0:
            code = 1
            try:
                journal.exchange(asked(view, child=1), dict)
            except AgentError:
                code = 7
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        journal.exchange(asked(view), dict)

    assert play(ask, tmp_path / "run") == "complete"
    assert replay(
        tmp_path / "run", agents={"Agent": agent(lambda j, v: j.exchange(asked(v), dict) and None)},
        registry=PAIR,
    ).byte_identical  # fmt: skip

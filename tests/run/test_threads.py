"""Campaigns in threads: the bytes of a serial run, clean ends, shared pools and limits."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cads_env.errors import AgentError, RunError
from cads_env.proposer import Journal, Nothing, ProposerFailed, View
from cads_env.registry import Oracle, Registry
from cads_env.run import RunResult, evaluate, load_run
from cads_env.run.executors import Executor, RunStopped, Stop, ThreadPool, execute, in_order
from cads_env.run.meter import Meter
from cads_env.run.opened import MOST_HELD, OpenCampaigns
from tests.run.asking import (
    ATTEMPTS,
    PAIR,
    PROTOCOL,
    Asks,
    answer_to,
    counting_server,
    manifest_of,
    recorded,
    rows_of,
)

AGENTS = {"asks": Asks, "learner": "module-learner", "random": "random"}
ROUNDS = PROTOCOL.rounds


def run(out: Path | None, agents: object = AGENTS, **changes: Any) -> RunResult:
    arguments: dict[str, Any] = {"registry": PAIR, "protocol": PROTOCOL, "seeds": range(6)}
    return evaluate(agents, out=out, **(arguments | changes))


class Slow(Asks):
    """Waits for its answers."""

    def _ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        time.sleep(0.01)
        return answer_to(request)


def test_threads_change_no_byte(tmp_path: Path) -> None:
    results = {n: run(tmp_path / str(n), concurrency=n) for n in (1, 3, 16)}
    for n in (3, 16):
        assert rows_of(tmp_path / str(n)) == rows_of(tmp_path / "1")
        assert manifest_of(tmp_path / str(n)) == manifest_of(tmp_path / "1")
        assert results[n].arms == results[1].arms
        assert recorded(tmp_path / str(n)) == recorded(tmp_path / "1")
    memory = run(None, concurrency=3)
    assert memory.campaigns.equals(results[1].campaigns)
    assert memory.rounds.equals(results[1].rounds)


def test_campaigns_wait_side_by_side_and_not_for_one_another() -> None:
    most = [0]
    lock = threading.Lock()
    now: set[int] = set()

    class Waits(Slow):
        def _ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
            with lock:
                now.add(threading.get_ident())
                most[0] = max(most[0], len(now))
            answer = super()._ask(request)
            with lock:
                now.discard(threading.get_ident())
            return answer

    run(None, Waits, concurrency=5, seeds=range(8))
    assert most == [5]


def test_a_seed_is_opened_once_for_all_arms(monkeypatch: pytest.MonkeyPatch) -> None:
    from cads_env.run import plan

    played: list[int] = []
    reference = plan.play_reference

    def counted(registry: Registry, oracle: Oracle, protocol: Any, seed: int) -> Any:
        played.append(seed)
        return reference(registry, oracle, protocol, seed)

    monkeypatch.setattr(plan, "play_reference", counted)
    run(None, {name: Slow for name in "abcd"}, concurrency=8, seeds=range(5))
    assert sorted(played) == list(range(5))


def test_few_seeds_are_held_however_many_there_are() -> None:
    held = OpenCampaigns(lambda seed: [seed], arm_count=2)
    firsts = [held.take(seed, 1) for seed in range(3 * MOST_HELD)]
    assert len(held._held) == MOST_HELD
    last = len(firsts) - 1
    assert held.take(last, 1) is firsts[last]
    assert held.take(0, 1) is not firsts[0]
    assert len(held._held) <= MOST_HELD


def test_an_agents_mistake_ends_the_run_and_keeps_what_is_complete(tmp_path: Path) -> None:
    class Breaks(Slow):
        def propose(self, view: View) -> Any:
            if self._seed % 3 == 0 and view.round == 2:
                raise ValueError("mine")
            return super().propose(view)

    with pytest.raises(AgentError, match=r"Agent 'b' broke in round 2 of seed \d+: ValueError"):
        run(tmp_path / "run", {"b": Breaks}, concurrency=3, seeds=range(30))
    partial = load_run(tmp_path / "run")
    assert partial.status == "failed"
    assert len(partial.campaigns) < 30
    asked = sum(recorded(tmp_path / "run").values())
    # Nobody went on for long after the mistake.
    assert asked < 30 * ROUNDS * ATTEMPTS
    assert not [t for t in threading.enumerate() if t.name.startswith("cads-0") and t.is_alive()]


def test_an_object_that_plays_twice_is_found_in_threads_too() -> None:
    one = Nothing()
    with pytest.raises(AgentError, match="returned the same object again"):
        run(None, {"same": lambda: one}, concurrency=4)


def test_a_failed_campaign_leaves_the_others(tmp_path: Path) -> None:
    class Fails(Asks):
        def _ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
            if request["seed"] % 3 == 0 and request["round"] == 1:
                raise ProposerFailed("server down")
            return answer_to(request)

    one = run(tmp_path / "1", {"f": Fails})
    many = run(tmp_path / "4", {"f": Fails}, concurrency=4)
    assert 0 < len(one.failures) < 6
    assert one.failures == many.failures
    assert (tmp_path / "1" / "failures.jsonl").read_bytes() == (
        tmp_path / "4" / "failures.jsonl"
    ).read_bytes()


def test_ctrl_c_ends_threads_and_the_run_goes_on(tmp_path: Path) -> None:
    with counting_server() as server:
        agents = {"Slow": lambda journal, seed: Asks(journal, seed, server.url)}
        run(tmp_path / "unbroken", agents)
        server.counts.clear()

        def interrupt(number: int) -> None:
            if number == 45:
                os.kill(os.getpid(), signal.SIGINT)
            if number >= 45:
                # Whoever is to hear of it may be busy with files.
                time.sleep(0.3)

        server.on_request = interrupt
        # A shell's background job begins with Ctrl-C ignored.
        heard = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt) as info:
                run(tmp_path / "run", agents, concurrency=4)
        finally:
            signal.signal(signal.SIGINT, heard)
        assert load_run(tmp_path / "run").status == "interrupted"
        before = recorded(tmp_path / "run")
        asked = server.counts.copy()
        assert 0 < sum(asked.values()) < 6 * ROUNDS * ATTEMPTS
        # Whoever was under way had its answer kept.
        assert before == asked
        assert "the same command goes on" in info.value.__notes__[0]
        server.on_request = lambda _: None
        run(tmp_path / "run", agents, concurrency=4)
        assert set(server.counts.values()) == {1}
    assert rows_of(tmp_path / "run") == rows_of(tmp_path / "unbroken")


def test_runs_in_one_pool_share_its_threads_its_limits_and_its_end(tmp_path: Path) -> None:
    results: dict[str, RunResult] = {}
    meter = Meter(max_tokens=3_000)
    with ThreadPool(4, meter=meter) as pool:

        def play(name: str) -> None:
            results[name] = run(tmp_path / name, {name: Slow}, pool=pool)

        drivers = [threading.Thread(target=play, args=(name,)) for name in "abc"]
        for driver in drivers:
            driver.start()
        for driver in drivers:
            driver.join()
    assert {r.status for r in results.values()} == {"interrupted"}
    total = meter.total
    assert 3_000 <= total.tokens < 3_000 + 4 * 70
    assert total.requests == sum(sum(recorded(tmp_path / name).values()) for name in "abc")
    with ThreadPool(4) as pool:
        pool.stop("the grid was interrupted")
        stopped = run(tmp_path / "a", {"a": Slow}, pool=pool)
    assert (stopped.status, stopped.manifest["reason"]) == (
        "interrupted", "the grid was interrupted",
    )  # fmt: skip
    with ThreadPool(2) as pool:
        assert run(tmp_path / "a", {"a": Slow}, pool=pool).status == "complete"
    run(tmp_path / "alone", {"a": Slow})
    assert rows_of(tmp_path / "a") == rows_of(tmp_path / "alone")


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("limit", [{"max_tokens": 2_000}, {"max_cost": 7.5}])
def test_a_limit_stops_cleanly_and_counts_what_was_recorded(
    concurrency: int, limit: dict[str, float], tmp_path: Path
) -> None:
    class Watches:
        meter: Meter

        def __call__(self, *_: Any) -> None:
            return

        def watch(self, meter: Meter) -> None:
            self.meter = meter

    watches = Watches()
    how: dict[str, Any] = {"concurrency": concurrency, "progress": watches}
    stopped = run(tmp_path / "run", Slow, **how, **limit)
    assert stopped.status == load_run(tmp_path / "run").status == "interrupted"
    assert next(iter(limit)) in stopped.manifest["reason"]
    assert len(stopped.campaigns) < 6
    before = recorded(tmp_path / "run")
    spent = watches.meter.total
    assert spent.requests == sum(before.values())
    reached = spent.tokens if "max_tokens" in limit else spent.cost
    most_over = (concurrency - 1) * (70 if "max_tokens" in limit else 0.25)
    assert next(iter(limit.values())) <= reached <= next(iter(limit.values())) + 70 + most_over
    again = run(tmp_path / "run", Slow, **how, **limit)
    assert (again.status, recorded(tmp_path / "run")) == ("interrupted", before)
    done = run(tmp_path / "run", Slow, **how)
    assert done.status == "complete"
    assert "reason" not in done.manifest
    assert set(recorded(tmp_path / "run").values()) == {1}
    assert watches.meter.total.requests == 6 * ROUNDS * ATTEMPTS
    assert watches.meter.now.requests == 6 * ROUNDS * ATTEMPTS - spent.requests
    assert watches.meter.total.rounds >= 6 * ROUNDS
    run(tmp_path / "whole", Slow)
    assert rows_of(tmp_path / "run") == rows_of(tmp_path / "whole")


@pytest.mark.parametrize("how", [{"jobs": 2}, {"concurrency": 2}, {}])
def test_what_was_asked_is_summed_wherever_it_was(how: dict[str, int]) -> None:
    meters: list[Meter] = []

    def progress(*_: Any) -> None:
        return

    progress.watch = meters.append  # type: ignore[attr-defined]
    run(None, "tests.run.asking:Asks", progress=progress, **how)
    (meter,) = meters
    assert meter.total == meter.now
    asked = 6 * ROUNDS * ATTEMPTS
    assert meter.now[:1] + meter.now[4:] == (asked, 0.25 * asked, asked, 0, 6 * ROUNDS)


def test_a_limit_stops_a_run_in_memory() -> None:
    result = run(None, Slow, max_cost=3)
    assert result.status == "interrupted"
    assert "max_cost = 3" in result.manifest["reason"]
    assert len(result.campaigns) == 1


def test_an_agent_cannot_swallow_a_stop() -> None:
    class Swallows(Asks):
        def propose(self, view: View) -> Any:
            try:
                return super().propose(view)
            except BaseException:
                return ()

    result = run(None, Swallows, max_cost=1, concurrency=2)
    assert result.status == "interrupted"
    assert result.campaigns.empty


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"concurrency": 0}, "concurrency=0 is not usable"),
        ({"concurrency": True}, "concurrency=True is not usable"),
        ({"concurrency": 2.0}, r"concurrency=2\.0 is not usable"),
        ({"concurrency": 2, "jobs": 2}, "concurrency=2 means threads.*jobs=2 other processes"),
        ({"concurrency": 2, "executor": "ray"}, "executor='ray' other processes"),
        ({"jobs": 2, "max_cost": 1}, "need all exchanges in one process; received jobs=2"),
        ({"executor": "ray", "max_tokens": 1}, "received executor='ray'"),
        ({"max_cost": 0}, "max_cost=0 is no limit"),
        ({"max_cost": float("nan")}, "max_cost=nan is no limit"),
        ({"max_tokens": "many"}, "max_tokens='many' is no limit"),
    ],
)
def test_how_a_run_cannot_be_played_is_told_before_it_begins(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    if changes.get("executor") == "ray":
        pytest.importorskip("ray")
    with pytest.raises(RunError, match=message):
        run(tmp_path / "run", "random", **changes)
    assert not (tmp_path / "run").exists()


def test_a_pool_has_its_own_threads_and_limits() -> None:
    with ThreadPool(2) as pool:
        for changes in ({"concurrency": 2}, {"max_cost": 1}, {"jobs": 2}):
            with pytest.raises(RunError):
                run(None, "random", pool=pool, **changes)


class Unready(Nothing):
    """Asks whether its server is there before anything is played."""

    up = False
    asked: list[str] = []  # noqa: RUF012

    def __init__(self, journal: Journal, seed: int) -> None:
        self._seed = seed

    def check_ready(self) -> None:
        self.asked.append("ready")
        if not self.up:
            raise ProposerFailed("connection refused at http://127.0.0.1:9; cads serve")

    def propose(self, view: View) -> Sequence[str]:
        return view.identifiers[-view.slots :]


def test_an_agent_that_cannot_start_stops_the_run_before_anything_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Unready.asked.clear()
    agents = {"u": Unready, "random": "random"}
    for out in (None, tmp_path / "run"):
        with pytest.raises(AgentError, match="Agent 'u' cannot start: connection refused at http"):
            run(out, agents, seeds=range(2))
    assert len(Unready.asked) == 2
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(Unready, "up", True)
    run(tmp_path / "run", agents, seeds=range(2))
    assert len(Unready.asked) == 3
    monkeypatch.setattr(Unready, "up", False)
    assert run(tmp_path / "run", agents, seeds=range(2)).status == "complete"
    assert len(Unready.asked) == 3


def test_execute_in_threads_gives_every_result_and_errors_as_they_are() -> None:
    class Doubles:
        def play(self, task: int) -> int:
            if task == 7:
                raise KeyError("task 7")
            return 2 * task

    threads = Executor(kind="threads", jobs=3)
    assert sorted(execute(Doubles(), range(7), executor=threads)) == list(range(0, 14, 2))
    assert list(in_order(Doubles(), range(7), executor=threads)) == list(range(0, 14, 2))
    assert list(execute(Doubles(), [], executor=threads)) == []
    with pytest.raises(KeyError, match="task 7"):
        list(execute(Doubles(), range(20), executor=threads))


def test_a_caller_that_leaves_ends_what_is_under_way() -> None:
    stop, begun = Stop(), threading.Semaphore(0)

    class Waits:
        def play(self, task: int) -> int:
            if task == 0:
                return 0
            begun.release()
            while stop.reason is None:
                time.sleep(0.005)
            stop.check()
            return task

    results: Iterator[int] = execute(
        Waits(), range(9), executor=Executor(kind="threads", jobs=2), stop=stop
    )
    assert next(results) == 0
    begun.acquire()
    results.close()  # type: ignore[attr-defined]
    assert stop.reason == "nobody waits for the run"
    with pytest.raises(RunStopped):
        stop.check()

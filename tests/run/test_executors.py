"""Work in several processes: the same results, and clear ends when one of them dies."""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import pytest

from cads_env.errors import AgentError, MissingExtraError, RunError
from cads_env.proposer import Nothing, View
from cads_env.run import RunResult, evaluate
from cads_env.run.executors import Executor, cpu_count, execute, in_order
from cads_env.testing import tiny_protocol, tiny_registry

PROTOCOL = tiny_protocol(reads_each=4, certificate={"q": 0.3})
ROWS = ("campaigns", "declarations", "reads", "rounds")


def run(agents: object, **changes: Any) -> RunResult:
    arguments: dict[str, Any] = {
        "registry": tiny_registry(), "protocol": PROTOCOL, "seeds": range(5),
    }  # fmt: skip
    return evaluate(agents, **(arguments | changes))


def test_the_number_of_processes_changes_no_byte(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Mine:\n    def propose(self, view):\n        return view.identifiers[:3]\n"
    )

    class Local(Nothing):
        def propose(self, view: View) -> Sequence[str]:
            return view.identifiers[-view.slots :]

    agents = {
        "learner": "module-learner",
        "file": str(tmp_path / "mine.py"),
        "local": Local,
        "factory": lambda seed: Nothing() if seed % 2 else Local(),
    }
    results = {jobs: run(agents, jobs=jobs, out=tmp_path / str(jobs)) for jobs in (1, 2)}
    assert results[1].arms == results[2].arms
    for name in (*(f"{name}.jsonl" for name in ROWS), "manifest.json"):
        one, two = ((tmp_path / str(jobs) / name).read_bytes() for jobs in (1, 2))
        assert one == two, name
    memory = run(agents, jobs=2)
    assert memory.campaigns.equals(results[1].campaigns)
    assert memory.rounds.equals(results[1].rounds)


def test_an_agents_mistake_in_another_process_is_told_as_in_this_one(tmp_path: Path) -> None:
    class Breaks(Nothing):
        def propose(self, view: View) -> Sequence[str]:
            msg = "mine"
            raise ValueError(msg)

    with pytest.raises(AgentError, match=r"Agent 'Breaks' broke in round 0 of seed \d: Value"):
        run(Breaks, jobs=2)


def test_a_process_that_dies_is_a_clear_error_and_what_was_complete_stays(tmp_path: Path) -> None:
    parent = os.getpid()

    class Dies(Nothing):
        def propose(self, view: View) -> Sequence[str]:
            if os.getpid() != parent:
                os._exit(9)
            return ()

    with pytest.raises(RunError, match="A process that played campaigns died"):
        run(Dies, jobs=2, out=tmp_path / "run")
    assert run(Dies, out=tmp_path / "run").status == "complete"


def test_an_agent_that_cannot_travel_is_refused() -> None:
    lock = threading.Lock()

    def factory() -> Nothing:
        with lock:
            return Nothing()

    with pytest.raises(RunError, match="cannot be sent to other processes"):
        run(factory, jobs=2)


@pytest.mark.parametrize("jobs", [0, -1, 1.0, True, "2", 100_000, None])
def test_a_number_of_processes_is_a_whole_number(jobs: Any) -> None:
    with pytest.raises(RunError, match=r"jobs=.* is not usable"):
        run("random", jobs=jobs)


class Doubles:
    """Work that doubles numbers and breaks at one of them."""

    def __init__(self, breaks_at: int | None = None) -> None:
        self.breaks_at = breaks_at

    def play(self, task: int) -> tuple[int, int]:
        if task == self.breaks_at:
            msg = f"task {task}"
            raise KeyError(msg)
        return 2 * task, os.getpid()


class Taken(Sequence[int]):
    """Numbers that count how many of them were asked for."""

    def __init__(self, size: int) -> None:
        self.size, self.taken = size, 0

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[int]: ...
    def __getitem__(self, at: int | slice) -> int | Sequence[int]:
        if isinstance(at, slice) or at >= self.size:
            raise IndexError
        self.taken = max(self.taken, at + 1)
        return at


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_in_order_stand_as_the_tasks_do(jobs: int) -> None:
    results = list(in_order(Doubles(), range(30), executor=Executor(jobs=jobs)))
    assert [value for value, _ in results] == [2 * task for task in range(30)]
    assert ({process for _, process in results} == {os.getpid()}) == (jobs == 1)


def test_results_as_they_come_are_those_of_every_task() -> None:
    results = list(execute(Doubles(), range(30), executor=Executor(jobs=2)))
    assert sorted(value for value, _ in results) == [2 * task for task in range(30)]


@pytest.mark.parametrize("play", [execute, in_order])
def test_only_a_few_tasks_are_out_at_once(play: Callable[..., Iterator[Any]]) -> None:
    tasks = Taken(100)
    results = play(Doubles(), tasks, executor=Executor(jobs=2))
    next(results)
    assert tasks.taken <= 4
    assert len(list(results)) == 99


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_comes_as_itself_after_the_results_before_it(jobs: int) -> None:
    results = in_order(Doubles(7), range(20), executor=Executor(jobs=jobs))
    assert [next(results)[0] for _ in range(7)] == [2 * task for task in range(7)]
    with pytest.raises(KeyError, match="task 7"):
        next(results)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"kind": "rat"}, r"Unknown executor 'rat'\. .*ray"),
        ({"address": "auto"}, "'auto' is that of a Ray cluster, but the executor is 'processes'"),
        ({"kind": "ray", "jobs": 2}, "jobs=2 counts processes of this machine"),
        ({"kind": "ray", "address": " "}, "address=' ' names no Ray cluster"),
        ({"jobs": 0}, "jobs=0 is not usable"),
    ],
)
def test_an_executor_that_cannot_be_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(RunError, match=said):
        Executor(**fields)


def test_a_missing_ray_is_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "ray" else find(name)
    )
    with pytest.raises(MissingExtraError, match=r"pip install 'cads-env\[ray\]'"):
        run("random", executor="ray", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_cores_of_this_process_are_counted() -> None:
    assert 1 <= cpu_count() <= (os.cpu_count() or 1)

"""Campaigns in several processes: the same rows, and clear ends when one of them dies."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cads_env.errors import AgentError, RunError
from cads_env.proposer import Nothing, View
from cads_env.run import RunResult, evaluate
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

"""How much faster two processes are than one, warm, on the same work; and what the machine allows.

Prints ratios of one run on this machine. The ceiling is the same work played by two independent
processes without any executor: what two processes get from these cores at all.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from cads_env.certificate import Certificate
from cads_env.panel import load_panel
from cads_env.protocol import load_protocol
from cads_env.run.agents import resolve_agents
from cads_env.run.executors import Executor, execute
from cads_env.run.folder import RunFolder
from cads_env.run.manifest import new_manifest
from cads_env.run.plan import Plan, Player, Task
from cads_env.run.playing import campaign_keys, tasks_of

REPEATS = 3
WARM_UP = 4
"""Tasks that are played, and not timed, in every process before the others."""


def plan_of() -> Plan:
    """The work: three agents on a new registry every seed."""
    return Plan(
        specs=resolve_agents(["random", "prior", "module-learner"]),
        protocol=load_protocol("standard"),
        certificate=Certificate(),
        panel=load_panel("synthetic-depmap:train"),
        identifiers="named",
        keep_reads=False,
    )


def timed(plan: Plan, tasks: list[Task], jobs: int) -> float:
    """Seconds a task, without the first ones of each process, files included."""
    seeds = [task.seed for task in tasks]
    with tempfile.TemporaryDirectory() as place:
        with RunFolder(Path(place), new_manifest(plan, seeds)) as files:
            began = time.perf_counter()
            plays = execute(Player(plan), tasks, executor=Executor(jobs=jobs))
            for i, played in enumerate(plays, start=1):
                files.keep(played)
                if i == WARM_UP * jobs:
                    began = time.perf_counter()
            took = time.perf_counter() - began
    return took / (len(tasks) - WARM_UP * jobs)


def _play_alone(tasks: list[Task], ready: object, seconds: object) -> None:
    player = Player(plan_of())
    for task in tasks[:WARM_UP]:
        player.play(task)
    ready.wait()  # type: ignore[attr-defined]
    began = time.perf_counter()
    for task in tasks[WARM_UP:]:
        player.play(task)
    seconds.put(time.perf_counter() - began)  # type: ignore[attr-defined]


def alone(tasks: list[Task], processes: int) -> float:
    """Seconds a task when the tasks are parted among independent processes."""
    context = multiprocessing.get_context("spawn")
    ready, seconds = context.Barrier(processes), context.Queue()
    parts = [tasks[i::processes] for i in range(processes)]
    workers = [context.Process(target=_play_alone, args=(part, ready, seconds)) for part in parts]
    for worker in workers:
        worker.start()
    longest: float = max(seconds.get() for _ in workers)
    for worker in workers:
        worker.join()
    return longest / sum(len(part) - WARM_UP for part in parts)


def main() -> None:
    """Print the ratios; the argument is the number of seeds."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 160
    plan = plan_of()
    tasks = tasks_of(campaign_keys(plan, range(count)), ())
    print(f"{os.cpu_count()} cores; {count} seeds x {len(plan.specs)} arms, `standard`")
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(REPEATS):
        for jobs in seconds:
            seconds[jobs].append(timed(plan, tasks, jobs) * count)
    one, two = (median(seconds[jobs]) for jobs in (1, 2))
    for jobs, figures in seconds.items():
        print(f"{jobs} processes: {', '.join(f'{figure:.1f}' for figure in figures)} s of work")
    print(f"two processes are {one / two:.2f}x one (medians of {REPEATS}, in turn)")
    single, double = alone(tasks, 1), alone(tasks, 2)
    print(f"without an executor: {single * count:.1f} s and {double * count:.1f} s; ", end="")
    print(f"this machine allows {single / double:.2f}x")


if __name__ == "__main__":
    main()

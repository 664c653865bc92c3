"""Where the campaigns of a run are played: in this process, or in several others.

Whatever the number of processes, a task gives the same rows; only the order in which they come
differs. Files are written by the caller alone.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from signal import SIG_IGN, SIGINT
from signal import signal as set_handler
from typing import Final

import cloudpickle
import loky

from cads_env.errors import RunError
from cads_env.run.plan import Plan, Played, Player, Task

MOST_JOBS: Final = 1_024
"""More processes than this are a slip of the keyboard."""

_WATCH_S: Final = 0.5
_IN_FLIGHT: Final = 2
"""Tasks a process that are handed out at once: enough that none waits, few enough to hold."""


def check_jobs(jobs: object) -> int:
    """The number of processes.

    Raises:
        RunError: It is no whole number from 1 to `MOST_JOBS`.
    """
    if isinstance(jobs, bool) or not isinstance(jobs, int) or not 1 <= jobs <= MOST_JOBS:
        msg = (
            f"jobs={jobs!r} is not usable; expected a whole number of processes from 1 to "
            f"{MOST_JOBS}, such as {os.cpu_count() or 1} on this machine."
        )
        raise RunError(msg)
    return jobs


def execute(plan: Plan, tasks: Sequence[Task], *, jobs: int = 1) -> Iterator[Played]:
    """Play tasks and give what each left, as it comes.

    Args:
        plan: What the run is.
        tasks: What is to be played.
        jobs: Processes; with 1, or one task, all happens here.

    Raises:
        RunError: An agent cannot be sent to other processes, or one of them died.
        AgentError: An agent raised an exception of its own.
        RegistryError: A registry cannot be loaded.
    """
    if jobs == 1 or len(tasks) <= 1:
        yield from map(Player(plan).play, tasks)
    else:
        yield from _in_processes(plan, tasks, min(jobs, len(tasks)))


def _in_processes(plan: Plan, tasks: Sequence[Task], jobs: int) -> Iterator[Played]:
    pool = loky.ProcessPoolExecutor(
        max_workers=jobs,
        context=loky.backend.get_context("loky"),
        initializer=_start_worker,
        initargs=(_packed(plan), os.getpid()),
    )
    waiting = iter(tasks)
    flying: set[Future[Played]] = set()
    try:
        for task in waiting:
            flying.add(pool.submit(_play, task))
            if len(flying) < jobs * _IN_FLIGHT:
                continue
            flying = yield from _landed(flying)
        while flying:
            flying = yield from _landed(flying)
    except BrokenProcessPool as error:
        msg = (
            "A process that played campaigns died (out of memory, or ended from outside). What "
            "was complete is kept: run the same again to go on, with fewer jobs if memory was "
            f"short. It said: {error}"
        )
        raise RunError(msg) from error
    finally:
        pool.shutdown(wait=True, kill_workers=True)


def _landed(
    flying: set[Future[Played]],
) -> Generator[Played, None, set[Future[Played]]]:
    """Give the results that are there; returns the futures that are not."""
    done, rest = wait(flying, return_when=FIRST_COMPLETED)
    # What is complete goes out before an error does, so that it is kept.
    failed = [future for future in done if future.exception() is not None]
    for future in done:
        if future not in failed:
            yield future.result()
    for future in failed:
        future.result()
    return rest


def _packed(plan: Plan) -> bytes:
    try:
        packed: bytes = cloudpickle.dumps(plan)
    except Exception as error:
        msg = (
            f"An agent or a registry cannot be sent to other processes ({type(error).__name__}: "
            f"{error}). Give the agent as a class or by name, module:Class or file.py, or use "
            "jobs=1."
        )
        raise RunError(msg) from error
    return packed


class _Worker:
    """What a worker process knows."""

    packed: bytes = b""
    player: Player | None = None


def _start_worker(packed: bytes, parent: int) -> None:
    # Ctrl-C reaches every process of a terminal; the parent alone decides what it means.
    set_handler(SIGINT, SIG_IGN)
    _Worker.packed = packed
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process when its parent is gone, which a killed one cannot ask for."""
    while os.getppid() == parent:
        time.sleep(_WATCH_S)
    os._exit(1)


def _play(task: Task) -> Played:
    if _Worker.player is None:
        try:
            plan: Plan = pickle.loads(_Worker.packed)
        except Exception as error:
            msg = (
                "An agent or a registry cannot be loaded in another process "
                f"({type(error).__name__}: {error}). Give the agent by name, module:Class or "
                "file.py, or use jobs=1."
            )
            raise RunError(msg) from error
        _Worker.player = Player(plan)
    return _Worker.player.play(task)

"""Other processes of this machine, kept by loky.

They end with this one, however it ends, and Ctrl-C reaches this one alone.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from signal import SIG_IGN, SIGINT
from signal import signal as set_handler
from typing import Any, Final

import loky

from cads_env.errors import RunError
from cads_env.run.executors.worker import unpack

_WATCH_S: Final = 0.5
_OUT_PER_PROCESS: Final = 2


class ProcessCrew:
    """A pool of processes; see `Crew`."""

    def __init__(self, pool: loky.ProcessPoolExecutor, jobs: int) -> None:
        """A pool whose workers hold the work."""
        self._pool = pool
        self.most_out = jobs * _OUT_PER_PROCESS

    def submit(self, task: Any) -> Future[Any]:
        """Hand a task out."""
        handle: Future[Any] = self._pool.submit(_play, task)
        return handle

    def landed(self, out: set[Future[Any]]) -> set[Future[Any]]:
        """Wait until one is ready; those that are."""
        return wait(out, return_when=FIRST_COMPLETED).done

    def result(self, handle: Future[Any]) -> Any:
        """The result; raises what the task raised."""
        return handle.result()


@contextmanager
def process_crew(packed: bytes, jobs: int) -> Iterator[ProcessCrew]:
    """Processes that hold the work; they are gone when the block ends.

    Args:
        packed: The work, pickled.
        jobs: How many.

    Raises:
        RunError: One of them died.
    """
    pool = loky.ProcessPoolExecutor(
        max_workers=jobs,
        context=loky.backend.get_context("loky"),
        initializer=_start_worker,
        initargs=(packed, os.getpid()),
    )
    try:
        yield ProcessCrew(pool, jobs)
    except BrokenProcessPool as error:
        msg = (
            "A process that played campaigns died (out of memory, or ended from outside). Run the "
            f"same again, with fewer jobs if memory was short. It said: {error}"
        )
        raise RunError(msg) from error
    finally:
        pool.shutdown(wait=True, kill_workers=True)


class _Worker:
    """What a worker process knows."""

    packed: bytes = b""
    work: Any = None


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


def _play(task: Any) -> Any:
    if _Worker.work is None:
        _Worker.work = unpack(_Worker.packed)
    return _Worker.work.play(task)

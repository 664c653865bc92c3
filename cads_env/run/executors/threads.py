"""Threads of this process, for work that mostly waits for the world outside.

A pool may be shared by several runs that advance at once; each has a crew of its own in it. The
threads end with the process, whatever they wait for.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from types import TracebackType
from typing import Any, Final

from cads_env.run.executors.executor import Work, check_jobs
from cads_env.run.executors.stopping import Stop

_OUT_PER_THREAD: Final = 2
_LOOK_S: Final = 0.5
"""A wait is cut into pieces of this length, so that Ctrl-C is heard on every system."""

_Call = tuple["Future[Any]", Callable[[], Any]]


class ThreadPool:
    """Threads that play what comes, first come first served; use as a context manager.

    Attributes:
        jobs: How many.
        meter: What counts and limits the exchanges of all runs that share the pool; None for each
            its own.
        ending: When given, every run in the pool ends soon.
    """

    def __init__(self, jobs: int, *, meter: Any = None) -> None:
        """Start the threads.

        Args:
            jobs: How many, 1 to `MOST_JOBS`.
            meter: A `cads_env.run.meter.Meter`.

        Raises:
            RunError: `jobs` is no such number.
        """
        self.jobs = check_jobs(jobs)
        self.meter = meter
        self.ending = Stop()
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        for number in range(self.jobs):
            # Daemons: after a second Ctrl-C nobody waits for a server that does not answer.
            name = f"cads-{number}"
            threading.Thread(target=_work_off, args=(self._calls,), name=name, daemon=True).start()

    def __enter__(self) -> ThreadPool:
        """The pool itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let the threads end after what they play now."""
        self.close()

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        """Hand a call out."""
        handle: Future[Any] = Future()
        self._calls.put((handle, call))
        return handle

    def stop(self, reason: str) -> None:
        """Tell every run in the pool to end soon."""
        self.ending.give(reason)

    def close(self) -> None:
        """Let the threads end after what was handed out."""
        for _ in range(self.jobs):
            self._calls.put(None)


def _work_off(calls: queue.SimpleQueue[_Call | None]) -> None:
    while (next_call := calls.get()) is not None:
        handle, call = next_call
        if not handle.set_running_or_notify_cancel():
            continue
        try:
            result = call()
        # Whatever ends a campaign is told where it is waited for.
        except BaseException as error:
            handle.set_exception(error)
            # Else the trace would keep the campaign's arrays until the next one.
            del error
        else:
            handle.set_result(result)
            del result
        del handle, call, next_call


class ThreadCrew:
    """The work of one run in a pool; see `Crew`."""

    def __init__(self, pool: ThreadPool, work: Work[Any, Any], stop: Stop) -> None:
        """Nothing is handed out.

        Args:
            pool: Plays.
            work: What plays a task.
            stop: Given when the run is to end; the work looks at it.
        """
        self._pool, self._work, self._stop = pool, work, stop
        self.most_out = pool.jobs * _OUT_PER_THREAD

    def submit(self, task: Any) -> Future[Any]:
        """Hand a task out."""
        return self._pool.submit(lambda: self._play(task))

    def _play(self, task: Any) -> Any:
        self._stop.check()
        return self._work.play(task)

    def landed(self, out: set[Future[Any]]) -> set[Future[Any]]:
        """Wait until one is ready; those that are."""
        while True:
            done = wait(out, timeout=_LOOK_S, return_when=FIRST_COMPLETED).done
            if done:
                return done

    def result(self, handle: Future[Any]) -> Any:
        """The result; raises what the task raised."""
        return handle.result()

    def stop(self, reason: str, out: set[Future[Any]]) -> set[Future[Any]]:
        """Tell what is out to end; those that are being played already."""
        self._stop.give(reason)
        return {handle for handle in out if not handle.cancel()}

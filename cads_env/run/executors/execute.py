"""The two orders in which results come: as they are ready, or as the tasks stand.

Either way only a few tasks are out at once, so memory does not grow with their number, and results
that are complete go out before an error does, so that a caller can keep them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, Protocol, TypeVar, cast

import cloudpickle

from cads_env.errors import RunError
from cads_env.run.executors.executor import Executor, Work
from cads_env.run.executors.on_ray import ray_crew
from cads_env.run.executors.processes import process_crew
from cads_env.run.executors.stopping import RunStopped, Stop
from cads_env.run.executors.threads import ThreadCrew, ThreadPool

HERE: Final = Executor()
"""All in this process."""

T = TypeVar("T")
R = TypeVar("R")


class Crew(Protocol):
    """Workers that hold the work: tasks go out by `submit`, and what comes back is waited for.

    Attributes:
        most_out: Tasks that are handed out at once: enough that no worker waits, few enough to
            hold.
    """

    most_out: int

    def submit(self, task: Any) -> Any:
        """Hand a task out; what is returned stands for its result and can be in a set."""
        ...

    def landed(self, out: set[Any]) -> set[Any]:
        """Wait until one is ready; those that are."""
        ...

    def result(self, handle: Any) -> Any:
        """The result, when it is there; raises what the task raised."""
        ...


def execute(
    work: Work[T, R],
    tasks: Sequence[T],
    *,
    executor: Executor = HERE,
    pool: ThreadPool | None = None,
    stop: Stop | None = None,
) -> Generator[R, None, None]:
    """Play tasks and give the result of each as it comes, in any order.

    Args:
        work: What plays them; it travels to every worker once.
        tasks: What is to be played.
        executor: Where.
        pool: Threads to play in, shared with others; None for the executor's own.
        stop: Given when something ends the run, so that work in other threads ends too; the work
            looks at it.

    Raises:
        RunError: The work cannot be sent to other processes, one of them died, or there is no
            cluster at the address.
        Exception: Whatever `work.play` raised, as it would here.
    """
    if pool is not None or executor.kind == "threads":
        yield from _in_threads(work, tasks, executor, pool, stop or Stop())
        return
    if _plays_here(tasks, executor):
        yield from map(work.play, tasks)
        return
    with _crew(work, len(tasks), executor) as crew:
        out: set[Any] = set()
        for task in tasks:
            out.add(crew.submit(task))
            if len(out) >= crew.most_out:
                out = yield from _landed(crew, out)
        while out:
            out = yield from _landed(crew, out)


def in_order(work: Work[T, R], tasks: Sequence[T], *, executor: Executor = HERE) -> Iterator[R]:
    """Play tasks and give the results in the order of the tasks.

    A result that is ready early waits in memory, and while the next one is missing no more tasks
    go out than `execute` has out; so tasks should take about equally long.

    Args:
        work: What plays them; it travels to every worker once.
        tasks: What is to be played.
        executor: Where.

    Raises:
        RunError: As of `execute`.
        Exception: Whatever `work.play` raised, after the results of the tasks before it.
    """
    if _plays_here(tasks, executor):
        yield from map(work.play, tasks)
        return
    with _crew(work, len(tasks), executor) as crew:
        out: deque[Any] = deque()
        for task in tasks:
            out.append(crew.submit(task))
            if len(out) >= crew.most_out:
                yield crew.result(out.popleft())
        while out:
            yield crew.result(out.popleft())


def _in_threads(
    work: Work[T, R],
    tasks: Sequence[T],
    executor: Executor,
    pool: ThreadPool | None,
    stop: Stop,
) -> Iterator[R]:
    """As `execute`; nothing is left in the pool when it ends, however it does."""
    own = ThreadPool(executor.jobs) if pool is None else None
    crew = ThreadCrew(pool or cast(ThreadPool, own), work, stop)
    out: set[Any] = set()
    try:
        for task in tasks:
            out.add(crew.submit(task))
            if len(out) >= crew.most_out:
                yield from _emptied(crew, out)
        while out:
            yield from _emptied(crew, out)
    except GeneratorExit:
        out = crew.stop("nobody waits for the run", out)
        while out:
            out -= crew.landed(out)
        raise
    except BaseException:
        # An agent may hear the reason, so it tells nothing of the campaign that broke.
        out = crew.stop("the run ends early", out)
        # What is complete in spite of it is kept; what ended for the same reason has been told.
        while out:
            for handle in crew.landed(out):
                out.discard(handle)
                if handle.exception() is None:
                    yield crew.result(handle)
        raise
    finally:
        if own is not None:
            own.close()


def _emptied(crew: ThreadCrew, out: set[Any]) -> Iterator[Any]:
    """Wait for one result; give those that are there, then raise what one of them raised."""
    failed: BaseException | None = None
    for handle in crew.landed(out):
        out.discard(handle)
        error = handle.exception()
        if error is None:
            yield crew.result(handle)
        elif failed is None or isinstance(failed, RunStopped):
            failed = error
    if failed is not None:
        raise failed


def _plays_here(tasks: Sequence[Any], executor: Executor) -> bool:
    if executor.kind != "processes":
        return not tasks
    return executor.jobs == 1 or len(tasks) <= 1


def _landed(crew: Crew, out: set[Any]) -> Generator[Any, None, set[Any]]:
    """Give the results that are there; returns what is still out."""
    ready = crew.landed(out)
    failed: Exception | None = None
    for handle in ready:
        try:
            result = crew.result(handle)
        except Exception as error:
            failed = failed or error
            continue
        yield result
    # What is complete goes out before an error does, so that it is kept.
    if failed is not None:
        raise failed
    return out - ready


@contextmanager
def _crew(work: Work[Any, Any], task_count: int, executor: Executor) -> Iterator[Crew]:
    if executor.kind == "threads":
        stop = Stop()
        with ThreadPool(executor.jobs) as pool:
            try:
                yield cast(Crew, ThreadCrew(pool, work, stop))
            finally:
                stop.give("nobody waits for the work")
        return
    packed = _packed(work)
    opened: AbstractContextManager[Any]
    if executor.kind == "ray":
        opened = ray_crew(packed, executor.address)
    else:
        opened = process_crew(packed, min(executor.jobs, task_count))
    with opened as crew:
        yield cast(Crew, crew)


def _packed(work: Work[Any, Any]) -> bytes:
    try:
        packed: bytes = cloudpickle.dumps(work)
    except Exception as error:
        msg = (
            f"An agent, a registry or a function cannot be sent to other processes "
            f"({type(error).__name__}: {error}). Give it by name, an agent as module:Class or "
            "file.py or as a class, or play in this process (jobs=1)."
        )
        raise RunError(msg) from error
    return packed

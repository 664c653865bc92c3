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


def execute(work: Work[T, R], tasks: Sequence[T], *, executor: Executor = HERE) -> Iterator[R]:
    """Play tasks and give the result of each as it comes, in any order.

    Args:
        work: What plays them; it travels to every worker once.
        tasks: What is to be played.
        executor: Where.

    Raises:
        RunError: The work cannot be sent to other processes, one of them died, or there is no
            cluster at the address.
        Exception: Whatever `work.play` raised, as it would here.
    """
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


def _plays_here(tasks: Sequence[Any], executor: Executor) -> bool:
    if executor.kind == "ray":
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

"""The machines of a Ray cluster. Ray schedules, retries and recovers; nothing of that is done here.

A task whose worker or machine is lost is played again by Ray, which a pure function allows. A
cluster that this process did not start is left running.
"""

from __future__ import annotations

import hashlib
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from cads_env import __version__
from cads_env.errors import MissingExtraError, RunError
from cads_env.run.executors.executor import INSTALL_RAY
from cads_env.run.executors.worker import unpack

RETRIES: Final = 3
"""Times that a task is played again after its worker was lost."""

_OUT_PER_CPU: Final = 2
_ANSWER_S: Final = 10.0
_LOCAL_STORE_BYTES: Final = 200 * 2**20
"""Of a cluster that is started here: results are rows of a few kilobytes, read at once."""


class RayCrew:
    """The workers of a cluster; see `Crew`."""

    def __init__(self, ray: Any, packed: bytes) -> None:
        """Put the work into the cluster's store once."""
        self._ray = ray
        self._work = ray.put(packed)
        self._name = hashlib.sha256(packed).hexdigest()
        self._play = ray.remote(_play).options(num_cpus=1, max_retries=RETRIES)
        self._out: set[Any] = set()

    @property
    def most_out(self) -> int:
        """Twice the CPUs that the cluster has now; machines may join and leave it."""
        cpus = int(self._ray.cluster_resources().get("CPU", 1))
        return _OUT_PER_CPU * max(1, cpus)

    def submit(self, task: Any) -> Any:
        """Hand a task out."""
        # In a list the reference travels as such: a worker fetches the work once, not every task.
        handle = self._play.remote(self._name, [self._work], __version__, task)
        self._out.add(handle)
        return handle

    def landed(self, out: set[Any]) -> set[Any]:
        """Wait until one is ready; those that are."""
        handles = list(out)
        self._ray.wait(handles, num_returns=1)
        ready, _ = self._ray.wait(handles, num_returns=len(handles), timeout=0)
        return set(ready)

    def result(self, handle: Any) -> Any:
        """The result; raises what the task raised."""
        self._out.discard(handle)
        try:
            return self._ray.get(handle)
        except self._ray.exceptions.RayTaskError as error:
            # Ray wraps what a task raised; an error is told as the other executors tell it.
            raise error.cause from error

    def cancel(self) -> None:
        """Take back what is still out, from a cluster that stays connected."""
        for handle in self._out:
            self._ray.cancel(handle, force=True)


@contextmanager
def ray_crew(packed: bytes, address: str | None) -> Iterator[RayCrew]:
    """A cluster whose workers hold the work.

    Args:
        packed: The work, pickled.
        address: "auto", HOST:PORT, or "local" or None for a cluster on this machine that ends with
            the block. A process that is connected already stays so.

    Raises:
        MissingExtraError: Ray is not installed.
        RunError: There is no cluster at the address, it runs another Ray, Python or cads-env, or
            it lost a task for good.
    """
    try:
        import ray
    except ImportError as error:
        msg = f"The executor 'ray' needs the package ray, which is missing: {INSTALL_RAY}"
        raise MissingExtraError(msg) from error
    was_connected = ray.is_initialized()
    if was_connected:
        _check_same_cluster(ray, address)
    else:
        _connect(ray, address or "local")
    crew = None
    try:
        crew = RayCrew(ray, packed)
        yield crew
    except ray.exceptions.RayError as error:
        msg = (
            f"The Ray cluster lost a task for good, after {RETRIES} more tries where its worker "
            f"died ({type(error).__name__}). Run the same again when the cluster is well; where "
            f"an agent ends its own process, mend the agent. It said: {error}"
        )
        raise RunError(msg) from error
    finally:
        if not was_connected:
            ray.shutdown()
        elif crew is not None:
            crew.cancel()


def _connect(ray: Any, address: str) -> None:
    options: dict[str, Any] = {}
    if address == "local":
        options = {"include_dashboard": False, "object_store_memory": _LOCAL_STORE_BYTES}
    try:
        _check_answers(address)
        with _no_usage_report():
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **options)
    # Ray has no error of its own here: an address that is none, a cluster that does not answer and
    # one of another version raise five different builtin ones.
    except Exception as error:
        msg = (
            f"Cannot use a Ray cluster at {address!r}: {type(error).__name__}: {error}. Expected "
            "'auto' on a machine of a running cluster, HOST:PORT of its head (as `ray start "
            "--head` prints it) with the same versions of Ray and Python, or 'local'."
        )
        raise RunError(msg) from error


def _check_answers(address: str) -> None:
    """Raise when nobody listens at HOST:PORT, for which Ray would wait many minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "://" not in host:
        with socket.create_connection((host, int(port)), timeout=_ANSWER_S):
            pass


def _check_same_cluster(ray: Any, address: str | None) -> None:
    here = ray.get_runtime_context().gcs_address
    if address not in (None, "auto", here):
        msg = (
            f"This process is connected to the Ray cluster {here}, but the address is {address!r}. "
            "Call ray.shutdown() first, or leave the address out."
        )
        raise RunError(msg)


@contextmanager
def _no_usage_report() -> Iterator[None]:
    """A cluster that is started here sends no statistics of its use to anyone."""
    name = "RAY_USAGE_STATS_ENABLED"
    before = os.environ.get(name)
    os.environ[name] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


class _Worker:
    """What a worker process knows: the work it played last."""

    name: str = ""
    work: Any = None


def _play(name: str, work: list[Any], version: str, task: Any) -> Any:
    if version != __version__:
        msg = (
            f"The Ray cluster has cads-env {__version__}, but the run was started with {version}; "
            "numbers of the two may differ. Install the same version on every machine."
        )
        raise RunError(msg)
    if _Worker.name != name:
        import ray

        _Worker.work = unpack(ray.get(work[0]))
        _Worker.name = name
    return _Worker.work.play(task)

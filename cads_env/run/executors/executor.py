"""Which executor plays, checked before anything starts; and what it asks of the work.

Starts no process and opens no connection.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeVar

import loky

from cads_env.errors import MissingExtraError, RunError, suggest

Kind = Literal["processes", "ray", "threads"]

KINDS: Final[tuple[Kind, ...]] = ("processes", "ray", "threads")
MOST_JOBS: Final = 1_024
"""More processes than this are a slip of the keyboard."""
INSTALL_RAY: Final = "pip install 'cads-env[ray]'"

T_contra = TypeVar("T_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


class Work(Protocol[T_contra, R_co]):
    """Anything that plays a task, can be pickled, and gives the same result wherever it plays."""

    def play(self, task: T_contra, /) -> R_co:
        """What the task leaves; a pure function of the work and the task."""
        ...


@dataclass(frozen=True, kw_only=True)
class Executor:
    """Where work is played.

    Attributes:
        kind: "processes" of this machine, "ray" for a cluster, or "threads" of this process, for
            work that mostly waits.
        jobs: Processes of this machine; with 1 all is played in this one. Or threads. Stays 1 with
            Ray, which uses every CPU that its cluster offers.
        address: Cluster of Ray: "auto" for the one this machine belongs to, HOST:PORT of its head,
            "local" or None for one on this machine that ends with the work. None without Ray.

    Raises:
        RunError: The kind is unknown, jobs is no usable number, or a field belongs to the other
            kind.
        MissingExtraError: Ray is asked for and not installed.
    """

    kind: Kind = "processes"
    jobs: int = 1
    address: str | None = None

    def __post_init__(self) -> None:
        """Raise on what can be known before anything starts."""
        if self.kind not in KINDS:
            msg = f"Unknown executor {self.kind!r}. {suggest(str(self.kind), KINDS)}"
            raise RunError(msg)
        check_jobs(self.jobs)
        if self.kind != "ray":
            if self.address is not None:
                msg = (
                    f"The address {self.address!r} is that of a Ray cluster, but the executor is "
                    f"{self.kind!r}. Say executor 'ray' (--executor ray) or leave the address out."
                )
                raise RunError(msg)
            return
        if self.jobs != 1:
            msg = (
                f"jobs={self.jobs} counts processes of this machine, but Ray plays on every CPU of "
                "its cluster. Leave jobs out, or say executor 'processes'."
            )
            raise RunError(msg)
        if self.address is not None and not (
            isinstance(self.address, str) and self.address.strip()
        ):
            msg = (
                f"address={self.address!r} names no Ray cluster; expected 'auto', HOST:PORT or "
                "'local'."
            )
            raise RunError(msg)
        if importlib.util.find_spec("ray") is None:
            msg = f"The executor 'ray' needs the package ray, which is missing: {INSTALL_RAY}"
            raise MissingExtraError(msg)


def check_jobs(jobs: object) -> int:
    """The number of processes.

    Raises:
        RunError: It is no whole number from 1 to `MOST_JOBS`.
    """
    if isinstance(jobs, bool) or not isinstance(jobs, int) or not 1 <= jobs <= MOST_JOBS:
        msg = (
            f"jobs={jobs!r} is not usable; expected a whole number of processes from 1 to "
            f"{MOST_JOBS}, such as {cpu_count()} on this machine."
        )
        raise RunError(msg)
    return jobs


def cpu_count() -> int:
    """Cores that this process may use: its affinity and its container's quota count, at least 1."""
    count: int = loky.cpu_count()
    return count

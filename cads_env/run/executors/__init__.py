"""Where work is played: here, in threads or other processes, or on the machines of a Ray cluster.

Whatever the executor, a task gives the same result; only the order in which results come differs,
and `in_order` takes that away. Knows nothing of what is played and writes no file.
"""

from cads_env.run.executors.execute import HERE, execute, in_order
from cads_env.run.executors.executor import (
    KINDS,
    MOST_JOBS,
    Executor,
    Kind,
    Work,
    check_jobs,
    cpu_count,
)
from cads_env.run.executors.stopping import RunStopped, Stop
from cads_env.run.executors.threads import ThreadPool

__all__ = [
    "HERE",
    "KINDS",
    "MOST_JOBS",
    "Executor",
    "Kind",
    "RunStopped",
    "Stop",
    "ThreadPool",
    "Work",
    "check_jobs",
    "cpu_count",
    "execute",
    "in_order",
]

"""Where work is played: in this process, in several others, or on the machines of a Ray cluster.

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

__all__ = [
    "HERE",
    "KINDS",
    "MOST_JOBS",
    "Executor",
    "Kind",
    "Work",
    "check_jobs",
    "cpu_count",
    "execute",
    "in_order",
]

"""What is checked and said before `cads run` reads anything: a dry run refuses what a run refuses.

Asks nothing and writes no file.
"""

from __future__ import annotations

from typing import Any

from cads_env.cli.job import Job
from cads_env.cli.terminal import ERR
from cads_env.report.wording import counted
from cads_env.run.evaluate import executor_of, meter_of, prepare
from cads_env.run.in_reach import leaves_no_slot
from cads_env.run.settings import protocol_of
from cads_env.score import resolve_certificate


def check_before_reads(job: Job, *, executor: Any, address: str | None) -> None:
    """Raise what the run would raise before its first read.

    Args:
        job: The run.
        executor: As for `evaluate`.
        address: Of the Ray cluster.

    Raises:
        CadsError: As of `evaluate`.
    """
    options = job.options
    where = executor_of(
        executor, options.get("jobs", 1), address, options.get("concurrency", 1), None
    )
    meter_of(where, None, options.get("max_cost"), options.get("max_tokens"))
    for setting in job.settings:
        prepare(
            list(job.specs),
            registry=job.panel,
            protocol=protocol_of(setting, job.protocol),
            seeds=job.seeds,
            certificate=options["certificate"],
            identifiers=setting.identifiers,  # type: ignore[arg-type]
        )


def warn_of_reach(job: Job) -> None:
    """Say when no proposal of the first campaign could be certified, whatever was proposed."""
    setting, seed = job.settings[0], job.seeds[0]
    rules = protocol_of(setting, job.protocol)
    pair = job.panel.for_seed(seed)
    judge = resolve_certificate(job.options["certificate"], rules)
    if leaves_no_slot(rules, judge, pair=pair, seed=seed):
        ERR.print(
            "cads: warning: nothing that an agent proposes can be certified in this protocol at "
            f"m = {pair[0].m:,}: in {counted(rules.rounds, 'round')} no proposal gets the reads "
            "that it needs. Use more rounds (--set rounds=...) or more reads "
            "(--set reads_each=...).",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )

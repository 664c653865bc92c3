"""Evaluate agents: play each on the same campaigns as its twin, and score the paired net.

This is where arms, campaigns, executors and files meet. A campaign whose proposer's infrastructure
broke is reported and never averaged in; an agent's own exception stops the run and names its place.
"""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from cads_env.campaign import open_screen
from cads_env.certificate import Certificate
from cads_env.errors import AgentError, RunError, quoted, suggest
from cads_env.panel import Panel
from cads_env.proposer import ProposerFailed
from cads_env.protocol import Feedback, Protocol, load_protocol
from cads_env.registry import RELABEL_MODES, Oracle, RelabelMode, relabel
from cads_env.run.agents import AgentSpec, resolve_agents
from cads_env.run.executors import MOST_JOBS, Executor, Kind, ThreadPool
from cads_env.run.meter import Meter
from cads_env.run.plan import Plan, proposer_seed
from cads_env.run.playing import How, Progress, built_ahead, play_in_memory, play_into
from cads_env.run.result import RunResult
from cads_env.score import resolve_certificate

__all__ = [
    "DEFAULT_PANEL",
    "DEFAULT_PROTOCOL",
    "DEFAULT_SEEDS",
    "Progress",
    "evaluate",
    "prepare",
    "proposer_seed",
]

DEFAULT_PANEL: Final = "synthetic-depmap:dev"
DEFAULT_PROTOCOL: Final = "standard"
DEFAULT_SEEDS: Final = range(20)


def evaluate(
    agents: object,
    *,
    registry: object = DEFAULT_PANEL,
    protocol: str | Path | Mapping[str, Any] | Protocol = DEFAULT_PROTOCOL,
    seeds: Iterable[int] = DEFAULT_SEEDS,
    feedback: Feedback | None = None,
    certificate: Certificate | Mapping[str, Any] | None = None,
    jobs: int = 1,
    out: str | Path | bool | None = None,
    identifiers: RelabelMode = "named",
    keep_reads: bool = False,
    retry_failed: bool = False,
    executor: Kind = "processes",
    address: str | None = None,
    progress: Progress | None = None,
    concurrency: int = 1,
    max_cost: float | None = None,
    max_tokens: int | None = None,
    pool: ThreadPool | None = None,
) -> RunResult:
    """The paired net of one or several agents over their proposer-removed twins.

    Args:
        agents: A name, `module:Class`, file path, class or factory, or several (a sequence, or a
            mapping of arm names); see `resolve_agents`. A new instance plays each campaign; a
            factory gets `seed=` if it accepts it.
        registry: Name or path, a sequence of them, a `Panel`, or a (Registry, Oracle) pair. Seed k
            plays registry k % len(panel).
        protocol: Preset name, path, mapping or `Protocol`.
        seeds: Distinct whole numbers from 0.
        feedback: Sets both feedbacks of the protocol ("full", "none", "permuted"); None leaves
            them.
        certificate: What judges; a mapping changes fields of the protocol's default. `audit` (True
            or its fields) judges by the controls of a protocol with `audit_controls`.
        jobs: Processes of this machine; the results do not depend on it.
        out: Folder for the files, True for the next number under `runs`, None for no files. A
            folder that holds the same run, ended early, is gone on with; a complete one is read.
        identifiers: One of `RELABEL_MODES`; see `relabel`. Relabelled anew for each seed.
        keep_reads: Store reads however many there are.
        retry_failed: Play campaigns again that failed in an earlier attempt on the folder.
        executor: "processes" of this machine, or "ray" for a Ray cluster; see `Executor`. The
            results do not depend on it.
        address: Of the Ray cluster: "auto", HOST:PORT, or "local" (as None) for one that is
            started here and ends with the run.
        progress: Called after every campaign; its method `watch`, where it has one, gets the
            `Meter` before the first.
        concurrency: Campaigns under way at once in threads of this process, for agents that wait
            for a server; the results do not depend on it.
        max_cost: Cost of all exchanges, those of earlier attempts included, at which nothing more
            is asked. Campaigns under way end at their next exchange, and what they asked is kept.
        max_tokens: The same for tokens in and out.
        pool: Threads that several runs share, in place of `concurrency`; its meter holds the
            limits.

    Returns:
        Frames and summaries; of what is complete so far, with status "interrupted", when a limit
        stopped the run.

    Raises:
        AgentError: An agent is unknown, lacks a side table, or raised an exception of its own.
        RegistryError: A registry is unusable.
        ProtocolError: The protocol is invalid.
        RunError: Seeds, jobs, the executor or the folder are unusable, or a process died.
        MissingExtraError: Ray is asked for and not installed.
        RecordError: A file of an earlier attempt is damaged.
        ReplayError: A campaign asks for something else than its trace of an earlier attempt holds.
    """
    where = executor_of(executor, jobs, address, concurrency, pool)
    how = How(
        executor=where,
        pool=pool,
        meter=meter_of(where, pool, max_cost, max_tokens),
        progress=progress,
    )
    plan, numbers = prepare(
        agents,
        registry=registry,
        protocol=protocol,
        seeds=seeds,
        feedback=feedback,
        certificate=certificate,
        identifiers=identifiers,
        keep_reads=keep_reads,
    )
    if out is None or out is False:
        return play_in_memory(plan, numbers, how)
    return play_into(None if out is True else out, plan, numbers, how, retry_failed=retry_failed)


def prepare(
    agents: object,
    *,
    registry: object = DEFAULT_PANEL,
    protocol: str | Path | Mapping[str, Any] | Protocol = DEFAULT_PROTOCOL,
    seeds: Iterable[int] = DEFAULT_SEEDS,
    feedback: Feedback | None = None,
    certificate: Certificate | Mapping[str, Any] | None = None,
    identifiers: RelabelMode = "named",
    keep_reads: bool = False,
) -> tuple[Plan, list[int]]:
    """What a run plays, and on which seeds: all that can be checked before the first read.

    Args:
        agents: As for `evaluate`, like all the others.
        registry: What is played on.
        protocol: The protocol.
        seeds: The seeds.
        feedback: Sets both feedbacks.
        certificate: What judges.
        identifiers: How candidates are relabelled.
        keep_reads: Store reads however many there are.

    Raises:
        CadsError: As for `evaluate`.
    """
    specs = resolve_agents(agents)
    rules = load_protocol(protocol)
    if feedback is not None:
        rules = rules.override(feedback=feedback)
    judge = resolve_certificate(certificate, rules)
    panel = Panel.resolve(registry)
    numbers = _check_seeds(seeds)
    if identifiers not in RELABEL_MODES:
        msg = (
            f"Unknown identifiers mode {identifiers!r}. {suggest(str(identifiers), RELABEL_MODES)}"
        )
        raise RunError(msg)
    _check_told_apart(specs)
    _check_before_first_read(specs, rules, panel, numbers, identifiers)
    plan = Plan(
        specs=specs,
        protocol=rules,
        certificate=judge,
        panel=panel,
        identifiers=identifiers,
        keep_reads=keep_reads,
    )
    return plan, numbers


def executor_of(
    kind: Kind, jobs: int, address: str | None, concurrency: int, pool: ThreadPool | None
) -> Executor:
    """The executor; threads exclude the others."""
    where = Executor(kind=kind, jobs=jobs, address=address)
    is_count = isinstance(concurrency, int) and not isinstance(concurrency, bool)
    if not is_count or not 1 <= concurrency <= MOST_JOBS:
        msg = (
            f"concurrency={concurrency!r} is not usable; expected a whole number of campaigns at "
            f"once, from 1 to {MOST_JOBS}, such as 32 for a server on one GPU."
        )
        raise RunError(msg)
    if concurrency == 1 and pool is None:
        return where
    what = "a pool" if pool is not None else f"concurrency={concurrency}"
    if pool is not None and concurrency != 1:
        msg = f"concurrency={concurrency} and a pool were given; expected one of them."
        raise RunError(msg)
    if kind == "ray" or jobs != 1:
        other = "executor='ray'" if kind == "ray" else f"jobs={jobs}"
        msg = (
            f"{what} means threads of this process, and {other} other processes; expected one of "
            "them. Take concurrency for agents that wait for a server, jobs for those that compute."
        )
        raise RunError(msg)
    return Executor(kind="threads", jobs=concurrency if pool is None else pool.jobs)


def meter_of(
    where: Executor,
    pool: ThreadPool | None,
    max_cost: float | None,
    max_tokens: int | None,
) -> Meter:
    """What counts and limits; limits hold only where all exchanges are counted at once."""
    has_limit = max_cost is not None or max_tokens is not None
    if pool is not None and has_limit:
        msg = "max_cost and max_tokens of a pool's runs are those of its meter; give them there."
        raise RunError(msg)
    if pool is not None and isinstance(pool.meter, Meter):
        return pool.meter
    if has_limit and (where.kind == "ray" or (where.kind == "processes" and where.jobs > 1)):
        other = "executor='ray'" if where.kind == "ray" else f"jobs={where.jobs}"
        msg = (
            f"max_cost and max_tokens need all exchanges in one process; received {other}. Take "
            "concurrency=N in its place, or leave the limits out."
        )
        raise RunError(msg)
    return Meter(max_cost=max_cost, max_tokens=max_tokens)


def _check_seeds(seeds: Iterable[int]) -> list[int]:
    if isinstance(seeds, (str, bytes, int)) or not isinstance(seeds, Iterable):
        msg = f"seeds is {seeds!r}; expected several whole numbers, e.g. range(20)."
        raise RunError(msg)
    try:
        given = list(seeds)
    except TypeError as error:
        msg = f"seeds is {seeds!r}; expected several whole numbers, e.g. range(20)."
        raise RunError(msg) from error
    bad = [s for s in given if not _is_whole(s) or not 0 <= s < 2**63]
    numbers = [int(s) for s in given if _is_whole(s)]
    if bad or not numbers:
        shown = ", ".join(reprlib.repr(s) for s in bad[:5]) or "nothing"
        msg = f"seeds holds {shown}; expected one or more whole numbers from 0 to 2**63."
        raise RunError(msg)
    if len(set(numbers)) != len(numbers):
        repeated = sorted(s for s, count in Counter(numbers).items() if count > 1)
        msg = f"seeds repeats {repeated[:5]!r}; a campaign counts once."
        raise RunError(msg)
    return numbers


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _check_told_apart(specs: Sequence[AgentSpec]) -> None:
    """Refuse arms whose traces are one folder where a file system ignores case."""
    names: dict[str, str] = {}
    for spec in specs:
        if not spec.accepts("journal"):
            continue
        other = names.setdefault(spec.name.casefold(), spec.name)
        if other != spec.name:
            msg = (
                f"The arms {quoted(other)} and {quoted(spec.name)} differ in upper and lower case "
                "alone, so on many file systems their traces would be one. Name them apart."
            )
            raise AgentError(msg)


def _check_before_first_read(
    specs: Sequence[AgentSpec],
    protocol: Protocol,
    panel: Panel,
    seeds: Sequence[int],
    identifiers: RelabelMode,
) -> None:
    """Fail on what can be known now: sizes, law, side tables."""
    public, private = relabel(*panel.for_seed(seeds[0]), identifiers, 0)
    open_screen([(public, private)], [seeds[0]], protocol)
    for spec in specs:
        agent = _probe(spec, private, seeds[0])
        # A mode may need a side table as an agent does.
        if identifiers != "shuffled-within-prior" and not getattr(agent, "requires", ()):
            continue
        for position in sorted({seed % len(panel) for seed in seeds}):
            seen, _ = relabel(*panel[position], identifiers, 0)
            spec.check_side_tables(agent, seen, identifiers=identifiers)


def _probe(spec: AgentSpec, oracle: Oracle, seed: int) -> object:
    try:
        return built_ahead(spec, proposer_seed(oracle, seed))
    except ProposerFailed as failure:
        msg = f"Agent {spec.name!r} cannot start: {failure}"
        raise AgentError(msg) from failure

"""Evaluate agents under several settings that advance at once behind one pool of threads.

Each setting is a run of its own, in its own folder, with the same bytes as if it were played alone.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import partial
from pathlib import Path
from typing import Any

from cads_env.certificate import Certificate
from cads_env.errors import RunError, quoted
from cads_env.panel import Panel
from cads_env.protocol import Protocol, load_protocol
from cads_env.run.agents import resolve_agents
from cads_env.run.evaluate import (
    DEFAULT_PANEL,
    DEFAULT_PROTOCOL,
    DEFAULT_SEEDS,
    evaluate,
    executor_of,
    meter_of,
    prepare,
)
from cads_env.run.executors import Kind, ThreadPool
from cads_env.run.folder import run_folder
from cads_env.run.grid import Grid, begin_grid, is_grid, writing_grid
from cads_env.run.manifest import MANIFEST_FILE, check_same_run, new_manifest, read_manifest
from cads_env.run.meter import Meter
from cads_env.run.plan import Plan
from cads_env.run.playing import Progress, check_ready
from cads_env.run.result import RunResult
from cads_env.run.settings import Setting, is_name, protocol_of

_LOOK_S = 0.2
"""Seconds between two looks for an interrupt while threads play."""


def evaluate_grid(
    agents: object,
    *,
    settings: Sequence[Setting],
    registry: object = DEFAULT_PANEL,
    protocol: str | Path | Mapping[str, Any] | Protocol = DEFAULT_PROTOCOL,
    seeds: Iterable[int] = DEFAULT_SEEDS,
    certificate: Certificate | Mapping[str, Any] | None = None,
    jobs: int = 1,
    concurrency: int = 1,
    out: str | Path | bool | None = None,
    keep_reads: bool = False,
    retry_failed: bool = False,
    executor: Kind = "processes",
    address: str | None = None,
    max_cost: float | None = None,
    max_tokens: int | None = None,
    progress: Progress | None = None,
) -> Grid:
    """The runs of one or several agents under several settings.

    Args:
        agents: As for `evaluate`.
        settings: From `settings_of`; distinct names.
        registry: As for `evaluate`, as are all that are not named here.
        protocol: Whose feedback each setting changes.
        seeds: Distinct whole numbers from 0.
        certificate: What judges.
        jobs: Processes of this machine; the settings are then played one after another.
        concurrency: Campaigns at once, of all settings together.
        out: Folder of the grid; a folder that holds the same grid is gone on with.
        keep_reads: Store reads however many there are.
        retry_failed: Play campaigns again that failed in an earlier attempt on the folder.
        executor: "processes" or "ray".
        address: Of the Ray cluster.
        max_cost: Cost of all settings together at which the grid stops.
        max_tokens: The same for tokens.
        progress: Called after every campaign with the counts of the whole grid.

    Returns:
        The runs, "interrupted" where a limit was reached.

    Raises:
        RunError: The settings are none or have a name twice, the folder holds another grid, or as
            of `evaluate`.
        CadsError: As of `evaluate`.
    """
    names = [setting.name for setting in settings]
    if not names or len(set(names)) != len(names):
        msg = f"The settings {names!r} are none, or two have one name; see settings_of."
        raise RunError(msg)
    odd = [name for name in names if not is_name(name)]
    if odd:
        msg = f"A setting is called {quoted(odd[0])}; expected the name of a folder."
        raise RunError(msg)
    rules = load_protocol(protocol)
    specs, panel = resolve_agents(agents), Panel.resolve(registry)
    common: dict[str, Any] = {
        "registry": panel,
        "seeds": list(seeds),
        "certificate": certificate,
        "keep_reads": keep_reads,
    }
    own = {
        setting.name: {
            **common,
            "protocol": protocol_of(setting, rules),
            "identifiers": setting.identifiers,
        }
        for setting in settings
    }
    plans = {name: prepare(specs, **options) for name, options in own.items()}
    where = executor_of(executor, jobs, address, concurrency, None)
    meter = meter_of(where, None, max_cost, max_tokens)
    stack = contextlib.ExitStack()
    folder = None if out is None or out is False else _begun(out, settings, plans, stack)
    shown = _Counts(progress, sum(len(plan.specs) * len(n) for plan, n in plans.values()))
    parts = [
        _Part(
            specs,
            {
                **options,
                "retry_failed": retry_failed,
                "out": None if folder is None else folder / name,
                "progress": _OfSetting(shown, name),
            },
        )
        for name, options in own.items()
    ]
    try:
        with stack:
            if where.kind == "ray" or jobs > 1:
                for part in parts:
                    part.play(jobs=jobs, executor=executor, address=address)
            else:
                _play_at_once(parts, concurrency=concurrency, meter=meter)
    except BaseException as error:
        if folder is not None:
            # What a setting's run says of its own folder would not go on with the grid.
            error.__notes__ = [
                f"Campaigns completed before that are in {folder}; with --out {folder} the same "
                "command goes on."
            ]
        raise
    runs = {n: part.result for n, part in zip(names, parts, strict=True) if part.result is not None}
    return Grid(folder=folder, settings=tuple(settings), runs=runs)


def _begun(
    out: str | Path | bool,
    settings: Sequence[Setting],
    plans: Mapping[str, tuple[Plan, list[int]]],
    stack: contextlib.ExitStack,
) -> Path:
    """The folder of the grid, which holds nothing else; nobody else plays there until `stack` ends.

    Raises:
        RunError: It holds something else, or a setting's run of something else.
        AgentError: An agent cannot start; nothing is left behind then.
    """
    if out is True or not is_grid(str(out)):
        # A server that is not there would else be told of by every setting.
        plan, seeds = next(iter(plans.values()))
        check_ready(plan.specs, plan, seeds[0])
    folder = run_folder(None if out is True else str(out))
    with contextlib.ExitStack() as begun:
        begun.enter_context(writing_grid(folder))
        begin_grid(folder, settings)
        for name, (plan, seeds) in plans.items():
            if (folder / name / MANIFEST_FILE).exists():
                stored = read_manifest(folder / name)
                check_same_run(stored, new_manifest(plan, seeds), folder / name)
        stack.push(begun.pop_all())
    return folder


class _Part:
    """One setting's run: what it takes, and what became of it."""

    def __init__(self, specs: Sequence[Any], options: Mapping[str, Any]) -> None:
        self._specs, self._options = list(specs), options
        self.result: RunResult | None = None
        self.error: BaseException | None = None

    def play(self, **more: Any) -> None:
        self.result = evaluate(self._specs, **self._options, **more)

    def play_in(self, pool: ThreadPool) -> None:
        """Play in a thread, where an exception would be lost."""
        try:
            self.play(pool=pool)
        except BaseException as error:
            self.error = error
            pool.stop("another setting of the grid ended with an error")


def _play_at_once(parts: Sequence[_Part], *, concurrency: int, meter: Meter) -> None:
    with (
        ThreadPool(jobs=concurrency, meter=meter) as pool,
        ThreadPool(jobs=len(parts)) as drivers,
    ):
        # Futures are waited for, not threads: a `Thread.join` that Ctrl-C interrupts may take a
        # thread that still writes for one that has ended.
        left: set[Future[Any]] = set()
        try:
            for part in parts:
                left.add(drivers.submit(partial(part.play_in, pool)))
            while left:
                # In pieces, so that Ctrl-C is heard on every system.
                left = wait(left, timeout=_LOOK_S).not_done
        except KeyboardInterrupt:
            pool.stop("interrupted")
            wait(left)
            raise
    errors = [part.error for part in parts if part.error is not None]
    if errors:
        raise errors[0]


class _Counts:
    """Adds up the campaigns of several settings for one callback."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total = progress, total
        self._done: dict[str, int] = {}
        self._lock = threading.Lock()

    def take(self, setting: str, done: int, arm: str) -> None:
        with self._lock:
            self._done[setting] = done
            if self._progress is not None:
                shown = f"{setting}: {arm}" if arm else ""
                self._progress(sum(self._done.values()), self._total, shown)

    def watch(self, meter: Meter) -> None:
        watch = getattr(self._progress, "watch", None)
        if watch is not None:
            with self._lock:
                watch(meter)


class _OfSetting:
    """The progress of one setting's run, as part of the whole."""

    def __init__(self, counts: _Counts, setting: str) -> None:
        self._counts, self._setting = counts, setting

    def __call__(self, done: int, total: int, arm: str) -> None:
        self._counts.take(self._setting, done, arm)

    def watch(self, meter: Meter) -> None:
        self._counts.watch(meter)

"""The playing of a run, in memory or into a folder: what is left is handed out, what comes is kept.

A run that a limit or a signal stops is left "interrupted" with its reason, and its command goes on
with it. Checks nothing of what was asked for: `evaluate` has done that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cads_env.errors import AgentError
from cads_env.panel import Panel
from cads_env.proposer import ProposerFailed
from cads_env.run.agents import AgentSpec
from cads_env.run.executors import Executor, RunStopped, Stop, ThreadPool, execute
from cads_env.run.folder import Registries, RunFolder, run_folder
from cads_env.run.journal import MemoryJournal
from cads_env.run.journals import Journals
from cads_env.run.load import rows_as_read
from cads_env.run.manifest import MANIFEST_FILE, new_manifest
from cads_env.run.meter import Meter
from cads_env.run.plan import Plan, Played, Player, Task, check_content, proposer_seed
from cads_env.run.result import RunResult, arm_json
from cads_env.run.rows import ROW_FILES, Key
from cads_env.run.traces import read_bytes, trace_files, trace_path
from cads_env.values import said

Progress = Callable[[int, int, str], None]
"""Called with (campaigns done, campaigns in all, arm) after every campaign. Where it has a method
`watch(meter)`, that is called once before the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """How a run is played; nothing of it changes a result.

    Attributes:
        executor: Where.
        pool: Threads that are shared with other runs; None for the executor's own.
        meter: Counts and limits what is asked of the world outside.
        progress: Called after every campaign.
    """

    executor: Executor
    pool: ThreadPool | None
    meter: Meter
    progress: Progress | None

    @property
    def is_here(self) -> bool:
        """Whether campaigns are played in this process, so that they share its sums and signals."""
        if self.pool is not None or self.executor.kind == "threads":
            return True
        return self.executor.kind == "processes" and self.executor.jobs == 1


def campaign_keys(plan: Plan, seeds: Sequence[int]) -> list[Key]:
    """Every campaign of a run, in the order of its files: by seed, then by arm."""
    names = plan.panel.names
    return [Key(spec.name, names[s % len(names)], s) for s in seeds for spec in plan.specs]


def tasks_of(
    keys: Sequence[Key], settled: Collection[Key], *, one_by_one: bool = False
) -> list[Task]:
    """What is left to play, a seed at a time.

    Args:
        keys: Every campaign of the run, in order.
        settled: Those that are not to be played.
        one_by_one: Give every campaign a task of its own.
    """
    left = [key for key in keys if key not in settled]
    if one_by_one:
        return [Task(key.seed, (key.arm,)) for key in left]
    arms: dict[int, list[str]] = {}
    for key in left:
        arms.setdefault(key.seed, []).append(key.arm)
    return [Task(seed, tuple(names)) for seed, names in arms.items()]


def built_ahead(spec: AgentSpec, seed: int) -> object:
    """An agent that is built before the first campaign, when nothing may be asked yet.

    What is asked there would be kept nowhere and count against no limit.

    Args:
        spec: The agent.
        seed: As for `AgentSpec.build`.

    Returns:
        The agent; its factory where it asks while it is built.

    Raises:
        AgentError: It cannot be built.
        ProposerFailed: The same, as it says itself.
    """
    stop = Stop()
    stop.give("nothing is asked before the first campaign")
    journal = MemoryJournal(stop=stop)
    try:
        return spec.build(seed, journal.ticket)
    except RunStopped:
        return spec.factory
    finally:
        with suppress(RunStopped):
            journal.end()


def check_ready(specs: Iterable[AgentSpec], plan: Plan, seed: int) -> None:
    """Ask agents that can tell whether what they need is there, such as a server.

    Args:
        specs: Those that have campaigns left to play.
        plan: The run.
        seed: One of its seeds.

    Raises:
        AgentError: One cannot start.
    """
    for spec in specs:
        if not hasattr(spec.factory, "check_ready") and isinstance(spec.factory, type):
            continue
        oracle = plan.panel.for_seed(seed)[1]
        try:
            ready = getattr(built_ahead(spec, proposer_seed(oracle, seed)), "check_ready", None)
            if callable(ready):
                ready()
        except ProposerFailed as failure:
            msg = f"Agent {spec.name!r} cannot start: {said(failure)}"
            raise AgentError(msg) from failure


class _Steps:
    """Counts campaigns for a progress callback, and what they took where only they know it."""

    def __init__(self, done: int, total: int, how: How) -> None:
        self._done, self._total, self._how = done, total, how
        watch = getattr(how.progress, "watch", None)
        if callable(watch):
            watch(how.meter)
        if done and how.progress is not None:
            how.progress(done, total, "")

    def take(self, played: Played) -> None:
        if not self._how.is_here:
            self._how.meter.add(played.spent)
        for arm in played.task.arms:
            self._done += 1
            if self._how.progress is not None:
                self._how.progress(self._done, self._total, arm)


def _played(
    plan: Plan,
    tasks: Sequence[Task],
    how: How,
    folder: Path | None,
    take: Callable[[Played], None],
) -> str | None:
    """Play tasks and hand on what they give; why the run was stopped, or None.

    Args:
        plan: The run.
        tasks: What is left of it.
        how: How.
        folder: That every worker reaches, for the traces; None keeps them in memory.
        take: Keeps what a task gave.
    """
    stop = Stop(None if how.pool is None else how.pool.ending)
    counted = Journals(folder, meter=how.meter, stop=stop)
    player = Player(plan, counted if how.is_here else Journals(folder))
    plays = execute(player, tasks, executor=how.executor, pool=how.pool, stop=stop)
    try:
        # Closed at once on an error, so that no thread plays on unseen.
        with closing(plays):
            for played in plays:
                take(played)
    except RunStopped as stopped:
        return str(stopped)
    return None


def _one_by_one(plan: Plan, how: How) -> bool:
    """Whether each campaign is a task: in threads, and where one alone takes its time."""
    return how.is_here and (
        how.pool is not None
        or how.executor.kind == "threads"
        or any(spec.accepts("journal") for spec in plan.specs)
    )


def play_in_memory(plan: Plan, seeds: Sequence[int], how: How) -> RunResult:
    """The result of a run that leaves no files.

    Args:
        plan: The run.
        seeds: On which seeds.
        how: How it is played.
    """
    keys = campaign_keys(plan, seeds)
    manifest = new_manifest(plan, seeds)
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in ROW_FILES}
    registries: dict[str, dict[str, Any]] = {}
    check_ready(plan.specs, plan, seeds[0])
    steps = _Steps(0, len(keys), how)

    def take(played: Played) -> None:
        registries[played.registry["name"]] = played.registry
        for name in ROW_FILES:
            if name != "reads":
                rows[name] += played.rows[name]
        steps.take(played)

    tasks = tasks_of(keys, (), one_by_one=_one_by_one(plan, how))
    stopped = _played(plan, tasks, how, None, take)
    rank = {key: i for i, key in enumerate(keys)}
    for name in ROW_FILES:
        rows[name].sort(key=lambda row: rank[Key.of(row)])
    manifest["registries"] = [registries[n] for n in plan.panel.names if n in registries]
    manifest["status"] = "complete" if stopped is None else "interrupted"
    if stopped is not None:
        manifest["reason"] = stopped
    return RunResult.of(rows_as_read(rows), manifest)


def play_into(
    out: str | Path | None, plan: Plan, seeds: Sequence[int], how: How, *, retry_failed: bool
) -> RunResult:
    """The result of a run whose files are in a folder; one that is there is gone on with.

    Args:
        out: As for `run_folder`.
        plan: The run.
        seeds: On which seeds.
        how: How it is played.
        retry_failed: Play campaigns again that failed in an earlier attempt.
    """
    keys = campaign_keys(plan, seeds)

    def check(stored: Registries) -> None:
        _check_registries(plan.panel, _hashes(stored))

    is_new = not _is_begun(out)
    if is_new:
        # Before the folder is made: a server that is not there leaves nothing behind.
        check_ready(plan.specs, plan, seeds[0])
    folder = run_folder(out)
    manifest = new_manifest(plan, seeds)
    with RunFolder(folder, manifest, retry_failed=retry_failed, check=check) as files:
        known = _hashes(files.registries)
        settled = files.done | files.failed
        how.meter.add_earlier(files.spent)
        if not is_new:
            left = {key.arm for key in keys if key not in settled}
            check_ready([spec for spec in plan.specs if spec.name in left], plan, seeds[0])
        steps = _Steps(len(settled), len(keys), how)

        def take(played: Played) -> None:
            files.keep(played)
            steps.take(played)

        tasks = tasks_of(keys, settled, one_by_one=_one_by_one(plan, how))
        is_far = how.executor.kind == "ray"
        if is_far:
            tasks = [_with_traces(task, plan, files.place) for task in tasks]
        try:
            where = None if is_far else files.place
            stopped = _played(replace(plan, expected=known), tasks, how, where, take)
        except BaseException as error:
            has_campaigns = (folder / "campaigns.jsonl").exists()
            if has_campaigns or trace_files(files.place):
                what = "Campaigns completed" if has_campaigns else "Answers that came"
                error.add_note(
                    f"{what} before that are in {folder}; with --out {folder} the same command "
                    "goes on."
                )
            raise
        if stopped is not None:
            files.leave_open(stopped)
        files.finish(keys, plan.panel.names)
        result = RunResult.of(files.rows(), files.manifest, folder=str(folder))
        files.note("arms", [arm_json(arm) for arm in result.arms.values()])
    return result


def _is_begun(out: object) -> bool:
    """Whether there is a run in a folder that may be none."""
    try:
        return isinstance(out, (str, Path)) and (Path(out) / MANIFEST_FILE).exists()
    except (OSError, ValueError):
        return False


def _with_traces(task: Task, plan: Plan, folder: Path) -> Task:
    """A task with what is recorded of it, for a worker that does not reach the folder."""
    names = plan.panel.names
    registry = names[task.seed % len(names)]
    paths = {arm: trace_path(folder, Key(arm, registry, task.seed)) for arm in task.arms}
    return task._replace(
        recorded=tuple((arm, read_bytes(path)) for arm, path in paths.items() if path.is_file())
    )


def _hashes(registries: Registries) -> dict[str, tuple[str, str]]:
    return {n: (r["hash"], r["oracle_hash"]) for n, r in registries.items()}


def _check_registries(panel: Panel, known: Mapping[str, tuple[str, str]]) -> None:
    """Check those whose content may have changed; the others are what their names say."""
    for i in panel.untold:
        if panel.names[i] in known:
            check_content(panel[i], known)

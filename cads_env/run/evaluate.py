"""Evaluate agents: play each on the same campaigns as its twin, and score the paired net.

This is where arms, campaigns, executors and files meet. A campaign whose proposer's infrastructure
broke is reported and never averaged in; an agent's own exception stops the run and names its place.
"""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from cads_env.campaign import open_screen
from cads_env.certificate import Certificate
from cads_env.errors import AgentError, RunError, suggest
from cads_env.panel import Panel
from cads_env.proposer import Proposer, ProposerFailed
from cads_env.protocol import Feedback, Protocol, load_protocol
from cads_env.registry import RELABEL_MODES, Oracle, RelabelMode, relabel
from cads_env.run.agents import AgentSpec, resolve_agents
from cads_env.run.executors import Executor, Kind, execute
from cads_env.run.folder import Registries, RunFolder, run_folder
from cads_env.run.load import rows_as_read
from cads_env.run.manifest import new_manifest
from cads_env.run.plan import Plan, Played, Player, Task, check_content, proposer_seed
from cads_env.run.result import RunResult, arm_json
from cads_env.run.rows import ROW_FILES, Key
from cads_env.score import resolve_certificate

DEFAULT_PANEL: Final = "synthetic-depmap:dev"
DEFAULT_PROTOCOL: Final = "standard"
DEFAULT_SEEDS: Final = range(20)

Progress = Callable[[int, int, str], None]
"""Called with (campaigns done, campaigns in all, arm) after every campaign."""


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
        identifiers: "named", "shuffled" or "blinded"; see `relabel`. Relabelled anew for each seed.
        keep_reads: Store reads however many there are.
        retry_failed: Play campaigns again that failed in an earlier attempt on the folder.
        executor: "processes" of this machine, or "ray" for a Ray cluster; see `Executor`. The
            results do not depend on it.
        address: Of the Ray cluster: "auto", HOST:PORT, or "local" (as None) for one that is
            started here and ends with the run.
        progress: Called after every campaign.

    Returns:
        Frames and summaries.

    Raises:
        AgentError: An agent is unknown, lacks a side table, or raised an exception of its own.
        RegistryError: A registry is unusable.
        ProtocolError: The protocol is invalid.
        RunError: Seeds, jobs, the executor or the folder are unusable, or a process died.
        MissingExtraError: Ray is asked for and not installed.
        RecordError: A file of an earlier attempt is damaged.
    """
    specs = resolve_agents(agents)
    rules = load_protocol(protocol)
    if feedback is not None:
        rules = rules.override(feedback=feedback)
    judge = resolve_certificate(certificate, rules)
    panel = Panel.resolve(registry)
    numbers = _check_seeds(seeds)
    where = Executor(kind=executor, jobs=jobs, address=address)
    if identifiers not in RELABEL_MODES:
        msg = (
            f"Unknown identifiers mode {identifiers!r}. {suggest(str(identifiers), RELABEL_MODES)}"
        )
        raise RunError(msg)
    _check_before_first_read(specs, rules, panel, numbers, identifiers)
    plan = Plan(
        specs=specs,
        protocol=rules,
        certificate=judge,
        panel=panel,
        identifiers=identifiers,
        keep_reads=keep_reads,
    )
    if out is None or out is False:
        return _play_in_memory(plan, numbers, where, progress)
    folder = run_folder(None if out is True else out)
    return _play_into(folder, plan, numbers, where, retry_failed, progress)


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
        if not getattr(agent, "requires", ()):
            continue
        for position in sorted({seed % len(panel) for seed in seeds}):
            seen, _ = relabel(*panel[position], identifiers, 0)
            spec.check_side_tables(agent, seen, identifiers=identifiers)


def _probe(spec: AgentSpec, oracle: Oracle, seed: int) -> Proposer:
    try:
        return spec.build(proposer_seed(oracle, seed))
    except ProposerFailed as failure:
        msg = f"Agent {spec.name!r} cannot start: {failure}"
        raise AgentError(msg) from failure


def campaign_keys(plan: Plan, seeds: Sequence[int]) -> list[Key]:
    """Every campaign of a run, in the order of its files: by seed, then by arm."""
    names = plan.panel.names
    return [Key(spec.name, names[s % len(names)], s) for s in seeds for spec in plan.specs]


def tasks_of(keys: Sequence[Key], settled: Collection[Key]) -> list[Task]:
    """What is left to play, a seed at a time."""
    arms: dict[int, list[str]] = {}
    for key in keys:
        if key not in settled:
            arms.setdefault(key.seed, []).append(key.arm)
    return [Task(seed, tuple(names)) for seed, names in arms.items()]


class _Steps:
    """Counts campaigns for a progress callback."""

    def __init__(self, done: int, total: int, progress: Progress | None) -> None:
        self._done, self._total, self._progress = done, total, progress
        if done and progress is not None:
            progress(done, total, "")

    def take(self, played: Played) -> None:
        for arm in played.task.arms:
            self._done += 1
            if self._progress is not None:
                self._progress(self._done, self._total, arm)


def _play_in_memory(
    plan: Plan, seeds: Sequence[int], executor: Executor, progress: Progress | None
) -> RunResult:
    keys = campaign_keys(plan, seeds)
    manifest = new_manifest(plan, seeds)
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in ROW_FILES}
    registries: dict[str, dict[str, Any]] = {}
    steps = _Steps(0, len(keys), progress)
    for played in execute(Player(plan), tasks_of(keys, ()), executor=executor):
        registries[played.registry["name"]] = played.registry
        for name in ROW_FILES:
            if name != "reads":
                rows[name] += played.rows[name]
        steps.take(played)
    rank = {key: i for i, key in enumerate(keys)}
    for name in ROW_FILES:
        rows[name].sort(key=lambda row: rank[Key.of(row)])
    manifest["registries"] = [registries[n] for n in plan.panel.names if n in registries]
    manifest["status"] = "complete"
    return RunResult.of(rows_as_read(rows), manifest)


def _play_into(
    folder: Path,
    plan: Plan,
    seeds: Sequence[int],
    executor: Executor,
    retry_failed: bool,
    progress: Progress | None,
) -> RunResult:
    keys = campaign_keys(plan, seeds)

    def check(stored: Registries) -> None:
        _check_registries(plan.panel, _hashes(stored))

    manifest = new_manifest(plan, seeds)
    with RunFolder(folder, manifest, retry_failed=retry_failed, check=check) as files:
        known = _hashes(files.registries)
        settled = files.done | files.failed
        steps = _Steps(len(settled), len(keys), progress)
        try:
            player = Player(replace(plan, expected=known))
            for played in execute(player, tasks_of(keys, settled), executor=executor):
                files.keep(played)
                steps.take(played)
        except BaseException as error:
            if (folder / "campaigns.jsonl").exists():
                error.add_note(
                    f"Campaigns completed before that are in {folder}; with --out {folder} the "
                    "same command goes on."
                )
            raise
        files.finish(keys, plan.panel.names)
        result = RunResult.of(files.rows(), files.manifest, folder=str(folder))
        files.note("arms", [arm_json(arm) for arm in result.arms.values()])
    return result


def _hashes(registries: Registries) -> dict[str, tuple[str, str]]:
    return {n: (r["hash"], r["oracle_hash"]) for n, r in registries.items()}


def _check_registries(panel: Panel, known: Mapping[str, tuple[str, str]]) -> None:
    """Check those whose content may have changed; the others are what their names say."""
    for i in panel.untold:
        if panel.names[i] in known:
            check_content(panel[i], known)

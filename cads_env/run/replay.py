"""A run played again from its folder alone: every row must come out as it stands there.

What agents asked of the world outside is answered from the traces and nothing is asked, so a run of
a served model replays where no server is. Writes nothing; judges bytes, not figures.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from cads_env.certificate import Certificate
from cads_env.errors import AgentError, RecordError, RegistryError, ReplayError, RunError
from cads_env.panel import Panel, load_panel
from cads_env.protocol import load_protocol
from cads_env.run.agents import AgentSpec, agent_of_manifest, resolve_agents
from cads_env.run.differing import first_difference
from cads_env.run.executors import Executor, execute
from cads_env.run.folder import json_line
from cads_env.run.journals import Journals
from cads_env.run.load import load_run
from cads_env.run.manifest import environment
from cads_env.run.mend import Line, whole_lines
from cads_env.run.plan import Plan, Player, Task
from cads_env.run.rows import ROW_FILES, Key, planned_keys
from cads_env.run.traces import trace_files, trace_path
from cads_env.values import parse_value

_ORDER: Final = ("failures", "campaigns", "rounds", "declarations", "reads")
"""In which a campaign's first difference is looked for: what came of it, then how."""

Lines = dict[Key, list[Line]]


class Mismatch(NamedTuple):
    """Where the replay of a campaign first differs from its files.

    Attributes:
        file: Relative to the run's folder.
        arm: Of the campaign.
        registry: Of the campaign.
        seed: Of the campaign.
        what: Row and field with both values, or what went wrong.
    """

    file: str
    arm: str
    registry: str
    seed: int
    what: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.file}: {self.arm} on {self.registry}, seed {self.seed}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a replay found.

    Attributes:
        folder: Of the run.
        campaigns: Campaigns that were compared, failed ones included.
        planned: Campaigns of the whole run.
        traces: Trace files of the run.
        mismatches: The first difference of each campaign that has one.
        notes: What differs without being an error, such as changed code.
    """

    folder: str
    campaigns: int
    planned: int
    traces: int
    mismatches: tuple[Mismatch, ...]
    notes: tuple[str, ...]

    @property
    def byte_identical(self) -> bool:
        """Whether every row came out as it stands in the files."""
        return not self.mismatches


def replay(
    folder: str | Path,
    *,
    agents: Mapping[str, object] | None = None,
    registry: object = None,
    jobs: int = 1,
) -> Replayed:
    """Play every campaign of a run again, answered from its traces, and compare every row.

    Of a run that is not complete, what is complete is compared.

    Args:
        folder: Of the run.
        agents: Agents by arm, for arms that were given as objects of Python, or to try another.
        registry: What was played on, as for `evaluate`, where its name alone does not tell it: a
            file that lies elsewhere, a secret salt, objects of Python.
        jobs: Processes.

    Returns:
        What was compared and what differs.

    Raises:
        RunError: There is no run, an arm or the panel cannot be made again, or jobs is unusable.
        RecordError: A file is damaged.
        RegistryError: A registry is not the one that was played on.
    """
    place = Path(folder)
    run = load_run(place)
    config = run.manifest["config"]
    executor = Executor(jobs=jobs)
    specs = _specs(config, agents or {})
    plan = Plan(
        specs=specs,
        protocol=load_protocol(config["protocol"]),
        certificate=Certificate(**config["certificate"]),
        panel=_panel(config, registry),
        identifiers=config["identifiers"],
        keep_reads=config["keep_reads"],
        expected={r["name"]: (r["hash"], r["oracle_hash"]) for r in run.manifest["registries"]},
    )
    stored = {kind: _by_campaign(place / f"{kind}.jsonl") for kind in ROW_FILES}
    planned = planned_keys(config)
    keys = [k for k in planned if k in stored["campaigns"] or k in stored["failures"]]
    work = _Replayer(Player(plan, Journals(place.absolute(), mode="replay")))
    found = {
        outcome.key: outcome
        for outcomes in execute(work, _tasks(keys), executor=executor)
        for outcome in outcomes
    }
    mismatches = [_mismatch(place, stored, found[key]) for key in keys]
    return Replayed(
        folder=str(folder),
        campaigns=len(keys),
        planned=len(planned),
        traces=len(trace_files(place)),
        mismatches=tuple(m for m in mismatches if m is not None),
        notes=tuple(_notes(run.manifest, plan)),
    )


def _specs(config: Mapping[str, Any], agents: Mapping[str, object]) -> list[AgentSpec]:
    """The agents of a run, from what its manifest says of them."""
    entries = {entry["arm"]: entry for entry in config["agents"]}
    unknown = [arm for arm in agents if arm not in entries]
    if unknown:
        msg = f"The run has no arm {unknown[0]!r}; it has: {', '.join(entries)}."
        raise RunError(msg)
    specs = []
    for arm, entry in entries.items():
        try:
            if arm in agents:
                given = resolve_agents({arm: agents[arm]})[0]
                # The options that were played, where none are given.
                options = given.options or entry.get("options") or {}
                specs.append(replace(given, name=arm, options=options))
            else:
                specs.append(agent_of_manifest(entry))
        except AgentError as error:
            msg = (
                f"Arm {arm!r} cannot be made again from {entry.get('source')!r}: {error} Hand its "
                f"agent over as agents={{{arm!r}: ...}} (--agent), with the same code."
            )
            raise RunError(msg) from error
    return specs


def _panel(config: Mapping[str, Any], registry: object) -> Panel:
    """The registries of a run, in order, by their names."""
    names = tuple(config["registries"])
    if registry is not None:
        panel = Panel.resolve(registry)
        if panel.names == names:
            return panel
        msg = f"The run was played on {_listed(names)}, but registry= gives {_listed(panel.names)}."
        raise RunError(msg)
    for texts in ([config["panel"]], list(names)):
        panel_or_none = _loaded(texts)
        if panel_or_none is not None and panel_or_none.names == names:
            return panel_or_none
    msg = (
        f"The registries of the run ({_listed(names)}) cannot be loaded by name. Give what it was "
        "played on as registry=... (--registry): the path of its file, or a panel with its salt."
    )
    raise RunError(msg)


def _listed(names: Sequence[str]) -> str:
    rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + rest


def _loaded(texts: Sequence[str]) -> Panel | None:
    """The panel of some names with the options that stand in them, as `synthetic/3+structure=1`."""
    bases, options = [], {}
    for text in texts:
        base, *parts = text.split("+")
        bases.append(base)
        for part in ",".join(parts).split(","):
            name, equals, value = part.partition("=")
            if equals:
                options[name] = parse_value(value)
    try:
        return load_panel(bases if len(bases) > 1 else bases[0], **options)
    except RegistryError:
        return None


def _by_campaign(path: Path) -> Lines:
    lines: Lines = {}
    for line in whole_lines(path):
        lines.setdefault(line.key, []).append(line)
    return lines


def _tasks(keys: Sequence[Key]) -> list[Task]:
    arms: dict[int, list[str]] = {}
    for key in keys:
        arms.setdefault(key.seed, []).append(key.arm)
    return [Task(seed, tuple(names)) for seed, names in arms.items()]


class _Outcome(NamedTuple):
    """A campaign that was played again.

    Attributes:
        key: The campaign.
        rows: Its rows by kind; empty when it broke.
        broke: What broke it; empty where nothing did.
        in_trace: Whether the trace was to blame.
    """

    key: Key
    rows: Mapping[str, Sequence[Mapping[str, Any]]]
    broke: str = ""
    in_trace: bool = False


class _Replayer:
    """Plays the arms of a seed one by one, so that one that breaks leaves the others."""

    def __init__(self, player: Player) -> None:
        self._player = player

    def play(self, task: Task) -> list[_Outcome]:
        """What each arm came to."""
        return [self._play_arm(task.seed, arm) for arm in task.arms]

    def _play_arm(self, seed: int, arm: str) -> _Outcome:
        key = Key(arm, self._player.registry_of(seed), seed)
        try:
            played = self._player.play(Task(seed, (arm,)))
        except (ReplayError, RecordError) as error:
            # Its cause says the same without the campaign and the file, which stand beside it.
            return _Outcome(key, {}, str(error.__cause__ or error), in_trace=True)
        except AgentError as error:
            return _Outcome(key, {}, str(error))
        return _Outcome(key, played.rows)


def _mismatch(place: Path, stored: Mapping[str, Lines], outcome: _Outcome) -> Mismatch | None:
    """The first difference of a campaign; None where there is none."""
    key = outcome.key
    if outcome.broke:
        path = trace_path(place, key).relative_to(place).as_posix()
        file = path if outcome.in_trace else "campaigns.jsonl"
        return Mismatch(file, key.arm, key.registry, key.seed, outcome.broke)
    for kind in _ORDER:
        there, here = stored[kind].get(key, []), outcome.rows[kind]
        what = _first(there, here)
        if what is not None:
            return Mismatch(f"{kind}.jsonl", key.arm, key.registry, key.seed, what)
    return None


def _first(there: Sequence[Line], here: Sequence[Mapping[str, Any]]) -> str | None:
    """Where rows of one kind first differ."""
    for i, (line, row) in enumerate(zip(there, here, strict=False)):
        text = json_line(row)
        if line.raw != text.encode("ascii"):
            where = first_difference(line.row, json.loads(text))
            return f"row {i}: {where or 'the same values in other bytes'}"
    if len(there) != len(here):
        return f"{len(there)} rows in the file, {len(here)} in the replay"
    return None


def _notes(manifest: Mapping[str, Any], plan: Plan) -> Iterator[str]:
    """What changed since the run without deciding by itself that its rows do."""
    there, here = (of["versions"].get("cads-env") for of in (manifest, environment()))
    if there != here:
        yield f"The run is of cads-env {there}, this is {here}."
    if manifest.get("protocol_hash") != plan.protocol.hash:
        yield "The protocol in the manifest is not the one whose hash stands beside it."
    for entry, spec in zip(manifest["config"]["agents"], plan.specs, strict=True):
        known = entry.get("code_sha256")
        if known is not None and known != spec.code_sha256:
            yield f"The code of arm {spec.name!r} is not that of the run ({entry.get('source')})."
        if (entry.get("data_sha256") or {}) != spec.data_sha256:
            yield f"Files that the options of arm {spec.name!r} name are not those of the run."

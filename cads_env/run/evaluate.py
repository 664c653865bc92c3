"""Evaluate agents: play each on the same campaigns as its twin, and score the paired net.

This is where arms, campaigns, twins and files meet. A campaign whose proposer's infrastructure
broke is reported and never averaged in; an agent's own exception stops the run and names its place.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from cads_env.campaign import open_screen, play
from cads_env.certificate import Certificate
from cads_env.errors import (
    AgentError,
    ProposalError,
    RunError,
    suggest,
)
from cads_env.panel import Panel
from cads_env.proposer import Proposer, ProposerFailed
from cads_env.protocol import Feedback, Protocol, load_protocol
from cads_env.record import Record
from cads_env.registry import RELABEL_MODES, RelabelMode, relabel
from cads_env.run.agents import AgentSpec, resolve_agents
from cads_env.run.folder import RunFolder, environment, new_folder
from cads_env.run.result import Failure, RunResult, arm_json, summarise
from cads_env.run.rows import (
    CAMPAIGN_COLUMNS,
    DECLARATION_COLUMNS,
    ROUND_COLUMNS,
    Campaign,
    campaign_row,
    declaration_rows,
    round_rows,
)
from cads_env.score import TWINS, play_reference, resolve_certificate, score

KEPT_READS: Final = 5_000
"""Reads of campaigns up to this size are stored; those of longer ones follow from the seed."""

DEFAULT_PANEL: Final = "synthetic-depmap:dev"
DEFAULT_PROTOCOL: Final = "standard"
DEFAULT_SEEDS: Final = range(20)

Progress = Callable[[int, int, str], None]
"""Called with (campaigns done, campaigns in all, arm) after every campaign."""


@dataclass(frozen=True)
class _Rows:
    campaigns: list[dict[str, Any]]
    rounds: list[dict[str, Any]]
    declarations: list[dict[str, Any]]


def evaluate(
    agents: object,
    *,
    registry: object = DEFAULT_PANEL,
    protocol: str | Path | Mapping[str, Any] | Protocol = DEFAULT_PROTOCOL,
    seeds: Iterable[int] = DEFAULT_SEEDS,
    feedback: Feedback | None = None,
    certificate: Certificate | Mapping[str, float] | None = None,
    jobs: int = 1,
    out: str | Path | bool | None = None,
    identifiers: RelabelMode = "named",
    keep_reads: bool = False,
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
        certificate: What judges; a mapping changes fields of the protocol's default.
        jobs: Processes; only 1 is available.
        out: Folder for the files, True for the next number under `runs`, None for no files.
        identifiers: "named", "shuffled" or "blinded"; see `relabel`. Relabelled anew for each seed.
        keep_reads: Store reads however many there are.
        progress: Called after every campaign.

    Returns:
        Frames and summaries.

    Raises:
        AgentError: An agent is unknown, lacks a side table, or raised an exception of its own.
        RegistryError: A registry is unusable.
        ProtocolError: The protocol is invalid.
        RunError: Seeds, jobs or the folder are unusable.
    """
    specs = resolve_agents(agents)
    rules = load_protocol(protocol)
    if feedback is not None:
        rules = rules.override(feedback=feedback)
    judge = resolve_certificate(certificate, rules)
    panel = Panel.resolve(registry)
    numbers = _check_seeds(seeds)
    if jobs != 1:
        msg = f"jobs={jobs!r} is not available; campaigns run in this process, with jobs=1."
        raise RunError(msg)
    if identifiers not in RELABEL_MODES:
        msg = f"Unknown identifiers mode {identifiers!r}. {suggest(identifiers, RELABEL_MODES)}"
        raise RunError(msg)
    _check_before_first_read(specs, rules, panel, numbers, identifiers)
    run = _Run(specs, rules, judge, panel, numbers, identifiers, keep_reads, progress)
    if out is None or out is False:
        return run.play(None)
    folder = new_folder(None if out is True else out)
    try:
        with RunFolder(folder, run.manifest()) as files:
            return run.play(files)
    except BaseException as error:
        error.add_note(f"What was played until then is in {folder}, marked as not complete.")
        raise


def _check_seeds(seeds: Iterable[int]) -> list[int]:
    if isinstance(seeds, (str, bytes, int)) or not isinstance(seeds, Iterable):
        msg = f"seeds is {seeds!r}; expected several whole numbers, e.g. range(20)."
        raise RunError(msg)
    numbers = [int(s) if _is_whole(s) else s for s in seeds]
    bad = [s for s in numbers if not isinstance(s, int) or isinstance(s, bool) or s < 0]
    if bad or not numbers:
        msg = f"seeds holds {bad[:5]!r}; expected one or more whole numbers from 0."
        raise RunError(msg)
    if len(set(numbers)) != len(numbers):
        repeated = sorted({s for s in numbers if numbers.count(s) > 1})
        msg = f"seeds repeats {repeated[:5]!r}; a campaign counts once."
        raise RunError(msg)
    return numbers


def _is_whole(value: object) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


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
        agent = spec.build(private.key("proposer", seeds[0]))
        if not getattr(agent, "requires", ()):
            continue
        for position in sorted({seed % len(panel) for seed in seeds}):
            spec.check_side_tables(agent, relabel(*panel[position], identifiers, 0)[0])


class _Run:
    """The state of one evaluation."""

    def __init__(
        self,
        specs: Sequence[AgentSpec],
        protocol: Protocol,
        certificate: Certificate,
        panel: Panel,
        seeds: Sequence[int],
        identifiers: RelabelMode,
        keep_reads: bool,
        progress: Progress | None,
    ) -> None:
        self.specs, self.protocol, self.certificate = specs, protocol, certificate
        self.panel, self.seeds, self.identifiers = panel, seeds, identifiers
        self.keep_reads, self.progress = keep_reads, progress
        self.rows = {spec.name: _Rows([], [], []) for spec in specs}
        self.failures: list[Failure] = []
        self.registries: dict[str, dict[str, Any]] = {}

    def manifest(self) -> dict[str, Any]:
        return {
            "config": {
                "panel": self.panel.name,
                "identifiers": self.identifiers,
                "seeds": list(self.seeds),
                "agents": [
                    {"arm": s.name, "source": s.source, "options": _plain(s.options)}
                    for s in self.specs
                ],
                "protocol": self.protocol.to_dict(),
                "certificate": asdict(self.certificate),
                "keep_reads": self.keep_reads,
            },
            "protocol_hash": self.protocol.hash,
            **environment(),
        }

    def play(self, files: RunFolder | None) -> RunResult:
        done, total = 0, len(self.seeds) * len(self.specs)
        for seed in self.seeds:
            campaign = self._open(seed)
            for spec in self.specs:
                self._play_arm(spec, campaign, files)
                done += 1
                if self.progress is not None:
                    self.progress(done, total, spec.name)
        result = self._result(files)
        if files is not None:
            files.note("registries", list(self.registries.values()))
            files.note("failures", [f._asdict() for f in self.failures])
            files.note("arms", [arm_json(arm) for arm in result.arms.values()])
        return result

    def _open(self, seed: int) -> Campaign:
        registry, oracle = relabel(*self.panel.for_seed(seed), self.identifiers, seed)
        twin = TWINS.get(registry, oracle, self.protocol, seed)
        best = play_reference(registry, oracle, self.protocol, seed)
        outcome = score(best, twin, oracle, self.certificate).outcome
        self.registries.setdefault(
            registry.hash,
            {
                "name": registry.name,
                "hash": registry.hash,
                "oracle_hash": oracle.hash,
                "m": registry.m,
                "hits": oracle.hit_count,
                "contrary_hits": oracle.contrary_hit_count,
            },
        )
        return Campaign(registry, oracle, seed, twin, outcome.true)

    def _play_arm(self, spec: AgentSpec, campaign: Campaign, files: RunFolder | None) -> None:
        registry, oracle, seed = campaign.registry, campaign.oracle, campaign.seed
        proposer = spec.build(oracle.key("proposer", seed))
        try:
            record = _play_guarded(proposer, campaign, self.protocol, spec.name)
        except ProposerFailed as failure:
            failed = Failure(spec.name, registry.name, seed, str(failure) or "no reason given")
            self.failures.append(failed)
            if files is not None:
                files.log("failed", **failed._asdict())
            return
        scored = score(record, campaign.twin, oracle, self.certificate)
        key = {"arm": spec.name, "registry": registry.name, "seed": seed}
        rows = _Rows(
            [campaign_row(key, campaign, record, scored.outcome)],
            round_rows(key, record, registry),
            declaration_rows(key, campaign.registry, record, scored),
        )
        mine = self.rows[spec.name]
        for name in ("campaigns", "rounds", "declarations"):
            getattr(mine, name).extend(getattr(rows, name))
            if files is not None:
                files.append(name, getattr(rows, name))
        if files is not None:
            if self.keep_reads or record.read_count <= KEPT_READS:
                files.append("reads", [key | record.to_json()])
            files.log("campaign", **key)

    def _result(self, files: RunFolder | None) -> RunResult:
        arms = {
            name: summarise(
                name,
                rows.campaigns,
                rows.rounds,
                sum(f.arm == name for f in self.failures),
                self.protocol,
                self.certificate,
            )
            for name, rows in self.rows.items()
        }
        every = self.rows.values()
        return RunResult(
            campaigns=pd.DataFrame(
                [r for rows in every for r in rows.campaigns], columns=CAMPAIGN_COLUMNS
            ),
            rounds=pd.DataFrame([r for rows in every for r in rows.rounds], columns=ROUND_COLUMNS),
            declarations=pd.DataFrame(
                [r for rows in every for r in rows.declarations], columns=DECLARATION_COLUMNS
            ),
            arms=arms,
            failures=tuple(self.failures),
            protocol=self.protocol,
            certificate=self.certificate,
            panel=self.panel.name,
            identifiers=self.identifiers,
            registry_count=len({seed % len(self.panel) for seed in self.seeds}),
            folder=None if files is None else str(files.folder),
        )


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as JSON values; what JSON does not have is shown as text."""
    plain: dict[str, Any] = {}
    for name, value in options.items():
        exact = value is None or isinstance(value, (str, int, bool))
        finite = isinstance(value, float) and math.isfinite(value)
        plain[name] = value if exact or finite else repr(value)
    return plain


def _play_guarded(proposer: Proposer, campaign: Campaign, protocol: Protocol, arm: str) -> Record:
    screen = open_screen([(campaign.registry, campaign.oracle)], [campaign.seed], protocol)
    try:
        return play(screen, [proposer])[0]
    except ProposerFailed:
        raise
    except (Exception, SystemExit) as error:
        kind = "" if isinstance(error, ProposalError) else f"{type(error).__name__}: "
        place = "" if isinstance(error, ProposalError) else _place(error)
        msg = (
            f"Agent {arm!r} broke in round {screen.round} of seed {campaign.seed}: "
            f"{kind}{error}{place}"
        )
        raise AgentError(msg) from error


def _place(error: BaseException) -> str:
    """Where an agent's exception was raised, as ` (my_agent.py, line 12)`."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""

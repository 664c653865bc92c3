"""Evaluate agents: play each on the same campaigns as its twin, and score the paired net.

This is where arms, campaigns, twins and files meet. A campaign whose proposer's infrastructure
broke is reported and never averaged in; an agent's own exception stops the run and names its place.
"""

from __future__ import annotations

import math
import reprlib
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
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
from cads_env.registry import RELABEL_MODES, Oracle, RelabelMode, relabel
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
from cads_env.values import plain_text

KEPT_READS: Final = 5_000
"""Reads of campaigns up to this size are stored; those of longer ones follow from the seed."""

DEFAULT_PANEL: Final = "synthetic-depmap:dev"
DEFAULT_PROTOCOL: Final = "standard"
DEFAULT_SEEDS: Final = range(20)

Progress = Callable[[int, int, str], None]
"""Called with (campaigns done, campaigns in all, arm) after every campaign."""


@dataclass(frozen=True)
class _Rows:
    reads: list[dict[str, Any]] = field(default_factory=list)
    rounds: list[dict[str, Any]] = field(default_factory=list)
    declarations: list[dict[str, Any]] = field(default_factory=list)
    campaigns: list[dict[str, Any]] = field(default_factory=list)


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
        msg = (
            f"Unknown identifiers mode {identifiers!r}. {suggest(str(identifiers), RELABEL_MODES)}"
        )
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
        if (folder / "campaigns.jsonl").exists():
            error.add_note(f"Campaigns completed before that are in {folder}.")
        raise


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
            spec.check_side_tables(agent, relabel(*panel[position], identifiers, 0)[0])


def proposer_seed(oracle: Oracle, seed: int) -> int:
    """The seed that a factory gets in a campaign, 32 bits, as common generators take it."""
    return oracle.key("proposer", seed) >> 32


def _probe(spec: AgentSpec, oracle: Oracle, seed: int) -> Proposer:
    try:
        return spec.build(proposer_seed(oracle, seed))
    except ProposerFailed as failure:
        msg = f"Agent {spec.name!r} cannot start: {failure}"
        raise AgentError(msg) from failure


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
        self.rows = {spec.name: _Rows() for spec in specs}
        self.failures: list[Failure] = []
        self.last: dict[str, Proposer] = {}
        self.yardsticks: list[tuple[int, int]] = []
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
            played: list[_Rows] = []
            for spec in self.specs:
                rows = self._play_arm(spec, campaign, files)
                if rows is not None:
                    played.append(rows)
                done += 1
                if self.progress is not None:
                    self.progress(done, total, spec.name)
            # Not before the last arm: the rows say which candidates of this campaign are hits.
            self._keep(played, files)
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
            registry.hash + oracle.hash,
            {
                "name": registry.name,
                "hash": registry.hash,
                "oracle_hash": oracle.hash,
                "m": registry.m,
                "hits": oracle.hit_count,
                "contrary_hits": oracle.contrary_hit_count,
            },
        )
        self.yardsticks.append((outcome.twin_true, outcome.true))
        return Campaign(registry, oracle, seed, twin, outcome.true)

    def _play_arm(
        self, spec: AgentSpec, campaign: Campaign, files: RunFolder | None
    ) -> _Rows | None:
        """The rows of one campaign of one arm; None when it failed."""
        registry, oracle, seed = campaign.registry, campaign.oracle, campaign.seed
        try:
            proposer = spec.build(proposer_seed(oracle, seed))
            if proposer is self.last.get(spec.name):
                msg = (
                    f"The factory of agent {spec.name!r} returned the same object again; every "
                    "campaign needs a new one, since an answer may depend on its own views only."
                )
                raise AgentError(msg)
            self.last[spec.name] = proposer
            record = _play_guarded(proposer, campaign, self.protocol, spec.name)
        except ProposerFailed as failure:
            reason = plain_text(str(failure)) or "no reason given"
            failed = Failure(spec.name, registry.name, seed, reason)
            self.failures.append(failed)
            if files is not None:
                files.log("failed", **failed._asdict())
            return None
        scored = score(record, campaign.twin, oracle, self.certificate)
        key = {"arm": spec.name, "registry": registry.name, "seed": seed}
        kept = self.keep_reads or record.read_count <= KEPT_READS
        return _Rows(
            [key | record.to_json()] if kept else [],
            round_rows(key, record, registry),
            declaration_rows(key, campaign.registry, record, scored),
            [campaign_row(key, campaign, record, scored.outcome)],
        )

    def _keep(self, played: Sequence[_Rows], files: RunFolder | None) -> None:
        """Add rows to the result and, campaigns last, to the files."""
        for rows in played:
            mine = self.rows[rows.campaigns[0]["arm"]]
            for name in ("rounds", "declarations", "campaigns"):
                getattr(mine, name).extend(getattr(rows, name))
        if files is None:
            return
        for name in ("reads", "rounds", "declarations", "campaigns"):
            lines = [row for rows in played for row in getattr(rows, name)]
            if lines:
                files.append(name, lines)
        for rows in played:
            row = rows.campaigns[0]
            files.log("campaign", **{k: row[k] for k in ("arm", "registry", "seed")})

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
            twin=float(np.mean([twin for twin, _ in self.yardsticks])),
            reference=float(np.mean([best for _, best in self.yardsticks])),
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
    except (ProposerFailed, KeyboardInterrupt):
        raise
    # An agent's sys.exit() or cancellation is its mistake, not a reason to end the run unsaid.
    except BaseException as error:
        is_answer = isinstance(error, ProposalError)
        kind, place = ("", "") if is_answer else (f"{type(error).__name__}: ", _place(error))
        msg = (
            f"Agent {arm!r} broke in round {screen.round} of seed {campaign.seed}: "
            f"{kind}{plain_text(str(error))}{place}"
        )
        raise AgentError(msg) from error


def _place(error: BaseException) -> str:
    """Where an agent's exception was raised, as ` (my_agent.py, line 12)`."""
    ours = Path(__file__).resolve().parents[1]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_file() and ours not in path.resolve().parents:
            return f" ({path.name}, line {frame.lineno})"
    return ""

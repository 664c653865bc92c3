"""What a run plays, and the playing of one seed: every arm on it, its twin and its score.

A plan travels to other processes; a player lives in one and keeps nothing between seeds that could
change a campaign. Writes no file and prints nothing.
"""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from cads_env.campaign import open_screen, play
from cads_env.certificate import Certificate
from cads_env.errors import (
    AgentError,
    ProposalError,
    RecordError,
    RegistryError,
    ReplayError,
    RunError,
)
from cads_env.panel import Panel
from cads_env.proposer import Proposer, ProposerFailed
from cads_env.protocol import Protocol
from cads_env.record import Record
from cads_env.registry import Oracle, Registry, RelabelMode, relabel
from cads_env.run.agents import AgentSpec
from cads_env.run.executors.stopping import RunStopped
from cads_env.run.journal import CampaignJournal, MemoryJournal
from cads_env.run.journals import Journals
from cads_env.run.meter import NOTHING_SPENT, Spent
from cads_env.run.opened import OpenCampaigns
from cads_env.run.rows import (
    ROW_FILES,
    Campaign,
    Key,
    campaign_row,
    declaration_rows,
    failure_row,
    round_rows,
)
from cads_env.score import TWINS, play_reference, score
from cads_env.values import said

KEPT_READS: Final = 5_000
"""Reads of campaigns up to this size are stored; those of longer ones follow from the seed."""


class Task(NamedTuple):
    """A piece of work: some arms on one seed.

    Attributes:
        seed: The campaign seed.
        arms: Names of the arms still to be played.
        recorded: Arm and trace so far, where the worker does not reach the run's folder.
    """

    seed: int
    arms: tuple[str, ...]
    recorded: tuple[tuple[str, bytes], ...] = ()


class Played(NamedTuple):
    """What a task gave.

    Attributes:
        task: The task.
        registry: Name, hashes, size and description of the registry, JSON values.
        rows: Rows by kind, see `ROW_FILES`; of an arm either a campaign or a failure.
        spent: What its exchanges took in this attempt.
        traces: Arm and new lines of its trace, where the worker did not write them itself.
    """

    task: Task
    registry: dict[str, Any]
    rows: dict[str, list[dict[str, Any]]]
    spent: Spent = NOTHING_SPENT
    traces: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything that decides what a seed's campaigns are.

    Attributes:
        specs: The agents, one an arm.
        protocol: The common protocol.
        certificate: What judges the records.
        panel: Seed k plays `panel[k % len(panel)]`.
        identifiers: One of `RELABEL_MODES`; see `cads_env.relabel`.
        keep_reads: Store reads however many there are.
        expected: Public and private hash by registry name, of registries that campaigns were
            played on already; another content is refused.
    """

    specs: Sequence[AgentSpec]
    protocol: Protocol
    certificate: Certificate
    panel: Panel
    identifiers: RelabelMode
    keep_reads: bool
    expected: Mapping[str, tuple[str, str]] = field(default_factory=dict)


class Player:
    """Plays tasks of one plan, in several threads if need be; travels to other processes."""

    def __init__(self, plan: Plan, journals: Journals | None = None) -> None:
        """Nothing is loaded before the first task.

        Args:
            plan: What it plays.
            journals: Of the campaigns; None keeps them in memory.
        """
        self._plan = plan
        self._specs = {spec.name: spec for spec in plan.specs}
        self._journals = Journals() if journals is None else journals
        self._opened = OpenCampaigns(self._open, len(plan.specs))
        self._last: dict[str, Proposer] = {}
        self._lock = threading.Lock()
        self._loading = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without what was opened here."""
        return (Player, (self._plan, self._journals))

    def play(self, task: Task) -> Played:
        """Play the arms of a task and score them against the twin.

        Raises:
            AgentError: An agent raised an exception of its own, or is one object for several
                campaigns.
            RegistryError: The registry cannot be loaded or is not the one that the run began with.
            ReplayError: A campaign asks for something else than its record holds.
            RecordError: The record of a campaign is damaged.
            RunStopped: The run is to end.
        """
        campaign, info = self._opened.take(task.seed, len(task.arms))
        rows: dict[str, list[dict[str, Any]]] = {name: [] for name in ROW_FILES}
        recorded, spent, traces = dict(task.recorded), NOTHING_SPENT, []
        for arm in task.arms:
            key = Key(arm, campaign.registry.name, task.seed)
            journal = self._journals.open(key, recorded.get(arm, b""))
            self._play_arm(self._specs[arm], campaign, journal, rows)
            spent = spent.plus(journal.spent)
            if isinstance(journal, MemoryJournal) and journal.lines:
                traces.append((arm, b"".join(journal.lines)))
        return Played(task._replace(recorded=()), info, rows, spent, tuple(traces))

    def registry_of(self, seed: int) -> str:
        """Name of the registry that a seed plays."""
        names = self._plan.panel.names
        return names[seed % len(names)]

    def _open(self, seed: int) -> tuple[Campaign, dict[str, Any]]:
        plan = self._plan
        with self._loading:
            pair = plan.panel.for_seed(seed)
        check_content(pair, plan.expected)
        registry, oracle = relabel(*pair, plan.identifiers, seed)
        twin = TWINS.get(registry, oracle, plan.protocol, seed)
        best = play_reference(registry, oracle, plan.protocol, seed)
        outcome = score(best, twin, oracle, plan.certificate).outcome
        campaign = Campaign(registry, oracle, seed, twin, outcome.twin_true, outcome.true)
        info = describe(*pair) | plan.panel.told(seed % len(plan.panel))
        return campaign, info

    def _play_arm(
        self,
        spec: AgentSpec,
        campaign: Campaign,
        journal: CampaignJournal,
        rows: dict[str, list[dict[str, Any]]],
    ) -> None:
        registry, oracle, seed = campaign.registry, campaign.oracle, campaign.seed
        key = {"arm": spec.name, "registry": registry.name, "seed": seed}
        process = os.getpid()
        try:
            with _journalled(journal, key):
                proposer = spec.build(proposer_seed(oracle, seed), journal.ticket)
                self._check_new(proposer, spec.name)
                record = _play_guarded(proposer, campaign, self._plan.protocol, spec.name)
        except ProposerFailed as failure:
            reason = said(failure) or "no reason given"
            rows["failures"].append(failure_row(key, campaign, reason))
            return
        finally:
            if os.getpid() != process:
                # A copy of this process that the agent forked must not go on with the run.
                os._exit(1)
        scored = score(record, campaign.twin, oracle, self._plan.certificate)
        if self._plan.keep_reads or record.read_count <= KEPT_READS:
            rows["reads"].append(key | record.to_json())
        rows["rounds"] += round_rows(key, record, registry)
        rows["declarations"] += declaration_rows(key, registry, record, scored)
        judge = self._plan.certificate
        audit = None if judge.audit is None else judge.audit_outcome(record)
        rows["campaigns"].append(campaign_row(key, campaign, record, scored.outcome, audit))

    def _check_new(self, proposer: Proposer, arm: str) -> None:
        with self._lock:
            is_same = proposer is self._last.get(arm)
            self._last[arm] = proposer
        if is_same:
            msg = (
                f"The factory of agent {arm!r} returned the same object again; every "
                "campaign needs a new one, since an answer may depend on its own views only."
            )
            raise AgentError(msg)


@contextmanager
def _journalled(journal: CampaignJournal, key: Mapping[str, Any]) -> Iterator[None]:
    """End the journal with what is played; what is wrong with it is told with its campaign.

    An agent sees what its journal raises, so the journal itself names neither seed nor file.
    """
    failure: BaseException | None = None
    try:
        yield
    except BaseException as error:
        failure = error
        raise
    finally:
        try:
            journal.end(failure)
        except (ReplayError, RecordError, RunError, AgentError) as error:
            msg = f"Campaign {tuple(key.values())} ({journal.where}): {error}"
            raise type(error)(msg) from error


def describe(registry: Registry, oracle: Oracle) -> dict[str, Any]:
    """What a manifest says of a registry: JSON values, no effect and no label."""
    return {
        "name": registry.name,
        "hash": registry.hash,
        "oracle_hash": oracle.hash,
        "m": registry.m,
        "hits": oracle.hit_count,
        "contrary_hits": oracle.contrary_hit_count,
        "description": registry.description,
        "side_tables": {name: t.description for name, t in registry.side_tables.items()},
    }


def check_content(pair: tuple[Registry, Oracle], expected: Mapping[str, tuple[str, str]]) -> None:
    """Raise when a registry is not the one that the run began with.

    Raises:
        RegistryError: Another public or private hash.
    """
    registry, oracle = pair
    known = expected.get(registry.name)
    if known is not None and known != (registry.hash, oracle.hash):
        what = "names or side tables" if known[0] != registry.hash else "effects or labels"
        msg = (
            f"Registry {registry.name!r} has changed since the run began: other {what}. Campaigns "
            "on the two do not belong into one run; put the file back, give the salt of that run "
            "if it had one, or start a new folder."
        )
        raise RegistryError(msg)


def proposer_seed(oracle: Oracle, seed: int) -> int:
    """The seed that a factory gets in a campaign, 32 bits, as common generators take it."""
    return oracle.key("proposer", seed) >> 32


def _play_guarded(proposer: Proposer, campaign: Campaign, protocol: Protocol, arm: str) -> Record:
    screen = open_screen([(campaign.registry, campaign.oracle)], [campaign.seed], protocol)
    try:
        return play(screen, [proposer])[0]
    except (ProposerFailed, KeyboardInterrupt, RunStopped):
        raise
    # An agent's sys.exit() or cancellation is its mistake, not a reason to end the run unsaid.
    except BaseException as error:
        is_answer = isinstance(error, ProposalError)
        kind, place = ("", "") if is_answer else (f"{type(error).__name__}: ", _place(error))
        msg = (
            f"Agent {arm!r} broke in round {screen.round} of seed {campaign.seed}: "
            f"{kind}{said(error)}{place}"
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

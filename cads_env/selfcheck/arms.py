"""What is played in a self-check: arms, and the scenes that they are played in.

Arms are plain values that travel to other processes and build one proposer a campaign. An agent
that breaks is told apart from one that nets nothing. Plays nothing itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol as Interface

from cads_env.panel import Panel
from cads_env.proposer import Proposal, Proposer, View, as_proposal
from cads_env.protocol import Feedback
from cads_env.registry import Oracle, Registry, RelabelMode
from cads_env.run.agents import AgentSpec
from cads_env.run.plan import proposer_seed
from cads_env.selfcheck.rankings import FixedOrder, noisy_order, reverse_order
from cads_env.values import said


class Arm(Interface):
    """One proposer of a scene."""

    @property
    def name(self) -> str:
        """Its name, unique in its scene."""

    @property
    def feedback(self) -> Feedback | None:
        """The proposer's feedback, where it differs from the protocol's."""

    def build(self, registry: Registry, oracle: Oracle, seed: int) -> Proposer:
        """A new proposer for one campaign."""


@dataclass(frozen=True, kw_only=True)
class Noisy:
    """Ranks by the truth plus noise; sd 0 is perfect, infinity random."""

    name: str
    sd: float
    first_round: int = 0
    feedback: Feedback | None = None

    def build(self, registry: Registry, oracle: Oracle, seed: int) -> Proposer:
        """The ranking of this campaign."""
        order = noisy_order(registry, oracle, sd=self.sd, seed=seed)
        return FixedOrder(order, first_round=self.first_round)


@dataclass(frozen=True, kw_only=True)
class Reverse:
    """Ranks by the reverse of the truth: proposes the surest nulls."""

    name: str
    feedback: Feedback | None = None

    def build(self, registry: Registry, oracle: Oracle, seed: int) -> Proposer:
        """The ranking of this campaign."""
        return FixedOrder(reverse_order(registry, oracle))


@dataclass(frozen=True, kw_only=True)
class Listed:
    """Proposes a list that was written down before."""

    name: str
    names: tuple[str, ...] = field(repr=False)
    feedback: Feedback | None = None

    def build(self, registry: Registry, oracle: Oracle, seed: int) -> Proposer:
        """The list, less what the registry does not have."""
        return FixedOrder([name for name in self.names if name in registry.index])


@dataclass(frozen=True, kw_only=True)
class Installed:
    """An agent as anybody runs it."""

    name: str
    spec: AgentSpec
    feedback: Feedback | None = None

    def build(self, registry: Registry, oracle: Oracle, seed: int) -> Proposer:
        """A new agent, guarded."""
        return Guarded(self.spec, proposer_seed(oracle, seed), registry)


class Guarded:
    """An agent whose failure is kept as words, and whose campaign then counts for nothing."""

    def __init__(self, spec: AgentSpec, seed: int, registry: Registry) -> None:
        """Build the agent.

        Args:
            spec: Which agent.
            seed: Handed to its factory if that takes one.
            registry: Whose side tables it may need.
        """
        self.failure = ""
        self._agent: Proposer | None = None
        try:
            self._agent = spec.build(seed)
            spec.check_side_tables(self._agent, registry)
        except KeyboardInterrupt:
            raise
        # An agent of anybody's may raise what it likes; the self-check is about the protocol.
        except BaseException as error:
            self.failure = said(error) or type(error).__name__

    def propose(self, view: View) -> Proposal | Sequence[str]:
        """The agent's answer; nothing once it has failed."""
        if self._agent is None or self.failure:
            return ()
        try:
            return as_proposal(self._agent.propose(view))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.failure = f"{type(error).__name__}: {said(error)}"
            return ()


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Arms that are played on the same campaigns.

    Attributes:
        name: Its name, unique in a self-check.
        panel: Seed k plays `panel[k % len(panel)]`.
        seeds: Campaign seeds.
        arms: What is played beside the twin; may be empty.
        identifiers: "named" or "shuffled".
        keeps_names: Whether the hits and nulls that the arms declare are kept by name.
    """

    name: str
    panel: Panel
    seeds: range
    arms: tuple[Arm, ...] = ()
    identifiers: RelabelMode = "named"
    keeps_names: bool = False

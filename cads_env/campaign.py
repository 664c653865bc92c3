"""Play a campaign: ask, step, record. The one loop that env, runner, twin and verifier share.

Here a protocol's frozen numbers become the screen's rule of evidence. Never scores anything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cads_env.certificate import Certificate
from cads_env.certificate.cap import working_model
from cads_env.certificate.evidence import capped_log
from cads_env.channel import Channel
from cads_env.delivery import Answer, resolve
from cads_env.errors import RegistryError
from cads_env.proposer import Proposer, View, as_proposal
from cads_env.protocol import Protocol
from cads_env.record import RecordBatch
from cads_env.registry import Oracle, Registry
from cads_env.screen import EvidenceRule, Screen


def open_screen(
    pairs: Sequence[tuple[Registry, Oracle]], seeds: Sequence[int], protocol: Protocol
) -> Screen:
    """A screen of n campaigns at round 0.

    Args:
        pairs: Registry and oracle of each campaign, all of the same size.
        seeds: Campaign seeds, whole numbers from 0.
        protocol: The common protocol.

    Returns:
        The screen; play it with `play` or step it yourself.

    Raises:
        RegistryError: The registries differ in size, or none was given.
        ProtocolError: The contamination law does not exist or refuses its options.
    """
    sizes = {registry.m for registry, _ in pairs}
    if len(sizes) != 1 or len(pairs) != len(seeds):
        msg = (
            f"A screen plays campaigns of one registry size; received sizes {sorted(sizes)} for "
            f"{len(pairs)} registries and {len(seeds)} seeds. Play them apart."
        )
        raise RegistryError(msg)
    channel = Channel([oracle for _, oracle in pairs], seeds, protocol)
    rule = evidence_rule(protocol, sizes.pop())
    return Screen([registry for registry, _ in pairs], channel, protocol, rule)


def evidence_rule(protocol: Protocol, m: int) -> EvidenceRule | None:
    """The protocol's own evidence on a registry of size m; None when it uses none."""
    if protocol.rank_by != "log_evidence" and not protocol.graduation:
        return None
    frozen = Certificate(
        epsilon_bar=protocol.rank_epsilon_bar,
        theta=protocol.rank_theta,
        s=protocol.rank_s,
        q=protocol.rank_q,
    )
    return EvidenceRule(_Increments(frozen), math.log(m / frozen.q))


class _Increments:
    """Log increments under a certificate; a class, so that a screen can be pickled."""

    def __init__(self, certificate: Certificate) -> None:
        self._model = working_model(certificate.theta, certificate.s)
        self._log_cap = certificate.log_cap

    def __call__(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return capped_log(values, self._model, log_cap=self._log_cap)


def ask(proposer: Proposer, view: View, registry: Registry) -> Answer:
    """A proposer's answer to a view, resolved to registry indices.

    Raises:
        ProposalError: The answer is not a proposal.
        ProposerFailed: The proposer's infrastructure broke.
    """
    return resolve(as_proposal(proposer.propose(view)), registry.index)


def play(screen: Screen, proposers: Sequence[Proposer | None]) -> RecordBatch:
    """Play every remaining round.

    Args:
        screen: From `open_screen`.
        proposers: One a campaign, each its own instance; None proposes nothing.

    Returns:
        The records of the n campaigns.

    Raises:
        ProposalError: An answer is not a proposal.
        ProposerFailed: A proposer's infrastructure broke.
    """
    idle = all(proposer is None for proposer in proposers)
    while not screen.is_done:
        if idle:
            screen.step([None] * screen.n)
            continue
        screen.step(
            [
                None if proposer is None else ask(proposer, view, screen.registries[row])
                for row, (proposer, view) in enumerate(zip(proposers, screen.views(), strict=True))
            ]
        )
    return screen.records()

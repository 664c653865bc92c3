"""Plays campaigns to see whether a protocol's contamination law keeps the conditional bound.

Campaigns are played without a proposer. Never declares and never scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cads_env.campaign import evidence_rule, play
from cads_env.certificate.cap import contamination_bound
from cads_env.channel import Channel
from cads_env.contamination import BoundCheck, Watch
from cads_env.protocol import Protocol, load_protocol
from cads_env.record import RecordBatch
from cads_env.registry import Oracle, Registry
from cads_env.screen import Screen

_TOGETHER = 16
"""Campaigns played at once; no number depends on it."""


def play_watched(
    pairs: Sequence[tuple[Registry, Oracle]], seeds: Sequence[int], protocol: Protocol
) -> tuple[RecordBatch, Watch]:
    """Play campaigns without a proposer and watch their law.

    Args:
        pairs: Registry and oracle of each campaign, all of the same size.
        seeds: Campaign seeds, one each.
        protocol: The common protocol; its law must have `rates`.

    Returns:
        The records, the same as without a watch, and what was seen.

    Raises:
        ProtocolError: The law cannot be used, or does not say how likely contamination is.
    """
    registries = [registry for registry, _ in pairs]
    channel = Channel([oracle for _, oracle in pairs], seeds, protocol)
    watch = channel.law = Watch(channel.law, len(pairs))
    screen = Screen(registries, channel, protocol, evidence_rule(protocol, registries[0].m))
    return play(screen, [None] * len(pairs)), watch


def bound_check(
    pair: tuple[Registry, Oracle],
    protocol: str | Path | Mapping[str, Any] | Protocol,
    seeds: Sequence[int],
    *,
    epsilon_bar: float | None = None,
) -> BoundCheck:
    """Whether a protocol's law keeps the certificate's bound in played campaigns.

    What was played is what is known: a law that breaks the bound only after a rarer past passes.

    Args:
        pair: Registry and oracle.
        protocol: As `load_protocol` takes it; its law must have `rates`.
        seeds: Campaign seeds, at least one.
        epsilon_bar: The bound, in [0, 1]; None for that of the protocol's certificate.

    Returns:
        The largest conditional rate on nulls, the marginal rate and whether the bound held.

    Raises:
        ProtocolError: The law cannot be used, or does not say how likely contamination is.
        CertificateError: `epsilon_bar` is outside [0, 1].
    """
    rules = load_protocol(protocol)
    bound = rules.certificate.epsilon_bar if epsilon_bar is None else epsilon_bar
    bound = contamination_bound(bound)
    watches = []
    for start in range(0, len(seeds), _TOGETHER):
        some = list(seeds[start : start + _TOGETHER])
        watches.append(play_watched([pair] * len(some), some, rules)[1])
    reads = sum(int(watch.reads.sum()) for watch in watches)
    return BoundCheck(
        epsilon_bar=bound,
        largest_conditional_rate=float(max(watch.largest_rate.max() for watch in watches)),
        marginal_rate=sum(int(watch.contaminated.sum()) for watch in watches) / reads,
        expected_rate=float(np.concatenate([watch.expected for watch in watches]).sum()) / reads,
        reads=reads,
    )

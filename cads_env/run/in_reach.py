"""Whether proposals can be certified at all under a protocol, told before the first read.

Where it matters it plays the effect-ranked reference, which knows the truth: what it finds is for
whoever starts a run, never for an agent.
"""

from __future__ import annotations

from cads_env.certificate import Certificate
from cads_env.protocol import Protocol
from cads_env.registry import Oracle, Registry
from cads_env.run.result import reach_of
from cads_env.score import TWINS, play_reference, score


def leaves_no_slot(
    protocol: Protocol, certificate: Certificate, *, pair: tuple[Registry, Oracle], seed: int
) -> bool:
    """Whether every proposal slot comes too late to gather the reads that a declaration needs.

    As in the table of a run, a slot is early enough when its candidate can be declared beside as
    many as the effect-ranked reference declares.

    Args:
        protocol: The protocol.
        certificate: What judges.
        pair: Registry and oracle, as they are played.
        seed: The campaign seed for which the reference is played.
    """
    registry, oracle = pair
    if not _slots_until(protocol, protocol.rounds - 1, registry.m):
        # Nothing is proposed at all, as somebody wanted it.
        return False
    last = reach_of(protocol, certificate, 1.0, registry.m)
    if _slots_until(protocol, last, registry.m):
        return False
    best = play_reference(registry, oracle, protocol, seed)
    twin = TWINS.get(registry, oracle, protocol, seed)
    declared = score(best, twin, oracle, certificate).outcome.true
    last = reach_of(protocol, certificate, declared, registry.m)
    return not _slots_until(protocol, last, registry.m)


def _slots_until(protocol: Protocol, last: int, m: int) -> int:
    """Proposal slots of the rounds up to one; none when it is -1."""
    plans = protocol.plan(m)[: last + 1]
    return sum(protocol.slots_for(t, plan.fresh) for t, plan in enumerate(plans))

"""For people who write agents: a tiny registry, and a check of the contract that every agent keeps.

The messages of `check_agent` read as the contract. Never used by a run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cads_env.campaign import ask, open_screen
from cads_env.delivery import Answer
from cads_env.errors import AgentError, ProposalError
from cads_env.proposer import Proposer
from cads_env.protocol import Protocol
from cads_env.registry import Oracle, Registry, SideTable, relabel
from cads_env.run.agents import AgentSpec, resolve_agents
from cads_env.screen import Screen
from cads_env.tape import bits, candidate_words, derive_key, normals

SAME_VIEW = (
    "An answer depends on that campaign's views only: with the same seed and views a new instance "
    "must answer the same."
)
NO_POOLING = (
    "Instances share nothing: an answer must not change when another campaign is played beside it."
)


def tiny_registry(
    m: int = 60, hit_count: int = 12, *, seed: int = 0, name: str = "tiny"
) -> tuple[Registry, Oracle]:
    """A small made-up registry with the side tables `prior` and `module`.

    Args:
        m: Candidates, at least 2.
        hit_count: Hits, 1 to m - 1; effects between 0.2 and 2.
        seed: Which one.
        name: Its name.

    Returns:
        Registry and oracle.
    """
    key = np.array([derive_key("tiny-registry", seed=seed)], np.uint64)
    words = candidate_words(key, np.arange(m, dtype=np.int64))
    visits = np.zeros(m, np.int64)
    order = np.argsort(bits(words, visits, 0), kind="stable")
    signal = np.round(-0.3 - 0.2 * np.abs(normals(bits(words, visits, 1))), 4)
    signal[order[:hit_count]] = np.round(0.2 + 1.8 * (np.arange(hit_count) + 1) / hit_count, 4)
    prior = signal + normals(bits(words, visits, 2))
    modules = np.empty(m, dtype="<U8")
    modules[order] = [f"M{i // 5 + 1:02d}" for i in range(m)]
    registry = Registry(
        name,
        tuple(f"GENE{i + 1:03d}" for i in range(m)),
        f"A made-up screen of {m} candidates; a hit reads above 0.",
        {
            "prior": SideTable("noisy score, higher = more promising", prior),
            "module": SideTable("group label", modules),
        },
    )
    return registry, Oracle(signal, signal > 0, name, seed)


def tiny_protocol(**changes: object) -> Protocol:
    """A protocol for tiny registries: 5 rounds of 6, 4, 4, ... fresh slots, with re-reads."""
    fields: dict[str, object] = {
        "name": "tiny",
        "rounds": 5,
        "first_fresh": 6,
        "fresh": 4,
        "reread_candidates": 3,
        "reads_each": 2,
        "rank_by": "log_evidence",
        "graduation": True,
    }
    return Protocol(**(fields | changes))  # type: ignore[arg-type]


def check_agent(agent: object, *, deterministic: bool = True, seed: int = 0) -> None:
    """Raise unless an agent keeps the contract of a proposer.

    It is built as in a run, asked in small campaigns under every feedback, with a quota, on an
    exhausted registry, and beside another campaign.

    Args:
        agent: What `evaluate` takes: a name, `module:Class`, path, class or factory.
        deterministic: Whether the same seed and views must give the same answers; turn it off for
            an agent that samples from a server.
        seed: The seed handed to the agent.

    Raises:
        AgentError: Says which part of the contract is broken, and where.
    """
    for spec in resolve_agents(agent):
        probe = spec.build(seed)
        pair = tiny_registry()
        spec.check_side_tables(probe, pair[0])
        # Before any other campaign, so that state left behind by one shows in the last ones.
        first = _answers(spec, pair, tiny_protocol(), seed)
        for mode in ("none", "permuted"):
            _answers(spec, pair, tiny_protocol(feedback_proposer=mode), seed)
        _answers(spec, pair, tiny_protocol(quota=2, first_quota=1), seed)
        _answers(spec, pair, tiny_protocol(quota=0), seed)
        _answers(spec, tiny_registry(12, 3), tiny_protocol(), seed)
        _answers(spec, relabel(*pair, "shuffled", 1), tiny_protocol(), seed)
        if deterministic:
            _check_determinism(spec, pair, seed, first)


def _check_determinism(
    spec: AgentSpec, pair: tuple[Registry, Oracle], seed: int, first: list[Sequence[str]]
) -> None:
    protocol = tiny_protocol()
    if _answers(spec, pair, protocol, seed) != first:
        msg = f"Agent {spec.name!r}: {SAME_VIEW}"
        raise AgentError(msg)
    other = open_screen([tiny_registry(seed=1)], [1], protocol)
    companion = spec.build(seed + 1)
    if _answers(spec, pair, protocol, seed, beside=(other, companion)) != first:
        msg = f"Agent {spec.name!r}: {NO_POOLING}"
        raise AgentError(msg)


def _answers(
    spec: AgentSpec,
    pair: tuple[Registry, Oracle],
    protocol: Protocol,
    seed: int,
    beside: tuple[Screen, Proposer] | None = None,
) -> list[Sequence[str]]:
    """What the agent proposes, round by round."""
    screen = open_screen([pair], [0], protocol)
    agent = spec.build(seed)
    given: list[Sequence[str]] = []
    while not screen.is_done:
        answer = _ask(spec, agent, screen)
        given.append(tuple(answer.names))
        screen.step([answer])
        if beside is not None and not beside[0].is_done:
            beside[0].step([_ask(spec, beside[1], beside[0])])
    return given


def _ask(spec: AgentSpec, agent: Proposer, screen: Screen) -> Answer:
    try:
        return ask(agent, screen.views()[0], screen.registries[0])
    except ProposalError as error:
        msg = f"Agent {spec.name!r}, round {screen.round}: {error}"
        raise AgentError(msg) from error
    except (Exception, SystemExit) as error:
        msg = (
            f"Agent {spec.name!r} raised {type(error).__name__} in round {screen.round} under "
            f"{screen.protocol.name!r}: {error}. A proposer answers every view."
        )
        raise AgentError(msg) from error

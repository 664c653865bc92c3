"""Screens of the project's own engine on a registry without findable hits, judged every round.

The re-selection of the protocol is the adversary here: it reads again what read high. Campaigns
stop, for the count, at the first round after which a null is declared. Never declares by a rule of
its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from cads_env.campaign import open_screen
from cads_env.certificate import Certificate
from cads_env.errors import StudyError
from cads_env.protocol import load_protocol
from cads_env.record import RecordBatch
from cads_env.registry import Oracle, Registry
from cads_env.studies.validity_adversary import Outcome
from cads_env.studies.validity_rules import RULES, Ints

_HIDDEN_HIT: Final = -10.0
"""Signal of the one hit that a registry must have: no read of it speaks for it."""


def screened(
    scenario: Mapping[str, Any], rule: str, certificate: Certificate, seeds: Sequence[int]
) -> list[Outcome]:
    """Play the protocol on nulls at u = 0 and judge after every round.

    Args:
        scenario: `name`, `candidates`, `protocol`, `changes` of the protocol, `epsilon`, `law` and
            `law_options`.
        rule: A name in `RULES`; one that caps all reads or none.
        certificate: What the rule is told.
        seeds: Campaign seeds.

    Returns:
        One outcome a campaign.

    Raises:
        StudyError: The rule cannot judge a record.
        ProtocolError: A change of the protocol is refused.
    """
    protocol = load_protocol(
        scenario["protocol"],
        **scenario["changes"],
        epsilon=scenario["epsilon"],
        law=scenario["law"],
        law_options=scenario["law_options"],
    )
    pair = null_registry(scenario["name"], scenario["candidates"])
    screen = open_screen([pair] * len(seeds), list(seeds), protocol)
    hits = pair[1].labels
    false, declared, reads = (np.zeros(len(seeds), np.int64) for _ in range(3))
    while not screen.is_done:
        screen.step([None] * screen.n)
        for row, found in enumerate(_declared(screen.records(), rule, certificate)):
            if not false[row]:
                false[row], declared[row] = np.count_nonzero(~hits[found]), found.size
                reads[row] = screen.read_count
    return [
        Outcome(*counts)
        for counts in zip(false.tolist(), declared.tolist(), reads.tolist(), strict=True)
    ]


def _declared(batch: RecordBatch, rule: str, certificate: Certificate) -> list[Ints]:
    judge = RULES[rule]
    if judge.naive or judge.family != "registry" or judge.capped not in ("all", "none"):
        msg = f"Rule {rule!r} does not judge records; expected cads or no-cap."
        raise StudyError(msg)
    if judge.capped == "none":
        certificate = dataclasses.replace(certificate, epsilon_bar=0.0, audit=None)
    return [declaration.indices for declaration in certificate.declare_batch(batch)]


@lru_cache(maxsize=4)
def null_registry(name: str, m: int) -> tuple[Registry, Oracle]:
    """A registry of m - 1 nulls at u = 0 and one hit that no read speaks for.

    Args:
        name: Names the random streams.
        m: Number of candidates, at least 2.

    Returns:
        The pair.
    """
    labels = np.arange(m) == m - 1
    codes = tuple(f"N{i + 1:05d}" for i in range(m))
    panel = f"validity/{name}"
    signal = np.where(labels, _HIDDEN_HIT, 0.0)
    return Registry(panel, codes, "Nulls at u = 0."), Oracle(signal, labels, panel)

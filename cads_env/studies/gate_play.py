"""The campaigns of the gate study: one arm under several feedbacks on the same seeds.

All feedbacks of a seed are columns of one row, so that paired contrasts are columns too. The
effect-ranked arm knows the truth and is no agent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cads_env.campaign import open_screen, play
from cads_env.certificate import Certificate
from cads_env.protocol import Protocol, load_protocol
from cads_env.record import PROPOSER, Record
from cads_env.registry import Oracle, Registry
from cads_env.run.agents import resolve_agents
from cads_env.run.plan import proposer_seed
from cads_env.score import play_reference
from cads_env.studies.registries import registry_of
from cads_env.studies.study import Row

NOTHING: Final = "nothing"
"""The arm without a proposer: the twin of all others."""

EFFECT_RANKED: Final = "effect-ranked"
"""The arm that proposes by the true signal: what no agent can beat by knowing more."""

MODES: Final[Mapping[str, Mapping[str, str]]] = {
    "full": {"feedback": "full"},
    "none": {"feedback": "none"},
    "permuted": {"feedback": "permuted"},
    "split": {"feedback_proposer": "permuted", "feedback_reselection": "full"},
}
"""Feedbacks by name: of both at once, and `split`, where the proposer's alone is permuted."""


def play_cell(settings: Mapping[str, Any], seeds: Sequence[int]) -> list[Row]:
    """The rows of some seeds of one arm.

    Args:
        settings: `registry`, `protocol`, `arm` (`nothing`, `effect-ranked` or an agent's name) and
            `modes`, names of `MODES` that begin with `full`.
        seeds: Campaign seeds.

    Returns:
        A row a seed. For each mode: `true_MODE` and `false_MODE` (declared hits and nulls),
        `most_reads_MODE` (of one candidate) and, but for full, `full_minus_MODE`. Of full also
        `declared`, `slots` (accepted proposals), `twin` (the twin's declared hits), `net`, and
        `precision` (share of hits among accepted proposals; 0 of none).
    """
    pair = registry_of(settings["registry"])
    full = load_protocol(settings["protocol"])
    judge = Certificate(**full.certificate._asdict())
    rows: list[dict[str, float]] = [{} for _ in seeds]
    for mode in settings["modes"]:
        protocol = full.override(**MODES[mode])
        for row, record in zip(rows, _records(settings["arm"], pair, protocol, seeds), strict=True):
            _judge(row, mode, record, pair[1], judge)
    is_twin = settings["arm"] == NOTHING
    twins = [None for _ in seeds] if is_twin else _records(NOTHING, pair, full, seeds)
    for row, twin in zip(rows, twins, strict=True):
        row["twin"] = row["true_full"] if twin is None else _declared(twin, pair[1], judge)[0]
        row["net"] = row["true_full"] - row["twin"]
        for mode in settings["modes"][1:]:
            row[f"full_minus_{mode}"] = row["true_full"] - row[f"true_{mode}"]
    return list(rows)


def _records(
    arm: str, pair: tuple[Registry, Oracle], protocol: Protocol, seeds: Sequence[int]
) -> list[Record]:
    if arm == EFFECT_RANKED:
        return [play_reference(*pair, protocol, seed) for seed in seeds]
    screen = open_screen([pair] * len(seeds), list(seeds), protocol)
    if arm == NOTHING:
        batch = play(screen, [None] * len(seeds))
    else:
        spec = resolve_agents(arm)[0]
        batch = play(screen, [spec.build(proposer_seed(pair[1], seed)) for seed in seeds])
    return [batch[row] for row in range(len(seeds))]


def _judge(
    row: dict[str, float], mode: str, record: Record, oracle: Oracle, judge: Certificate
) -> None:
    true, false = _declared(record, oracle, judge)
    row[f"true_{mode}"], row[f"false_{mode}"] = true, false
    row[f"most_reads_{mode}"] = int(record.counts.max())
    if mode == "full":
        proposed = record.candidates[record.origins == PROPOSER]
        row["declared"], row["slots"] = true + false, proposed.size
        row["precision"] = float(oracle.labels[proposed].mean()) if proposed.size else 0.0


def _declared(record: Record, oracle: Oracle, judge: Certificate) -> tuple[int, int]:
    """Hits and nulls that are declared."""
    found = judge.declare(record).indices
    true = int(oracle.labels[found].sum())
    return true, found.size - true


def reads_needed(m: int, k: float, judge: Certificate) -> int:
    """The fewest reads by which a candidate can be declared along with k - 1 others.

    Source: CADS, eqs. (3) to (5): n reads give at most n ln C* of the ln(m / (q k)) needed.
    """
    return max(1, math.ceil(judge.log_bar(m, k) / judge.log_cap))


def candidates_needed(m: int, reads: float, judge: Certificate) -> int:
    """How many must be declared together if none has more than so many reads.

    Each of them must then have every read at or above the cap.

    Source: CADS, eqs. (3) to (5), solved for k.
    """
    return max(1, math.ceil(math.exp(judge.log_bar(m, 1.0) - reads * judge.log_cap)))

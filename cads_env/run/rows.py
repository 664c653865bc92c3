"""The rows of a run's files and frames: one a campaign, a round, a declared candidate, a failure.

JSON values only. Formats what a record and its score hold; decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, Final, NamedTuple

from cads_env.certificate import AuditOutcome
from cads_env.delivery import ACCEPTED
from cads_env.record import ORIGINS, PROPOSER, Delivery, Record
from cads_env.registry import Oracle, Registry
from cads_env.score import Outcome, Scored

ROW_FILES: Final = ("reads", "rounds", "declarations", "campaigns", "failures")
"""Kinds of rows, each a file `<kind>.jsonl`, in the order in which they are written: what says that
a campaign is done comes after all that belongs to it."""

CAMPAIGN_COLUMNS: Final = [
    "arm", "registry", "seed", "m", "hits", *(f.name for f in fields(Outcome)), "reference_true",
    "reads", "observed", *Delivery.COUNTS, "registry_hash", "reads_sha256", "twin_reads_sha256",
]  # fmt: skip
AUDIT_COLUMNS: Final = ["audit_flags", "audit_bound"]
"""Further columns of the campaigns of a run whose certificate has an audit."""

ROUND_COLUMNS: Final = [
    "arm", "registry", "seed", "round", "reads", *Delivery.COUNTS, "proposed",
    "accepted_identifiers", "refused", "usage", "text",
]  # fmt: skip
DECLARATION_COLUMNS: Final = [
    "arm", "registry", "seed", "identifier", "is_hit", "log_e", "reads", "first_round",
    "origin", "in_twin",
]  # fmt: skip
FAILURE_COLUMNS: Final = [
    "arm", "registry", "seed", "reason", "m", "hits", "twin_true", "reference_true",
]  # fmt: skip


class Key(NamedTuple):
    """What names a campaign within a run.

    Attributes:
        arm: Its arm.
        registry: Name of its registry.
        seed: Its seed.
    """

    arm: str
    registry: str
    seed: int

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Key:
        """The key of a row of any kind."""
        return cls(row["arm"], row["registry"], row["seed"])


def planned_keys(config: Mapping[str, Any]) -> list[Key]:
    """Every campaign of a run, in the order of its files: by seed, then by arm.

    Args:
        config: The part `config` of its manifest.
    """
    panel = config["registries"]
    arms = [entry["arm"] for entry in config["agents"]]
    return [Key(arm, panel[s % len(panel)], s) for s in config["seeds"] for arm in arms]


def is_audited(config: Mapping[str, Any]) -> bool:
    """Whether a run judged by controls.

    Args:
        config: The part `config` of its manifest.
    """
    return config["certificate"].get("audit") is not None


def campaign_columns(config: Mapping[str, Any]) -> list[str]:
    """The columns of the rows of `campaigns.jsonl` of a run, in order.

    Args:
        config: The part `config` of its manifest.
    """
    return [*CAMPAIGN_COLUMNS, *AUDIT_COLUMNS] if is_audited(config) else CAMPAIGN_COLUMNS


class Campaign(NamedTuple):
    """One (registry, seed), with what every arm on it is compared with.

    Attributes:
        registry: The public half.
        oracle: The private half.
        seed: The campaign seed.
        twin: The twin's record.
        twin_true: Hits that the twin declares.
        reference_true: Hits that the effect-ranked reference declares.
    """

    registry: Registry
    oracle: Oracle
    seed: int
    twin: Record
    twin_true: int
    reference_true: int


def campaign_row(
    key: Mapping[str, Any],
    campaign: Campaign,
    record: Record,
    outcome: Outcome,
    audit: AuditOutcome | None = None,
) -> dict[str, Any]:
    """The row of `campaigns.jsonl`.

    Args:
        key: Arm, registry and seed.
        campaign: What the arm is compared with.
        record: The arm's record.
        outcome: Its score.
        audit: What its controls said, where the certificate judges by them.
    """
    found = (
        {} if audit is None else {"audit_flags": audit.flag_count, "audit_bound": audit.final_bound}
    )
    delivered = {
        name: sum(getattr(d, name) for d in record.deliveries)
        for name in record.deliveries[0].COUNTS
    }
    return {
        **key,
        "m": record.m,
        "hits": campaign.oracle.hit_count,
        **asdict(outcome),
        "reference_true": campaign.reference_true,
        "reads": record.read_count,
        "observed": int(record.candidates.size),
        **delivered,
        "registry_hash": campaign.registry.hash,
        "reads_sha256": record.sha256,
        "twin_reads_sha256": campaign.twin.sha256,
        **found,
    }


def failure_row(key: Mapping[str, Any], campaign: Campaign, reason: str) -> dict[str, Any]:
    """The row of `failures.jsonl` of a campaign whose proposer's infrastructure broke."""
    return {
        **key,
        "reason": reason,
        "m": campaign.registry.m,
        "hits": campaign.oracle.hit_count,
        "twin_true": campaign.twin_true,
        "reference_true": campaign.reference_true,
    }


def round_rows(key: Mapping[str, Any], record: Record, registry: Registry) -> list[dict[str, Any]]:
    """The rows of `rounds.jsonl` of one campaign."""
    rows = []
    first_rounds = record.first_rounds
    for round, delivery in enumerate(record.deliveries):
        start, stop = record.round_starts[round : round + 2].tolist()
        entries = delivery.entries
        # From the candidates, not from the entries: those are cut to what a record lists.
        named = (first_rounds == round) & (record.origins == PROPOSER)
        accepted = [registry.identifiers[i] for i in record.candidates[named].tolist()]
        rows.append(
            {
                **key,
                "round": round,
                "reads": stop - start,
                **delivery.counts(),
                "proposed": [name for name, _ in entries],
                "accepted_identifiers": accepted,
                "refused": [[name, what] for name, what in entries if what != ACCEPTED],
                "usage": dict(delivery.usage or {}),
                "text": delivery.text,
            }
        )
    return rows


def declaration_rows(
    key: Mapping[str, Any], registry: Registry, record: Record, scored: Scored
) -> list[dict[str, Any]]:
    """The rows of `declarations.jsonl` of one campaign."""
    position = {candidate: i for i, candidate in enumerate(record.candidates.tolist())}
    counts, first = record.counts, record.first_rounds
    declaration = scored.declaration
    columns = (declaration.indices, declaration.log_e, scored.is_hit, scored.in_twin)
    rows = []
    for index, log_e, is_hit, in_twin in zip(*(c.tolist() for c in columns), strict=True):
        at = position[index]
        rows.append(
            {
                **key,
                "identifier": registry.identifiers[index],
                "is_hit": is_hit,
                "log_e": log_e,
                "reads": int(counts[at]),
                "first_round": int(first[at]),
                "origin": ORIGINS[int(record.origins[at])],
                "in_twin": in_twin,
            }
        )
    return rows

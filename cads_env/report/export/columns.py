"""The columns of the exported tables: type and meaning of each.

The order of columns is that of a run's own files; this module adds what JSON does not say. It holds
no data and reads no file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from cads_env.errors import InvariantError
from cads_env.report.llm.asked import RETRIES
from cads_env.report.llm.attempts import ATTEMPT_COLUMNS
from cads_env.run.rows import (
    AUDIT_COLUMNS,
    CAMPAIGN_COLUMNS,
    DECLARATION_COLUMNS,
    FAILURE_COLUMNS,
    ROUND_COLUMNS,
)

Kind = Literal["text", "integer", "real", "flag", "free text", "json", "texts", "text pairs"]
"""What a cell holds. "text" is a name that a registry or the user gave; "free text" is whatever an
agent or a server said; "json" is a mapping, kept as JSON text; "texts" is a list of text and "text
pairs" a list of two-entry lists of text."""

KEY: Final = ("arm", "registry", "seed")
"""The columns that name a campaign in every table."""


class Column(NamedTuple):
    """One column.

    Attributes:
        name: Its name, as in the run's own files.
        kind: What its cells hold.
        meaning: One sentence for a reader who knows the README's glossary.
    """

    name: str
    kind: Kind
    meaning: str


class TableColumns(NamedTuple):
    """One table.

    Attributes:
        name: File name without its ending.
        meaning: What a row is.
        columns: Its columns in order.
    """

    name: str
    meaning: str
    columns: tuple[Column, ...]


_KEY_MEANINGS: Final[Mapping[str, tuple[Kind, str]]] = MappingProxyType(
    {
        "arm": ("text", "The arm: agent and settings."),
        "registry": ("text", "Name of the registry."),
        "seed": ("integer", "Seed of the campaign."),
    }
)

_DELIVERY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "fresh_slots": "Candidates read for the first time.",
        "proposal_slots": "Slots open to the proposer.",
        "raw": "Entries of the proposer's answers.",
        "valid": "Entries that name an untested candidate for the first time.",
        "invalid": "Entries that name no candidate.",
        "duplicate": "Entries that repeat an earlier entry of the same answer.",
        "already_tested": "Entries that name a candidate read in an earlier round.",
        "over_delivered": "Valid entries beyond the slots.",
        "accepted": "Valid entries that got a slot.",
        "fallback": "Slots filled by the seeded fallback.",
        "unspent": "Reads that no rule could place.",
        "attempts": "Tries that the answers took.",
    }
)

_OUTCOME: Final[Mapping[str, str]] = MappingProxyType(
    {
        "m": "Candidates of the registry.",
        "hits": "Hits among them.",
        "tested_hits": "Hits among the candidates read.",
        "proposed_hits": "Hits among the accepted proposals.",
        "declared": "Candidates declared.",
        "true": "Declared hits.",
        "false": "Declared nulls.",
        "twin_true": "Declared hits of the twin.",
        "twin_false": "Declared nulls of the twin.",
        "net": "true - twin_true.",
        "gained": "Hits declared by the arm and not by its twin.",
        "lost": "Hits declared by the twin and not by the arm.",
        "shared": "Hits declared by both.",
        "originated": "Declared hits that the proposer named first.",
        "by_fallback": "Declared hits that the fallback drew first.",
        "displaced": "twin_true - by_fallback; may be negative.",
        "naive_true": "Hits that naive BH declares on the same reads.",
        "naive_false": "Nulls that naive BH declares on the same reads.",
        "reference_true": "Hits that the effect-ranked reference declares.",
        "reads": "Reads of the campaign.",
        "observed": "Candidates read at least once.",
    }
)


def _counts(meanings: Mapping[str, str]) -> dict[str, tuple[Kind, str]]:
    return {name: ("integer", meaning) for name, meaning in meanings.items()}


_CAMPAIGNS: Final[Mapping[str, tuple[Kind, str]]] = {
    **_KEY_MEANINGS,
    **_counts(_OUTCOME),
    **_counts(_DELIVERY),
    "registry_hash": ("text", "SHA-256 of the registry's public part."),
    "reads_sha256": ("text", "SHA-256 of the record's reads."),
    "twin_reads_sha256": ("text", "SHA-256 of the reads of the twin's record."),
}
_AUDIT: Final[Mapping[str, tuple[Kind, str]]] = {
    "audit_flags": ("integer", "Controls that the audit flagged."),
    "audit_bound": ("real", "Bound of the contamination probability after all controls."),
}
_ROUNDS: Final[Mapping[str, tuple[Kind, str]]] = {
    **_KEY_MEANINGS,
    "round": ("integer", "Round, from 0."),
    "reads": ("integer", "Reads of the round."),
    **_counts(_DELIVERY),
    "proposed": ("texts", "Entries of the answer in generation order."),
    "accepted_identifiers": (
        "texts",
        "Candidates that got a slot because the proposer named them.",
    ),
    "refused": ("text pairs", "Entries that got no slot, each with the reason."),
    "usage": ("json", "Counts that the proposer reported, such as tokens: a JSON object."),
    "text": ("free text", "Raw text of the answer."),
}
_DECLARATIONS: Final[Mapping[str, tuple[Kind, str]]] = {
    **_KEY_MEANINGS,
    "identifier": ("text", "The declared candidate."),
    "is_hit": ("flag", "Whether it is a hit."),
    "log_e": ("real", "Natural logarithm of its evidence."),
    "reads": ("integer", "Reads of the candidate."),
    "first_round": ("integer", "Round in which it was first read."),
    "origin": ("text", "Who first proposed it: proposer or fallback."),
    "in_twin": ("flag", "Whether the twin declares it too."),
}
_READS: Final[Mapping[str, tuple[Kind, str]]] = {
    **_KEY_MEANINGS,
    "candidate": ("integer", "Position of the candidate in the registry, from 0."),
    "origin": ("text", "Who first proposed the candidate: proposer or fallback."),
    "round": ("integer", "Round of the read, from 0."),
    "value": ("real", "The read, in units of the effect."),
}
_FAILURES: Final[Mapping[str, tuple[Kind, str]]] = {
    **_KEY_MEANINGS,
    "reason": ("free text", "What the proposer said when its infrastructure broke."),
    **_counts({name: _OUTCOME[name] for name in ("m", "hits", "twin_true", "reference_true")}),
}

_ATTEMPTS: Final[Mapping[str, tuple[Kind, str]]] = {
    **_KEY_MEANINGS,
    "status": ("text", "Of its campaign: scored, failed or unfinished; entries of scored ones."),
    "round": ("integer", "Round, from 0; -1 for requests that name none."),
    "attempt": ("integer", "Try of the round's answer, from 1."),
    "requested": ("integer", "Slots still to be filled when the try began."),
    **_counts({name: _DELIVERY[name] for name in _DELIVERY if name in ATTEMPT_COLUMNS}),
    "unparsed": ("integer", "1 for an answer with text but no entry."),
    "empty": ("integer", "Answers without text."),
    "cut": ("integer", "Answers that ended at the most tokens."),
    "fallback": ("integer", "Slots of the round filled by the fallback, on its last try."),
    "requests": ("integer", "Requests of the try."),
    "failed_requests": ("integer", "Requests that broke for good."),
    "overflows": ("integer", "Requests that were too long for the model."),
    **{f"retries_{kind}": ("integer", f"Retries after failures: {kind}.") for kind in RETRIES},
    "tokens_in": ("integer", "Tokens of the requests."),
    "tokens_out": ("integer", "Tokens of the answers."),
    "tokens_cached": ("integer", "Tokens of the requests that the server had in its cache."),
    "uncounted": ("integer", "Answers whose tokens the server did not tell; they stand as 0."),
    "unpriced": ("integer", "Answers for which no price is known; their cost stands as 0."),
    "latency_s": ("real", "Seconds from request to answer, waits included."),
    "cost": ("real", "By the price table of the run; 0 where no price is known."),
    "finish_reason": ("free text", "How the last answer ended, as the server said."),
    "model": ("free text", "The model, as the server reported it."),
    "fingerprint": ("free text", "Fingerprint of the server."),
}


def tables(*, is_audited: bool = False, has_traces: bool = False) -> dict[str, TableColumns]:
    """Every table that an export can hold, by name.

    Args:
        is_audited: Whether the run's certificate had an audit, so that campaigns tell of it.
        has_traces: Whether the run left traces, so that there are attempts to tell of.

    Raises:
        InvariantError: A column of a run's files is not described here.
    """
    asked = _table("attempts", "One row a try of a round's answer.", ATTEMPT_COLUMNS, _ATTEMPTS)
    return {
        table.name: table
        for table in (
            _table(
                "campaigns",
                "One row a scored campaign of an arm.",
                [*CAMPAIGN_COLUMNS, *AUDIT_COLUMNS] if is_audited else CAMPAIGN_COLUMNS,
                {**_CAMPAIGNS, **_AUDIT},
            ),
            _table("rounds", "One row a round of a scored campaign.", ROUND_COLUMNS, _ROUNDS),
            _table(
                "declarations", "One row a declared candidate.", DECLARATION_COLUMNS, _DECLARATIONS
            ),
            _table("reads", "One row a read, in time order.", list(_READS), _READS),
            _table("failures", "One row a failed campaign.", FAILURE_COLUMNS, _FAILURES),
            *((asked,) if has_traces else ()),
        )
    }


def _table(
    name: str,
    meaning: str,
    columns: Sequence[str],
    described: Mapping[str, tuple[Kind, str]],
) -> TableColumns:
    missing = [column for column in columns if column not in described]
    if missing:
        msg = f"The export does not know the columns {', '.join(missing)} of {name}; report this."
        raise InvariantError(msg)
    return TableColumns(name, meaning, tuple(Column(c, *described[c]) for c in columns))

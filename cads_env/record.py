"""What a campaign leaves: its reads, and per round what was proposed and what became of it.

Certificates, comparators, scores, twins and reports are functions of a record. A record never holds
an effect or a label; its values are reads. Its JSON form carries a schema version.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cads_env.errors import RecordError

SCHEMA_VERSION: Final = 1
"""Version of the JSON forms of records and run files."""

FALLBACK: Final = 0
"""Origin code: first read because the seeded fallback filled a slot."""
PROPOSER: Final = 1
"""Origin code: first read because the proposer named it."""
ORIGINS: Final = ("fallback", "proposer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What one round asked of the proposer and what it got, counted by the screen alone.

    Identities: raw = valid + invalid + duplicate + already_tested; valid = accepted +
        over_delivered;
    fresh_slots = accepted + fallback.

    Attributes:
        fresh_slots: Candidates read for the first time in the round.
        proposal_slots: Slots open to the proposer (fresh slots, capped by the quota).
        raw: Entries of the answer.
        valid: Entries that name an untested candidate for the first time.
        invalid: Entries that name no candidate.
        duplicate: Entries that repeat an earlier entry of the same answer.
        already_tested: Entries that name a candidate read in an earlier round.
        over_delivered: Valid entries beyond the slots.
        accepted: Valid entries that got a slot.
        fallback: Slots filled by the seeded fallback.
        unspent: Reads that no rule could place.
        attempts: Tries that the answer took.
        entries: The answer in generation order, (identifier, what became of it).
        usage: Token and other counts that the proposer reported.
        text: The raw text of the answer.
    """

    fresh_slots: int
    proposal_slots: int
    raw: int = 0
    valid: int = 0
    invalid: int = 0
    duplicate: int = 0
    already_tested: int = 0
    over_delivered: int = 0
    accepted: int = 0
    fallback: int = 0
    unspent: int = 0
    attempts: int = 0
    entries: tuple[tuple[str, str], ...] = ()
    usage: Mapping[str, float] | None = None
    text: str = ""

    COUNTS = (
        "fresh_slots",
        "proposal_slots",
        "raw",
        "valid",
        "invalid",
        "duplicate",
        "already_tested",
        "over_delivered",
        "accepted",
        "fallback",
        "unspent",
        "attempts",
    )

    def counts(self) -> dict[str, int]:
        """The counts by name."""
        return {name: getattr(self, name) for name in self.COUNTS}


def _no_controls() -> NDArray[np.float64]:
    return np.empty(0)


def _no_starts() -> NDArray[np.int64]:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The reads and deliveries of one campaign.

    Attributes:
        m: Registry size.
        candidates: Registry index of each observed candidate, in first-read order, shape (K,).
        origins: Who first proposed it, `FALLBACK` or `PROPOSER`, shape (K,).
        slots: Position in `candidates` of each read, in time order, shape (R,).
        values: The reads, shape (R,), in units of the effect.
        round_starts: First read of each round and the end, shape (T + 1,).
        deliveries: One entry a round, T of them.
        audit_values: Reads of the controls revealed so far, in their order, shape (A,); apart from
            `values`, and empty without an audit.
        audit_starts: Controls revealed before each round, shape (T,): at first 0, or A where all
            come before round 0; what is not revealed before the last round is revealed at its end.
            Empty without an audit.
    """

    m: int
    candidates: NDArray[np.int64]
    origins: NDArray[np.int8]
    slots: NDArray[np.int32]
    values: NDArray[np.float64]
    round_starts: NDArray[np.int64]
    deliveries: tuple[Delivery, ...] = ()
    audit_values: NDArray[np.float64] = field(default_factory=_no_controls)
    audit_starts: NDArray[np.int64] = field(default_factory=_no_starts)

    @property
    def read_count(self) -> int:
        """Number of reads; controls are not among them."""
        return int(self.values.size)

    @property
    def is_audited(self) -> bool:
        """Whether the campaign had controls."""
        return bool(self.audit_starts.size)

    @property
    def read_rounds(self) -> NDArray[np.int64]:
        """Round of each read, shape (R,)."""
        lengths = np.diff(self.round_starts)
        return np.repeat(np.arange(lengths.size, dtype=np.int64), lengths)

    @property
    def first_rounds(self) -> NDArray[np.int64]:
        """Round in which each observed candidate was first read, shape (K,)."""
        _, first = np.unique(self.slots, return_index=True)
        return self.read_rounds[first]

    @property
    def counts(self) -> NDArray[np.int64]:
        """Reads of each observed candidate, shape (K,)."""
        return np.bincount(self.slots, minlength=self.candidates.size)

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean read of each observed candidate, shape (K,)."""
        sums = np.bincount(self.slots, weights=self.values, minlength=self.candidates.size)
        return sums / self.counts

    @property
    def sha256(self) -> str:
        """SHA-256 of the reads: m, candidates, origins, slots, values, round starts, controls."""
        digest = hashlib.sha256(f"cads-record-{SCHEMA_VERSION}:{self.m}:".encode())
        for name in self._stored:
            raw = _encode(getattr(self, name), name)
            digest.update(f"{name}:{len(raw)}:".encode())
            digest.update(raw)
        return digest.hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The reads as a JSON value: arrays as base64 of little-endian bytes."""
        stored = self._stored
        arrays = {n: base64.b64encode(_encode(getattr(self, n), n)).decode() for n in stored}
        return {"version": SCHEMA_VERSION, "m": self.m} | arrays

    @property
    def _stored(self) -> Iterable[str]:
        """Names of the arrays that make the record: without an audit, those of the reads alone."""
        return _DTYPES if self.is_audited else _ARRAYS

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Record:
        """The record that `to_json` wrote, without deliveries.

        Raises:
            RecordError: Another schema version, a missing field, or arrays that contradict each
                other.
        """
        if not isinstance(data, Mapping):
            msg = f"Record is a {type(data).__name__}; expected a mapping, as `to_json` gives."
            raise RecordError(msg)
        if data.get("version") != SCHEMA_VERSION:
            msg = (
                f"Record has schema version {data.get('version')!r}; expected {SCHEMA_VERSION}. "
                "Read it with the cads-env that wrote it."
            )
            raise RecordError(msg)
        m = data.get("m")
        if not isinstance(m, int) or isinstance(m, bool) or m < 2:
            msg = f"Record has m = {m!r}; expected a whole number of at least 2."
            raise RecordError(msg)
        stored = _DTYPES if any(name in data for name in _AUDIT_ARRAYS) else _ARRAYS
        arrays: dict[str, Any] = {name: _decode(data.get(name), name) for name in stored}
        if stored is _DTYPES and not arrays["audit_starts"].size:
            msg = "Record field 'audit_starts' is empty; expected one number a round, or no audit."
            raise RecordError(msg)
        record = cls(m=m, **arrays)
        _check(record)
        return record


_ARRAYS: Final = {
    "candidates": "<i8",
    "origins": "<i1",
    "slots": "<i4",
    "values": "<f8",
    "round_starts": "<i8",
}
_AUDIT_ARRAYS: Final = {"audit_values": "<f8", "audit_starts": "<i8"}
_DTYPES: Final = _ARRAYS | _AUDIT_ARRAYS


def _encode(array: NDArray[Any], name: str) -> bytes:
    return np.ascontiguousarray(array, dtype=_DTYPES[name]).tobytes()


def _decode(text: object, name: str) -> NDArray[Any]:
    dtype = np.dtype(_DTYPES[name])
    try:
        raw = base64.b64decode(str(text), validate=True) if isinstance(text, str) else b"?"
        return np.frombuffer(raw, dtype=dtype).astype(dtype.newbyteorder("="))
    except (binascii.Error, ValueError) as error:
        msg = f"Record field {name!r} is not base64 of {dtype.itemsize}-byte numbers: {error}."
        raise RecordError(msg) from error


def _check(record: Record) -> None:
    observed, starts = record.candidates.size, record.round_starts
    problems = {
        "candidates are not distinct registry indices": observed == 0
        or np.unique(record.candidates).size != observed
        or record.candidates.min() < 0
        or record.candidates.max() >= record.m,
        "origins do not match candidates": record.origins.size != observed
        or not np.isin(record.origins, (FALLBACK, PROPOSER)).all(),
        "slots do not match values": record.slots.size != record.values.size
        or not np.array_equal(np.unique(record.slots), np.arange(observed)),
        "candidates are not in first-read order": (
            np.diff(np.unique(record.slots, return_index=True)[1]) < 0
        ).any(),
        "values are not finite": not np.isfinite(record.values).all(),
        "round starts are not increasing from 0 to the number of reads": starts.size < 2
        or starts[0] != 0
        or starts[-1] != record.values.size
        or (np.diff(starts) < 0).any(),
        "audit values are not finite": not np.isfinite(record.audit_values).all(),
        "audit starts are not one number a round, increasing up to the number of audit values": (
            record.is_audited
            and (
                record.audit_starts.size != starts.size - 1
                or record.audit_starts[0] < 0
                or record.audit_starts[-1] > record.audit_values.size
                or (np.diff(record.audit_starts) < 0).any()
            )
        ),
    }
    broken = [what for what, is_broken in problems.items() if is_broken]
    if broken:
        msg = f"Record is inconsistent: {'; '.join(broken)}."
        raise RecordError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordBatch:
    """Records of n campaigns of one plan, with a leading campaign axis.

    Attributes:
        m: Registry size.
        candidates: Shape (n, K).
        origins: Shape (n, K).
        slots: Shape (n, R).
        values: Shape (n, R).
        round_starts: Shape (T + 1,), common to all.
        deliveries: Per campaign, one entry a round.
        audit_values: Shape (n, A).
        audit_starts: Shape (T,), common to all, or empty without an audit.
    """

    m: int
    candidates: NDArray[np.int64]
    origins: NDArray[np.int8]
    slots: NDArray[np.int32]
    values: NDArray[np.float64]
    round_starts: NDArray[np.int64]
    deliveries: tuple[tuple[Delivery, ...], ...]
    audit_values: NDArray[np.float64]
    audit_starts: NDArray[np.int64]

    def __len__(self) -> int:
        """Number of campaigns."""
        return int(self.values.shape[0])

    def __getitem__(self, row: int) -> Record:
        """The record of one campaign (its arrays are views)."""
        return Record(
            m=self.m,
            candidates=self.candidates[row],
            origins=self.origins[row],
            slots=self.slots[row],
            values=self.values[row],
            round_starts=self.round_starts,
            deliveries=self.deliveries[row],
            audit_values=self.audit_values[row],
            audit_starts=self.audit_starts,
        )

    def __iter__(self) -> Iterator[Record]:
        """The records in order."""
        return (self[row] for row in range(len(self)))

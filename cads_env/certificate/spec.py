"""`Certificate`: how reads are judged, and the declarations it makes from a record.

A certificate is four numbers, and an audit where the cap comes from controls. Changing one never
changes a read, so any record can be judged again.
Depends on a record through its arrays only, and never on an oracle.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cads_env.certificate.audit import AuditBounds, AuditCap
from cads_env.certificate.audited import (
    AuditOutcome,
    as_audit,
    audit_bounds_of,
    audit_outcome,
    round_log_caps,
)
from cads_env.certificate.cap import (
    contamination_bound,
    log_cap_for,
    real_number,
    solve_cap,
    working_model,
)
from cads_env.certificate.ebh import (
    check_family_size,
    check_level,
    cut_log_e,
    e_bh,
    family_indices,
    log_bar,
)
from cads_env.certificate.evidence import RoundCaps, accumulate, read_array
from cads_env.errors import CertificateError, RecordError


class ReadRecord(Protocol):
    """The reads of one campaign."""

    @property
    def m(self) -> int:
        """Number of candidates of the registry."""

    @property
    def candidates(self) -> NDArray[np.int64]:
        """Registry index of each observed candidate in first-read order, shape (K,)."""

    @property
    def slots(self) -> NDArray[np.int32]:
        """Position in `candidates` of each read, in time order, shape (R,)."""

    @property
    def values(self) -> NDArray[np.float64]:
        """Each read, in time order, shape (R,)."""


class ReadBatch(ReadRecord, Protocol):
    """The reads of n campaigns of one protocol: arrays of shape (n, K) and (n, R)."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """How reads are judged: the declared contamination, the working alternative and the level.

    Raises:
        CertificateError: A field is not a number or is outside its range.

    Source: CADS, eqs. (1) to (5).
    """

    epsilon_bar: float = 0.1
    """Largest share of reads that may be corrupted, given the past; in [0, 1]. 0 means uncapped.
    With an `audit` it judges nothing."""

    theta: float = 0.7
    """Working alternative of the likelihood ratio, > 0, in units of the read."""

    s: float = 0.5
    """Standard deviation of a clean read, > 0."""

    q: float = 0.1
    """Target false discovery rate over the whole registry, in (0, 1)."""

    audit: AuditCap | None = None
    """Judge each round by the cap that the record's own controls allow, and no longer by
    `epsilon_bar`; e-BH then runs at q - delta. A mapping of `AuditCap`'s fields is accepted, True
    for its defaults, False or None for no audit."""

    def __post_init__(self) -> None:
        """Check the fields and store them as Python floats."""
        object.__setattr__(self, "audit", as_audit(self.audit))
        model = working_model(self.theta, self.s)
        checked = {
            "epsilon_bar": contamination_bound(self.epsilon_bar),
            "theta": model.theta,
            "s": model.s,
            "q": check_level(self.q),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.audit is not None:
            self.audit.kappa(self.s)
            self.audit.level(self.q)

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values, `audit` as a mapping and only where it is set."""
        fields = dataclasses.asdict(self)
        if self.audit is None:
            del fields["audit"]
        elif math.isinf(self.audit.Delta):
            # JSON has no infinity; what reads the fields back takes this word for it.
            fields["audit"]["Delta"] = "inf"
        return fields

    @property
    def level(self) -> float:
        """The level at which e-BH runs: q, less the audit's delta where there is an audit."""
        return self.q if self.audit is None else self.audit.level(self.q)

    @property
    def cap(self) -> float:
        """C*, the largest increment, unrounded; inf when `epsilon_bar` is 0."""
        return solve_cap(self.epsilon_bar, self.theta, self.s)

    @property
    def log_cap(self) -> float:
        """The log of C*, rounded down; see `log_cap_for`. What judging uses without an audit."""
        return log_cap_for(self.epsilon_bar, self.theta, self.s)

    def round_log_caps(self, record: ReadRecord) -> NDArray[np.float64]:
        """The log of the cap of every read of each round, from the controls revealed before it.

        Args:
            record: One campaign or a batch, with controls.

        Returns:
            Natural logs, shape (T,) or (n, T); 0 where nothing is known yet.

        Raises:
            CertificateError: The certificate has no audit.
            RecordError: The record has no controls, or its arrays do not fit each other.

        Source: CADS, eq. (7).
        """
        audit = self._needed_audit()
        # A record without controls is refused inside.
        controls: Any = record
        return round_log_caps(controls, audit, theta=self.theta, s=self.s)

    def audit_bounds(self, record: ReadRecord) -> AuditBounds:
        """The bounds of contamination by round and after all controls, of a campaign or a batch.

        Args:
            record: One campaign or a batch, with controls.

        Returns:
            Shape (T,) or (n, T), and () or (n,).

        Raises:
            CertificateError: The certificate has no audit.
            RecordError: The record has no controls, or its arrays do not fit each other.
        """
        controls: Any = record
        return audit_bounds_of(controls, self._needed_audit(), self.s)

    def audit_outcome(self, record: ReadRecord) -> AuditOutcome:
        """The bounds and flags of one campaign's audit.

        Args:
            record: One campaign, with controls.

        Raises:
            CertificateError: The certificate has no audit.
            RecordError: The record has no controls, or its arrays do not fit each other.
        """
        controls: Any = record
        return audit_outcome(controls, self._needed_audit(), self.s)

    def _needed_audit(self) -> AuditCap:
        if self.audit is None:
            msg = "The certificate has no audit; expected one such as Certificate(audit=True)."
            raise CertificateError(msg)
        return self.audit

    def log_bar(self, m: int, k: float = 1.0) -> float:
        """The log evidence that each of k declarations needs: ln(m / (q k)), q being the level.

        Args:
            m: Number of candidates of the registry.
            k: Number of declarations that share the bar, > 0; 1 is the bar a candidate meets alone.

        Returns:
            The bar in natural-log units.

        Raises:
            CertificateError: `m` is not an integer of at least 1, or `k` is not in (0, m].
        """
        size, sharers = check_family_size(m), real_number("k", k)
        if not 0.0 < sharers <= size:
            msg = f"k is outside its range: received {sharers!r}, expected 0 < k <= m={size}."
            raise CertificateError(msg)
        return log_bar(size, self.level, sharers)

    def with_q(self, q: float) -> Certificate:
        """The same certificate at another level.

        Args:
            q: Target false discovery rate, in (0, 1).

        Returns:
            A new certificate. Its log evidence is that of this one.

        Raises:
            CertificateError: `q` is outside its range.
        """
        return dataclasses.replace(self, q=q)

    def log_evidence(self, record: ReadRecord) -> NDArray[np.float64]:
        """Log evidence of each observed candidate of a campaign.

        Args:
            record: The reads.

        Returns:
            Natural-log evidence in first-read order, shape (K,). It does not depend on `q`.

        Raises:
            ReadError: A read is NaN, infinite or beyond 1e300; the message names the first one.
            RecordError: The arrays of the record do not fit each other, or an audited certificate
                finds no controls in it.

        Source: CADS, eq. (4).
        """
        reads = (record.values[None], record.slots[None], record.candidates[None])
        rows = self._accumulate(*reads, self._round_caps(record))
        evidence: NDArray[np.float64] = rows[0]
        return evidence

    def log_evidence_batch(self, batch: ReadBatch) -> NDArray[np.float64]:
        """Log evidence of each observed candidate of n campaigns.

        Args:
            batch: The reads, with a leading campaign axis.

        Returns:
            Natural-log evidence in first-read order, shape (n, K); each row equals that of the
            single campaign, byte for byte.

        Raises:
            ReadError: A read is NaN, infinite or beyond 1e300; the message names the first one.
            RecordError: The arrays of the batch do not fit each other, or an audited certificate
                finds no controls in it.

        Source: CADS, eq. (4).
        """
        round_caps = self._round_caps(batch)
        return self._accumulate(batch.values, batch.slots, batch.candidates, round_caps)

    def decide(
        self, log_e: NDArray[np.float64], candidates: NDArray[np.int64], m: int
    ) -> NDArray[np.int64]:
        """Registry indices that e-BH declares from log evidence, cheap to repeat for other levels.

        Args:
            log_e: Natural-log evidence of the observed candidates, shape (K,).
            candidates: Their registry indices, unique, in [0, m), shape (K,).
            m: Number of candidates of the registry.

        Returns:
            Declared registry indices, ascending, shape (D,).

        Raises:
            ReadError: An entry is NaN, or an index is repeated or out of range.
            CertificateError: `m` is not an integer of at least 1.

        Source: CADS, eq. (5).
        """
        return e_bh(log_e, self.level, m=m, indices=candidates)

    def declare(self, record: ReadRecord) -> Declaration:
        """The declarations of one campaign.

        Args:
            record: The reads.

        Returns:
            The declared candidates with their evidence.

        Raises:
            ReadError: A read is NaN, infinite or beyond 1e300, or a candidate is repeated or out of
                range.
            RecordError: The arrays of the record do not fit each other, or an audited certificate
                finds no controls in it.
        """
        return self._declare(self.log_evidence(record), record.candidates, record.m)

    def declare_batch(self, records: ReadBatch) -> list[Declaration]:
        """The declarations of n campaigns, each equal to that of the single campaign.

        Args:
            records: The reads, with a leading campaign axis.

        Returns:
            One declaration a campaign.

        Raises:
            ReadError: A read is NaN, infinite or beyond 1e300, or a candidate is repeated or out of
                range.
            RecordError: The arrays of the batch do not fit each other, or an audited certificate
                finds no controls in it.
        """
        evidence = self.log_evidence_batch(records)
        return [
            self._declare(log_e, candidates, records.m)
            for log_e, candidates in zip(evidence, records.candidates, strict=True)
        ]

    def _accumulate(
        self,
        values: NDArray[np.float64],
        slots: NDArray[np.int32],
        candidates: NDArray[np.int64],
        round_caps: RoundCaps | None,
    ) -> NDArray[np.float64]:
        """Log evidence, shape (n, K), of arrays with a leading campaign axis."""
        if candidates.ndim != 2 or len(candidates) != len(values):
            msg = (
                f"candidates do not match the reads: received shape {candidates.shape} for reads "
                f"of shape {values.shape}, expected one row a campaign. Rebuild the record."
            )
            raise RecordError(msg)
        model = working_model(self.theta, self.s)
        log_cap = self.log_cap if round_caps is None else round_caps
        size = candidates.shape[1]
        return accumulate(read_array(values), slots, model, size=size, log_cap=log_cap)

    def _round_caps(self, record: ReadRecord) -> RoundCaps | None:
        """The caps of an audited batch or campaign, None without an audit."""
        if self.audit is None:
            return None
        audited: Any = record
        caps = self.round_log_caps(record)
        return RoundCaps(np.atleast_2d(caps), np.asarray(audited.round_starts))

    def _declare(
        self, log_e: NDArray[np.float64], candidates: NDArray[np.int64], m: int
    ) -> Declaration:
        """The declaration from log evidence, both of shape (K,)."""
        size = check_family_size(m)
        places = family_indices(candidates, len(log_e), size, name="log_e")
        cut = cut_log_e(log_e, self.level, size)
        indices = candidates[cut.positions] if places is None else places[cut.positions]
        order = np.argsort(indices)
        return Declaration(
            indices=indices[order],
            log_e=log_e[cut.positions][order],
            threshold=cut.threshold,
            certificate=self,
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Declaration:
    """The set a certificate returns for a record. Its arrays are read-only."""

    indices: NDArray[np.int64]
    """Declared registry indices, ascending, shape (D,)."""

    log_e: NDArray[np.float64]
    """Natural-log evidence of each declared candidate, shape (D,)."""

    threshold: float
    """The log evidence they reached, ln(m / (q k)) at k = D; inf when nothing is declared."""

    certificate: Certificate
    """What judged the reads."""

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        self.indices.setflags(write=False)
        self.log_e.setflags(write=False)

    def __len__(self) -> int:
        """Number of declared candidates D."""
        return len(self.indices)

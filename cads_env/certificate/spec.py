"""`Certificate`: how reads are judged, and the declarations it makes from a record.

A certificate is four numbers. Changing one never changes a read, so any record can be judged again.
Depends on a record through its arrays only, and never on an oracle.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cads_env.certificate.cap import contamination_bound, real_number, solve_cap, working_model
from cads_env.certificate.ebh import (
    check_family_size,
    check_level,
    cut_log_e,
    e_bh,
    family_indices,
    log_bar,
)
from cads_env.certificate.evidence import accumulate, read_array
from cads_env.errors import CertificateError, RecordError

_LOG_CAP_STEPS = 2.0**40
"""Steps of the log cap in one unit: coarse enough to hide the last bits of libm; costs 1e-12."""


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
    """Largest share of reads that may be corrupted, given the past; in [0, 1]. 0 means uncapped."""

    theta: float = 0.7
    """Working alternative of the likelihood ratio, > 0, in units of the read."""

    s: float = 0.5
    """Standard deviation of a clean read, > 0."""

    q: float = 0.1
    """Target false discovery rate over the whole registry, in (0, 1)."""

    def __post_init__(self) -> None:
        """Check the fields and store them as Python floats."""
        model = working_model(self.theta, self.s)
        checked = {
            "epsilon_bar": contamination_bound(self.epsilon_bar),
            "theta": model.theta,
            "s": model.s,
            "q": check_level(self.q),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def cap(self) -> float:
        """C*, the largest increment, unrounded; inf when `epsilon_bar` is 0."""
        return solve_cap(self.epsilon_bar, self.theta, self.s)

    @property
    def log_cap(self) -> float:
        """The log of C*, rounded down to a multiple of 2**-40; what judging uses.

        libm differs between processors in the last bits of a log. The rounding hides them, and a
        smaller cap is always valid. inf when `epsilon_bar` is 0.
        """
        cap = self.cap
        return (
            math.floor(math.log(cap) * _LOG_CAP_STEPS) / _LOG_CAP_STEPS if cap < math.inf else cap
        )

    def log_bar(self, m: int, k: float = 1.0) -> float:
        """The log evidence that each of k declarations needs: ln(m / (q k)).

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
        return log_bar(size, self.q, sharers)

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
            RecordError: The arrays of the record do not fit each other.

        Source: CADS, eq. (4).
        """
        rows = self._accumulate(record.values[None], record.slots[None], record.candidates[None])
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
            RecordError: The arrays of the batch do not fit each other.

        Source: CADS, eq. (4).
        """
        return self._accumulate(batch.values, batch.slots, batch.candidates)

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
        return e_bh(log_e, self.q, m=m, indices=candidates)

    def declare(self, record: ReadRecord) -> Declaration:
        """The declarations of one campaign.

        Args:
            record: The reads.

        Returns:
            The declared candidates with their evidence.

        Raises:
            ReadError: A read is NaN, infinite or beyond 1e300, or a candidate is repeated or out of
                range.
            RecordError: The arrays of the record do not fit each other.
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
            RecordError: The arrays of the batch do not fit each other.
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
    ) -> NDArray[np.float64]:
        """Log evidence, shape (n, K), of arrays with a leading campaign axis."""
        if candidates.ndim != 2 or len(candidates) != len(values):
            msg = (
                f"candidates do not match the reads: received shape {candidates.shape} for reads "
                f"of shape {values.shape}, expected one row a campaign. Rebuild the record."
            )
            raise RecordError(msg)
        model = working_model(self.theta, self.s)
        size = candidates.shape[1]
        return accumulate(read_array(values), slots, model, size=size, log_cap=self.log_cap)

    def _declare(
        self, log_e: NDArray[np.float64], candidates: NDArray[np.int64], m: int
    ) -> Declaration:
        """The declaration from log evidence, both of shape (K,)."""
        size = check_family_size(m)
        places = family_indices(candidates, len(log_e), size, name="log_e")
        cut = cut_log_e(log_e, self.q, size)
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

"""What the controls of a record say: the contamination bound of each round, and its cap.

Predictable throughout: the cap of a round comes from the controls revealed before that round, and
from no read of the round itself. Never sees an oracle, and never moves a bound upwards.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cads_env.certificate.audit import AuditBounds, AuditCap
from cads_env.certificate.cap import log_cap_for
from cads_env.certificate.evidence import check_reads, read_array
from cads_env.errors import CertificateError, RecordError, quoted, suggest


class AuditedRecord(Protocol):
    """The controls of one campaign, or of n campaigns with a leading axis of `audit_values`."""

    @property
    def values(self) -> NDArray[np.float64]:
        """Each read, in time order, shape (R,) or (n, R)."""

    @property
    def round_starts(self) -> NDArray[np.int64]:
        """First read of each round and the end, shape (T + 1,)."""

    @property
    def audit_values(self) -> NDArray[np.float64]:
        """Reads of the controls in their order, shape (A,) or (n, A)."""

    @property
    def audit_starts(self) -> NDArray[np.int64]:
        """Controls revealed before each round, shape (T,)."""


class AuditOutcome(NamedTuple):
    """What the audit of one campaign found."""

    epsilon_hat: NDArray[np.float64]
    """Bound of the contamination that judged each round, shape (T,), never rising."""

    final_bound: float
    """The bound after all controls, which no round could use if the last came at its end."""

    flag_count: int
    """Flagged controls."""

    control_count: int
    """Controls."""


def as_audit(value: object) -> AuditCap | None:
    """The audit that the value of a certificate's field means.

    Args:
        value: An `AuditCap`, a mapping of its fields, True for its defaults, None or False.

    Raises:
        CertificateError: Anything else, an unknown field, or one outside its range.
    """
    if value is None or value is False:
        return None
    if isinstance(value, AuditCap):
        return value
    if value is True:
        return AuditCap()
    if not isinstance(value, Mapping):
        msg = (
            f"audit is {quoted(value)}; expected an AuditCap, a mapping of its fields, True for "
            "its defaults, or None for no audit."
        )
        raise CertificateError(msg)
    known = [field.name for field in dataclasses.fields(AuditCap)]
    for name in value:
        if name not in known:
            msg = f"Unknown field {quoted(name)} of the audit. {suggest(str(name), known)}"
            raise CertificateError(msg)
    infinite = {"Delta": math.inf} if value.get("Delta") == "inf" else {}
    return AuditCap(**(dict(value) | infinite))


def audit_bounds_of(record: AuditedRecord, audit: AuditCap, s: float) -> AuditBounds:
    """Bounds of the contamination probability in each round, and after all controls.

    Args:
        record: One campaign or a batch.
        audit: Threshold, declared class and confidence.
        s: Standard deviation of a clean read, > 0.

    Returns:
        epsilon_hat in [0, 1], shape (T,) or (n, T), and the final one, shape () or (n,); read-only.

    Raises:
        RecordError: The record has no controls, or its arrays do not fit each other.
        ReadError: A control is NaN, infinite or beyond 1e300.

    Source: CADS, eq. (7).
    """
    flags, starts = _flags(record, audit)
    return _solved(flags.tobytes(), flags.shape, tuple(starts.tolist()), audit, s)


@functools.lru_cache(maxsize=16)
def _solved(
    flags: bytes, shape: tuple[int, ...], starts: tuple[int, ...], audit: AuditCap, s: float
) -> AuditBounds:
    """The bounds of some flags: an arm, its twin and a report ask for the same ones in turn."""
    found = audit.outcome(np.frombuffer(flags, np.bool_).reshape(shape), starts, s=s)
    for array in (found.rounds, found.final):
        # The last bound of one campaign is a scalar, and nothing can be written to that.
        if isinstance(array, np.ndarray):
            array.setflags(write=False)
    return found


def round_log_caps(
    record: AuditedRecord, audit: AuditCap, *, theta: float, s: float
) -> NDArray[np.float64]:
    """Log of the cap of every read of each round, rounded down as `log_cap_for` says.

    Args:
        record: One campaign or a batch.
        audit: Threshold, declared class and confidence.
        theta: Working alternative, > 0.
        s: Standard deviation of a clean read, > 0.

    Returns:
        Natural logs, at least 0, shape (T,) or (n, T).

    Raises:
        RecordError: The record has no controls, or its arrays do not fit each other.
        ReadError: A control is NaN, infinite or beyond 1e300.

    Source: CADS, eqs. (3) and (7).
    """
    rounds = audit_bounds_of(record, audit, s).rounds
    bounds, place = np.unique(rounds, return_inverse=True)
    caps = np.array([log_cap_for(bound, theta, s) for bound in bounds.tolist()])
    # NumPy 2.0 gave the inverse another shape than the versions before and after it.
    result: NDArray[np.float64] = caps[place.reshape(-1)].reshape(rounds.shape)
    return result


def audit_outcome(record: AuditedRecord, audit: AuditCap, s: float) -> AuditOutcome:
    """What the audit of one campaign found.

    Args:
        record: One campaign.
        audit: Threshold, declared class and confidence.
        s: Standard deviation of a clean read, > 0.

    Raises:
        RecordError: The record has no controls, or its arrays do not fit each other.
        ReadError: A control is NaN, infinite or beyond 1e300.
    """
    flags, _ = _flags(record, audit)
    found = audit_bounds_of(record, audit, s)
    return AuditOutcome(found.rounds, float(found.final), int(flags.sum()), int(flags.size))


def _flags(record: Any, audit: AuditCap) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """The flags of a record's controls, and how many of them are revealed before each round."""
    starts = getattr(record, "audit_starts", None)
    if starts is None or not np.size(starts):
        msg = (
            "The record has no controls, and an audited certificate judges by them. Play it under "
            "a protocol with controls (audit_controls=200), or judge without `audit`."
        )
        raise RecordError(msg)
    values = read_array(record.audit_values)
    check_reads(values)
    revealed, rounds = np.asarray(starts), np.asarray(record.round_starts)
    count, reads = values.shape[-1], np.shape(record.values)[-1]
    if (
        revealed.ndim != 1
        or rounds.shape != (revealed.size + 1,)
        or (np.diff(revealed) < 0).any()
        or not 0 <= revealed[0] <= revealed[-1] <= count
        # A read outside every round would go without a cap.
        or (np.diff(rounds) < 0).any()
        or rounds[0] != 0
        or rounds[-1] != reads
    ):
        msg = (
            f"The controls do not fit the rounds: received audit_starts {revealed.tolist()} for "
            f"{count} controls, and round_starts {rounds.tolist()} for {reads} reads. Expected one "
            "number of controls a round, rising up to all of them. Rebuild the record."
        )
        raise RecordError(msg)
    return audit.flags(values), revealed

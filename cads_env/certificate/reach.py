"""How late a candidate may be read first and still be declared under a protocol.

One read adds at most ln C* of log evidence, so a declaration needs a least number of reads. A
property of the protocol and the certificate; never looks at a record.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from cads_env.certificate.audit import AuditCap
from cads_env.certificate.cap import log_cap_for, real_number
from cads_env.certificate.ebh import check_family_size
from cads_env.certificate.spec import Certificate
from cads_env.errors import CertificateError

_FIELDS = ("epsilon_bar", "theta", "s", "q")


class ReadPlan(Protocol):
    """What `reach` asks of a protocol."""

    @property
    def rounds(self) -> int:
        """Number of rounds of a campaign."""

    @property
    def certificate(self) -> Any:
        """The preset's default certificate: a mapping or object with epsilon_bar, theta, s, q."""

    def most_reads(self, round: int, m: int) -> int:
        """The most reads that a candidate first read in that round can have at the end."""


def reach(protocol: ReadPlan, k: float, m: int, *, certificate: Certificate | None = None) -> int:
    """The last round whose fresh candidates can still be declared.

    A candidate that is declared along with k - 1 others needs log evidence ln(m / (q k)), and n
    reads give at most n ln C*. An audited certificate caps each round by itself, and so does this:
    with the caps of a campaign none of whose controls is flagged, which no other exceeds.

    Args:
        protocol: Its rounds, most reads, default certificate and, for an audited certificate, its
            `audit_starts`.
        k: Number of declarations expected, in [1, m]; a mean may be fractional.
        m: Number of candidates of the registry.
        certificate: How reads are judged; None means the protocol's default certificate.

    Returns:
        A round in [0, rounds), or -1 when no candidate can be declared.

    Raises:
        CertificateError: `k`, `m` or a field of the certificate is outside its range.

    Source: CADS, eqs. (3) to (5): the largest evidence of n reads against the bar of e-BH.
    """
    size, expected = check_family_size(m), real_number("k", k)
    if not 1.0 <= expected <= size:
        msg = (
            f"k is outside its range: received {expected!r}, expected 1 <= k <= m={size}. "
            f"Pass the mean number of declarations of the reference, or 1 if it is smaller."
        )
        raise CertificateError(msg)
    judge = _certificate(protocol.certificate) if certificate is None else certificate
    bar = judge.log_bar(size, expected)
    if judge.audit is not None:
        return _audited_reach(protocol, judge, judge.audit, bar, size)
    needed = _reads_needed(bar, judge.log_cap)
    # The later a candidate is first read, the fewer reads it can still get, so bisection finds it.
    low, high = -1, protocol.rounds
    while high - low > 1:
        middle = (low + high) // 2
        if protocol.most_reads(middle, size) >= needed:
            low = middle
        else:
            high = middle
    return low


def _audited_reach(
    protocol: ReadPlan, judge: Certificate, audit: AuditCap, bar: float, m: int
) -> int:
    """The last round whose fresh candidates could reach the bar if no control were flagged."""
    starts = np.asarray(getattr(protocol, "audit_starts", ()), np.int64)
    if not starts.size:
        return -1
    # The last batch is revealed when nothing is left to be judged by it.
    flags = np.zeros(int(starts[-1]), np.bool_)
    bounds = audit.bounds(flags, starts, s=judge.s).tolist()
    caps = [log_cap_for(bound, judge.theta, judge.s) for bound in bounds]
    last = len(caps) - 1
    most, later = 1, 0.0
    for round in range(last, -1, -1):
        if caps[round] + later >= bar:
            return round
        # What a candidate first read a round earlier gets in this one.
        before = protocol.most_reads(round - 1, m) if round else most
        if before > most:
            later += (before - most) * caps[round]
        most = before
    return -1


def _reads_needed(bar: float, log_cap: float) -> float:
    """The smallest n >= 1 with n * log_cap >= bar; inf when there is none."""
    if log_cap <= 0.0:
        return math.inf
    # Multiples of a rounded log cap are exact, and a bar above one of them gives a quotient above
    # the whole number, so the ceiling agrees with summed evidence to the last bit.
    return max(1, math.ceil(bar / log_cap))


def _certificate(default: Any) -> Certificate:
    """A protocol's default certificate as a `Certificate`."""
    if isinstance(default, Certificate):
        return default
    fields = {
        name: default[name] if isinstance(default, Mapping) else getattr(default, name)
        for name in _FIELDS
        if (name in default if isinstance(default, Mapping) else hasattr(default, name))
    }
    if missing := [name for name in _FIELDS if name not in fields]:
        msg = (
            f"The protocol's default certificate is incomplete: {', '.join(missing)} missing, "
            f"expected {', '.join(_FIELDS)}. Pass `certificate=`."
        )
        raise CertificateError(msg)
    return Certificate(**fields)

"""Robust evidence of Zhou and Liu: bounded increments whose mean contamination can barely move.

A comparator, never used to declare anything in a ranked result. Only the abstract, the burn-in and
the printed results of the method were available: the increment is that of the work it builds on,
and its scale `lam` is inferred, which every function here says.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cads_env.certificate.cap import finite, positive, real_number, share
from cads_env.certificate.ebh import check_family_size, check_level, e_bh
from cads_env.certificate.evidence import (
    check_reads,
    read_array,
    slot_array,
    sums_by_slot,
)
from cads_env.errors import CertificateError


def zhou_liu_phi(x: ArrayLike, *, order: float = 2.0) -> NDArray[np.float64]:
    """The influence function phi: odd, nondecreasing, and constant beyond 1.

    phi(x) = -sign(x) log(1 - |x| + |x|^p / p) for |x| < 1, and sign(x) log p beyond, so that
    exp(phi(x)) <= 1 + x + |x|^p / p.

    Args:
        x: Standardised deviations, any shape; not NaN.
        order: Order p of the moment that is bounded, in (1, 2].

    Returns:
        phi, in [-log p, log p], in the shape of `x`.

    Raises:
        CertificateError: `order` is outside its range.

    Source: Wang and Ramdas, Huber-robust confidence sequences (AISTATS 2023), after Catoni (2012).
    """
    p = _order(order)
    return _phi(np.array(x, dtype=np.float64), p)


def zhou_liu_log_increment(
    y: ArrayLike,
    *,
    epsilon: float,
    lam: float | None = None,
    s: float = 0.5,
    mu0: float = 0.0,
    order: float = 2.0,
) -> NDArray[np.float64]:
    """Log of the robust increment of each read.

    log e(y) = phi(lam (y - mu0)) - log(1 + lam^p v / p + (p - 1/p) epsilon), with v the p-th
    absolute moment of a clean read about its mean. For p = 2 the last term is
    log(1 + lam^2 s^2 / 2 + 3 epsilon / 2).

    Args:
        y: Reads, any shape; finite and at most 1e300 in magnitude.
        epsilon: Largest share of corrupted reads, in [0, 1].
        lam: Scale, > 0; None for sqrt(epsilon) / s, at which the normaliser is 1 + 2 epsilon. This
            choice is inferred: the scale is not printed.
        s: Standard deviation of a clean read, > 0.
        mu0: Largest mean of a null read, finite.
        order: Order p of the moment that is bounded, in (1, 2]; clean reads are taken as normal.

    Returns:
        Log increments in the shape of `y`, at most log p - log(1 + ...).

    Raises:
        ReadError: A read is NaN, infinite or beyond 1e300; the message names the first one.
        CertificateError: A parameter is outside its range.

    Source: Zhou and Liu, On the Robustness of Bandit Multiple Testing (AAAI-26), eq. (5), inferred;
    Wang and Ramdas (AISTATS 2023). Nondecreasing in y, hence valid for every mean <= mu0.
    """
    increment = ZhouLiuIncrement(epsilon=epsilon, lam=lam, s=s, mu0=mu0, order=order)
    values = read_array(y)
    check_reads(values)
    return increment(values, np.empty(values.shape), 0)


def zhou_liu_log_evidence(
    y: ArrayLike,
    slots: ArrayLike,
    *,
    size: int,
    epsilon: float,
    lam: float | None = None,
    s: float = 0.5,
    mu0: float = 0.0,
    order: float = 2.0,
) -> NDArray[np.float64]:
    """Log evidence of each candidate of one campaign, or of a batch: the sum of its increments.

    Args:
        y: Reads in time order, shape (R,), or (n, R) for a batch.
        slots: Which candidate each read belongs to, integers in [0, size), in the shape of `y`.
        size: Number of candidates K of a campaign; those without reads get 0, which is E = 1.
        epsilon: Largest share of corrupted reads, in [0, 1].
        lam: As for `zhou_liu_log_increment`.
        s: Standard deviation of a clean read, > 0.
        mu0: Largest mean of a null read, finite.
        order: As for `zhou_liu_log_increment`.

    Returns:
        Natural-log evidence, shape (K,) or (n, K); each row of a batch equals that of the single
        campaign.

    Raises:
        ReadError: A read is NaN, infinite or beyond 1e300; the message names the first one.
        RecordError: Slots do not match the reads, or are outside [0, size).
        CertificateError: A parameter is outside its range.

    Source: as for `zhou_liu_log_increment`.
    """
    increment = ZhouLiuIncrement(epsilon=epsilon, lam=lam, s=s, mu0=mu0, order=order)
    values, places = read_array(y), slot_array(slots, size)
    if values.ndim != 1 or places.ndim != 1:
        return sums_by_slot(values, places, [increment], size=size)[0]
    rows = sums_by_slot(values[None], places[None], [increment], size=size)[0]
    evidence: NDArray[np.float64] = rows[0]
    return evidence


def zhou_liu_e_bh(
    y: ArrayLike,
    slots: ArrayLike,
    q: float,
    *,
    m: int,
    epsilon: float,
    indices: ArrayLike | None = None,
    lam: float | None = None,
    s: float = 0.5,
) -> NDArray[np.int64]:
    """Registry indices that e-BH declares on Zhou-Liu evidence over all m candidates.

    Args:
        y: Reads of one campaign in time order, shape (R,).
        slots: Which candidate each read belongs to: a position in `indices`, shape (R,).
        q: Target false discovery rate, in (0, 1).
        m: Number of candidates of the registry, read or not.
        epsilon: Largest share of corrupted reads, in [0, 1].
        indices: Registry index of each candidate, unique, in [0, m), shape (K,); all others count
            as E = 1. None means that slots are registry indices.
        lam: As for `zhou_liu_log_increment`.
        s: Standard deviation of a clean read, > 0.

    Returns:
        Declared registry indices, ascending, shape (D,).

    Raises:
        ReadError: A read is not usable, or an index is repeated or out of range.
        RecordError: Slots do not match the reads, or are outside their range.
        CertificateError: A parameter is outside its range.

    Source: as for `zhou_liu_log_increment`, with complete-family e-BH.
    """
    size = check_family_size(m) if indices is None else len(np.asarray(indices))
    log_e = zhou_liu_log_evidence(y, slots, size=size, epsilon=epsilon, lam=lam, s=s)
    return e_bh(log_e, q, m=m, indices=indices)


def zhou_liu_burn_in(m: int, q: float, epsilon: float) -> int:
    """Reads that every candidate needs before Algorithm 2 declares anything.

    n_0 = ceil((4 / epsilon) ln(4 m / q^2)).

    Args:
        m: Number of candidates, >= 1.
        q: Target false discovery rate, in (0, 1).
        epsilon: Largest share of corrupted reads, in (0, 1].

    Returns:
        Reads a candidate; the whole burn-in takes m times as many.

    Raises:
        CertificateError: A parameter is outside its range.

    Source: Zhou and Liu (AAAI-26), Algorithm 2, as printed in the CADS paper.
    """
    size, level, corrupted = check_family_size(m), check_level(q), share("epsilon", epsilon)
    if corrupted == 0.0:
        msg = (
            f"The burn-in has no end: received epsilon={corrupted!r}, expected 0 < epsilon <= 1. "
            f"It grows as 1 / epsilon."
        )
        raise CertificateError(msg)
    return math.ceil(4.0 / corrupted * math.log(4.0 * size / (level * level)))


class ZhouLiuIncrement:
    """The log increment with its constants worked out; fits `sums_by_slot`."""

    def __init__(
        self,
        *,
        epsilon: float,
        lam: float | None = None,
        s: float = 0.5,
        mu0: float = 0.0,
        order: float = 2.0,
    ) -> None:
        """Check and work out the constants.

        Args:
            epsilon: As for `zhou_liu_log_increment`, like all that follow.
            lam: None for sqrt(epsilon) / s.
            s: Standard deviation of a clean read.
            mu0: Largest mean of a null read.
            order: Order of the moment that is bounded.

        Raises:
            CertificateError: A parameter is outside its range.
        """
        self._order = _order(order)
        corrupted, sd = share("epsilon", epsilon), positive("s", s)
        self._scale = math.sqrt(corrupted) / sd if lam is None else positive("lam", lam)
        self._mu0 = finite("mu0", mu0)
        p = self._order
        moment = (self._scale * sd) ** p * _normal_moment(p)
        self._log_normaliser = math.log1p(moment / p + (p - 1.0 / p) * corrupted)

    def __call__(
        self, block: NDArray[np.float64], out: NDArray[np.float64], first: int
    ) -> NDArray[np.float64]:
        """Log increments of checked reads, written to `out`."""
        with np.errstate(over="ignore"):
            np.subtract(block, self._mu0, out=out)
            np.multiply(out, self._scale, out=out)
        _phi(out, self._order)
        return np.subtract(out, self._log_normaliser, out=out)


def _phi(x: NDArray[np.float64], order: float) -> NDArray[np.float64]:
    """The function in place; the sign comes last, so that it is odd to the last bit."""
    # The smaller of |x| and 1, in numpy's fastest form.
    size = np.clip(x, -1.0, 1.0, out=np.empty_like(x))
    np.abs(size, out=size)
    logs = np.empty_like(x)
    if order == 2.0:
        np.multiply(size, size, out=logs)
        np.multiply(logs, 0.5, out=logs)
    else:
        np.power(size, order, out=logs)
        np.divide(logs, order, out=logs)
    # log1p(-|x| + |x|^p / p): the argument lies in [1/p - 1, 0].
    np.subtract(logs, size, out=logs)
    np.log1p(logs, out=logs)
    return np.copysign(logs, x, out=x)


def _order(order: object) -> float:
    value = real_number("order", order)
    if not 1.0 < value <= 2.0:
        msg = (
            f"order is outside its range: received {value!r}, expected 1 < order <= 2. It is the "
            f"moment of a clean read that is known to be finite."
        )
        raise CertificateError(msg)
    return value


def _normal_moment(p: float) -> float:
    """E|Z|^p of a standard normal Z; 1 at p = 2."""
    return 1.0 if p == 2.0 else 2.0 ** (p / 2.0) * math.gamma((p + 1.0) / 2.0) / math.sqrt(math.pi)

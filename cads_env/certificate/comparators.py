"""Rules that the certificate is compared with; none of them withstands corrupted reads.

They judge the same reads over the same complete family. Never used to declare anything in a ranked
result.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from cads_env.certificate.cap import working_model
from cads_env.certificate.ebh import bh, check_family_size, e_bh
from cads_env.certificate.evidence import log_evidence
from cads_env.errors import ReadError


def naive_p_values(mean: ArrayLike, count: ArrayLike, *, s: float = 0.5) -> NDArray[np.float64]:
    """One-sided z-test p-values of candidates, as if every read were clean.

    p = 1 - Phi(sqrt(n) mean / s); p = 1 for a candidate without reads.

    Args:
        mean: Mean read of each candidate, shape (K,); ignored where `count` is 0.
        count: Number of reads of each candidate, nonnegative integers, shape (K,).
        s: Clean standard deviation of a read, > 0.

    Returns:
        p-values, shape (K,).

    Raises:
        ReadError: The shapes differ, a count is not a nonnegative integer, or the mean of a read
            candidate is not finite.
        CertificateError: `s` is outside its range.

    Source: CADS, the naive comparator.
    """
    sd = working_model(1.0, s).s
    means, counts = np.asarray(mean), np.asarray(count)
    if means.ndim != 1 or means.shape != counts.shape:
        msg = (
            f"mean and count do not match: received shapes {means.shape} and {counts.shape}, "
            f"expected two vectors of the same length."
        )
        raise ReadError(msg)
    if means.size and (means.dtype.kind not in "fiu" or counts.dtype.kind not in "iu"):
        msg = (
            f"mean and count have the wrong types: received dtypes {means.dtype} and "
            f"{counts.dtype}, expected floats and nonnegative integers."
        )
        raise ReadError(msg)
    if (counts < 0).any():
        position = int(np.argmax(counts < 0))
        msg = (
            f"A count is negative: received {int(counts[position])} at position {position}, "
            f"expected a nonnegative number of reads."
        )
        raise ReadError(msg)
    means = means.astype(np.float64, copy=False)
    bad = (counts > 0) & ~np.isfinite(means)
    if bad.any():
        position = int(np.argmax(bad))
        msg = (
            f"A mean is not usable: received {float(means[position])!r} at position {position}, "
            f"expected a finite number for a candidate with reads."
        )
        raise ReadError(msg)
    p: NDArray[np.float64] = np.ones(means.shape)
    is_read = counts > 0
    p[is_read] = z_test_p_values(means[is_read], counts[is_read], sd)
    return p


def z_test_p_values(
    means: NDArray[np.float64], counts: NDArray[np.number], s: float
) -> NDArray[np.float64]:
    """One-sided z-test p-values from means that are checked already.

    Args:
        means: Mean read of each candidate, finite, any shape.
        counts: Number of its reads, at least 1, same shape.
        s: Checked clean standard deviation of a read.

    Returns:
        p = 1 - Phi(sqrt(n) mean / s), in the shape of `means`.
    """
    with np.errstate(over="ignore"):
        z = np.sqrt(counts) * means / s
    p: NDArray[np.float64] = ndtr(-z)
    return p


def naive_bh(
    mean: ArrayLike,
    count: ArrayLike,
    q: float,
    *,
    m: int,
    s: float = 0.5,
    indices: ArrayLike | None = None,
) -> NDArray[np.int64]:
    """Registry indices that BH declares on z-test p-values over all m candidates.

    A failure diagnostic: adaptive re-reading and corrupted reads both break it.

    Args:
        mean: Mean read of each candidate, shape (m,), or (K,) with `indices`.
        count: Number of reads of each candidate, nonnegative integers, in the shape of `mean`.
        q: Target false discovery rate, in (0, 1).
        m: Number of candidates of the registry, read or not.
        s: Clean standard deviation of a read, > 0.
        indices: Registry index of each entry, unique, in [0, m), shape (K,); all other candidates
            count as unread. None means that the entries are the whole registry in order.

    Returns:
        Declared registry indices, ascending, shape (D,).

    Raises:
        ReadError: An entry is not usable, the length is wrong, or an index is repeated or out of
            range.
        CertificateError: `q`, `m` or `s` is outside its range.

    Source: CADS, the naive comparator.
    """
    return bh(naive_p_values(mean, count, s=s), q, m=m, indices=indices)


def uncapped_e_bh(
    y: ArrayLike,
    slots: ArrayLike,
    q: float,
    *,
    m: int,
    indices: ArrayLike | None = None,
    theta: float = 0.7,
    s: float = 0.5,
) -> NDArray[np.int64]:
    """Registry indices that e-BH declares on uncapped likelihood ratios over all m candidates.

    Equal to the certificate at epsilon_bar = 0, whose cap is infinite: one corrupted read can be
    worth any evidence.

    Args:
        y: Reads of one campaign in time order, shape (R,).
        slots: Which candidate each read belongs to: a position in `indices`, shape (R,).
        q: Target false discovery rate, in (0, 1).
        m: Number of candidates of the registry, read or not.
        indices: Registry index of each candidate, unique, in [0, m), shape (K,); all others count
            as E = 1. None means that slots are registry indices.
        theta: Working alternative, > 0.
        s: Clean standard deviation of a read, > 0.

    Returns:
        Declared registry indices, ascending, shape (D,).

    Raises:
        ReadError: A read is not usable, or an index is repeated or out of range.
        RecordError: Slots do not match the reads, or are outside their range.
        CertificateError: A parameter is outside its range.

    Source: CADS, the uncapped comparator: eqs. (3) to (5) with an infinite cap.
    """
    size = check_family_size(m) if indices is None else len(np.asarray(indices))
    log_e = log_evidence(y, slots, size=size, cap=math.inf, theta=theta, s=s)
    return e_bh(log_e, q, m=m, indices=indices)

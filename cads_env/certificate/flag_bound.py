"""The bound of the flag rate that holds at every look: from counts of flags to a confidence bound.

Pure functions of counts. Never sees a read, and never rounds a bound downwards.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, xlogy

from cads_env.certificate.cap import positive, real_number
from cads_env.certificate.exact import STEPS, mixture_exceeds
from cads_env.errors import CertificateError

KRICHEVSKY_TROFIMOV: Final = (0.5, 0.5)
"""The Beta prior of the mixture that the paper's audit uses."""

_ERROR_A_CONTROL: Final = 6e-16
"""Rounding error of the log martingale per control: a ratio, its log and a product."""

_ERROR_ALWAYS: Final = 5e-14
"""Rounding error of the parts that do not grow with the number of controls."""

_SERIES_FROM: Final = 16
"""From here up four terms of Stirling's series are exact in doubles."""

_SMALL_REMAINDERS: Final = np.array(
    [0.0] + [math.lgamma(k + 1.0) - k * math.log(k) + k for k in range(1, _SERIES_FROM)]
)
"""r(k) below the series; see `_remainder`."""

_LARGEST_COUNT: Final = (1 << 23) - 1
"""Times `STEPS` it is still a 64-bit integer."""
"""Controls of one audit, at most; far beyond any assay, and within the accuracy stated above."""


def audit_bound(
    flags: int,
    n: int,
    *,
    delta: float = 0.01,
    prior: tuple[float, float] = KRICHEVSKY_TROFIMOV,
) -> float:
    """Upper bound of the flag rate after n controls of which some were flagged.

    With M_n(p) = B(S + a, n - S + b) / B(a, b) / (p^S (1 - p)^(n - S)), a martingale when p is the
    flag rate, the bound is U_n = max{p in [S/n, 1] : M_n(p) <= 1 / delta}, rounded up to a multiple
    of 2**-40. By Ville's inequality P(p > U_n for some n) <= delta, so the smallest bound over any
    looks holds too. U_n = 1 when n = 0 or S = n.

    Args:
        flags: Number of flagged controls S, in [0, n].
        n: Number of controls.
        delta: Chance that the bound is ever below the flag rate, in (0, 1).
        prior: Parameters (a, b) of the Beta mixture, > 0.

    Returns:
        The bound, in (S/n, 1].

    Raises:
        CertificateError: A parameter is not a number or is outside its range.

    Source: CADS, Audit-CADS, eq. (7); the sequence is reconstructed from the printed bounds: the
    beta-binomial mixture of Krichevsky and Trofimov (1981).
    """
    return float(audit_bounds([flags], [n], delta=delta, prior=prior)[0])


def audit_bounds(
    flags: ArrayLike,
    n: ArrayLike,
    *,
    delta: float = 0.01,
    prior: tuple[float, float] = KRICHEVSKY_TROFIMOV,
) -> NDArray[np.float64]:
    """`audit_bound` of many counts at once.

    Under the default prior the result is the same on every processor: where doubles cannot decide
    a last step, decimal arithmetic does.

    Args:
        flags: Numbers of flagged controls, integers in [0, n], any shape.
        n: Numbers of controls, integers, in a shape that broadcasts with `flags`.
        delta: Chance that a bound is ever below the flag rate, in (0, 1).
        prior: Parameters (a, b) of the Beta mixture, > 0.

    Returns:
        The bounds, in the common shape.

    Raises:
        CertificateError: A parameter is not a number or is outside its range.

    Source: as for `audit_bound`.
    """
    risk = check_delta(delta)
    a, b = (positive(name, x) for name, x in zip(("prior[0]", "prior[1]"), prior, strict=True))
    counted, total = _counts(flags, n)
    mixture = _mixture(counted.ravel(), total.ravel(), (a, b), math.log(risk))
    # The smallest step at which the martingale exceeds 1 / delta: its log is convex in p with the
    # minimum, which is at most 0, at S/n, and p = 1 is always a bound.
    low, high = mixture.lowest, np.full_like(mixture.lowest, STEPS)
    while ((high - low) > 1).any():
        middle = (low + high) // 2
        exceeds = mixture.log_excess(middle) > 0.0
        high = np.where(exceeds, middle, high)
        low = np.where(exceeds, low, middle)
    if (a, b) == KRICHEVSKY_TROFIMOV:
        high = _settled(mixture, high, risk)
    return (high / STEPS).reshape(total.shape)


class _Mixture(NamedTuple):
    """The log martingale of many pairs of counts, plus log delta."""

    flagged: NDArray[np.int64]
    n: NDArray[np.int64]
    constant: NDArray[np.float64]
    """Its value at p = S/n, where it is smallest."""

    lowest: NDArray[np.int64]
    """S/n in steps of 2**-40, rounded down: nothing exceeds there."""

    def log_excess(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """Log of delta M_n(p) at p = steps / 2**40, the ends moved one step inwards."""
        steps = np.clip(steps, 1, STEPS - 1)
        clean = self.n - self.flagged
        # Ratios first: the sum is then near its true size, with nothing large to cancel.
        hit = self.flagged / (self.n * (steps / STEPS))
        missed = clean / (self.n * ((STEPS - steps) / STEPS))
        logs: NDArray[np.float64] = self.constant + xlogy(self.flagged, hit) + xlogy(clean, missed)
        return logs

    def doubtful(self, steps: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether rounding could turn the sign of `log_excess` there."""
        inside = (steps > self.lowest) & (steps < STEPS)
        error = _ERROR_A_CONTROL * self.n + _ERROR_ALWAYS
        near: NDArray[np.bool_] = np.abs(self.log_excess(steps)) <= error
        return inside & near


def _mixture(
    flagged: NDArray[np.int64],
    n: NDArray[np.int64],
    prior: tuple[float, float],
    log_delta: float,
) -> _Mixture:
    """The mixture martingale of each pair of counts; n = 0 is taken as one control, flagged."""
    # Both have the bound 1, and the second needs no division by 0.
    flagged, n = np.where(n == 0, 1, flagged), np.maximum(n, 1)
    clean = n - flagged
    if prior == KRICHEVSKY_TROFIMOV:
        # k! = k^k e^-k exp(r(k)) turns B(S + 1/2, n - S + 1/2) / B(1/2, 1/2) =
        # C(2S, S) C(2(n - S), n - S) / (4^n C(n, S)) into these remainders.
        constant = (
            _remainder(2 * flagged)
            - _remainder(flagged)
            + _remainder(2 * clean)
            - _remainder(clean)
            - _remainder(n)
        )
    else:
        a, b = prior
        largest = xlogy(flagged, flagged / n) + xlogy(clean, clean / n)
        logs = betaln(flagged + a, clean + b) - betaln(a, b) - largest
        constant = np.asarray(logs, dtype=np.float64)
    return _Mixture(flagged, n, constant + log_delta, (flagged * STEPS) // n)


def _remainder(k: NDArray[np.int64]) -> NDArray[np.float64]:
    """r(k) = log k! - k log k + k, by Stirling's series from 16 up; r(0) = 0."""
    large = np.maximum(k, _SERIES_FROM).astype(np.float64)
    inverse = 1.0 / large
    square = inverse * inverse
    correction = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    series = 0.5 * np.log(2.0 * math.pi * large) + correction
    small = _SMALL_REMAINDERS[np.minimum(k, _SERIES_FROM - 1)]
    remainders: NDArray[np.float64] = np.where(k < _SERIES_FROM, small, series)
    return remainders


def _settled(mixture: _Mixture, steps: NDArray[np.int64], delta: float) -> NDArray[np.int64]:
    """The steps at which the martingale exceeds 1 / delta first, decided exactly where needed."""
    settled = steps.copy()
    doubtful = mixture.doubtful(steps) | mixture.doubtful(steps - 1)
    for position in np.flatnonzero(doubtful):
        flagged, n = int(mixture.flagged[position]), int(mixture.n[position])
        step, lowest = int(steps[position]), int(mixture.lowest[position])
        while step < STEPS and not mixture_exceeds(flagged, n, step, delta):
            step += 1
        while step - 1 > lowest and mixture_exceeds(flagged, n, step - 1, delta):
            step -= 1
        settled[position] = step
    return settled


def check_delta(delta: object) -> float:
    """The chance that a bound fails, as a float in [1e-100, 1).

    Args:
        delta: What was received.

    Returns:
        The value as a Python float.

    Raises:
        CertificateError: Not a number, or outside the range.
    """
    value = real_number("delta", delta)
    if not 1e-100 <= value < 1.0:
        msg = (
            f"delta is outside its range: received {value!r}, expected 0 < delta < 1 (1e-100 up). "
            f"It is the chance that the audit's bound is ever below the flag rate."
        )
        raise CertificateError(msg)
    return value


def _counts(flags: ArrayLike, n: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Flags and controls as int64 of one shape, refused where they cannot be counts."""
    counted, total = np.asarray(flags), np.asarray(n)
    for name, array in (("flags", counted), ("n", total)):
        if array.size and array.dtype.kind not in "iu":
            msg = (
                f"{name} is not a count: received {array.dtype} values, expected whole numbers. "
                f"Pass the number of controls, not a rate."
            )
            raise CertificateError(msg)
    try:
        counted, total = np.broadcast_arrays(counted.astype(np.int64), total.astype(np.int64))
    except ValueError as error:
        msg = (
            f"flags and n do not match: received shapes {counted.shape} and {total.shape}, "
            f"expected one number of controls for each number of flags."
        )
        raise CertificateError(msg) from error
    bad = (counted < 0) | (counted > total) | (total > _LARGEST_COUNT)
    if bad.any():
        position = int(np.argmax(bad.ravel()))
        msg = (
            f"The counts of an audit do not fit: received {int(counted.flat[position])} flags in "
            f"{int(total.flat[position])} controls, expected 0 <= flags <= n <= {_LARGEST_COUNT}."
        )
        raise CertificateError(msg)
    return counted, total

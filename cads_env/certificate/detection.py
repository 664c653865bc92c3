"""How often a blinded control is flagged: when it is clean, and when it is corrupted.

A control is a read whose clean law is N(0, s^2); it is flagged when it exceeds tau. Pure functions
of numbers. Never counts a flag.
"""

from __future__ import annotations

import math

from scipy.special import ndtr

from cads_env.certificate.cap import finite, positive, real_number, share
from cads_env.errors import CertificateError


def kappa(Delta: float, *, tau: float = 1.0, s: float = 0.5) -> float:
    """The smallest chance that a corrupted control is flagged, over corruptions of at least Delta.

    kappa = inf over b >= Delta of Phi((b - tau) / s) = Phi((Delta - tau) / s).

    Args:
        Delta: Smallest displacement of the declared class of corruptions, in units of the read; inf
            declares that every corruption is flagged.
        tau: A control is flagged when its read exceeds this, finite.
        s: Standard deviation of a clean read, > 0.

    Returns:
        The detection rate, in [0, 1].

    Raises:
        CertificateError: A parameter is not a number or is outside its range.

    Source: CADS, Proposition 1.
    """
    smallest = real_number("Delta", Delta)
    if smallest == -math.inf:
        msg = "Delta is outside its range: received -inf, expected a displacement above -infinity."
        raise CertificateError(msg)
    return float(ndtr((smallest - finite("tau", tau)) / positive("s", s)))


def false_alarm_rate(*, tau: float = 1.0, s: float = 0.5) -> float:
    """The chance that a clean control is flagged: Phi(-tau / s).

    Args:
        tau: A control is flagged when its read exceeds this, finite.
        s: Standard deviation of a clean read, > 0.

    Returns:
        The rate, in [0, 1].

    Raises:
        CertificateError: A parameter is not a number or is outside its range.

    Source: CADS, Audit-CADS.
    """
    return float(ndtr(-finite("tau", tau) / positive("s", s)))


def sensitivity_uniform(low: float, high: float, tau: float = 1.0, s: float = 0.5) -> float:
    """The chance that a control is flagged when a displacement uniform on [low, high] is added.

    sensitivity = s / (high - low) * (G((high - tau) / s) - G((low - tau) / s)) with
    G(x) = x Phi(x) + phi(x), the antiderivative of Phi.

    Args:
        low: Smallest displacement, finite.
        high: Largest displacement, finite, >= low; equal to `low` it is one displacement.
        tau: A control is flagged when its read exceeds this, finite.
        s: Standard deviation of a clean read, > 0.

    Returns:
        The sensitivity, in [0, 1].

    Raises:
        CertificateError: A parameter is not a number or is outside its range.

    Source: CADS, Audit-CADS.
    """
    first, last = finite("low", low), finite("high", high)
    threshold, sd = finite("tau", tau), positive("s", s)
    if last < first:
        msg = f"high is below low: received low={first!r}, high={last!r}, expected low <= high."
        raise CertificateError(msg)
    start, end = (first - threshold) / sd, (last - threshold) / sd
    if end - start < 1e-6:
        # The difference quotient would lose digits; over so short a stretch Phi is linear.
        return float(ndtr((start + end) / 2.0))
    mean = (_antiderivative(end) - _antiderivative(start)) / (end - start)
    return min(1.0, max(0.0, mean))


def _antiderivative(x: float) -> float:
    """The integral of Phi from -infinity to x."""
    return x * float(ndtr(x)) + math.exp(-x * x / 2.0) / math.sqrt(2.0 * math.pi)


def flag_rate(
    epsilon: float, *, tau: float = 1.0, s: float = 0.5, low: float = 2.0, high: float = 4.0
) -> float:
    """The chance that a control is flagged: (1 - epsilon) false alarms + epsilon sensitivity.

    Args:
        epsilon: Chance that a control is corrupted, in [0, 1].
        tau: A control is flagged when its read exceeds this, finite.
        s: Standard deviation of a clean read, > 0.
        low: Smallest displacement that a corruption adds; uniform up to `high`.
        high: Largest displacement.

    Returns:
        The flag rate, in [0, 1].

    Raises:
        CertificateError: A parameter is not a number or is outside its range.

    Source: CADS, Audit-CADS.
    """
    corrupted = share("epsilon", epsilon)
    clean = false_alarm_rate(tau=tau, s=s)
    return (1.0 - corrupted) * clean + corrupted * sensitivity_uniform(low, high, tau, s)

"""The cap of the likelihood-ratio increment, and what a capped increment is worth on average.

The cap is the largest C for which min(L, C) has mean at most 1 under every null in the declared
contamination class. Scalar functions only, evaluated once a certificate. Never sees a read.
"""

from __future__ import annotations

import functools
import math
import numbers
import sys
from typing import NamedTuple

from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr, ndtr

from cads_env.certificate.exact import FARTHEST_QUANTILE, STEPS, cap_is_within_budget
from cads_env.errors import CertificateError

_DOUBTFUL_STEP = 0.02
"""Share of a step of 2**-40 by which doubles can miss a log cap: 0.007 at epsilon = 1e-9 was the
most in tests, 0.001 above 1e-5."""

_LARGEST_LOG_CAP = 700.0
"""exp(700) is still a double; a smaller cap than the exact one is always valid."""

_ROOT_XTOL = 1e-18
"""Below any log cap that matters in double precision, so that the relative tolerance decides."""

_ROOT_RTOL = 4.0 * sys.float_info.epsilon
"""The smallest relative tolerance that brentq accepts."""

_ROOT_ITERATIONS = 10_000
"""Never reached; ordinary bounds take ten, the smallest doubles a few hundred."""


class WorkingModel(NamedTuple):
    """The working likelihood ratio log L(y) = slope * y - shift, checked to be representable."""

    theta: float
    """Working alternative: mean of a read of a true hit, in units of the read."""

    s: float
    """Clean standard deviation of a read."""

    slope: float
    """theta / s**2."""

    shift: float
    """theta**2 / (2 s**2)."""


def real_number(name: str, value: object) -> float:
    """The value as a float, refused unless it is a real number other than NaN.

    Args:
        name: Name of the parameter, for the message.
        value: What was received; int, float and NumPy scalars pass, bool, str and None do not.

    Returns:
        The value as a Python float; may be infinite.

    Raises:
        CertificateError: The value is not a real number, or is NaN.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        msg = (
            f"{name} is not a number: received {value!r} of type {type(value).__name__}, "
            f"expected a real number. Pass a float."
        )
        raise CertificateError(msg)
    try:
        number = float(value)
    except OverflowError:
        number = math.nan
    if math.isnan(number):
        msg = f"{name} is not usable: received {value!r}, expected a number that a double can hold."
        raise CertificateError(msg)
    return number


def finite(name: str, value: object) -> float:
    """The value as a finite float.

    Args:
        name: Name of the parameter, for the message.
        value: What was received.

    Returns:
        The value as a Python float.

    Raises:
        CertificateError: Not a number, or infinite.
    """
    number = real_number(name, value)
    if math.isinf(number):
        msg = f"{name} is outside its range: received {number!r}, expected a finite number."
        raise CertificateError(msg)
    return number


def positive(name: str, value: object) -> float:
    """The value as a finite float above 0.

    Args:
        name: Name of the parameter, for the message.
        value: What was received.

    Returns:
        The value as a Python float.

    Raises:
        CertificateError: Not a number, infinite, or not above 0.
    """
    number = real_number(name, value)
    if not 0.0 < number < math.inf:
        msg = f"{name} is outside its range: received {number!r}, expected 0 < {name} < infinity."
        raise CertificateError(msg)
    return number


def share(name: str, value: object) -> float:
    """The value as a float in [0, 1].

    Args:
        name: Name of the parameter, for the message.
        value: What was received.

    Returns:
        The value as a Python float.

    Raises:
        CertificateError: Not a number, or outside [0, 1].
    """
    number = real_number(name, value)
    if not 0.0 <= number <= 1.0:
        msg = f"{name} is outside its range: received {number!r}, expected a share in [0, 1]."
        raise CertificateError(msg)
    return number


def contamination_bound(epsilon_bar: object) -> float:
    """The contamination bound as a float in [0, 1].

    Args:
        epsilon_bar: Largest share of reads that may be corrupted, given the past.

    Returns:
        The bound as a Python float.

    Raises:
        CertificateError: Not a number, or outside [0, 1].
    """
    value = real_number("epsilon_bar", epsilon_bar)
    if not 0.0 <= value <= 1.0:
        msg = (
            f"epsilon_bar is outside its range: received {value!r}, expected a share in [0, 1]. It "
            f"bounds the share of corrupted reads; over-rating it is safe, under-rating it is not."
        )
        raise CertificateError(msg)
    return value


def working_model(theta: object, s: object) -> WorkingModel:
    """The checked working model of a (theta, s) pair.

    Args:
        theta: Working alternative, > 0 and finite.
        s: Clean standard deviation, > 0 and finite.

    Returns:
        theta, s and the coefficients of the log likelihood ratio.

    Raises:
        CertificateError: Not a number, not positive, not finite, or so extreme that a coefficient
            of the log likelihood ratio leaves the range of a double.
    """
    values = {"theta": real_number("theta", theta), "s": real_number("s", s)}
    for name, value in values.items():
        if not 0.0 < value < math.inf:
            msg = (
                f"{name} is outside its range: received {value!r}, expected 0 < {name} < infinity."
            )
            raise CertificateError(msg)
    alternative, sd = values["theta"], values["s"]
    # Products, not powers: pow is not exactly rounded on every machine, and both numbers touch
    # every read.
    variance = sd * sd
    slope = alternative / variance if variance > 0.0 else math.inf
    shift = alternative * alternative / (2.0 * variance) if variance > 0.0 else math.inf
    if not (0.0 < slope < math.inf and 0.0 < shift < math.inf):
        msg = (
            f"theta and s cannot be used together: received theta={alternative!r}, s={sd!r}, for "
            f"which theta / s**2 or theta**2 / (2 s**2) is not a positive finite double. Express "
            f"both in a unit in which they are near 1."
        )
        raise CertificateError(msg)
    return WorkingModel(theta=alternative, s=sd, slope=slope, shift=shift)


def positive_cap(cap: object) -> float:
    """The cap as a float in (0, inf].

    Args:
        cap: Upper bound of an increment; infinity means uncapped.

    Returns:
        The cap as a Python float.

    Raises:
        CertificateError: Not a number, or not positive.
    """
    value = real_number("cap", cap)
    if not value > 0.0:
        msg = (
            f"cap is outside its range: received {value!r}, expected 0 < cap <= infinity. "
            f"Use solve_cap."
        )
        raise CertificateError(msg)
    return value


def solve_cap(epsilon_bar: float, theta: float = 0.7, s: float = 0.5) -> float:
    """The cap C* that makes the increment min(L, C*) an e-value under the contaminated null.

    C* is the root in [1, 1/epsilon_bar] of (1 - epsilon_bar) E_0[min(L, C)] + epsilon_bar C = 1.
    Because E_0[L] = 1 this is epsilon_bar (C - 1) = (1 - epsilon_bar) E_0[(L - C)_+], which is
    solved in ln C without cancellation. The lower end of the final bracket is returned, so that the
    rounding of the root never exceeds the budget.

    Args:
        epsilon_bar: Contamination bound, in [0, 1].
        theta: Working alternative, > 0.
        s: Clean standard deviation of a read, > 0.

    Returns:
        C* in [1, 1/epsilon_bar]; inf when epsilon_bar is 0, 1.0 when it is 1.

    Raises:
        CertificateError: A parameter is not a number, not finite or outside its range.

    Source: CADS, eq. (3).
    """
    # Checked before the cache is asked, because True == 1.0 would find the entry of 1.0.
    model = working_model(theta, s)
    return _solve(contamination_bound(epsilon_bar), model.theta / model.s)


def log_cap_for(epsilon_bar: float, theta: float = 0.7, s: float = 0.5) -> float:
    """The log of C*, rounded down to a multiple of 2**-40; what judging uses.

    libm differs between processors in the last bits of a log. The rounding hides them, decimal
    arithmetic decides where the log lies next to a multiple, and a smaller cap is always valid.

    Args:
        epsilon_bar: Contamination bound, in [0, 1].
        theta: Working alternative, > 0.
        s: Clean standard deviation of a read, > 0.

    Returns:
        The log of the cap, at least 0; inf when `epsilon_bar` is 0.

    Raises:
        CertificateError: A parameter is not a number, not finite or outside its range.
    """
    model = working_model(theta, s)
    return _log_cap(contamination_bound(epsilon_bar), model.theta / model.s)


@functools.lru_cache(maxsize=1 << 16)
def _log_cap(epsilon: float, ratio: float) -> float:
    """The largest grid point at which the cap is within the budget."""
    cap = _solve(epsilon, ratio)
    if cap == math.inf:
        return math.inf
    scaled = math.log(cap) * STEPS
    step, nearest = math.floor(scaled), round(scaled)
    farthest = ratio / 2.0 + math.log(cap) / ratio
    if abs(scaled - nearest) < _DOUBTFUL_STEP and farthest < FARTHEST_QUANTILE:
        step = nearest if cap_is_within_budget(nearest, epsilon, ratio) else nearest - 1
    return step / STEPS


@functools.lru_cache(maxsize=1 << 16)
def _solve(epsilon: float, ratio: float) -> float:
    """The cap for a bound in [0, 1]; theta and s enter the equation through their ratio only."""
    if epsilon == 0.0:
        return math.inf

    def residual(log_cap: float) -> float:
        return epsilon * math.expm1(log_cap) - (1.0 - epsilon) * _mean_excess(log_cap, ratio)

    upper = min(-math.log(epsilon), _LARGEST_LOG_CAP)
    if residual(0.0) >= 0.0:
        log_cap = 0.0
    elif residual(upper) <= 0.0:
        log_cap = upper
    else:
        log_cap = float(
            brentq(
                residual,
                0.0,
                upper,
                xtol=_ROOT_XTOL,
                rtol=_ROOT_RTOL,
                maxiter=_ROOT_ITERATIONS,
            )
        )
    # brentq returns either end of its last bracket: walk down to where the double itself is within
    # the budget.
    cap = min(math.exp(log_cap), max(1.0, 1.0 / epsilon))
    step = math.ulp(cap)
    while cap > 1.0 and epsilon * (cap - 1.0) > (1.0 - epsilon) * _mean_excess(
        math.log(cap), ratio
    ):
        cap = max(1.0, cap - step)
        step *= 2.0
    return cap


def _mean_excess(log_cap: float, ratio: float) -> float:
    """E_0[(L - C)_+] at C = exp(log_cap), with ratio = theta / s."""
    middle, distance = ratio / 2.0, log_cap / ratio
    above = float(ndtr(middle - distance))
    return above - math.exp(log_cap + float(log_ndtr(-middle - distance)))


def expected_increment(
    cap: float, theta: float = 0.7, s: float = 0.5, mu: float = 0.0, sigma: float | None = None
) -> float:
    """The mean of the capped increment when clean reads are N(mu, sigma^2).

    E[min(L, C)] = exp(a mu - b + a^2 sigma^2 / 2) Phi(w - a sigma) + C Phi(-w), with
    a = theta / s^2, b = theta^2 / (2 s^2), w = (y_C - mu) / sigma and y_C = (ln C + b) / a the read
    at which L = C. Where w < a sigma the large exponent cancels against the tail of Phi; their
    product is then C exp(-w^2 / 2) times a scaled tail, and nothing overflows.

    Args:
        cap: Upper bound C of the increment, in (0, inf]; inf gives the mean of the uncapped ratio.
        theta: Working alternative, > 0.
        s: Standard deviation assumed by the likelihood ratio, > 0.
        mu: Mean of the clean reads.
        sigma: Standard deviation of the clean reads, > 0; None means `s`.

    Returns:
        The mean, in [0, cap]; inf when it exceeds the largest double.

    Raises:
        CertificateError: A parameter is not a number, not finite (`cap` may be infinite) or outside
            its range.

    Source: CADS, eq. (3), for a general clean law.
    """
    bound, model = positive_cap(cap), working_model(theta, s)
    mean = real_number("mu", mu)
    sd = model.s if sigma is None else real_number("sigma", sigma)
    if math.isinf(mean) or not 0.0 < sd < math.inf:
        msg = (
            f"The clean law is not a normal law: received mu={mean!r}, sigma={sd!r}, expected a "
            f"finite mu and 0 < sigma < infinity."
        )
        raise CertificateError(msg)
    log_bound = math.log(bound) if bound < math.inf else math.inf
    width = model.slope * sd
    standardised = ((log_bound + model.shift) / model.slope - mean) / sd
    inner = standardised - width
    if inner >= 0.0:
        # standardised >= width, so this exponent is at most log_bound.
        exponent = model.slope * mean - model.shift + width * width / 2.0
        below = _exp(exponent + float(log_ndtr(inner)))
    else:
        half_square = standardised * standardised / 2.0
        below = _exp(log_bound - half_square) * float(erfcx(-inner / math.sqrt(2.0))) / 2.0
    above = 0.0 if bound == math.inf else _exp(log_bound + float(log_ndtr(-standardised)))
    return below + above


def _exp(exponent: float) -> float:
    """The exponential, inf instead of an error when it exceeds the largest double."""
    try:
        return math.exp(exponent)
    except OverflowError:
        return math.inf

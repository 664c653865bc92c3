"""Laws that a clean null read may have beside N(0, s^2), and the mean increment under each.

A law is known by its survival function alone, from which the mean of a capped increment follows by
one integral over bounded values. Never draws a number.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from scipy.integrate import quad
from scipy.special import gammainc, gammaincc, ndtr, owens_t, stdtr

from cads_env.certificate.cap import (
    expected_increment,
    finite,
    positive,
    positive_cap,
    working_model,
)
from cads_env.errors import CertificateError, suggest

_FARTHEST: Final = 40.0
"""Log likelihood ratios this far below the cap carry less than exp(-40) of it."""

_QUADRATURE_ERROR: Final = 1e-9
"""A mean increment that cannot be integrated this well is refused."""


class CleanLaw(Protocol):
    """The law of a clean null read."""

    def survival(self, y: float) -> float:
        """P(Y > y); nonincreasing, in [0, 1]."""

    @property
    def breaks(self) -> Sequence[float]:
        """Reads at which the survival function is not smooth; empty for a smooth law."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NormalLaw:
    """N(mean, sd^2): a shift of location or scale."""

    mean: float = 0.0
    """Mean of a read, finite."""

    sd: float = 0.5
    """Standard deviation of a read, > 0."""

    def __post_init__(self) -> None:
        """Check the fields."""
        _check(self)

    @property
    def breaks(self) -> tuple[float, ...]:
        """None: the law is smooth."""
        return ()

    def survival(self, y: float) -> float:
        """P(Y > y)."""
        return float(ndtr((self.mean - y) / self.sd))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StudentLaw:
    """Student's t, scaled to a standard deviation: heavy tails on both sides."""

    df: float
    """Degrees of freedom, > 2; the kurtosis is 3 + 6 / (df - 4) above 4."""

    mean: float = 0.0
    """Mean of a read, finite."""

    sd: float = 0.5
    """Standard deviation of a read, > 0."""

    def __post_init__(self) -> None:
        """Check the fields."""
        _check(self)
        if not positive("df", self.df) > 2.0:
            msg = (
                f"df is outside its range: received {self.df!r}, expected more than 2. With fewer "
                f"degrees of freedom the law has no standard deviation to scale to."
            )
            raise CertificateError(msg)

    @property
    def breaks(self) -> tuple[float, ...]:
        """None: the law is smooth."""
        return ()

    def survival(self, y: float) -> float:
        """P(Y > y)."""
        scale = self.sd * math.sqrt((self.df - 2.0) / self.df)
        return float(stdtr(self.df, (self.mean - y) / scale))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SkewNormalLaw:
    """The skew-normal law, with its mean and standard deviation set: mild skew, light tails."""

    shape: float
    """Azzalini's shape alpha, finite; above 0 the tail of large reads is the longer one."""

    mean: float = 0.0
    """Mean of a read, finite."""

    sd: float = 0.5
    """Standard deviation of a read, > 0."""

    def __post_init__(self) -> None:
        """Check the fields."""
        _check(self)
        finite("shape", self.shape)

    @property
    def breaks(self) -> tuple[float, ...]:
        """None: the law is smooth."""
        return ()

    def survival(self, y: float) -> float:
        """P(Y > y) = Phi(-z) + 2 T(z, shape), T being Owen's function."""
        delta = self.shape / math.hypot(1.0, self.shape)
        centre = delta * math.sqrt(2.0 / math.pi)
        scale = self.sd / math.sqrt(1.0 - centre * centre)
        z = (y - self.mean) / scale + centre
        return min(1.0, max(0.0, float(ndtr(-z)) + 2.0 * float(owens_t(z, self.shape))))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GammaLaw:
    """A gamma law moved to its mean: strong skew and an exponential tail on one side."""

    shape: float
    """Shape k, > 0: the skewness is 2 / sqrt(k), the kurtosis 3 + 6 / k."""

    mean: float = 0.0
    """Mean of a read, finite."""

    sd: float = 0.5
    """Standard deviation of a read, > 0."""

    tail: str = "high"
    """Side of the long tail: "high" or "low"."""

    def __post_init__(self) -> None:
        """Check the fields."""
        _check(self)
        positive("shape", self.shape)
        if self.tail not in ("high", "low"):
            msg = f"tail is unknown: received {self.tail!r}, expected 'high' or 'low'."
            raise CertificateError(msg)

    @property
    def breaks(self) -> tuple[float, ...]:
        """The end of the support."""
        reach = self.sd * math.sqrt(self.shape)
        return (self.mean - reach if self.tail == "high" else self.mean + reach,)

    def survival(self, y: float) -> float:
        """P(Y > y)."""
        root = math.sqrt(self.shape)
        step = root * (y - self.mean) / self.sd
        if self.tail == "high":
            return float(gammaincc(self.shape, max(0.0, self.shape + step)))
        return float(gammainc(self.shape, max(0.0, self.shape - step)))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MixtureLaw:
    """A mixture of laws: an outlier component, or two kinds of null."""

    weights: tuple[float, ...]
    """Share of each component, >= 0, summing to 1 within 1e-9."""

    parts: tuple[CleanLaw, ...]
    """The components."""

    def __post_init__(self) -> None:
        """Check the fields, and make the weights sum to 1."""
        weights = [finite("weights", weight) for weight in self.weights]
        total = math.fsum(weights)
        if len(weights) != len(self.parts) or min(weights, default=-1.0) < 0.0:
            msg = (
                f"A mixture does not fit: received weights {weights!r} for {len(self.parts)} "
                f"parts, expected one nonnegative weight for each part."
            )
            raise CertificateError(msg)
        if abs(total - 1.0) > 1e-9:
            msg = f"The weights of a mixture do not sum to 1: received {weights!r}, sum {total!r}."
            raise CertificateError(msg)
        object.__setattr__(self, "weights", tuple(weight / total for weight in weights))
        object.__setattr__(self, "parts", tuple(self.parts))

    @property
    def breaks(self) -> tuple[float, ...]:
        """Those of the components."""
        return tuple(point for part in self.parts for point in part.breaks)

    def survival(self, y: float) -> float:
        """P(Y > y)."""
        parts = zip(self.weights, self.parts, strict=True)
        return min(1.0, math.fsum(weight * part.survival(y) for weight, part in parts))


_LAWS: Final[Mapping[str, Any]] = {
    "normal": NormalLaw,
    "student": StudentLaw,
    "skew-normal": SkewNormalLaw,
    "gamma": GammaLaw,
    "mixture": MixtureLaw,
}


def clean_law(named: Mapping[str, Any]) -> CleanLaw:
    """The law that a mapping names, as configs write it.

    Args:
        named: `law` ("normal", "student", "skew-normal", "gamma" or "mixture") and its fields; the
            parts of a mixture are mappings themselves.

    Returns:
        The law.

    Raises:
        CertificateError: The law is unknown, or a field is missing, unknown or outside its range.
    """
    fields = dict(named)
    name = fields.pop("law", None)
    if name not in _LAWS:
        msg = f"Unknown clean law {name!r}. {suggest(str(name), _LAWS)}"
        raise CertificateError(msg)
    if name == "mixture":
        fields["parts"] = tuple(clean_law(part) for part in fields.get("parts", ()))
        fields["weights"] = tuple(fields.get("weights", ()))
    try:
        law: CleanLaw = _LAWS[name](**fields)
    except TypeError as error:
        msg = f"Clean law {name!r} does not accept {dict(named)!r}: {error}."
        raise CertificateError(msg) from error
    return law


def expected_increment_under(
    law: CleanLaw, cap: float, theta: float = 0.7, s: float = 0.5
) -> float:
    """The mean of the capped increment when clean reads have a law.

    min(L, C) never falls with the read, so its mean is C times the integral over t from 0 to
    infinity of exp(-t) P(Y > y_C - t / a), with a = theta / s^2 and y_C the read at which L = C.
    Normal laws and their mixtures have a closed form, which is used.

    Args:
        law: Law of a clean read.
        cap: Upper bound C of the increment, in (0, inf]; inf only where there is a closed form.
        theta: Working alternative, > 0.
        s: Standard deviation assumed by the likelihood ratio, > 0.

    Returns:
        The mean, in [0, cap]. Where it is integrated, the error that the quadrature admits to is
        added, so that the mean is not below the exact one.

    Raises:
        CertificateError: A parameter is outside its range, `cap` is infinite for a law without a
            closed form, or the integral does not reach an error of 1e-9 relative to the cap.

    Source: CADS, eq. (3), for a general clean law.
    """
    bound, model = positive_cap(cap), working_model(theta, s)
    if isinstance(law, NormalLaw):
        return expected_increment(bound, theta, s, mu=law.mean, sigma=law.sd)
    if isinstance(law, MixtureLaw):
        parts = zip(law.weights, law.parts, strict=True)
        return math.fsum(
            weight * expected_increment_under(part, bound, theta, s)
            for weight, part in parts
            if weight > 0.0
        )
    if bound == math.inf:
        msg = (
            f"The mean of an uncapped increment under {type(law).__name__} has no closed form and "
            f"may be infinite; expected a finite cap."
        )
        raise CertificateError(msg)
    meets = (math.log(bound) + model.shift) / model.slope

    def integrand(t: float) -> float:
        return math.exp(-t) * law.survival(meets - t / model.slope)

    kinks = sorted((meets - point) * model.slope for point in law.breaks)
    edges = [0.0, *(kink for kink in kinks if 0.0 < kink < _FARTHEST), _FARTHEST]
    value, error = 0.0, math.exp(-_FARTHEST)
    for start, end in itertools.pairwise(edges):
        piece, doubt = quad(integrand, start, end, epsabs=1e-13, epsrel=1e-12, limit=400)[:2]
        value, error = value + piece, error + doubt
    if not error <= _QUADRATURE_ERROR:
        msg = (
            f"The mean increment under {law!r} cannot be integrated: the error is {error:.2g} of "
            f"the cap, expected at most {_QUADRATURE_ERROR:g}. Name its kinks in `breaks`."
        )
        raise CertificateError(msg)
    return bound * min(1.0, value + error)


def _check(law: NormalLaw | StudentLaw | SkewNormalLaw | GammaLaw) -> None:
    """Check the fields that all laws share."""
    finite("mean", law.mean)
    positive("sd", law.sd)

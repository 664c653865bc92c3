"""What the certificate is worth when clean null reads are not N(mu <= 0, s^2), and the cap that is.

The published null fixes the clean law. A wider declared family costs a smaller cap and keeps the
guarantee. Never estimates a family from reads.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Final

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from cads_env.certificate.cap import (
    contamination_bound,
    finite,
    positive,
    positive_cap,
    share,
    solve_cap,
    working_model,
)
from cads_env.certificate.clean_laws import CleanLaw, NormalLaw, expected_increment_under
from cads_env.errors import CertificateError

_SCALES: Final = 33
"""Standard deviations at which the worst case of a range is bracketed; the mean is smooth in it."""

_LEAST_LOG_CAP: Final = 1e-9
"""A cap whose log is smaller can certify nothing in any campaign."""

_LARGEST_LOG_CAP: Final = 700.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CleanFamily:
    """The laws that a clean null read may have: normal laws in a range, and listed ones.

    Every law that is stochastically smaller than a member is covered too, since the increment never
    falls with the read: the range of means has an upper end only.

    Raises:
        CertificateError: A field is not a number or is outside its range.
    """

    mean_high: float = 0.0
    """Largest mean of a clean null read, finite, in units of the read."""

    sd_low: float = 0.5
    """Smallest standard deviation of a clean null read, > 0."""

    sd_high: float = 0.5
    """Largest standard deviation of a clean null read, >= `sd_low`."""

    laws: tuple[CleanLaw, ...] = ()
    """Further laws."""

    def __post_init__(self) -> None:
        """Check the fields."""
        finite("mean_high", self.mean_high)
        low, high = positive("sd_low", self.sd_low), positive("sd_high", self.sd_high)
        if high < low:
            msg = (
                f"sd_high is below sd_low: received {low!r} to {high!r}, expected a range of "
                f"standard deviations."
            )
            raise CertificateError(msg)
        object.__setattr__(self, "laws", tuple(self.laws))

    def worst_mean(self, cap: float, theta: float = 0.7, s: float = 0.5) -> float:
        """The largest mean increment over the family: sup_f E_f[min(L, C)].

        The mean rises with the location, so the largest is the worst; over the standard deviations
        it is searched, since it may rise or fall with them.

        Args:
            cap: Upper bound C of the increment, in (0, inf].
            theta: Working alternative, > 0.
            s: Standard deviation assumed by the likelihood ratio, > 0.

        Returns:
            The supremum, in [0, cap].

        Raises:
            CertificateError: A parameter is outside its range, or a listed law cannot be
                integrated.

        Source: CADS, Theorem 1, for a general clean family.
        """
        listed = [expected_increment_under(law, cap, theta, s) for law in self.laws]
        return max([self._worst_normal(cap, theta, s), *listed])

    def _worst_normal(self, cap: float, theta: float, s: float) -> float:
        def mean(sd: float) -> float:
            return expected_increment_under(NormalLaw(mean=self.mean_high, sd=sd), cap, theta, s)

        if self.sd_low == self.sd_high:
            return mean(self.sd_low)
        scales = np.geomspace(self.sd_low, self.sd_high, _SCALES).tolist()
        scales[0], scales[-1] = self.sd_low, self.sd_high
        means = [mean(sd) for sd in scales]
        best = int(np.argmax(means))
        if 0 < best < _SCALES - 1 and math.isfinite(means[best]):
            found = minimize_scalar(
                lambda sd: -mean(sd), bounds=(scales[best - 1], scales[best + 1]), method="bounded"
            )
            return max(means[best], mean(float(found.x)))
        return means[best]


def implied_expectation(
    law: CleanLaw,
    *,
    epsilon: float,
    epsilon_bar: float | None = None,
    cap: float | None = None,
    theta: float = 0.7,
    s: float = 0.5,
) -> float:
    """The largest mean of an increment when clean reads have a law: at most 1 is valid.

    (1 - epsilon) E_f[min(L, C)] + epsilon C: a corrupted read can be worth the whole cap.

    Args:
        law: Law of a clean read.
        epsilon: True share of corrupted reads, in [0, 1].
        epsilon_bar: Declared bound, whose cap C*(epsilon_bar) is used; None with `cap`.
        cap: The cap itself, instead of `epsilon_bar`; finite unless `epsilon` is 0.
        theta: Working alternative, > 0.
        s: Standard deviation assumed by the likelihood ratio, > 0.

    Returns:
        The mean; inf where a share of reads meets no cap.

    Raises:
        CertificateError: A parameter is outside its range, or both or neither of `epsilon_bar` and
            `cap` are given.

    Source: CADS, Table S6.
    """
    corrupted = share("epsilon", epsilon)
    if (epsilon_bar is None) == (cap is None):
        msg = "The cap is not determined: expected exactly one of epsilon_bar and cap."
        raise CertificateError(msg)
    bound = positive_cap(cap) if epsilon_bar is None else solve_cap(epsilon_bar, theta, s)
    clean = expected_increment_under(law, bound, theta, s)
    return (1.0 - corrupted) * clean + (corrupted * bound if corrupted > 0.0 else 0.0)


def solve_cap_for_family(
    epsilon_bar: float, family: CleanFamily, theta: float = 0.7, s: float = 0.5
) -> float:
    """The cap that makes min(L, C) an e-value when clean null reads may have any law of a family.

    The largest C with (1 - epsilon_bar) sup_f E_f[min(L, C)] + epsilon_bar C <= 1. The left side
    rises with C and is at most C, so the cap is at least 1. For means up to 0 and the standard
    deviation s it is the published cap.

    Args:
        epsilon_bar: Contamination bound, in [0, 1].
        family: The declared laws.
        theta: Working alternative, > 0.
        s: Standard deviation assumed by the likelihood ratio, > 0.

    Returns:
        The cap, in (1, inf]; 1.0 when `epsilon_bar` is 1.

    Raises:
        CertificateError: A parameter is outside its range, or the family is so wide that the cap
            is 1: no read could then be evidence.

    Source: CADS, eq. (3) and Theorem 1, with the supremum over a clean family.
    """
    epsilon = contamination_bound(epsilon_bar)
    working_model(theta, s)
    if epsilon == 1.0:
        return 1.0

    def excess(log_cap: float) -> float:
        cap = math.exp(log_cap)
        return (1.0 - epsilon) * family.worst_mean(cap, theta, s) + epsilon * cap - 1.0

    upper = min(-math.log(epsilon), _LARGEST_LOG_CAP) if epsilon > 0.0 else _LARGEST_LOG_CAP
    if epsilon == 0.0 and not family.laws and family.worst_mean(math.inf, theta, s) <= 1.0:
        return math.inf
    if excess(upper) <= 0.0:
        return math.exp(upper)
    if excess(_LEAST_LOG_CAP) > 0.0:
        msg = (
            f"The declared family leaves no evidence: received epsilon_bar={epsilon!r} and "
            f"{family!r}, under which null reads look like hits of theta={theta!r}. Declare a "
            f"narrower family, or raise theta."
        )
        raise CertificateError(msg)
    log_cap = float(brentq(excess, _LEAST_LOG_CAP, upper, xtol=1e-13, rtol=1e-14))
    # brentq may end on either side of the root: walk down until the budget holds.
    step = 1e-15
    while excess(log_cap) > 0.0 and log_cap > _LEAST_LOG_CAP:
        log_cap = max(_LEAST_LOG_CAP, log_cap - step)
        step *= 2.0
    return math.exp(log_cap)

"""`AuditCap`: the contamination bound of each round, from the controls revealed before it.

What it returns for a round never depends on a control of that round or later: a cap that looks
ahead is not valid. Knows nothing of test reads, and nothing of where controls come from.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cads_env.certificate.cap import finite, real_number, share
from cads_env.certificate.detection import kappa
from cads_env.certificate.ebh import check_level
from cads_env.certificate.evidence import check_reads, read_array
from cads_env.certificate.exact import STEPS
from cads_env.certificate.flag_bound import audit_bounds, check_delta
from cads_env.errors import CertificateError, RecordError

LOOKS: Final = ("batch", "per_read")
"""When the running minimum of the bound is taken."""

_BLOCK_FLAGS: Final = 1 << 21
"""Flags worked on at once, so that memory does not grow with the number of campaigns."""


class AuditBounds(NamedTuple):
    """The contamination bounds of one campaign, or of n campaigns."""

    rounds: NDArray[np.float64]
    """epsilon_hat in force in each round, shape (T,) or (n, T)."""

    final: NDArray[np.float64]
    """epsilon_hat once all controls are revealed, shape () or (n,)."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AuditCap:
    """How the flags of blinded controls bound the contamination of the test reads.

    Round t uses epsilon_hat_t = min(1, U_t / kappa + rho), where U_t is the smallest upper bound of
    the flag rate over the looks before round t, and U_t = 1 before the first. With probability at
    least 1 - delta all of them hold, so e-BH at level q - delta keeps the false discovery rate
    at q.

    Raises:
        CertificateError: A field is not a number or is outside its range.

    Source: CADS, Audit-CADS, eqs. (6) and (7).
    """

    tau: float = 1.0
    """A control is flagged when its read exceeds this, in units of the read."""

    Delta: float = 2.0
    """Smallest displacement of the declared class of corruptions; inf: each of them is flagged."""

    delta: float = 0.01
    """Chance that a bound is ever below the contamination, in (0, 1); e-BH pays it out of q."""

    rho: float = 0.0
    """Largest excess of the test reads' contamination over the controls', in [0, 1]."""

    alpha_lo: float = 0.0
    """Flag rate that clean controls are known to have at least, in [0, 1); 0 claims nothing."""

    looks: Literal["batch", "per_read"] = "batch"
    """Whether the running minimum is taken at the ends of the batches, or at every control."""

    def __post_init__(self) -> None:
        """Check the fields and store them as Python floats."""
        smallest = real_number("Delta", self.Delta)
        checked = {
            "tau": finite("tau", self.tau),
            "Delta": smallest if smallest == math.inf else finite("Delta", self.Delta),
            "delta": check_delta(self.delta),
            "rho": share("rho", self.rho),
            "alpha_lo": share("alpha_lo", self.alpha_lo),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if not isinstance(self.looks, str) or self.looks not in LOOKS:
            msg = (
                f"looks is unknown: received {self.looks!r}, expected 'batch' (a look at the end "
                f"of each batch of controls) or 'per_read' (a look at every control)."
            )
            raise CertificateError(msg)

    def kappa(self, s: float) -> float:
        """The detection rate kappa, rounded down to a multiple of 2**-40.

        Args:
            s: Standard deviation of a clean read, > 0.

        Returns:
            The rate, in (alpha_lo, 1].

        Raises:
            CertificateError: `s` is outside its range, or kappa does not exceed `alpha_lo`: the
                controls then say nothing about contamination.

        Source: CADS, Proposition 1.
        """
        rate = math.floor(kappa(self.Delta, tau=self.tau, s=s) * STEPS) / STEPS
        if not rate > self.alpha_lo:
            msg = (
                f"The controls cannot bound contamination: received Delta={self.Delta!r}, "
                f"tau={self.tau!r}, alpha_lo={self.alpha_lo!r}, for which a corrupted control is "
                f"flagged with a chance of {rate:.3g} at least, expected more than alpha_lo. "
                f"Raise Delta, or lower tau or alpha_lo."
            )
            raise CertificateError(msg)
        return rate

    def level(self, q: float) -> float:
        """The level at which e-BH is applied: q - delta.

        Args:
            q: Target false discovery rate, in (0, 1).

        Returns:
            The level, in (0, q).

        Raises:
            CertificateError: `q` is outside its range, or `delta` leaves nothing of it.
        """
        target = check_level(q)
        if not self.delta < target:
            msg = (
                f"The audit leaves no level: received delta={self.delta!r} and q={target!r}, "
                f"expected delta < q. Lower delta or raise q."
            )
            raise CertificateError(msg)
        return check_level(target - self.delta)

    def flags(self, values: ArrayLike) -> NDArray[np.bool_]:
        """Which controls are flagged: those that read above tau.

        Args:
            values: Reads of the controls, any shape; finite.

        Returns:
            Flags, in the shape of `values`.

        Raises:
            ReadError: A read is NaN, infinite or beyond 1e300; the message names the first one.
        """
        reads = read_array(values)
        check_reads(reads)
        flagged: NDArray[np.bool_] = reads > self.tau
        return flagged

    def epsilon_hat(self, flag_bound: ArrayLike, *, s: float) -> NDArray[np.float64]:
        """The contamination bound that a bound of the flag rate implies, rounded up to 2**-40.

        min(1, max(0, U - alpha_lo) / (kappa - alpha_lo) + rho).

        Args:
            flag_bound: Upper bounds U of the flag rate, in [0, 1], any shape.
            s: Standard deviation of a clean read, > 0.

        Returns:
            Contamination bounds, in [0, 1], in the shape of `flag_bound`.

        Raises:
            CertificateError: kappa does not exceed `alpha_lo`, or `s` is outside its range.

        Source: CADS, eq. (7); `alpha_lo` is an addition.
        """
        rate = self.kappa(s)
        excess = np.maximum(0.0, np.asarray(flag_bound, dtype=np.float64) - self.alpha_lo)
        share = excess / (rate - self.alpha_lo) + self.rho
        # One unit in the last place more, so that the roundings above cannot lower the bound.
        share = np.where(share > 0.0, np.nextafter(share, np.inf), 0.0)
        bounds: NDArray[np.float64] = np.minimum(1.0, np.ceil(share * STEPS) / STEPS)
        return bounds

    def bounds(
        self, flags: NDArray[np.bool_], starts: Sequence[int] | NDArray[np.integer], *, s: float
    ) -> NDArray[np.float64]:
        """The contamination bound in force in each round.

        Args:
            flags: Flags of the controls in the order in which they are revealed, shape (A,), or
                (n, A) for n campaigns.
            starts: Number of controls revealed before each round, nondecreasing, in [0, A], shape
                (T,). All A in every round when controls are read before the first.
            s: Standard deviation of a clean read, > 0.

        Returns:
            epsilon_hat of each round, shape (T,) or (n, T); 1 before the first control. Each row
            equals that of the single campaign, byte for byte.

        Raises:
            RecordError: Flags are not booleans, or `starts` does not fit them.
            CertificateError: kappa does not exceed `alpha_lo`, or `s` is outside its range.

        Source: CADS, eq. (7).
        """
        return self.outcome(flags, starts, s=s).rounds

    def final_bound(
        self, flags: NDArray[np.bool_], starts: Sequence[int] | NDArray[np.integer], *, s: float
    ) -> NDArray[np.float64]:
        """The contamination bound once all controls are revealed: what an audit reports.

        Args:
            flags: As for `bounds`.
            starts: As for `bounds`; the end of the last batch is a look too.
            s: Standard deviation of a clean read, > 0.

        Returns:
            epsilon_hat at the end, shape () or (n,).

        Raises:
            RecordError: As for `bounds`.
            CertificateError: As for `bounds`.
        """
        return self.outcome(flags, starts, s=s).final

    def outcome(
        self, flags: NDArray[np.bool_], starts: Sequence[int] | NDArray[np.integer], *, s: float
    ) -> AuditBounds:
        """`bounds` and `final_bound` at the price of one.

        Args:
            flags: As for `bounds`.
            starts: As for `bounds`.
            s: Standard deviation of a clean read, > 0.

        Returns:
            Both.

        Raises:
            RecordError: As for `bounds`.
            CertificateError: As for `bounds`.
        """
        if flags.dtype != np.bool_ or flags.ndim not in (1, 2):
            msg = (
                f"Flags are not usable: received dtype {flags.dtype} and shape {flags.shape}, "
                f"expected booleans of shape (A,) or (n, A). Pass `audit.flags(reads)`."
            )
            raise RecordError(msg)
        rows = np.atleast_2d(flags)
        controls = rows.shape[1]
        before = _starts(starts, controls)
        if self.looks == "per_read":
            looks = np.arange(controls + 1)
        else:
            looks = np.unique(np.concatenate([[0], before, [controls]]))
        # Every start is a look, so a round's bound is that of the look at its start.
        places = [*np.searchsorted(looks, before).tolist(), len(looks) - 1]
        height = max(1, _BLOCK_FLAGS // (controls + 1))
        minima = [
            _running_minima(rows[start : start + height], looks, self.delta)[:, places]
            for start in range(0, len(rows), height)
        ]
        implied = self.epsilon_hat(np.concatenate([np.empty((0, len(places))), *minima]), s=s)
        if flags.ndim == 1:
            return AuditBounds(implied[0, :-1], implied[0, -1])
        return AuditBounds(implied[:, :-1], implied[:, -1])


def _running_minima(
    flags: NDArray[np.bool_], looks: NDArray[np.integer], delta: float
) -> NDArray[np.float64]:
    """The smallest U of n campaigns over the looks up to each one, shape (n, L)."""
    counts = np.zeros((len(flags), flags.shape[1] + 1), dtype=np.int32)
    np.cumsum(flags, axis=1, out=counts[:, 1:])
    counts = counts[:, looks]
    # Campaigns share most pairs of counts: solve each pair that occurs once, whatever the batch.
    columns = np.arange(len(looks))
    occurs = np.zeros((len(looks), int(counts.max(initial=0)) + 1), dtype=np.bool_)
    occurs[columns, counts] = True
    pairs = np.nonzero(occurs)
    table = np.ones(occurs.shape)
    table[pairs] = audit_bounds(pairs[1], looks[pairs[0]], delta=delta)
    minima: NDArray[np.float64] = np.minimum.accumulate(table[columns, counts], axis=1)
    return minima


def _starts(starts: Sequence[int] | NDArray[np.integer], controls: int) -> NDArray[np.int64]:
    """Numbers of revealed controls before each round, checked."""
    before = np.asarray(starts)
    if (
        before.ndim != 1
        or (before.size and before.dtype.kind not in "iu")
        or (before < 0).any()
        or (before > controls).any()
        or (np.diff(before.astype(np.int64)) < 0).any()
    ):
        msg = (
            f"The starts of an audit do not fit its {controls} controls: received "
            f"{before.tolist()!r}, expected for each round the number of controls revealed before "
            f"it, whole numbers from 0 to {controls} that never fall."
        )
        raise RecordError(msg)
    return before.astype(np.int64)

"""Laws under which every read is contaminated with the same probability, whatever its past.

They differ in what a contaminated read becomes, and share its coin: under all of them the same
reads are contaminated. The conditional bound holds for each when epsilon <= epsilon_bar.
"""

from __future__ import annotations

import numpy as np

from cads_env.certificate.cap import working_model
from cads_env.certificate.spec import Certificate
from cads_env.contamination.amounts import (
    Always,
    Amount,
    Between,
    EitherSign,
    ends,
    finite,
    mode_of,
    positive,
)
from cads_env.contamination.batch import Floats, Ints, ReadBatch
from cads_env.errors import CertificateError, ProtocolError


class CoinLaw:
    """A law that tosses a coin a read: with its rate, an amount is added or takes its place.

    Attributes:
        epsilon: The protocol's probability that a read is contaminated, in [0, 1].
        mode: "add" or "replace".
    """

    def __init__(self, epsilon: float, amount: Amount, mode: object) -> None:
        """Keep what a contaminated read becomes.

        Raises:
            ProtocolError: `mode` is neither "add" nor "replace".
        """
        self.epsilon, self.mode, self._amount = float(epsilon), mode_of(mode), amount

    def rates(self, batch: ReadBatch) -> Floats:
        """Probability, given the past, that each read is contaminated, shape (r,)."""
        return np.full(batch.clean.size, self.epsilon)

    def touched(self, batch: ReadBatch) -> Ints:
        """Positions of the contaminated reads."""
        return batch.coin(self.epsilon) if self.epsilon > 0 else np.empty(0, np.int64)

    def contaminate(self, batch: ReadBatch) -> Floats:
        """Change the reads that are touched, in place."""
        reads, at = batch.clean, self.touched(batch)
        if self.mode == "add":
            # `take` gathers faster than an index, and an in-place addition would index twice.
            reads[at] = reads.take(at) + self._amount(batch, at)
        else:
            reads[at] = self._amount(batch, at)
        return reads


class Uniform(CoinLaw):
    """`uniform`: U(low, high) is added to the read, or takes its place."""

    def __init__(
        self, epsilon: float, *, low: float = 2.0, high: float = 4.0, mode: str = "add"
    ) -> None:
        """Check the range.

        Args:
            epsilon: Probability in [0, 1].
            low: Smallest amount, in units of the effect.
            high: Largest amount, not below `low`.
            mode: "add" or "replace".

        Raises:
            ProtocolError: The range is empty or not finite.
        """
        self.low, self.high = ends(low, high)
        super().__init__(epsilon, Between(self.low, self.high), mode)


class PointMass(CoinLaw):
    """`point-mass`: a contaminated read is the one that just saturates a certificate's cap.

    y_C = (ln C* + theta**2 / (2 s**2)) s**2 / theta, the smallest read of largest evidence.

    Source: CADS, Table S7.
    """

    def __init__(
        self,
        epsilon: float,
        *,
        at: float | None = None,
        epsilon_bar: float = 0.1,
        theta: float = 0.7,
        s: float = 0.5,
        mode: str = "replace",
    ) -> None:
        """Place the mass.

        Args:
            epsilon: Probability in [0, 1].
            at: The read; None for y_C of the certificate that the next three declare.
            epsilon_bar: Its contamination bound, above 0.
            theta: Its working alternative.
            s: Its clean sd.
            mode: "replace" (the read is `at`) or "add".

        Raises:
            ProtocolError: Not finite, or no certificate has such a bound, alternative and sd.
        """
        self.at = saturating_read(epsilon_bar, theta, s) if at is None else finite("at", at)
        super().__init__(epsilon, Always(self.at), mode)


def saturating_read(epsilon_bar: object, theta: object, s: object) -> float:
    """The smallest read with the largest evidence under a certificate, y_C.

    Raises:
        ProtocolError: A number is outside its range, or `epsilon_bar` is 0: there is no cap.
    """
    bound = finite("epsilon_bar", epsilon_bar)
    try:
        # A certificate's own cap, so that the read is the same in every byte on every CPU.
        certificate = Certificate(epsilon_bar=bound, theta=finite("theta", theta), s=finite("s", s))
        model = working_model(certificate.theta, certificate.s)
    except CertificateError as error:
        msg = f"law_options of 'point-mass': {error}"
        raise ProtocolError(msg) from error
    if bound == 0.0:
        msg = (
            "law_options epsilon_bar is 0; without contamination no read saturates. Give a bound "
            "above 0, or the read itself as at=."
        )
        raise ProtocolError(msg)
    return (certificate.log_cap + model.shift) / model.slope


class Subthreshold(CoinLaw):
    """`subthreshold`: a contaminated read lies just under the threshold of an audit's flag.

    Source: CADS, Table S7.
    """

    def __init__(
        self, epsilon: float, *, tau: float = 1.0, gap: float = 1e-6, mode: str = "replace"
    ) -> None:
        """Place the read at tau - gap.

        Args:
            epsilon: Probability in [0, 1].
            tau: A read above it is flagged.
            gap: How far under it, above 0.
            mode: "replace" (the read is tau - gap) or "add".

        Raises:
            ProtocolError: Not finite, or `gap` is not above 0.
        """
        self.at = finite("tau", tau) - positive("gap", gap)
        super().__init__(epsilon, Always(self.at), mode)


class MixedSign(CoinLaw):
    """`mixed-sign`: plus or minus U(low, high), with equal odds.

    Source: CADS, Table S7.
    """

    def __init__(
        self, epsilon: float, *, low: float = 2.0, high: float = 4.0, mode: str = "add"
    ) -> None:
        """Check the range.

        Args:
            epsilon: Probability in [0, 1].
            low: Smallest size, in units of the effect.
            high: Largest size, not below `low`.
            mode: "add" or "replace".

        Raises:
            ProtocolError: The range is empty or not finite.
        """
        self.low, self.high = ends(low, high)
        super().__init__(epsilon, EitherSign(self.low, self.high), mode)

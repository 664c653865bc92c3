"""Laws that aim: at re-reads, at promising candidates, at a boundary, or at whole campaigns.

Their rate differs from read to read, and the amount is U(low, high), added or in the read's place.
The conditional bound holds only where the largest rate on a null is at most epsilon_bar.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cads_env.contamination.amounts import Between, ends, finite, positive, share
from cads_env.contamination.batch import Floats, Ints, ReadBatch
from cads_env.contamination.laws import CoinLaw
from cads_env.errors import ProtocolError
from cads_env.schedule import RoundPlan
from cads_env.tape import uniforms


class AimedLaw(CoinLaw):
    """A coin law whose rate differs from read to read."""

    def __init__(self, epsilon: float, *, low: float, high: float, mode: str) -> None:
        """Check the amount.

        Raises:
            ProtocolError: The range is empty or not finite, or the mode is unknown.
        """
        self.low, self.high = ends(low, high)
        super().__init__(epsilon, Between(self.low, self.high), mode)

    def touched(self, batch: ReadBatch) -> Ints:
        """Positions of the reads whose coin falls below their own rate."""
        return batch.coin(self.rates(batch))


class Reread(AimedLaw):
    """`reread`: contamination depends on whether a candidate was read before.

    Source: CADS, Table S7 (the text does not give the rates).
    """

    def __init__(
        self,
        epsilon: float,
        *,
        rate: float | None = None,
        first_rate: float = 0.0,
        low: float = 2.0,
        high: float = 4.0,
        mode: str = "add",
    ) -> None:
        """Set both rates.

        Args:
            epsilon: Probability in [0, 1].
            rate: Probability for a re-read, in [0, 1]; None for the one that keeps epsilon as the
                share of contaminated reads in the whole campaign.
            first_rate: Probability for a first read, in [0, 1].
            low: Smallest amount.
            high: Largest amount.
            mode: "add" or "replace".

        Raises:
            ProtocolError: An option is outside its range.
        """
        super().__init__(epsilon, low=low, high=high, mode=mode)
        self.keeps_share = rate is None
        self.rate = self.epsilon if rate is None else share("rate", rate)
        self.first_rate = share("first_rate", first_rate)

    def planned(self, plan: Sequence[RoundPlan]) -> Reread:
        """The law for campaigns of a plan, which says how many of their reads are re-reads.

        Raises:
            ProtocolError: No rate on re-reads keeps epsilon as the share of contaminated reads.
        """
        if not self.keeps_share:
            return self
        first, reads = sum(p.fresh for p in plan), sum(p.reads for p in plan)
        missing = self.epsilon * reads - self.first_rate * first
        # At epsilon = 0 a plan without re-reads is no contradiction.
        rate = missing / (reads - first) if reads > first else missing
        if not 0.0 <= rate <= 1.0:
            msg = (
                f"Contamination law 'reread' cannot contaminate {self.epsilon:g} of all reads: "
                f"{reads - first:,} of {reads:,} are re-reads and first_rate is "
                f"{self.first_rate:g}. Give the rate on re-reads as law_options rate=."
            )
            raise ProtocolError(msg)
        return Reread(
            self.epsilon, rate=rate, first_rate=self.first_rate, low=self.low, high=self.high,
            mode=self.mode,
        )  # fmt: skip

    def rates(self, batch: ReadBatch) -> Floats:
        """`rate` for a candidate that was read before, `first_rate` for another, shape (r,)."""
        return np.where(batch.visits > 0, self.rate, self.first_rate)


class PastHigh(AimedLaw):
    """`past-high`: contamination depends on the candidate's own earlier reads.

    It chases what re-selection chases: candidates whose mean so far is high.
    """

    def __init__(
        self,
        epsilon: float,
        *,
        above: float = 0.0,
        rate: float | None = None,
        other_rate: float = 0.0,
        low: float = 2.0,
        high: float = 4.0,
        mode: str = "add",
    ) -> None:
        """Set what is high and both rates.

        Args:
            epsilon: Probability in [0, 1].
            above: A candidate is high whose mean over earlier rounds exceeds it.
            rate: Probability for a read of such a candidate, in [0, 1]; None for epsilon.
            other_rate: Probability for any other read, first reads included.
            low: Smallest amount.
            high: Largest amount.
            mode: "add" or "replace".

        Raises:
            ProtocolError: An option is outside its range.
        """
        super().__init__(epsilon, low=low, high=high, mode=mode)
        self.above = finite("above", above)
        self.rate = self.epsilon if rate is None else share("rate", rate)
        self.other_rate = share("other_rate", other_rate)

    def rates(self, batch: ReadBatch) -> Floats:
        """`rate` where the mean so far is high, `other_rate` elsewhere, shape (r,)."""
        # A candidate without a past has mean NaN, which exceeds nothing.
        return np.where(batch.past_means() > self.above, self.rate, self.other_rate)


class NearBoundary(AimedLaw):
    """`near-boundary`: contamination depends on how near a candidate lies to the boundary u = 0.

    Source: CADS, Table S7 (the text does not give width and rates).
    """

    def __init__(
        self,
        epsilon: float,
        *,
        width: float = 0.3,
        rate: float | None = None,
        other_rate: float = 0.0,
        low: float = 2.0,
        high: float = 4.0,
        mode: str = "add",
    ) -> None:
        """Set what is near and both rates.

        Args:
            epsilon: Probability in [0, 1].
            width: A candidate is near when abs(u) is below it; above 0, in units of the effect.
            rate: Probability for a read of such a candidate, in [0, 1]; None for epsilon. How many
                reads they get depends on the reads, so nothing else follows from epsilon.
            other_rate: Probability for any other read.
            low: Smallest amount.
            high: Largest amount.
            mode: "add" or "replace".

        Raises:
            ProtocolError: An option is outside its range.
        """
        super().__init__(epsilon, low=low, high=high, mode=mode)
        self.width = positive("width", width)
        self.rate = self.epsilon if rate is None else share("rate", rate)
        self.other_rate = share("other_rate", other_rate)

    def rates(self, batch: ReadBatch) -> Floats:
        """`rate` where abs(u) < width, `other_rate` elsewhere, shape (r,)."""
        return np.where(np.abs(batch.signal) < self.width, self.rate, self.other_rate)


class CampaignCoin(AimedLaw):
    """`campaign-coin`: one coin a campaign decides for all its reads or none.

    The share of contaminated reads is epsilon on average over campaigns, but given a past in which
    the coin has shown it is 0 or 1, so that no epsilon_bar below 1 bounds it.

    Source: CADS, Table S7.
    """

    def __init__(
        self, epsilon: float, *, low: float = 2.0, high: float = 4.0, mode: str = "add"
    ) -> None:
        """Check the amount.

        Args:
            epsilon: Probability that a campaign is contaminated, in [0, 1].
            low: Smallest amount.
            high: Largest amount.
            mode: "add" or "replace".

        Raises:
            ProtocolError: An option is outside its range.
        """
        super().__init__(epsilon, low=low, high=high, mode=mode)

    def rates(self, batch: ReadBatch) -> Floats:
        """Epsilon for the first reads of round 0, then what the coin has shown, shape (r,)."""
        unseen = (batch.visits == 0) if batch.round == 0 else np.zeros(batch.visits.size, np.bool_)
        shown: Floats = self._fallen(batch).astype(np.float64)
        return np.where(unseen, self.epsilon, shown)

    def touched(self, batch: ReadBatch) -> Ints:
        """Every read of a campaign whose coin fell, no read of another."""
        return np.flatnonzero(self._fallen(batch))

    def _fallen(self, batch: ReadBatch) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        fallen = uniforms(batch.campaign_words) < self.epsilon
        return fallen.take(batch.rows)

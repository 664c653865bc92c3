"""What a row of a check claims of a mean, and whether the campaigns bear it out.

Three outcomes: the claim holds, it does not, or there were too few campaigns to tell. Rows whose
failing would be a false alarm fail only beyond chance, at a level shared out over all rows of a
self-check. Works on plain numbers; knows no screen.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from numpy.typing import ArrayLike

from cads_env.inference import clustered

Kind = Literal["above", "not above", "not below", "zero"]
Status = Literal["pass", "fail", "undecided"]


class Bounds(NamedTuple):
    """What a claim is judged by.

    Attributes:
        confidence: Coverage of the interval of one row, in (0, 1).
        resolution: Widest half interval that still shows a net to be 0 or not below a bound, in
            declarations.
        least_campaigns: Fewer campaigns that are all alike decide nothing.
    """

    confidence: float
    resolution: float
    least_campaigns: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A claim with the numbers that decide it.

    Attributes:
        name: What is measured.
        kind: "above" (the mean is shown to exceed `bound`), "not above" (shown to be at most
            `bound`), "not below" (not shown to be under `bound`, and known well enough) or "zero"
            (not shown to differ from 0, and known well enough).
        bound: In declarations; 0 for "zero".
        mean: Mean over campaigns, in declarations.
        low: Lower end of the interval that decides.
        high: Upper end.
        n: Campaigns.
        registries: Registries that the interval takes as drawn; 1 means the seeds of one.
        status: "pass", "fail", or "undecided" when more campaigns are needed.
    """

    name: str
    kind: Kind
    bound: float
    mean: float
    low: float
    high: float
    n: int
    registries: int
    status: Status

    def to_json(self) -> dict[str, Any]:
        """Every field as a JSON value; what is undefined is None."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return {
            k: None if isinstance(v, float) and not math.isfinite(v) else v
            for k, v in plain.items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim with its campaigns, before it is judged.

    Attributes:
        name: What is measured.
        kind: As in `Row`.
        values: One number a campaign, shape (n,).
        groups: Each campaign's registry, shape (n,).
        bound: As in `Row`.
    """

    name: str
    kind: Kind
    values: ArrayLike
    groups: Sequence[Hashable]
    bound: float = 0.0

    def judged(self, bounds: Bounds) -> Row:
        """The row of this claim.

        Args:
            bounds: Confidence of its interval, and the resolution asked for.
        """
        found = clustered(self.values, self.groups, confidence=bounds.confidence)
        row = Row(
            name=self.name,
            kind=self.kind,
            bound=self.bound,
            mean=found.mean,
            low=found.low,
            high=found.high,
            n=found.n,
            registries=found.registries,
            status="undecided",
        )
        return replace(row, status=_status(row, bounds))


def _status(row: Row, bounds: Bounds) -> Status:
    # Without any spread the interval is a point, however few campaigns there were.
    is_point = row.low == row.high and row.n < bounds.least_campaigns
    if math.isnan(row.low) or is_point:
        return "undecided"
    if row.kind == "above":
        return _shown(row.low > row.bound, row.high <= row.bound)
    if row.kind == "not above":
        return _shown(row.high <= row.bound, row.low > row.bound)
    if row.kind == "not below":
        return _shown(row.low >= row.bound or _is_fine(row, bounds), row.high < row.bound)
    return _shown(_is_fine(row, bounds), not row.low <= 0 <= row.high)


def _is_fine(row: Row, bounds: Bounds) -> bool:
    return (row.high - row.low) / 2 <= bounds.resolution


def _shown(holds: bool, contradicted: bool) -> Status:
    # A contradiction wins: a difference may be well known and still not 0.
    return "fail" if contradicted else "pass" if holds else "undecided"

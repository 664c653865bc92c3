"""The outcome of a self-check: its checks, the points of its figures, and its verdict.

Plain values that are written as JSON and compared; computes no statistic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from cads_env.inference import Estimate
from cads_env.selfcheck.draft import Check

SCHEMA_VERSION: Final = 1
KIND: Final = "cads-selfcheck"

Word = Literal["passed", "failed", "undecided"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One mean of a figure, with a 95 % interval.

    Attributes:
        series: "noise", "late", "feedback" or "names".
        label: What is measured, in words.
        at: Where it stands: a noise (None for infinite), a round, or a structure.
        by: Second coordinate, the name information of a cell; None where there is none.
        mean: In declarations.
        low: Lower end of its 95 % interval; None with fewer than two units.
        high: Upper end.
    """

    series: str
    label: str
    at: float | None
    by: float | None
    mean: float
    low: float | None
    high: float | None

    @classmethod
    def of(
        cls, estimate: Estimate, *, series: str, label: str, at: float | None,
        by: float | None = None,
    ) -> Point:  # fmt: skip
        """The point of an estimate."""
        known = estimate.low == estimate.low  # NaN is not equal to itself
        low, high = (estimate.low, estimate.high) if known else (None, None)
        return cls(series=series, label=label, at=at, by=by, mean=estimate.mean, low=low, high=high)

    def to_json(self) -> dict[str, Any]:
        """Every field."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, kw_only=True)
class SelfCheck:
    """What a self-check found of one protocol on one panel.

    Attributes:
        protocol: Name of the protocol.
        protocol_hash: SHA-256 of everything in it that can change a read.
        certificate: epsilon_bar, theta, s and q that judged.
        panel: Name of the panel.
        registries: Registries that were played.
        checks: In the order in which they are told.
        points: What the figures show.
        twin: Mean declared hits of the twin in the ladder's campaigns.
        false: Mean declared nulls of a ladder campaign, over all its arms.
        campaigns: Campaigns played, twins included.
        settings: Sizes and thresholds.
        version: Version of cads-env that played.
        protocol_fields: Every field of the protocol.
    """

    protocol: str
    protocol_hash: str
    certificate: Mapping[str, float]
    panel: str
    registries: int
    checks: tuple[Check, ...]
    points: tuple[Point, ...]
    twin: float
    false: float
    campaigns: int
    settings: Mapping[str, Any]
    version: str
    protocol_fields: Mapping[str, Any]

    @property
    def applicable(self) -> tuple[Check, ...]:
        """The checks that apply to the panel."""
        return tuple(c for c in self.checks if c.verdict != "not applicable")

    @property
    def passed(self) -> bool:
        """Whether every check that applies is passed."""
        return all(check.verdict == "pass" for check in self.applicable)

    @property
    def word(self) -> Word:
        """The verdict in a word: one failed check decides before an undecided one."""
        return word_of([check.verdict for check in self.checks])

    @property
    def passed_count(self) -> int:
        """Checks that are passed."""
        return sum(check.verdict == "pass" for check in self.checks)

    @property
    def verdict(self) -> str:
        """The verdict in a sentence, with the first reason when it is not passed."""
        count = f"{self.passed_count} of {len(self.applicable)} checks passed"
        if self.passed:
            return f"{self.protocol} passed its self-check on {self.panel}: {count}."
        bad = [c for c in self.checks if c.verdict == ("fail" if self.word == "failed" else
                                                       "undecided")]  # fmt: skip
        first = f"{bad[0].name}: {bad[0].says}"
        if self.word == "failed":
            return (
                f"Not a ranked protocol: {self.protocol} failed its self-check ({count}). {first}"
            )
        return f"{self.protocol} is undecided on {self.panel} ({count}). {first}"

    def to_json(self) -> dict[str, Any]:
        """The whole outcome as JSON values."""
        return {
            "kind": KIND,
            "schema_version": SCHEMA_VERSION,
            "cads_env": self.version,
            "protocol": self.protocol,
            "protocol_hash": self.protocol_hash,
            "protocol_fields": dict(self.protocol_fields),
            "certificate": dict(self.certificate),
            "panel": self.panel,
            "registries": self.registries,
            "campaigns": self.campaigns,
            "verdict": self.word,
            "says": self.verdict,
            "passed": self.passed_count,
            "applicable": len(self.applicable),
            "twin": self.twin,
            "false": self.false,
            "checks": [check.to_json() for check in self.checks],
            "points": [point.to_json() for point in self.points],
            "settings": dict(self.settings),
        }

    def __str__(self) -> str:
        """The verdict and one line a check."""
        lines = [f"{c.verdict:>14}  {c.name}: {c.says}" for c in self.checks]
        return "\n".join([self.verdict, *lines])


def word_of(verdicts: Sequence[str]) -> Word:
    """The verdict over several checks.

    Args:
        verdicts: Of each check.
    """
    if "fail" in verdicts:
        return "failed"
    return "undecided" if "undecided" in verdicts else "passed"

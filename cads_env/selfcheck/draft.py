"""One check: what it claims, its verdict over the rows, and the sentence that it says.

The worst row speaks for a check that is not passed. Knows no scene and no score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cads_env.selfcheck.claims import Bounds, Claim, Row, Status

Verdict = Literal["pass", "fail", "undecided", "not applicable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check with its verdict.

    Attributes:
        name: Short name.
        asks: What a sound protocol must show.
        verdict: "pass", "fail", "undecided" (too few campaigns) or "not applicable".
        says: The verdict in a sentence.
        rows: The claims with their numbers; empty when not applicable.
        notes: What was left out, and why.
    """

    name: str
    asks: str
    verdict: Verdict
    says: str
    rows: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The check as JSON values."""
        return {
            "name": self.name,
            "asks": self.asks,
            "verdict": self.verdict,
            "says": self.says,
            "rows": [row.to_json() for row in self.rows],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A check before it is judged.

    Attributes:
        name: Short name.
        asks: What a sound protocol must show.
        holds: The sentence when it does, from the judged rows.
        claims: What is claimed; empty when not applicable.
        notes: What was left out, and why.
        inapplicable: Why it does not apply, or empty.
        because: A sentence added when it fails, or empty.
    """

    name: str
    asks: str
    holds: Callable[[Sequence[Row]], str]
    claims: tuple[Claim, ...] = ()
    notes: tuple[str, ...] = ()
    inapplicable: str = ""
    because: str = ""

    def judged(self, bounds: Bounds) -> Check:
        """The check with its verdict.

        Args:
            bounds: What each of its rows is judged by.
        """
        if self.inapplicable:
            return Check(
                name=self.name,
                asks=self.asks,
                verdict="not applicable",
                says=f"{self.inapplicable[0].upper()}{self.inapplicable[1:]}.",
                notes=self.notes,
            )
        rows = tuple(claim.judged(bounds) for claim in self.claims)
        statuses: set[Status] = {row.status for row in rows}
        verdict: Status = (
            "fail" if "fail" in statuses else "undecided" if "undecided" in statuses else "pass"
        )
        return Check(
            name=self.name,
            asks=self.asks,
            verdict=verdict,
            says=self._says(rows, verdict, bounds),
            rows=rows,
            notes=self.notes,
        )

    def _says(self, rows: Sequence[Row], verdict: Status, bounds: Bounds) -> str:
        if verdict == "pass":
            return self.holds(rows)
        worst = max((row for row in rows if row.status == verdict), key=_distance)
        said = f"{worst.name}: {worst.mean:+.2f} [{worst.low:.2f}, {worst.high:.2f}]"
        count = sum(row.status == verdict for row in rows)
        more = f"; {count} of {len(rows)} rows" if count > 1 else ""
        if verdict == "undecided":
            return f"Too few campaigns to tell: {said}, {_wanted(worst, bounds)}{more}."
        because = f" {self.because}" if self.because else ""
        return f"{said}, {_wanted(worst, bounds)}{more}.{because}"


def _distance(row: Row) -> float:
    """How far a row is on the wrong side of what is wanted."""
    if row.kind == "not above":
        return row.mean - row.bound
    return abs(row.mean) if row.kind == "zero" else row.bound - row.mean


def _wanted(row: Row, bounds: Bounds) -> str:
    if row.kind == "above":
        return f"expected above {row.bound:g}"
    if row.kind == "not above":
        return f"expected at most {row.bound:g}"
    known = f" and known within {bounds.resolution:.2g}" if row.status == "undecided" else ""
    return f"expected {'0' if row.kind == 'zero' else f'not below {row.bound:g}'}{known}"

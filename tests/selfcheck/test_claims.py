"""Claims of means: they hold, they do not, or there were too few campaigns to tell."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from cads_env.selfcheck.claims import Bounds, Claim, Kind, Status

BOUNDS = Bounds(confidence=0.99, resolution=1.0)
N = 40


def spread(mean: float, sd: float) -> NDArray[np.float64]:
    """Numbers of exactly this mean, up and down by sd in turn."""
    return mean + sd * np.where(np.arange(N) % 2 == 0, 1.0, -1.0)


def status(kind: Kind, mean: float, sd: float, bound: float = 0.0) -> Status:
    claim = Claim(name="x", kind=kind, values=spread(mean, sd), groups=range(N), bound=bound)
    return claim.judged(BOUNDS).status


@pytest.mark.parametrize(
    ("kind", "mean", "sd", "bound", "expected"),
    [
        ("above", 6.0, 1.0, 5.0, "pass"),
        ("above", 5.2, 1.0, 5.0, "undecided"),
        ("above", 4.0, 1.0, 5.0, "fail"),
        ("not above", -2.0, 1.0, 0.25, "pass"),
        ("not above", 0.2, 1.0, 0.25, "undecided"),
        ("not above", 1.0, 1.0, 0.25, "fail"),
        ("not below", 0.0, 1.0, -0.25, "pass"),
        ("not below", -0.4, 1.0, -0.25, "pass"),
        ("not below", -2.0, 1.0, -0.25, "fail"),
        ("not below", 0.0, 9.0, -0.25, "undecided"),
        ("not below", 9.0, 9.0, -0.25, "pass"),
        ("zero", 0.1, 1.0, 0.0, "pass"),
        ("zero", 0.9, 1.0, 0.0, "fail"),
        ("zero", -0.9, 1.0, 0.0, "fail"),
        ("zero", 0.1, 9.0, 0.0, "undecided"),
    ],
)
def test_a_claim_has_three_outcomes(
    kind: Kind, mean: float, sd: float, bound: float, expected: Status
) -> None:
    assert status(kind, mean, sd, bound) == expected


def test_a_precise_difference_from_zero_fails_however_small() -> None:
    assert status("zero", 0.1, 0.01) == "fail"


def test_few_campaigns_that_are_all_alike_decide_nothing() -> None:
    for n, expected in ((7, "undecided"), (8, "fail")):
        claim = Claim(name="x", kind="above", values=[0.0] * n, groups=range(n))
        assert claim.judged(BOUNDS).status == expected


def test_one_campaign_decides_nothing() -> None:
    row = Claim(name="x", kind="above", values=[100.0], groups=[0]).judged(BOUNDS)
    assert row.status == "undecided"
    assert row.to_json()["low"] is None


def test_the_registry_is_the_unit() -> None:
    values = spread(1.0, 0.0) + np.repeat([3.0, -3.0], N // 2)
    groups = np.repeat([0, 1], N // 2).tolist()
    row = Claim(name="x", kind="above", values=values, groups=groups).judged(BOUNDS)
    assert (row.n, row.registries, row.status) == (N, 2, "undecided")

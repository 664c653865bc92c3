"""Each check passes on what a sound protocol gives, and fails when its own data say so."""

from __future__ import annotations

import numpy as np
import pytest

from cads_env.inference import clopper_pearson
from cads_env.selfcheck.checks import (
    HARMFUL,
    LATE,
    MEMORY,
    NEGATIVE,
    POSITIVE,
    QUALITY,
    SURFACE,
)
from cads_env.selfcheck.claims import Bounds, Claim, Kind
from cads_env.selfcheck.scenes import (
    EVAL,
    LADDER,
    LEARNER,
    MEMORISER,
    OWN,
    PERFECT,
    REVERSE,
    SHUFFLED,
    noise_name,
    start_name,
)
from tests.selfcheck.made import checks

KINDS: tuple[Kind, ...] = ("zero", "not below")


def test_every_check_passes_for_a_sound_protocol() -> None:
    found = checks()
    assert [(name, check.verdict) for name, check in found.items()] == [
        (name, "pass") for name in (QUALITY, LATE, POSITIVE, NEGATIVE, HARMFUL, MEMORY, SURFACE)
    ]


@pytest.mark.parametrize(
    ("changes", "fails"),
    [
        ({(LADDER, noise_name(1.0)): -5.0}, {QUALITY}),
        ({(LADDER, PERFECT): 20.0}, {QUALITY, LATE}),
        ({(LADDER, start_name(2)): -3.0}, {LATE}),
        ({(LADDER, start_name(2)): 45.0}, {LATE}),
        ({(LADDER, REVERSE): 3.0}, {HARMFUL}),
        ({(SHUFFLED, "nothing"): 4.0}, {NEGATIVE}),
        ({(SHUFFLED, MEMORISER): -4.0}, {NEGATIVE}),
        ({(OWN, MEMORISER): -4.0}, {MEMORY}),
        ({(EVAL, MEMORISER): 5.0}, {MEMORY}),
        ({("structure 0, names 0", LEARNER): 5.0}, {POSITIVE, SURFACE}),
        ({("structure 0.4, names 0", LEARNER): -5.0}, {POSITIVE}),
        ({("structure 0.4, names 0.25", MEMORISER): -40.0}, {SURFACE}),
        ({("structure 0.4, names 0", MEMORISER): 12.0}, {SURFACE}),
    ],
)
def test_a_check_fails_when_its_data_say_so(
    changes: dict[tuple[str, str], float], fails: set[str]
) -> None:
    found = checks(changes)
    assert {name for name, check in found.items() if check.verdict == "fail"} == fails


def test_late_starters_that_lose_tell_of_the_reach() -> None:
    said = checks({(LADDER, start_name(2)): -3.0})[LATE].says
    assert said.startswith("perfect from round 2, net: -3.00 [")
    assert said.endswith("Only round 0 counts.")


def test_a_protocol_under_which_nothing_is_found_does_not_pass() -> None:
    arms = (PERFECT, noise_name(1.0), start_name(1), REVERSE)
    found = checks({(LADDER, arm): 0.0 for arm in arms})
    assert found[QUALITY].verdict == "fail"


def test_a_protocol_on_the_edge_of_every_claim_fails_as_rarely_as_promised() -> None:
    generator = np.random.default_rng(0)
    share, repeats, sizes = 0.05, 200, (1, 2, 8, 16)
    alarms = 0
    for _ in range(repeats):
        statuses = {
            Claim(name="x", kind=KINDS[i % 2], values=generator.normal(size=32), groups=range(32))
            .judged(Bounds(confidence=1 - share / (len(sizes) * rows), resolution=9.0))
            .status
            for rows in sizes
            for i in range(rows)
        }
        alarms += "fail" in statuses
    # One-sided rows fail half as often as they may.
    assert clopper_pearson(alarms, repeats, confidence=0.999).low <= share
    assert alarms > 0


def test_without_a_generator_two_checks_do_not_apply_and_memory_says_why() -> None:
    found = checks(with_generator=False)
    not_applied = {name for name, check in found.items() if check.verdict == "not applicable"}
    assert not_applied == {POSITIVE, SURFACE}
    assert found[POSITIVE].says == "No generator."
    assert len(found[MEMORY].rows) == 1
    assert "no splits" in found[MEMORY].notes[0]


def test_an_agent_that_broke_is_left_out_with_its_reason() -> None:
    found = checks({(SHUFFLED, "nothing"): 40.0}, failures={"nothing": "no network"})[NEGATIVE]
    assert [row.name for row in found.rows] == [MEMORISER]
    assert found.notes == ("nothing left out: no network",)
    assert found.verdict == "pass"

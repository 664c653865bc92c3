"""Settings of the self-check."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cads_env.errors import RunError
from cads_env.selfcheck import load_settings


def test_the_shipped_settings_are_usable_and_plain() -> None:
    settings = load_settings()
    assert json.loads(json.dumps(settings.to_json(), allow_nan=False)) == settings.to_json()
    assert settings.ladder.starts(12) == (1, 3, 4, 6, 7, 9, 10, 11)


def test_late_starts_follow_the_number_of_rounds() -> None:
    ladder = load_settings().ladder
    assert ladder.starts(24) == (2, 6, 8, 12, 14, 18, 20, 22)
    assert ladder.starts(3) == (1, 2)
    assert ladder.starts(1) == ()


def test_a_number_of_seeds_holds_for_every_scene() -> None:
    settings = load_settings().with_seeds(3)
    sizes = (settings.ladder.seeds, settings.memory.eval_seeds, settings.surface.train_seeds)
    assert sizes == (3, 3, 3)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"false_alarm": 0}, "false_alarm is 0"),
        ({"nonsense": 1}, "have no 'nonsense'"),
        ({"ladder": {"noise": [1.0, 2.0]}}, "ladder.noise"),
        ({"ladder": {"seeds": 1}}, "ladder.seeds is 1"),
        ({"surface": {"positive_structure": 0.3}}, "one of surface.structure"),
    ],
)
def test_settings_that_cannot_be_used_are_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(RunError, match=said):
        load_settings(changes)

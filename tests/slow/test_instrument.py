"""The instrument's own checks: scores rise with skill and with nothing else."""

from __future__ import annotations

import json
import os
from importlib import resources
from typing import Any

import pytest

from cads_env.protocol import load_protocol
from cads_env.run.executors import Executor
from cads_env.selfcheck import SelfCheck, selfcheck
from cads_env.selfcheck.badge import FOLDER, record_name
from cads_env.selfcheck.checks import LATE, NEGATIVE

pytestmark = pytest.mark.slow

JOBS = min(2, os.cpu_count() or 1)


def _checked(protocol: str) -> SelfCheck:
    outcome = selfcheck(protocol, executor=Executor(jobs=JOBS))
    print(outcome)
    return outcome


def _shipped(outcome: SelfCheck) -> dict[str, Any]:
    path = resources.files("cads_configs") / FOLDER / record_name(outcome)
    recorded: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return recorded


def test_standard_passes_every_check_and_gives_the_shipped_figures() -> None:
    outcome = _checked("standard")
    assert outcome.passed
    assert len(outcome.applicable) == 7
    assert outcome.false < 0.1
    assert _figures(outcome.to_json()) == _figures(_shipped(outcome))


def test_proposer_is_refused_because_late_starters_lose() -> None:
    outcome = _checked("proposer")
    assert outcome.word == "failed"
    late = next(check for check in outcome.checks if check.name == LATE)
    assert late.verdict == "fail"
    assert late.says.endswith("a good pick after that takes reads from those that can.")
    from_round_4 = next(row for row in late.rows if row.name == "perfect from round 4, net")
    assert from_round_4.high < 0
    assert load_protocol("proposer").hash == outcome.protocol_hash
    assert _figures(outcome.to_json()) == _figures(_shipped(outcome))


def _figures(data: dict[str, Any]) -> Any:
    """What was measured, to 6 decimals; other people's agents are none of a record's."""
    rows = [c["rows"] for c in data["checks"] if c["name"] != NEGATIVE]
    text = json.dumps([rows, data["points"], data["twin"], data["false"], data["verdict"]])
    return json.loads(text, parse_float=lambda digits: round(float(digits), 6))

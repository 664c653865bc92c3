"""The README's Python examples run, top to bottom, in one namespace."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


def _blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def test_python_examples_run_from_top_to_bottom(capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, Any] = {"__name__": "readme"}
    blocks = _blocks("python")
    assert len(blocks) == 5
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)
    printed = capsys.readouterr().out
    assert "certified, twin" in printed
    assert "Neighbours: net" in printed
    assert "0.977" in printed


def test_every_python_example_runs_alone_too(capsys: pytest.CaptureFixture[str]) -> None:
    for block in _blocks("python"):
        exec(compile(block, "README.md", "exec"), {"__name__": "readme"})
        assert capsys.readouterr().out


def test_the_two_command_lines_stand_alone() -> None:
    lines = [block.strip() for block in _blocks("")]
    assert "pip install -e . && cads run" in lines
    assert "pip install -e '.[test]' && pytest" in lines


def test_the_campaign_example_has_twenty_lines_at_most() -> None:
    code = [line for line in _blocks("python")[0].splitlines() if line.strip()]
    assert len(code) <= 20

"""The frozen vectors that every file of this folder checks against."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def vectors() -> dict[str, Any]:
    path = Path(__file__).parents[1] / "vectors" / "statistics.json"
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded

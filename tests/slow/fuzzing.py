"""Runs a fuzzing program in a process of its own and reads what it found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def fuzz(program: str, *arguments: object, folder: Path) -> dict[str, Any]:
    """What a program of this folder printed; a process that died is a fault of its last case."""
    places = [ROOT, *(ROOT / name for name in ("agents", "configs", "leaderboard"))]
    paths = [*map(str, places), os.environ.get("PYTHONPATH", "")]
    command = [sys.executable, "-W", "error", "-m", f"tests.slow.{program}", *map(str, arguments)]
    # One thread a process: a limit of memory counts the room of each.
    changes = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **changes}, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        case = folder / "case"
        last = case.read_text() if case.is_file() else "none"
        return {"faults": [f"died in case {last}: {done.returncode}: {done.stderr[-2_000:]}"]}
    return dict(json.loads(done.stdout))

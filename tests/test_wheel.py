"""The built wheel holds the packages, their data and types, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_every_package_file_is_in_the_wheel(names: set[str]) -> None:
    roots = {
        "cads_env": ROOT / "cads_env",
        "cads_agents": ROOT / "agents" / "cads_agents",
        "cads_leaderboard": ROOT / "leaderboard" / "cads_leaderboard",
        "cads_configs": ROOT / "configs" / "cads_configs",
    }
    for package, folder in roots.items():
        for path in folder.rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                assert f"{package}/{path.relative_to(folder).as_posix()}" in names
        assert f"{package}/py.typed" in names
    for preset in ("standard", "sweep", "proposer"):
        assert f"cads_configs/protocols/{preset}.yaml" in names


def test_nothing_else_is_in_the_wheel(names: set[str]) -> None:
    tops = {name.split("/")[0] for name in names}
    packages = {"cads_env", "cads_agents", "cads_leaderboard", "cads_configs"}
    assert {top for top in tops if not top.endswith(".dist-info")} == packages

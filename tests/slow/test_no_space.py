"""A disk that fills up and a disk that is read-only: a clear error, and nothing is lost."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

RUN = (
    "run", "--registry", "synthetic-depmap-6000:dev", "--set", "rounds=5", "--seeds", "0-9",
    "--agent", "random",
)  # fmt: skip
ROWS = ("campaigns", "rounds", "declarations", "reads")


def cads(*arguments: str, jobs: int = 1) -> subprocess.CompletedProcess[str]:
    more = ("--jobs", str(jobs)) if arguments[0] == "run" else ()
    return subprocess.run(
        [sys.executable, "-m", "cads_env", *arguments, *more],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


def mount(*arguments: str) -> bool:
    if shutil.which("mount") is None:
        return False
    return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 160 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    if not mount("-t", "tmpfs", "-o", "size=160k", "tmpfs", str(place)):
        pytest.skip("may not mount a file system")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_full_disk_ends_the_run_and_more_room_ends_it_well(
    jobs: int, disk: Path, tmp_path: Path
) -> None:
    assert cads(*RUN, "--out", str(tmp_path / "whole")).returncode == 0
    broken = cads(*RUN, "--out", str(disk / "run"), jobs=jobs)
    assert broken.returncode == 1
    assert "No space left on device" in broken.stderr
    assert "What was complete before is still there" in broken.stderr
    assert "Traceback" not in broken.stderr
    assert (disk / "run" / "campaigns.jsonl").stat().st_size > 0
    # As it is, the same command fails the same way and loses nothing.
    again = cads(*RUN, "--out", str(disk / "run"), jobs=jobs)
    assert (again.returncode, "Traceback" in again.stderr) == (1, False)
    assert mount("-o", "remount,size=8m", str(disk))
    assert cads(*RUN, "--out", str(disk / "run"), jobs=jobs).returncode == 0
    for name in ROWS:
        one, two = (p / f"{name}.jsonl" for p in (disk / "run", tmp_path / "whole"))
        assert one.read_bytes() == two.read_bytes(), name


def test_a_read_only_disk_is_named_and_its_runs_can_be_read(disk: Path, tmp_path: Path) -> None:
    assert mount("-o", "remount,size=8m", str(disk))
    assert cads(*RUN, "--out", str(disk / "run")).returncode == 0
    before = {p.name: p.read_bytes() for p in (disk / "run").iterdir()}
    assert mount("-o", "remount,ro", str(disk))
    for arguments in (
        (*RUN, "--out", str(disk / "other")),
        (*RUN, "--out", str(disk / "run")),
        ("report", str(disk / "run")),
        ("export", str(disk / "run"), "--csv", "--out", str(disk / "export")),
        ("split", str(disk / "run"), "--seeds", "0-3", "--out", str(disk / "split")),
    ):
        done = cads(*arguments)
        assert done.returncode == 1, arguments
        assert "Read-only file system" in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
    assert cads("compare", str(disk / "run"), "--baseline", "random").returncode == 1
    assert cads("report", str(disk / "run"), "--out", str(tmp_path / "report")).returncode == 0
    assert {p.name: p.read_bytes() for p in (disk / "run").iterdir()} == before

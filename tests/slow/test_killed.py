"""Runs that are killed at any moment and gone on with: the same bytes as one that nothing broke."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL"),
]

ROWS = ("campaigns", "rounds", "declarations", "reads", "failures")
AGENT = """
import time
from cads_env.proposer import ProposerFailed

class Slow:
    def __init__(self, seed):
        self.seed = seed

    def propose(self, view):
        time.sleep(0.01)
        if self.seed % 3 == 0 and view.round == 3:
            raise ProposerFailed("no answer")
        return [n for n in view.identifiers if n not in set(view.tested)][: view.slots]
"""
COMMAND = (
    "run", "--registry", "synthetic-depmap-6000:dev", "--set", "rounds=5",
    "--agent", "slow.py", "--agent", "random",
)  # fmt: skip


def start(folder: Path, out: str, jobs: int, seeds: str = "0-19") -> subprocess.Popen[bytes]:
    command = [
        *(sys.executable, "-m", "cads_env", *COMMAND, "--seeds", seeds),
        *("--jobs", str(jobs), "--out", out),
    ]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(process: subprocess.Popen[bytes]) -> None:
    """Wait for a run that ends by itself; the agent fails in some campaigns, which is code 3."""
    _, said = process.communicate(timeout=300)
    assert process.returncode == 3, said


def children(pid: int) -> list[int]:
    done = subprocess.run(
        ["ps", "--ppid", str(pid), "-o", "pid="], capture_output=True, text=True, check=False
    )
    return [int(line) for line in done.stdout.split()]


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_for_some(folder: Path, process: subprocess.Popen[bytes], moments: random.Random) -> None:
    """Wait a random time from the start, or from some campaign on."""
    rows = folder / "campaigns.jsonl"

    def size() -> int:
        return rows.stat().st_size if rows.exists() else 0

    if moments.random() < 0.25:
        time.sleep(moments.uniform(0.2, 3.0))
        return
    goal = size() + moments.randrange(1, 8_000)
    while size() < goal and process.poll() is None:
        time.sleep(0.005)
    time.sleep(moments.uniform(0.0, 0.1))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_killed_thirty_times_gives_the_bytes_of_an_unbroken_one(
    jobs: int, tmp_path: Path
) -> None:
    (tmp_path / "slow.py").write_text(AGENT, encoding="utf-8")
    finish(start(tmp_path, "whole", 1))
    moments = random.Random(jobs)
    kills = stages = 0
    attempt = 0
    while kills < 30:
        attempt += 1
        out = f"broken-{attempt}"
        # Several kills on one folder; every third folder is killed once only, at any moment.
        for _ in range(1 if attempt % 3 == 0 else 4):
            process = start(tmp_path, out, jobs)
            wait_for_some(tmp_path / out, process, moments)
            workers = children(process.pid)
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                kills += 1
                stages += (tmp_path / out / "campaigns.jsonl").exists()
            process.communicate()
        finish(start(tmp_path, out, jobs))
        for name in ROWS:
            left = (tmp_path / out / f"{name}.jsonl").read_bytes()
            assert left == (tmp_path / "whole" / f"{name}.jsonl").read_bytes(), (out, name)
        manifests = [(tmp_path / f / "manifest.json").read_bytes() for f in (out, "whole")]
        assert manifests[0] == manifests[1]
        time.sleep(1.0)
        assert [pid for pid in workers if alive(pid)] == []
    # Kills before the first campaign test little.
    assert stages >= 15


def test_two_processes_on_one_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(AGENT, encoding="utf-8")
    first = start(tmp_path, "run", 1, seeds="0-2000")
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "run" / "campaigns.jsonl").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        _, said = start(tmp_path, "run", 1, seeds="0-2000").communicate(timeout=60)
        assert first.poll() is None
    finally:
        first.kill()
        first.communicate()
    assert b"Another process is writing into" in said

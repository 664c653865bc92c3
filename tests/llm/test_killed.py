"""A client that is killed five times asks nothing twice, counted in front of the server."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.llm.proxy import CountingProxy
from tests.llm.runs import answers_of, recorded, rows_of, totals
from tests.llm.server import run_cads

pytestmark = pytest.mark.llm

SETTINGS = ("full", "permuted")
PROMPTS = ("thin", "listed", "asked", "informed")
SEEDS = 20
CONCURRENCY = 16
KILLS = 5


def command(proxy: CountingProxy, screen: Path, out: Path) -> list[str]:
    words = ["run", "tiny-random", "-A", f"base_url={proxy.base_url}", "-A", "max_tokens=48"]
    for prompt in PROMPTS:
        words += ["--prompt", prompt]
    words += ["--feedback", ",".join(SETTINGS), "--seeds", f"0-{SEEDS - 1}"]
    words += ["--registry", str(screen), "--protocol", "proposer", "--set", "rounds=3"]
    return [*words, "--concurrency", str(CONCURRENCY), "--out", str(out)]


def kill_after(words: list[str], proxy: CountingProxy, more: int) -> None:
    """Start a run and kill it once so many more requests have arrived."""
    goal = proxy.count() + more
    client = subprocess.Popen(
        [sys.executable, "-m", "cads_env", *words], stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    while proxy.count() < goal:
        assert client.poll() is None, (client.stderr or sys.stdin).read()
        time.sleep(0.01)
    os.kill(client.pid, signal.SIGKILL)
    client.communicate()
    # What was under way still arrives at the server, and nobody keeps it.
    time.sleep(1)


def test_a_run_killed_five_times_asks_nothing_twice_and_ends_as_an_unbroken_one(
    base_url: str, screen: Path, tmp_path: Path
) -> None:
    chance = random.Random(7)
    with CountingProxy(base_url) as proxy:
        words = command(proxy, screen, tmp_path / "killed")
        folders = [tmp_path / "killed" / name for name in SETTINGS]
        before: Counter[str] = Counter()
        for _ in range(KILLS):
            start = proxy.count()
            kill_after(words, proxy, chance.randrange(20, 130))
            now = recorded(*[f for f in folders if f.is_dir()])
            asked, kept = proxy.since(start), now - before
            # All that was kept was asked once; what was asked beside it was under way.
            assert not kept - asked
            assert (asked - kept).total() <= CONCURRENCY
            before = now
        start = proxy.count()
        run_cads(words, folder=tmp_path)
        assert proxy.since(start) == recorded(*folders) - before

        run_cads(command(proxy, screen, tmp_path / "unbroken"), folder=tmp_path)
    others = [tmp_path / "unbroken" / name for name in SETTINGS]
    for folder, other in zip(folders, others, strict=True):
        assert rows_of(folder) == rows_of(other)
        assert answers_of(folder) == answers_of(other)
    assert totals(*folders) == totals(*others)
    assert len(answers_of(folders[0])) == SEEDS * len(PROMPTS)

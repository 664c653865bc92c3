"""Runs that are killed while they ask a server: no recorded answer is asked for again."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cads_env.run import RunResult, evaluate, load_run
from cads_env.run.traces import tally, trace_files
from tests.run.asking import (
    ATTEMPTS,
    PAIR,
    PROTOCOL,
    Asks,
    CountingServer,
    counting_server,
    manifest_of,
    recorded,
    rows_of,
)

SEEDS = range(6)
ARMS = ("one", "two")
ASKED = len(SEEDS) * len(ARMS) * PROTOCOL.rounds * ATTEMPTS
ROOT = Path(__file__).parents[2]
MAIN = """
import sys
from pathlib import Path
from tests.run.test_kills import play
play(Path(sys.argv[1]), sys.argv[2], **{sys.argv[3]: int(sys.argv[4])})
"""


def play(folder: Path, url: str, **how: Any) -> RunResult:
    from cads_env.run.agents import AgentSpec

    specs = [
        AgentSpec(arm, "tests.run.asking:Asks", Asks, {"url": url, "style": arm}) for arm in ARMS
    ]
    return evaluate(specs, registry=PAIR, protocol=PROTOCOL, seeds=SEEDS, out=folder, **how)


def play_and_kill(folder: Path, server: CountingServer, at: int, how: tuple[str, int]) -> None:
    """Play in another process that is killed when the server gets so many more requests."""
    until = sum(server.counts.values()) + at
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, str(folder), server.url, how[0], str(how[1])],
        cwd=ROOT,
        stderr=subprocess.PIPE,
    )
    reached = threading.Event()

    def kill(number: int) -> None:
        if number >= until and not reached.is_set():
            reached.set()
            process.kill()

    server.on_request = kill
    _, said = process.communicate(timeout=120)
    server.on_request = lambda _: None
    assert process.returncode == -signal.SIGKILL, said.decode()


# Workers outlive a killed parent by half a second, in which they may play all that is left.
@pytest.mark.parametrize(
    ("how", "kills"), [(("concurrency", 4), 5), (("jobs", 1), 5), (("jobs", 2), 1)]
)
def test_a_run_killed_at_random_asks_nothing_twice(
    how: tuple[str, int], kills: int, tmp_path: Path
) -> None:
    generator = random.Random(how[1])
    folder = tmp_path / "run"
    with counting_server() as server:
        play(tmp_path / "whole", server.url)
        assert server.counts == recorded(tmp_path / "whole")
        assert sum(server.counts.values()) == ASKED
        server.counts.clear()
        known: Counter[str] = Counter()
        at_kill = server.counts.copy()
        for kill in range(kills):
            play_and_kill(folder, server, generator.randrange(5, 18), how)
            # What had been recorded at the kill before was not asked for after it.
            assert all(server.counts[text] == at_kill[text] for text in known)
            assert load_run(folder).status == "running"
            known, at_kill = recorded(folder), server.counts.copy()
            assert len(known) >= 4 * kill
        result = play(folder, server.url, **{how[0]: how[1]})
        assert all(server.counts[text] == at_kill[text] for text in known)
        # Only what was under way when it was killed came twice.
        assert sum(server.counts.values()) <= ASKED + kills * how[1]
    assert result.status == "complete"
    assert rows_of(folder) == rows_of(tmp_path / "whole")
    assert manifest_of(folder) == manifest_of(tmp_path / "whole")
    assert recorded(folder) == recorded(tmp_path / "whole")
    assert set(recorded(folder).values()) == {1}
    assert tally(folder) == tally(tmp_path / "whole")
    assert len(trace_files(folder)) == len(SEEDS) * len(ARMS)

"""A server with a small context, and one that goes down in the middle of a run."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

import cads_env
from cads_env.run.result import RunResult
from tests.llm.conftest import SMALL
from tests.llm.proxy import CountingProxy
from tests.llm.runs import answers_of, lines_of, rows_of
from tests.llm.server import Server

pytestmark = pytest.mark.llm

TOKENS = 48


def play(
    base_url: str, screen: Path, out: Path, *, retry: bool = False, **fields: int
) -> RunResult:
    options = {"retries": 1, "backoff_s": 0.05, "timeout_s": 20, "max_tokens": TOKENS}
    words = ",".join(f"{name}={value}" for name, value in options.items())
    return cads_env.evaluate(
        {"informed": f"llm:model=tiny-random,base_url={base_url},prompt=informed,{words}"},
        registry=str(screen),
        protocol=cads_env.load_protocol("proposer").override(**fields),
        seeds=range(8),
        concurrency=4,
        out=out,
        retry_failed=retry,
    )


def test_a_history_too_long_for_the_server_is_shortened_and_counted(
    small_server: Server, screen: Path, tmp_path: Path
) -> None:
    result = play(
        small_server.base_url, screen, tmp_path / "run", rounds=4, first_fresh=150, fresh=75
    )
    assert not result.failures
    dropped = [usage.get("history_dropped", 0) for usage in result.rounds["usage"]]
    assert dropped[0] == 0
    assert max(dropped) > 0
    lines = [line for lines in lines_of(tmp_path / "run").values() for line in lines]
    refused = [line for line in lines if line["answer"].get("overflow")]
    assert refused
    assert f"maximum context length is {SMALL} tokens" in refused[0]["answer"]["said"]
    read = [line["answer"]["usage"]["tokens_in"] for line in lines if line not in refused]
    assert max(read) <= SMALL


def test_campaigns_of_a_server_that_goes_down_fail_and_are_played_again_when_it_is_back(
    small_server: Server, screen: Path, tmp_path: Path
) -> None:
    whole = play(small_server.base_url, screen, tmp_path / "whole", rounds=3)
    assert not whole.failures
    with CountingProxy(small_server.base_url) as proxy:

        def go_down() -> None:
            while proxy.count() < 10:
                time.sleep(0.01)
            small_server.kill()

        killer = threading.Thread(target=go_down)
        killer.start()
        lost = play(proxy.base_url, screen, tmp_path / "lost", rounds=3)
        killer.join()
        assert lost.failures
        for failure in lost.failures:
            assert proxy.base_url in failure.reason
        assert len(lost.failures) + len(lost.campaigns) == 8
        small_server.start()
        again = play(proxy.base_url, screen, tmp_path / "lost", rounds=3, retry=True)
    assert not again.failures
    assert rows_of(tmp_path / "lost") == rows_of(tmp_path / "whole")
    kept = {
        path: [pair for pair, line in zip(pairs, lines, strict=True) if "answer" in line]
        for (path, pairs), lines in zip(
            answered(tmp_path / "lost").items(), lines_of(tmp_path / "lost").values(), strict=True
        )
    }
    assert kept == answers_of(tmp_path / "whole")


def answered(folder: Path) -> dict[str, list[tuple[str, str]]]:
    return {
        path: [(line["request_sha256"], line.get("answer", {}).get("text", "")) for line in lines]
        for path, lines in lines_of(folder).items()
    }

"""Speed of runs that ask a model, as ratios of one run: `python benchmarks/llm.py [BASE_URL]`.

Needs the extra `llm`. Starts the tiny random model with `cads serve` unless an address is given.
Ratios are medians over interleaved repeats, and server and client share the machine: one that does
other work as well measures that work.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import cads_env
from cads_agents.llm import LLMProposer
from cads_agents.serving.recipes import words
from cads_env.proposer import Journal
from cads_env.run.replay import replay
from cads_env.run.traces import read_trace, trace_files

PORT = 8219
MODEL = "tiny-random"
ROUNDS = 2
AT_ONCE = 32
MANY = 192
ALONE = 6
"""Campaigns of the measurement one at a time, which is the slow one."""
TOKENS = 128
REPEATS = 3
REPLAYED = 40
WORDS = tuple(words())


class Instant:
    """Answers at once with names that depend on the request."""

    name = "instant"

    def complete(
        self, messages: Sequence[Mapping[str, str]], *, seed: int, extra_body: object = None
    ) -> Mapping[str, Any]:
        """Forty names."""
        start = int(hashlib.sha256(f"{messages[-1]}{seed}".encode()).hexdigest(), 16) % 460
        usage = {"tokens_in": 1_000, "tokens_out": 200, "tokens_cached": 0, "cost": 0.0}
        text = ", ".join(WORDS[start : start + 40])
        return {"text": text, "finish_reason": "stop", "model": "instant", "usage": usage}

    def check_ready(self) -> None:
        """Always."""


def instant(*, seed: int, journal: Journal | None = None) -> LLMProposer:
    """An agent whose model takes no time."""
    return LLMProposer("instant", client=Instant(), seed=seed, journal=journal)


def harness() -> None:
    """Everything but the model: time of a round, and of a replay, at the published size."""
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / "run"
        common: dict[str, Any] = {
            "registry": "synthetic-depmap/0",
            "protocol": "proposer",
            "seeds": range(REPLAYED),
            "concurrency": AT_ONCE,
        }
        cads_env.evaluate({"warm": instant}, **{**common, "seeds": range(2)})
        start, began = time.perf_counter(), time.process_time()
        cads_env.evaluate({"instant": instant}, **common, out=run)
        used = time.process_time() - began
        rounds = REPLAYED * cads_env.load_protocol("proposer").rounds
        each = (time.perf_counter() - start) / rounds * 1e3
        print(
            f"harness ms a campaign-round, m = 18,159: {each:.2f}, of a processor "
            f"{used / rounds * 1e3:.2f}  (target < 5)  {met(each < 5)}"
        )
        start = time.perf_counter()
        done = replay(run, agents={"instant": instant})
        spent = time.perf_counter() - start
        assert done.byte_identical, done.mismatches[:1]
        print(f"replay of {REPLAYED} campaigns: {spent:.1f} s  (target < 10)  {met(spent < 10)}")


def served(base_url: str) -> None:
    """Campaigns of a served model, many at once against one at a time and a bare client."""
    with tempfile.TemporaryDirectory() as place:
        screen = registry_file(Path(place))
        play(base_url, screen, Path(place) / "warm", seeds=range(900, 904), concurrency=4)
        found = [measured(base_url, screen, Path(place) / str(i), i) for i in range(REPEATS)]
    gain = median(one / many for one, many, _ in found)
    share = median(bare / many for _, many, bare in found)
    a_second = 1 / median(many for _, many, _ in found)
    print(
        f"{AT_ONCE} campaigns at once against one: {gain:.1f}, {a_second:.2f} a second  "
        f"(target >= 8)  {met(gain >= 8)}"
    )
    print(
        f"against a bare client with the same prompts: {share:.0%}  (target >= 85 %)  "
        f"{met(share >= 0.85)}"
    )


def measured(base_url: str, screen: Path, folder: Path, repeat: int) -> tuple[float, float, float]:
    """Seconds a campaign: one at a time, many at once, and the same prompts from a bare client."""
    start = 1_000 * (repeat + 1)
    forget(base_url)
    seeds = range(start, start + ALONE)
    one = play(base_url, screen, folder / "one", seeds=seeds, concurrency=1) / ALONE
    forget(base_url)
    # So many that the last ones, which have the server for themselves, do not count for much.
    seeds = range(start + 500, start + 500 + MANY)
    many = play(base_url, screen, folder / "many", seeds=seeds, concurrency=AT_ONCE) / MANY
    forget(base_url)
    requests = [e.request for path in trace_files(folder / "many") for e in read_trace(path)]
    return one, many, bare_client(base_url, requests) / MANY


def play(
    base_url: str, screen: Path, out: Path, *, seeds: Sequence[int], concurrency: int
) -> float:
    """Seconds that campaigns take."""
    options = f"model={MODEL},base_url={base_url},max_tokens={TOKENS},prompt=informed"
    start = time.perf_counter()
    result = cads_env.evaluate(
        {"llm": f"llm:{options}"},
        registry=str(screen),
        protocol=cads_env.load_protocol("proposer").override(rounds=ROUNDS),
        seeds=seeds,
        concurrency=concurrency,
        out=out,
    )
    spent = time.perf_counter() - start
    assert not result.failures, result.failures[0]
    return spent


def bare_client(base_url: str, requests: Sequence[Mapping[str, Any]]) -> float:
    """Seconds that LangChain's own batch takes for the same prompts and seeds."""
    from langchain_core.runnables import RunnableConfig, RunnableLambda
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    model = ChatOpenAI(
        model=MODEL, base_url=base_url, api_key=SecretStr("EMPTY"), max_retries=0,
        use_responses_api=False,
    )  # fmt: skip

    def ask(request: Mapping[str, Any]) -> object:
        return model.invoke(list(request["messages"]), **request["sampling"])

    start = time.perf_counter()
    RunnableLambda(ask).batch(list(requests), RunnableConfig(max_concurrency=AT_ONCE))
    return time.perf_counter() - start


def registry_file(folder: Path) -> Path:
    """A registry whose candidates are words of the tiny model."""
    rows = [f"{name},{-1.5 if i % 10 == 0 else 0.1}" for i, name in enumerate(WORDS)]
    (folder / "screen.csv").write_text("gene,effect\n" + "\n".join(rows) + "\n", encoding="utf-8")
    path = folder / "screen.yaml"
    path.write_text(
        "source: table\npath: screen.csv\nname: words\nidentifier: gene\neffect: effect\n"
        "direction: lower\nthreshold: -0.5\ndescription: Made-up effects of real genes.\n",
        encoding="utf-8",
    )
    return path


def forget(base_url: str) -> None:
    """Empty the server's cache of prompts, so that no measurement profits from another."""
    url = f"{base_url.removesuffix('/v1')}/reset_prefix_cache"
    with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=30):
        pass


@contextmanager
def server() -> Iterator[str]:
    """The tiny random model behind vLLM."""
    command = [sys.executable, "-m", "cads_env", "serve", MODEL, "--port", str(PORT)]
    # The address that empties the cache is one for developers.
    environment = {**os.environ, "VLLM_SERVER_DEV_MODE": "1"}
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            while not is_up() and process.poll() is None:
                time.sleep(0.5)
            if process.poll() is not None:
                log.seek(0)
                sys.exit(log.read()[-2_000:].decode(errors="replace"))
            yield f"http://127.0.0.1:{PORT}/v1"
        finally:
            process.terminate()
            process.wait(60)


def is_up() -> bool:
    """Whether the server says that it is ready."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=5):
            return True
    except OSError:
        return False


def met(is_met: bool) -> str:
    """Whether a target is met, in words."""
    return "met" if is_met else "NOT MET"


if __name__ == "__main__":
    harness()
    if len(sys.argv) > 1:
        served(sys.argv[1])
    else:
        with server() as address:
            served(address)

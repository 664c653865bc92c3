"""Speed as ratios measured in one run: `python benchmarks/speed.py`.

Each figure is a median over interleaved repeats, so that a slow machine slows both sides.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median

import numpy as np
from reference import sweep_campaign

import cads_env
from cads_env.campaign import open_screen, play
from cads_env.certificate import Certificate
from cads_env.envs import make
from cads_env.registry import Oracle, Registry
from cads_env.studies.rules import RULES, judge

CHUNK = 32
REPEATS = 9
LEVELS = (0.05, 0.10, 0.20)
Pair = tuple[Registry, Oracle]


def interleaved(tasks: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Median seconds of each task, run in turn."""
    for task in tasks:
        task()
    times: list[list[float]] = [[] for _ in tasks]
    for _ in range(repeats):
        for task, seconds in zip(tasks, times, strict=True):
            start = time.perf_counter()
            task()
            seconds.append(time.perf_counter() - start)
    return [median(seconds) for seconds in times]


def sweep(*, has_comparators: bool) -> None:
    """The sweep campaign against the plain reference and the drawing floor.

    Args:
        has_comparators: Whether both sides decide naive BH, uncapped e-BH and Zhou-Liu evidence as
            well as CADS.
    """
    pair = cads_env.load_registry("synthetic-depmap-6000")
    protocol = cads_env.load_protocol("sweep")
    certificate = Certificate()
    rules = RULES if has_comparators else ("cads",)
    reads = sum(plan.reads for plan in protocol.plan(pair[0].m))
    normals, uniforms = np.empty(reads), np.empty(reads)
    rng = np.random.default_rng(0)

    def floor() -> None:
        for _ in range(CHUNK):
            rng.standard_normal(out=normals)
            rng.random(out=uniforms)

    def engine(levels: Sequence[float]) -> None:
        screen = open_screen([pair] * CHUNK, list(range(CHUNK)), protocol)
        batch = play(screen, [None] * CHUNK)
        judge(batch, pair[1].labels, certificate=certificate, qs=levels, rules=rules)

    def plain(levels: Sequence[float]) -> None:
        for level in levels:
            for seed in range(CHUNK):
                sweep_campaign(
                    pair[1].signal,
                    seed,
                    epsilon=0.1,
                    log_cap=certificate.log_cap,
                    q=level,
                    has_comparators=has_comparators,
                )

    one, three = (0.10,), LEVELS
    tasks = [floor, lambda: engine(one), lambda: plain(one), lambda: engine(three),
             lambda: plain(three)]  # fmt: skip
    base, ours, theirs, ours_3, theirs_3 = (t / CHUNK * 1e3 for t in interleaved(tasks, REPEATS))
    what = "all four rules" if has_comparators else "CADS alone"
    print(f"sweep campaign, {what}, ms: floor {base:.2f}, engine {ours:.2f}, plain {theirs:.2f}")
    print(f"  plain / engine, one q:            {theirs / ours:.2f}  (target >= 2)")
    print(f"  plain / engine, three q:          {theirs_3 / ours_3:.2f}  (target >= 3)")
    print(f"  plain reusing its reads / engine: {theirs / ours_3:.2f}  (for information)")
    print(f"  engine / floor:                   {ours / base:.2f}  (target <= 4)")


def scale() -> None:
    """A proposer campaign on a million candidates against the published size."""
    protocol = cads_env.load_protocol("proposer")
    small = cads_env.load_registry("synthetic-depmap")
    large = cads_env.load_registry("synthetic-scale", m=1_000_000)

    def campaign(pair: Pair) -> None:
        play(open_screen([pair], [0], protocol), [None])

    times = interleaved([lambda: campaign(small), lambda: campaign(large)], 60)
    print(f"proposer campaign, ms: m = 18,159 {times[0] * 1e3:.2f}, m = 1e6 {times[1] * 1e3:.2f}")
    print(f"  m = 1e6 / m = 18,159:             {times[1] / times[0]:.2f}  (target <= 1.3)")


def step() -> None:
    """Microseconds of one `env.step`, all but the last (which scores)."""
    env = make(cads_env.load_registry("synthetic-depmap"))
    screen = env.unwrapped
    action = np.full(screen.batch, screen.m)  # type: ignore[attr-defined]
    seconds = []
    for seed in range(20):
        env.reset(seed=seed)
        for _ in range(11):
            start = time.perf_counter()
            env.step(action)
            seconds.append(time.perf_counter() - start)
    print(f"env.step at m = 18,159: {median(seconds) * 1e6:.0f} microseconds")


def imports() -> None:
    """Seconds of `import cads_env` in a new process, best of seven."""
    code = "import time; t = time.perf_counter(); import cads_env; print(time.perf_counter() - t)"
    runs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(7)
    ]
    print(f"import cads_env: {median(runs):.2f} s (target < 0.5)")


if __name__ == "__main__":
    sweep(has_comparators=False)
    sweep(has_comparators=True)
    for measure in (scale, step, imports):
        measure()

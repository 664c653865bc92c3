"""Scale of the studies: `python benchmarks/studies.py [all]`.

Prints the memory of a study at two numbers of seeds, and the exponent with which a campaign's cost
grows with the registry. With `all` it also plays every published study at its published size and
prints the wall time of each. Each figure comes from one run on one machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from statistics import median

import numpy as np

import cads_env
from cads_env.campaign import open_screen, play
from cads_env.certificate import Certificate
from cads_env.studies.rules import judge

SIZES = (2_000, 6_000, 18_000, 60_000)
REPEATS = 5

_PLAY = """
import resource, sys
from cads_env.report.studies import reproduce_into
from cads_env.studies import load_config, load_study
from cads_env.studies.play import StudyRows
from pathlib import Path
study = load_study("primary")
plan = StudyRows.plan(study, load_config("primary"), ("table1",), seeds=int(sys.argv[1]))
reproduce_into(Path(sys.argv[2]), plan)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def peak_memory(seeds: int) -> float:
    """Peak memory in MB of a process that plays Table 1 and writes its folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", _PLAY, str(seeds), folder]
        return float(subprocess.run(command, capture_output=True, check=True).stdout)


def memory() -> None:
    """Memory must not grow with the number of seeds."""
    few, many = 64, 2048
    small, large = peak_memory(few), peak_memory(many)
    print(f"peak memory of table1: {small:.0f} MB with {few} seeds, {large:.0f} MB with {many}")
    print(f"  growth: {large - small:+.0f} MB  (target: flat, below 500 MB)")


def seconds_of(task: Callable[[], object]) -> float:
    """Median seconds of a task."""
    task()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return median(times)


def exponent() -> None:
    """How a campaign's cost grows with m when its reads grow with m, and when they do not."""
    certificate = Certificate()
    costs: dict[str, list[float]] = {"sweep": [], "proposer": []}
    for m in SIZES:
        pair = cads_env.load_registry("synthetic-scale", m=m)
        # The published sweep opens a twelfth of its 6,000 candidates a round.
        fresh = m // 12
        sweep = cads_env.load_protocol("sweep", first_fresh=fresh, fresh=fresh)
        for name, protocol in (("sweep", sweep), ("proposer", cads_env.load_protocol("proposer"))):

            def campaign(protocol: cads_env.Protocol = protocol) -> None:
                batch = play(open_screen([pair], [0], protocol), [None])  # noqa: B023
                judge(batch, pair[1].labels, certificate=certificate, qs=[0.1])  # noqa: B023

            costs[name].append(seconds_of(campaign))
    for name, times in costs.items():
        slope = np.polyfit(np.log(SIZES), np.log(times), 1)[0]
        shown = ", ".join(f"{m:,}: {t * 1e3:.1f}" for m, t in zip(SIZES, times, strict=True))
        print(f"{name} campaign with all rules, ms by m: {shown}")
        print(f"  fitted exponent over m = {SIZES[0]:,} to {SIZES[-1]:,}: {slope:.2f}")


def everything() -> None:
    """Wall time of every study at its published size, on all cores."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        command = ["cads", "reproduce", "all", "--out", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wall = time.perf_counter() - start
    lines = [line for line in done.stdout.splitlines() if "rows in" in line]
    print("\n".join(line.partition(" Files:")[0] for line in lines))
    cores = os.cpu_count() or 1
    print(f"cads reproduce all: {wall:.0f} s on {cores} cores, exit {done.returncode}")
    print("  (target: 180 s on two cores)")


if __name__ == "__main__":
    memory()
    exponent()
    if "all" in sys.argv[1:]:
        everything()

"""Five hundred damaged run folders: every command gives a result or refuses and changes nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.slow.fuzzing import fuzz

pytestmark = pytest.mark.slow

CASES = 500
OPERATIONS = ("load", "report", "compare", "merge", "export", "resume")


def test_a_damaged_run_is_read_or_refused_and_never_half_changed(tmp_path: Path) -> None:
    half = CASES // 2
    spans = ((0, half), (half, CASES))
    with ThreadPoolExecutor(2) as pool:
        jobs = []
        for start, stop in spans:
            folder = tmp_path / str(start)
            folder.mkdir()
            jobs.append(pool.submit(fuzz, "fuzzed_runs", start, stop, folder=folder))
        results = [job.result() for job in jobs]
    assert [fault for result in results for fault in result["faults"]] == []
    for operation in OPERATIONS:
        done, refused = (
            sum(result.get(f"{operation} {what}", 0) for result in results)
            for what in ("done", "refused")
        )
        assert done + refused == CASES
        # Nothing but refusals, or nothing but results, would test one half only.
        assert min(done, refused) > CASES // 20, operation

"""A thousand damaged files of every layout: a pair that passes every check, or one clear error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from tests.slow.fuzzing import fuzz
from tests.slow.miniatures import LAYOUTS, MINIATURES, REAL_LAYOUTS

pytestmark = pytest.mark.slow

NEEDS = {"h5ad": "h5py", "h5ad-sparse": "h5py", "parquet": "pyarrow"}
CASES = 1_000
CASES_OF_REAL_LAYOUTS = 150

Found = Mapping[str, "Future[dict[str, Any]]"]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Found]:
    """What became of the damaged files, two layouts at a time."""
    counts = dict.fromkeys(MINIATURES, CASES)
    if LAYOUTS.is_dir():
        counts |= dict.fromkeys(REAL_LAYOUTS, CASES_OF_REAL_LAYOUTS)
    with ThreadPoolExecutor(2) as pool:
        yield {
            name: pool.submit(
                fuzz, "fuzzed_sources", name, 0, count, folder=tmp_path_factory.mktemp("fuzz")
            )
            for name, count in counts.items()
        }


@pytest.mark.parametrize("name", MINIATURES)
def test_a_damaged_file_is_a_checked_pair_or_one_clear_error(name: str, found: Found) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    result = found[name].result()
    assert result["faults"] == []
    assert result["accepted"] + result["refused"] == CASES + 1
    assert 300 < result["refused"]
    # Damage that never leaves a usable file would test the first check alone.
    assert result["accepted"] > 50 or name == "mageck-sgrna"


@pytest.mark.skipif(not LAYOUTS.is_dir(), reason="shared data are absent")
@pytest.mark.parametrize("name", REAL_LAYOUTS)
def test_damaged_files_of_real_layouts_too(name: str, found: Found) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    result = found[name].result()
    assert result["faults"] == []
    assert result["accepted"] + result["refused"] == CASES_OF_REAL_LAYOUTS + 1


def test_the_damage_is_the_same_every_time() -> None:
    from tests.slow.mutations import mutate

    raw = (MINIATURES["table"].content or "").encode()
    first = [mutate(raw, number) for number in range(40)]
    assert first == [mutate(raw, number) for number in range(40)]
    assert len(set(first)) > 35

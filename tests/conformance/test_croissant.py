"""MLCommons' own reader finds the metadata of an export valid and reads the records through it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cads_env.report.export import export_run
from cads_env.report.export.columns import tables
from cads_env.report.export.croissant import LEFT_TO_PUBLISHER
from cads_env.run import evaluate
from cads_env.testing import tiny_protocol, tiny_registry

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@pytest.mark.parametrize("parquet", [True, False])
def test_the_metadata_is_valid_and_gives_the_records(parquet: bool, tmp_path: Path) -> None:
    croissant = pytest.importorskip("mlcroissant")
    if parquet:
        pytest.importorskip("pyarrow")
    result = evaluate(
        {"learner": "module-learner", "none": "nothing"},
        registry=tiny_registry(),
        protocol=tiny_protocol(reads_each=4, certificate={"q": 0.3}),
        seeds=range(2),
        out=tmp_path / "p1",
    )
    place = export_run(tmp_path / "p1", parquet=parquet, csv=not parquet).folder
    dataset = croissant.Dataset(jsonld=str(place / "croissant.json"))
    issues = dataset.metadata.ctx.issues
    assert not issues.errors
    # What it misses are the things that no run knows.
    missed = {url.rsplit("/", 1)[-1] for url in re.findall(r'Property "([^"]*)"', issues.report())}
    assert missed <= set(LEFT_TO_PUBLISHER)
    rows = {name: list(dataset.records(name)) for name in tables() if name != "failures"}
    assert len(rows["campaigns"]) == 4
    assert [row["campaigns/net"] for row in rows["campaigns"]] == _column(tmp_path, "net")
    assert len(rows["reads"]) == sum(_column(tmp_path, "reads"))
    assert len(rows["rounds"]) == len(result.rounds)
    declared = [row["declarations/log_e"] for row in rows["declarations"]]
    expected = sorted(result.declarations["log_e"])
    # The reader's CSV parser may miss the last bit of a number.
    assert sorted(declared) == (expected if parquet else pytest.approx(expected, rel=1e-12))
    if parquet:
        listed = [len(row["rounds/proposed"] or ()) for row in rows["rounds"]]
        assert sorted(listed) == sorted(map(len, result.rounds["proposed"]))


def _column(folder: Path, name: str) -> list[Any]:
    lines = (folder / "p1" / "campaigns.jsonl").read_text(encoding="ascii").splitlines()
    return [json.loads(line)[name] for line in lines]

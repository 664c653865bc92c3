"""What import contracts cannot say: who looks into an oracle, and where randomness comes from."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "cads_env"
# Sources make an oracle and the registry module checks it; the channel and the scorer use it.
MAY_LOOK = {
    "registry.py",
    "channel.py",
    "contamination",
    "score.py",
    "selfcheck",
    "sources",
    "studies",
}


def _files(*folders: Path) -> Iterator[Path]:
    for folder in folders:
        yield from sorted(folder.rglob("*.py"))


def _attributes(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def _looks_into_an_oracle(path: Path) -> bool:
    attributes = _attributes(path)
    # A law's context carries the signal of the reads it may touch; that is the channel's.
    return bool(attributes & {"signal", "labels"})


def test_only_the_channel_and_the_scorer_look_into_an_oracle() -> None:
    found = {
        path.relative_to(PACKAGE).parts[0]
        for path in _files(PACKAGE)
        if _looks_into_an_oracle(path)
    }
    assert found == MAY_LOOK


@pytest.mark.parametrize("folder", ["cads_env", "agents", "leaderboard"])
def test_no_file_uses_numpys_or_a_global_generator(folder: str) -> None:
    for path in _files(ROOT / folder):
        text = path.read_text(encoding="utf-8")
        assert "default_rng" not in text, path
        assert "np.random.seed" not in text, path
        for call in ("random.seed(", "random.random(", "random.shuffle(", "random.choice("):
            assert f" {call}" not in text, path
    numpys = [p.name for p in _files(PACKAGE) if "random" in _numpy_attributes(p)]
    # Gymnasium's own generator is typed there; only its raw bits are drawn.
    assert set(numpys) <= {"vector_env.py", "skin.py"}


def _numpy_attributes(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "np"
    }


def test_the_code_holds_no_path_of_a_machine() -> None:
    for path in _files(PACKAGE, ROOT / "agents", ROOT / "tests", ROOT / "benchmarks"):
        text = path.read_text(encoding="utf-8")
        assert not any(f"/{top}/" in text for top in ("work", "root", "farm")), path

"""Small runs that the tests of reports share."""

from __future__ import annotations

from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import cads_env
from cads_env import Panel, Proposal, ProposerFailed, RunResult, View
from cads_env.run.load import load_run
from cads_env.testing import tiny_registry

HOSTILE = '<script>alert("1")</script>|`x`*_\x1b[31m\u202e&amp;\n# no'
PROTOCOL = cads_env.load_protocol(
    "standard", rounds=5, first_fresh=8, fresh=4, reread_candidates=6, reads_each=3
)


class Half:
    """Fills half of its slots, names one candidate that does not exist, and fails on some seeds."""

    def __init__(self, seed: int = 0) -> None:
        """Keep the seed, which decides whether it fails."""
        self.seed = seed

    def propose(self, view: View) -> Proposal:
        """Half of the slots, with usage."""
        if self.seed % 4 == 0 and view.round == 2:
            raise ProposerFailed(HOSTILE)
        tested = set(view.tested)
        names = [n for n in view.identifiers if n not in tested][: view.slots // 2]
        return Proposal((*names, HOSTILE), usage={"tokens": 10, HOSTILE: 1})


class Dead:
    """Always fails."""

    def propose(self, view: View) -> Proposal:
        """Nothing."""
        raise ProposerFailed("down")


def panel(count: int = 2, *, name: str = "tiny") -> Panel:
    pairs = [tiny_registry(60, 15, seed=i, name=f"{name}-{i}") for i in range(count)]
    return Panel.of(pairs, name=name)


def play(agents: Mapping[str, Any], folder: Path, **options: Any) -> RunResult:
    """A run read back from its folder."""
    settings: dict[str, Any] = {"registry": panel(), "protocol": PROTOCOL, "seeds": range(8)}
    cads_env.evaluate(agents, out=folder, **(settings | options))
    return load_run(folder)


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """Three arms, one of which fails on some seeds, on two registries."""
    arms = {"random": "random", "prior": "prior", "half": Half}
    result = play(arms, tmp_path_factory.mktemp("runs") / "three")
    assert 0 < len(result.failures) < 8
    return result


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """A run whose names are what nobody should name anything."""
    arms = {HOSTILE: Half, "x" * 10_000: "random"}
    folder = tmp_path_factory.mktemp("runs") / "hostile"
    return play(arms, folder, registry=panel(2, name=HOSTILE))


@pytest.fixture(scope="session")
def level(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """Two arms in a protocol of so few reads that nothing can be certified."""
    protocol = cads_env.load_protocol(
        "standard", rounds=2, first_fresh=8, fresh=8, reread_candidates=2, reads_each=1
    )
    arms = {"random": "random", "prior": "prior"}
    folder = tmp_path_factory.mktemp("runs") / "level"
    return play(arms, folder, registry=panel(1), protocol=protocol, seeds=range(6))


class Page(HTMLParser):
    """A document as lists of its elements; refuses tags that are not closed in order."""

    VOID = frozenset({"meta", "br", "hr", "img", "link"})

    def __init__(self, text: str) -> None:
        """Parse the text."""
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.tables: list[list[list[str]]] = []
        self.captions: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), (tag, attrs)
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        elif tag == "caption":
            self.captions.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data
        elif self._open and self._open[-1] == "caption":
            self.captions[-1] += data

    def table(self, caption: str) -> list[list[str]]:
        """The rows of the table with a caption, its head first."""
        return self.tables[self.captions.index(caption)]

"""Real servers for the tests of this folder. In CI one that cannot start is a failure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from cads_agents.serving.recipes import words
from tests.llm.server import BASE_URL_VARIABLE, CannotServe, Server

SMALL = 1_024
"""Tokens of the server whose context is soon full."""


@pytest.fixture(scope="session", autouse=True)
def _langchain() -> None:
    try:
        import langchain_openai  # noqa: F401
    except ImportError as error:
        no_server(f"LangChain is not installed: {error}")


def no_server(why: str) -> NoReturn:
    """Skip a test that needs a server; in CI, fail it."""
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


def _served(model: str, *flags: str) -> Iterator[Server]:
    try:
        server = Server(model, *flags)
        server.start()
    except CannotServe as error:
        no_server(str(error))
    try:
        yield server
    finally:
        server.close()


@pytest.fixture(scope="session")
def base_url() -> Iterator[str]:
    """Where a tiny random model is served for the whole session."""
    named = os.environ.get(BASE_URL_VARIABLE)
    if named:
        yield named
    else:
        for server in _served("tiny-random"):
            yield server.base_url


@pytest.fixture(scope="module")
def small_server() -> Iterator[Server]:
    """A server of the module's own, with a small context, that may be killed and started again."""
    yield from _served("tiny-random", "--max-model-len", str(SMALL))


@pytest.fixture(scope="module")
def trained_url() -> Iterator[str]:
    """Where a small trained model is served."""
    for server in _served("smollm2-135m"):
        yield server.base_url


@pytest.fixture(scope="session")
def screen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry file whose candidates are words of the tiny model; one in ten is a hit."""
    folder = tmp_path_factory.mktemp("screen")
    rows = [f"{name},{-1.5 if i % 10 == 0 else 0.1}" for i, name in enumerate(words())]
    (folder / "screen.csv").write_text("gene,effect\n" + "\n".join(rows) + "\n", encoding="utf-8")
    text = (
        "source: table\npath: screen.csv\nname: words\nidentifier: gene\neffect: effect\n"
        "direction: lower\nthreshold: -0.5\ndescription: Made-up effects of real genes.\n"
    )
    (folder / "screen.yaml").write_text(text, encoding="utf-8")
    return folder / "screen.yaml"

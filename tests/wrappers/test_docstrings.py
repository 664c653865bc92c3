"""The sessions in the wrappers' docstrings run as they are shown."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["certificate", "identifier_lists"])
def test_the_docstrings_session_runs(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"cads_env.wrappers.{name}"))
    assert found.failed == 0
    assert found.attempted >= 4

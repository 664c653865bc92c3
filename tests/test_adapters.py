"""Adapters without the packages that they are for; with them, see tests/conformance."""

from __future__ import annotations

import importlib
import sys

import pytest

from cads_env.errors import MissingExtraError


@pytest.mark.parametrize(
    ("adapter", "package", "extra"),
    [
        ("inspect_task", "inspect_ai", "inspect"),
        ("verifiers_env", "verifiers", "verifiers"),
        ("aviary_env", "aviary", "aviary"),
    ],
)
def test_an_adapter_without_its_package_names_the_line_that_installs_it(
    adapter: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    for name in [name for name in sys.modules if name.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, f"cads_env.adapters.{adapter}", raising=False)
    with pytest.raises(MissingExtraError, match=rf"pip install 'cads-env\[{extra}\]'"):
        importlib.import_module(f"cads_env.adapters.{adapter}")

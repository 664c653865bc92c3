"""Registries inside other installed packages."""

from __future__ import annotations

import sys
from importlib import metadata, util
from pathlib import Path

import numpy as np
import pytest

from cads_env.errors import MissingExtraError, RegistryError
from cads_env.panel import load_registry
from cads_env.sources import packages

NAME = "depmap-26q1-mean"


def installed() -> bool:
    try:
        metadata.version("egbench")
    except metadata.PackageNotFoundError:
        return False
    return util.find_spec("pyarrow") is not None


needs_data = pytest.mark.skipif(not installed(), reason="the extra `data` is not installed")


@needs_data
def test_the_mean_effects_of_depmap_are_read_from_the_installed_package() -> None:
    registry, oracle = load_registry(NAME)
    assert (registry.m, oracle.hit_count) == (13152, 1621)
    assert oracle.signal[registry.index["AAMP"]] == pytest.approx(0.4254, abs=1e-4)
    assert np.array_equal(oracle.labels, oracle.signal > 0)
    assert not registry.side_tables
    assert (registry.name, oracle.panel, oracle.instance) == (NAME, NAME, 0)


@needs_data
def test_the_package_is_never_imported() -> None:
    before = set(sys.modules)
    load_registry(NAME, subsample=500)
    assert not {name for name in set(sys.modules) - before if name.startswith("egbench")}


@needs_data
def test_a_salt_and_a_subset_work_as_for_any_source() -> None:
    registry, oracle = load_registry(NAME, subsample=6000, subsample_seed=2, salt="x")
    assert registry.m == 6000
    assert registry.name == f"{NAME}+salted+subsample=6000,subsample_seed=2"
    assert oracle.key("tape", 0) != load_registry(NAME, subsample=6000)[1].key("tape", 0)


def test_a_missing_package_is_an_error_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packages, "PACKAGE", "no-such-package-at-all")
    with pytest.raises(MissingExtraError, match=r"pip install 'cads-env\[data\]'"):
        load_registry(NAME)


def test_a_package_without_the_file_is_an_error_with_the_line_that_mends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # pytest is certainly installed, and certainly lacks the file.
    monkeypatch.setattr(packages, "PACKAGE", "pytest")
    with pytest.raises(MissingExtraError, match=r"without its data file.*--force-reinstall"):
        load_registry(NAME)


@needs_data
def test_a_file_that_is_no_parquet_is_an_error_without_a_foreign_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "x.parquet"
    path.write_text("nothing")
    monkeypatch.setattr(packages, "_data_path", lambda: path)
    with pytest.raises(RegistryError, match="cannot be read"):
        load_registry(NAME)

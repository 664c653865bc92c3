"""Names that a spreadsheet changed, and names that only look like it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cads_env.errors import RegistryError
from cads_env.panel import load_panel, load_registry
from cads_env.sources.excel_names import meant_by

DECLARED: dict[str, Any] = {"direction": "lower", "threshold": -0.5}


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("1-Mar", "MARCHF1"),
        ("2-Mar", "MTARC2"),
        ("01.Mar", "MARCHF1"),
        ("1. Mrz", "MARCHF1"),
        ("2-Sep", "SEPTIN2"),
        ("2-SEP", "SEPTIN2"),
        ("15-Sep", "SELENOF"),
        ("Mar-01", "MARCHF1"),
        ("Sep 09", "SEPTIN9"),
        ("1-Dec", "DELEC1"),
        ("4-Oct", "POU5F1"),
        ("7-Apr", "named like a month"),
        ("2023-03-01", "MARCHF1"),
        ("2019-09-02 00:00:00", "SEPTIN2"),
        ("3/1/2023", "named like a month"),
        ("1-Mar-23", "MARCHF1"),
        ("1.00E+03", "clone"),
        ("2.31E+13", "clone"),
        ("#NAME?", "error"),
    ],
)
def test_a_changed_name_is_told_with_what_it_was(name: str, word: str) -> None:
    assert word in str(meant_by(name))


@pytest.mark.parametrize(
    "name",
    ["MARCH1", "SEPT2", "DEC1", "MARCHF1", "sep-1", "nov-1", "NKX2-1", "HLA-A", "H3-3A", "1499",
     "1e5", "2310009E13Rik", "NA", "5-HT", "12-1", "7SK", "Oct4", "Mar-1A", "#1", "CC(=O)O",
     "BRD-K12-001", "10-formyl-THF", "2023-03", ""],
)  # fmt: skip
def test_legal_names_stay_legal(name: str) -> None:
    assert meant_by(name) is None


def test_every_source_refuses_changed_names_unless_they_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "screen.csv"
    path.write_text("identifier,effect\n1-Mar,-1\n2-Sep,0\nTP53,0.1\n")
    with pytest.raises(RegistryError) as caught:
        load_registry(path, **DECLARED)
    for word in ("2 identifiers", "'1-Mar' (probably MARCHF1", "SEPTIN2", "excel_names=keep"):
        assert word in str(caught.value)
    with pytest.raises(RegistryError, match="2 identifiers"):
        load_panel(path, **DECLARED)
    registry, _ = load_registry(path, excel_names="keep", **DECLARED)
    assert registry.identifiers == ("1-Mar", "2-Sep", "TP53")
    path.with_suffix(".yaml").write_text("excel_names: keep\n")
    assert load_registry(path, **DECLARED)[0].m == 3
    with pytest.raises(RegistryError, match="excel_names='fix'"):
        load_registry(path, excel_names="fix", **DECLARED)


@pytest.mark.parametrize("other", ["TP53\u200b", "\ufeffTP53", "TP\u00ad53", "TP53\u2060"])
def test_names_that_differ_by_what_cannot_be_seen_are_refused(tmp_path: Path, other: str) -> None:
    path = tmp_path / "screen.csv"
    path.write_text(f"identifier,effect\nTP53,-1\n{other},0\nMYC,0.1\n", encoding="utf-8")
    with pytest.raises(RegistryError, match="2 identifiers that differ only in characters") as e:
        load_registry(path, **DECLARED)
    assert ascii(other) in str(e.value)


def test_spaces_of_two_kinds_and_a_name_of_nothing_visible_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "screen.csv"
    path.write_text("identifier,effect\na b,-1\na\u00a0b,0\nMYC,0.1\n", encoding="utf-8")
    with pytest.raises(RegistryError, match="cannot be seen"):
        load_registry(path, **DECLARED)
    path.write_text("identifier,effect\na,-1\n\u2060\u200b,0\nMYC,0.1\n", encoding="utf-8")
    with pytest.raises(RegistryError, match="cannot be seen"):
        load_registry(path, **DECLARED)


def test_names_in_other_scripts_stay_legal(tmp_path: Path) -> None:
    path = tmp_path / "screen.csv"
    path.write_text("identifier,effect\nβ-actin,-1\nα-actin,0\nÄther,0.1\nа,1\na,1\n", "utf-8")
    assert load_registry(path, **DECLARED)[0].m == 5

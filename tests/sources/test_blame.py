"""An error about a file names it, wherever it is found; and what a file says can be printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cads_env.errors import RegistryError
from cads_env.panel import load_panel, load_registry
from cads_env.sources.adding import add_registry

TABLE = "identifier,effect\nA,-1.0\nB,0.1\nC,-0.7\n"
MATRIX = ",ALFA (1),BRAVO (2)\nACH-000001,0.1,-1.25\nACH-000002,-0.9,0.2\n"
ORCS = (
    "#SCREEN_ID\tIDENTIFIER_TYPE\tOFFICIAL_SYMBOL\tHIT\n7\tENTREZ_GENE\tALFA\tYES\n"
    "7\tENTREZ_GENE\tBRAVO\tNO\n"
)


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CADS_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    Path("screen.csv").write_text(TABLE)
    Path("m.csv").write_text(MATRIX)
    Path("s.screen.tab.txt").write_text(ORCS)


def test_an_option_of_a_table_is_refused_with_the_tables_name() -> None:
    with pytest.raises(RegistryError, match=r"screen\.csv: direction='down' is not usable"):
        load_registry("screen.csv", direction="down", threshold=0.0)


def test_an_option_in_a_registry_file_is_refused_with_that_files_name() -> None:
    Path("mine.yaml").write_text("source: table\npath: screen.csv\ndirection: down\n")
    with pytest.raises(RegistryError, match=r"mine\.yaml: .*screen\.csv: direction='down'"):
        load_registry("mine.yaml")
    Path("mine.yaml").write_text("source: depmap\npath: m.csv\nline: ACH-000009\n")
    with pytest.raises(RegistryError, match=r"mine\.yaml: .*m\.csv has no cell line"):
        load_registry("mine.yaml")


def test_an_entry_of_a_list_is_refused_with_the_lists_name() -> None:
    Path("list.yaml").write_text("registries: [synthetic-dep/3]\n")
    with pytest.raises(RegistryError, match=r"list\.yaml: Unknown registry 'synthetic-dep/3'"):
        load_panel("list.yaml")


@pytest.mark.parametrize("name", ["x" * 201, "a\u202eb", "a\nb", " ", 7])
def test_a_name_that_no_table_could_show_is_refused(name: object) -> None:
    with pytest.raises(RegistryError, match="at most 200 printable characters"):
        load_registry("screen.csv", direction="lower", threshold=0.0, name=name)


def test_a_description_shows_what_a_file_says_on_one_printable_line() -> None:
    model = f"ModelID,CellLineName,OncotreeLineage\nACH-000001,K\x1aX,{'y' * 300}\n"
    Path("Model.csv").write_text(model)
    registry, _ = load_registry(
        "depmap", path="m.csv", line="ACH-000001", model="Model.csv", prior="none"
    )
    assert registry.description.isprintable()
    assert r"K\x1aX" in registry.description
    assert "y" * 197 + "..." in registry.description


def test_the_only_screen_of_a_file_is_remembered_without_a_choice() -> None:
    options = {"signal": [1.0, -0.5]}
    added = add_registry("s.screen.tab.txt", name="mine", source="orcs", options=options)
    assert "screen:" not in added.file.read_text()
    assert load_registry("mine")[1].hash == added.first[1].hash

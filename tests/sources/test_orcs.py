"""Registries from BioGRID ORCS screens: listed hits, scores, the index, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cads_env.errors import RegistryError
from cads_env.panel import load_panel, load_registry
from cads_env.registry import Oracle, Registry
from cads_env.sources.layouts import recognise

LAYOUTS = Path(__file__).parents[2] / ".." / "shared" / "data" / "layouts"
HEADER = (
    "#SCREEN_ID\tIDENTIFIER_ID\tIDENTIFIER_TYPE\tOFFICIAL_SYMBOL\tALIASES\tORGANISM_ID"
    "\tORGANISM_OFFICIAL\tSCORE.1\tSCORE.2\tSCORE.3\tSCORE.4\tSCORE.5\tHIT\tSOURCE\n"
)
INDEX = (
    "#SCREEN_ID\tAUTHOR\tSIGNIFICANCE_CRITERIA\tCELL_LINE\tPHENOTYPE\tSCORE.1_TYPE\tSCORE.2_TYPE\n"
    "6\tB (2020)\t-\tK562\tviability\tLog2 Fold Change\t-\n"
    '7\tC (2021)\tScore.1 (Bayes "F") > 5\tHAP-1\tcell proliferation\tBayes Factor\tp-Value\n'
)
CONSTANT: dict[str, Any] = {"signal": (1.0, -0.5)}


def row(symbol: str, score: str, hit: str, kind: str = "ENTREZ_GENE", screen: str = "7") -> str:
    cells = (screen, "1", kind, symbol, "-", "9606", "Homo sapiens", score, "-", "-", "-", "-", hit)
    return "\t".join((*cells, "BioGRID ORCS")) + "\n"


PLAIN = HEADER + row("RPL3", "12", "YES") + row("A1BG", "-20", "NO") + row("KRAS", "6", "YES")


def load(tmp_path: Path, content: str | bytes, **options: Any) -> tuple[Registry, Oracle]:
    path = tmp_path / "S.screen.tab.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return load_registry("orcs", path=path, **options)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    path = tmp_path / "S.index.tab.txt"
    path.write_text(INDEX, encoding="utf-8")
    return path


def test_listed_hits_take_constants(tmp_path: Path) -> None:
    registry, oracle = load(tmp_path, PLAIN, **CONSTANT)
    assert registry.identifiers == ("A1BG", "KRAS", "RPL3")
    assert oracle.signal.tolist() == [-0.5, 1.0, 1.0]


def test_a_score_gives_u_and_the_column_hit_the_labels(tmp_path: Path) -> None:
    options: dict[str, Any] = {"score": "SCORE.1", "direction": "higher", "threshold": 8}
    _, oracle = load(tmp_path, PLAIN, **options)
    assert oracle.signal.tolist() == [-28.0, -2.0, 4.0]
    assert oracle.labels.tolist() == [False, True, True]
    assert oracle.contrary_hit_count == 1
    assert load(tmp_path, PLAIN, label="score", **options)[1].labels.tolist() == [0, 0, 1]


def test_a_null_beyond_the_threshold_is_refused_with_a_threshold_that_works(
    tmp_path: Path,
) -> None:
    text = PLAIN + row("MYC", "7", "NO")
    options: dict[str, Any] = {"score": "SCORE.1", "direction": "higher"}
    with pytest.raises(RegistryError, match=r"'MYC'.*threshold=7\.0, which no null passes \(1 of"):
        load(tmp_path, text, threshold=5, **options)
    assert load(tmp_path, text, threshold=7.0, **options)[1].contrary_hit_count == 1


def test_the_index_gives_the_description_and_the_direction(tmp_path: Path, index: Path) -> None:
    registry, oracle = load(tmp_path, PLAIN, index=index, score="SCORE.1", threshold=5)
    assert oracle.signal.tolist() == [-25.0, 1.0, 7.0]
    assert "cell proliferation" in registry.description
    assert "HAP-1" in registry.description
    assert 'Score.1 (Bayes "F") > 5' in registry.description


def test_the_message_shows_what_the_index_says_of_scores_and_hits(
    tmp_path: Path, index: Path
) -> None:
    with pytest.raises(RegistryError) as caught:
        load(tmp_path, PLAIN, index=index)
    for words in ("SCORE.1: Bayes Factor, 3 values", "Score.1 (Bayes", "HIT: 2 of 3 are YES"):
        assert words in str(caught.value)
    assert "SCORE.2" not in str(caught.value)


def test_genes_without_the_score_are_left_out_and_counted(tmp_path: Path) -> None:
    options: dict[str, Any] = {"score": "SCORE.1", "direction": "higher", "threshold": 5}
    registry, _ = load(tmp_path, PLAIN + row("MYC", "-", "NO"), **options)
    assert "MYC" not in registry.identifiers
    assert "genes without that score (1)" in registry.description


def test_unknown_identifiers_are_dropped_or_kept_when_asked(tmp_path: Path) -> None:
    text = PLAIN + row("LOST", "1", "NO", "UNKNOWN") + row("-", "1", "NO", "UNKNOWN")
    dropped, _ = load(tmp_path, text, unknown="drop", **CONSTANT)
    assert dropped.m == 3
    assert "rows of unknown identifiers (2)" in dropped.description
    kept, _ = load(tmp_path, text, unknown="keep", **CONSTANT)
    assert kept.identifiers == ("A1BG", "KRAS", "LOST", "RPL3")


def test_repeated_symbols_keep_their_first_row_or_none(tmp_path: Path) -> None:
    text = PLAIN + row("KRAS", "-9", "NO") + row("MYC", "-9", "NO")
    first, oracle = load(tmp_path, text, duplicates="first", **CONSTANT)
    assert first.identifiers == ("A1BG", "KRAS", "MYC", "RPL3")
    assert oracle.labels.tolist() == [False, True, False, True]
    assert load(tmp_path, text, duplicates="drop", **CONSTANT)[0].m == 3


def test_one_screen_of_a_joined_file_is_chosen(tmp_path: Path) -> None:
    text = PLAIN + row("RPL3", "1", "NO", screen="8") + row("A1BG", "1", "YES", screen="8")
    registry, oracle = load(tmp_path, text, screen=8, **CONSTANT)
    assert registry.identifiers == ("A1BG", "RPL3")
    assert oracle.labels.tolist() == [True, False]


SCORE: dict[str, Any] = {"score": "SCORE.1", "direction": "higher", "threshold": 5}


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (PLAIN, {}, ["signal=(1.0, -0.5)", "score=...", "index=", "SCORE.1"]),
        (PLAIN, {"score": "SCORE.1"}, ["direction=higher", "threshold=...", "SCORE.1 > "]),
        (PLAIN, {"score": "SCORE.9"}, ["score='SCORE.9'", "'SCORE.5'"]),
        (PLAIN, {**SCORE, "score": "SCORE.2"}, ["expected at least one hit"]),
        (PLAIN, {**SCORE, **CONSTANT}, ["exclude each other"]),
        (PLAIN, {"score": "SCORE.1", **CONSTANT}, ["exclude each other"]),
        (PLAIN, {"direction": "lower", **CONSTANT}, ["direction='lower'", "Leave one"]),
        (PLAIN, {"label": "HIT", **CONSTANT}, ["label='HIT'", "'hit' or 'score'"]),
        (PLAIN, {**SCORE, "label": "score", "threshold": 99}, ["0 of 3", "between -20 and 12"]),
        (PLAIN, {"unknown": "ignore", **CONSTANT}, ["unknown='ignore'", "'drop' or 'keep'"]),
        (PLAIN, {"screen": 9, **CONSTANT}, ["no screen '9'"]),
        (PLAIN + row("X", "1", "NO", screen="8"), CONSTANT, ["2 screens", "screen=...", "'7'"]),
        (PLAIN + row("LOST", "1", "NO", "UNKNOWN"), CONSTANT, ["row 5: 'LOST'", "unknown=drop"]),
        (PLAIN + row("-", "1", "NO"), CONSTANT, ["no official symbol", "row 5"]),
        (PLAIN + row("KRAS", "1", "NO"), CONSTANT, ["'KRAS'", "duplicates=first"]),
        (PLAIN + row("X", "1", "MAYBE"), CONSTANT, ["neither YES nor NO", "row 5: 'MAYBE'"]),
        (PLAIN + row("X", "1e", "NO"), SCORE, ["'SCORE.1'", "row 5: '1e'"]),
        (PLAIN + "7\t1\n", CONSTANT, ["row 5 has 2 fields"]),
        (INDEX, CONSTANT, ["the ORCS index", "index=..."]),
        (PLAIN.replace("HIT", "SCORE.6", 1), CONSTANT, ["no ORCS screen", "'HIT'"]),
        (HEADER, CONSTANT, ["expected at least one hit"]),
        (b"\xff\xfe\x00", CONSTANT, ["not UTF-8"]),
    ],
)  # fmt: skip
def test_a_faulty_screen_or_declaration_is_refused_with_what_to_do(
    tmp_path: Path, content: str | bytes, options: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(RegistryError) as caught:
        load(tmp_path, content, **options)
    assert [word for word in words if word not in str(caught.value)] == []


def test_an_index_of_another_kind_or_release_is_refused(tmp_path: Path, index: Path) -> None:
    with pytest.raises(RegistryError, match=r"no row for the screen '5'"):
        load(tmp_path, HEADER + row("A", "1", "NO", screen="5"), index=index, **CONSTANT)
    index.write_text(PLAIN, encoding="utf-8")
    with pytest.raises(RegistryError, match=r"\(index=\) is no ORCS index"):
        load(tmp_path, PLAIN, index=index, **CONSTANT)


def layout(name: str) -> Path:
    path = LAYOUTS / name
    if not path.is_file():
        pytest.skip(f"the miniature {name} is not here")
    return path


def test_the_miniature_loads_with_its_index() -> None:
    screen = layout("BIOGRID-ORCS-SCREEN_99999-1.1.17.screen.tab.txt")
    index = layout("BIOGRID-ORCS-SCREEN_INDEX-1.1.17.index.tab.txt")
    registry, oracle = load_registry(
        "orcs", path=screen, index=index, score="SCORE.1", threshold=5, unknown="drop"
    )
    assert (registry.m, oracle.hit_count, oracle.contrary_hit_count) == (24, 11, 0)
    assert "HAP-1" in registry.description
    assert [found.source for found in recognise(screen)] == ["orcs"]
    with pytest.raises(RegistryError, match="LOST_SYMBOL"):
        load_registry("orcs", path=screen, **CONSTANT)


def test_the_index_miniature_is_no_screen() -> None:
    index = layout("BIOGRID-ORCS-SCREEN_INDEX-1.1.17.index.tab.txt")
    with pytest.raises(RegistryError, match="is the ORCS index"):
        load_registry("orcs", path=index, **CONSTANT)
    assert [found.source for found in recognise(index)] == [None]


def test_the_screens_of_a_joined_file_make_a_panel(tmp_path: Path) -> None:
    path = tmp_path / "S.txt"
    more = row("RPL3", "1", "NO", screen="8") + row("A1BG", "1", "YES", screen="8")
    path.write_text(PLAIN + more, encoding="utf-8")
    panel = load_panel("orcs", path=path, screens="all", **CONSTANT)
    assert panel.names == ("S/7", "S/8")
    assert [registry.m for registry, _ in panel] == [3, 2]

"""Other screens: the stand-ins have the published operating points, and users' files are played."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cads_env
from cads_env.campaign import open_screen, play
from cads_env.certificate import Certificate, naive_bh
from cads_env.errors import MissingExtraError, RegistryError, StudyError
from cads_env.studies import cross_registries, load_config, load_study
from cads_env.studies.cross import cells, play_cell
from cads_env.studies.play import StudyRows, play_study
from cads_env.studies.tables import Chart, Table

SHARED = Path(__file__).parents[3] / "shared" / "data"
SHIPPED = [
    {
        "title": "tcell",
        "registry": "synthetic-tcell/0",
        "reference": "T-cell Perturb-seq DOP1B/Rest",
    }
]
SETTINGS = {"protocol": "sweep", "epsilon": 0.1, "q": 0.1, "zhou_liu_scales": [1.0, 0.5]}


def played(item: str = "table-s2", **changes: Any) -> Any:
    config = load_config("cross", {"seeds": 2, "registries": SHIPPED, **changes})
    study = load_study("cross")
    summary = play_study(StudyRows.plan(study, config, (item,)))
    return study.items[item](config, summary)


def depmap_file(folder: Path, lines: list[str], genes: int) -> Path:
    rng = np.random.default_rng(0)
    rows = [",".join(["", *(f"GENE{i} ({i + 1})" for i in range(genes))])]
    for line in lines:
        effects = np.where(np.arange(genes) % 10 == 0, -1.5, 0.05) + rng.normal(0, 0.1, genes)
        rows.append(",".join([line, *(f"{x:.4f}" for x in effects)]))
    path = folder / "CRISPRGeneEffect.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("line", range(6))
def test_every_row_of_the_published_table_has_a_stand_in_that_reaches_it(line: int) -> None:
    config = load_config("cross")
    row = config["published"]["rows"][line + 1]
    one = next(x for x in config["registries"] if x.get("reference") == row["reference"])
    rows = play_cell({"registry": one["registry"], **SETTINGS}, range(16))
    means = {name: float(np.mean([r[name] for r in rows])) for name in rows[0]}
    assert means["reads"] == 45_899
    assert means["cads@0.1.power"] == pytest.approx(row["cads_power"], abs=0.02)
    assert means["naive@0.1.fdp"] == pytest.approx(row["naive_fdr"], abs=0.02)
    assert means["uncapped@0.1.fdp"] == pytest.approx(row["uncapped_fdr"], abs=0.02)
    assert means["zhou-liu*1@0.1.power"] == pytest.approx(row["zhou_liu_power"], abs=0.02)
    assert means["cads@0.1.fdp"] < 0.003


def test_rows_are_those_of_the_public_functions_and_do_not_depend_on_the_cut() -> None:
    settings = {"registry": "synthetic-prism/0", **SETTINGS}
    rows = play_cell(settings, [0, 1])
    assert [play_cell(settings, [seed])[0] for seed in (0, 1)] == rows
    pair = cads_env.load_registry("synthetic-prism/0")
    record = play(open_screen([pair], [1], cads_env.load_protocol("sweep")), [None])[0]
    naive = naive_bh(record.means, record.counts, 0.1, m=6000, indices=record.candidates)
    found = Certificate().declare(record).indices
    assert rows[1]["naive@0.1.true"] == pair[1].labels[naive].sum()
    assert rows[1]["cads@0.1.true"] == pair[1].labels[found].sum()
    assert rows[1]["zhou-liu*1@0.1.true"] > rows[1]["zhou-liu*0.5@0.1.true"] == 0


def test_a_missing_package_makes_an_absent_cell_and_not_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(named: object) -> None:
        msg = "egbench is missing: pip install 'cads-env[data]'"
        raise MissingExtraError(msg)

    monkeypatch.setattr(cross_registries, "registry_of", missing)
    real = [*SHIPPED, {"title": "mean", "registry": "depmap-26q1-mean"}]
    config = load_config("cross", {"seeds": 2, "registries": real})
    assert [(c.name, "egbench" in c.absent) for c in cells(config, ())] == [
        ("tcell", False),
        ("mean", True),
    ]
    table = played(registries=real)
    assert isinstance(table, Table)
    assert "Not played: mean (egbench is missing" in table.caption
    assert {entry.row[0] for entry in table.entries} == {"tcell"}


def test_lines_of_a_users_file_stand_beside_the_published_rows(tmp_path: Path) -> None:
    path = depmap_file(tmp_path, ["ACH-000001", "ACH-000053", "ACH-000622"], 300)
    table = played(depmap=str(path))
    mine = [e for e in table.entries if e.row[0].startswith("your")]
    assert {e.row for e in mine} == {
        ("your ACH-000053", "DepMap 24Q4 ACH-000053"),
        ("your ACH-000622", "DepMap 24Q4 ACH-000622"),
    }
    power = next(e for e in mine if e.measure == "CADS power")
    assert power.published == 0.471
    assert power.note == "all 300 candidates of the file; 6,000 were published"
    assert power.verdict in ("within", "noise", "explained")
    # No size of a registry excuses a broken certificate.
    assert not any(e.is_open for e in mine if e.measure == "CADS FDR")


def test_a_chosen_line_without_a_published_row_is_played_without_comparison(tmp_path: Path) -> None:
    path = depmap_file(tmp_path, ["ACH-000001", "ACH-000053"], 300)
    table = played(depmap=str(path), lines=["ACH-000001"])
    mine = [e for e in table.entries if e.row[0] == "your ACH-000001"]
    assert {e.row[1] for e in mine} == {"none published"}
    assert all(e.published is None for e in mine)


def test_a_registry_of_more_candidates_is_played_on_subsets() -> None:
    config = load_config(
        "cross",
        {"registries": [], "registry": "synthetic-depmap/0", "subsample_seeds": [0, 4]},
    )
    assert [(c.name, c.settings["registry"]) for c in cells(config, ())] == [
        (
            f"synthetic-depmap/0 #{seed}",
            {"registry": "synthetic-depmap/0", "subsample": 6000, "subsample_seed": seed},
        )
        for seed in (0, 4)
    ]


def test_a_registry_takes_the_options_of_its_source(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    rows = [f"G{i},{-1.0 if i % 5 == 0 else 0.2}" for i in range(60)]
    path.write_text("identifier,effect\n" + "\n".join(rows) + "\n")
    options = {"direction": "lower", "threshold": -0.5}
    config = load_config(
        "cross", {"registries": [], "registry": str(path), "options": options, "seeds": 2}
    )
    (cell,) = cells(config, ())
    assert cell.name == "mine"
    row = play_cell(cell.settings, [0])[0]
    assert (row["m"], row["hits"]) == (60, 12)
    json.dumps(cell.settings)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"lines": ["ACH-000001"]}, "without depmap="),
        ({"dependency": "x.csv"}, "without depmap="),
        ({"options": {"threshold": 1}}, "without registry="),
        ({"registry": ["synthetic-tcell/0", "synthetic-tcell/0"]}, "leave one of them out"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        cells(load_config("cross", changes), ())


def test_files_that_cannot_serve_are_refused_with_what_would(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match="does not exist"):
        cells(load_config("cross", {"depmap": "nowhere.csv"}), ())
    path = depmap_file(tmp_path, ["ACH-000001"], 20)
    with pytest.raises(StudyError, match=r"none of the published lines .* --line ACH-000001"):
        cells(load_config("cross", {"depmap": str(path)}), ())


def test_the_figure_has_every_registry_and_the_level() -> None:
    chart = played("figure-s1")
    assert isinstance(chart, Chart)
    assert [s.name for s in chart.series if s.is_reference] == ["q = 0.1"]
    assert all(list(s.x) == ["tcell"] for s in chart.series)
    assert "CADS power" in {s.name for s in chart.series}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the data folder is not here")
def test_the_real_published_lines_are_found_in_a_real_file() -> None:
    path = SHARED / "depmap24q4_CRISPRGeneEffect_149genes.csv"
    table = played(depmap=str(path))
    lines = {e.row[0] for e in table.entries if e.row[0].startswith("your")}
    assert lines == {f"your ACH-000{line}" for line in ("446", "662", "053", "622")}
    assert all(e.verdict != "off" for e in table.entries)

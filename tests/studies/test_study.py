"""Summaries, verdicts, the catalogue and configs of studies."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cads_env.errors import StudyError
from cads_env.studies import find_items, load_config, load_study, study_names
from cads_env.studies.study import Moments, Summary
from cads_env.studies.tables import Entry, Table, near


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60))
def test_moments_are_those_of_numpy(values: list[float]) -> None:
    moments = Moments()
    for value in values:
        moments.add(value)
    assert moments.n == len(values)
    assert moments.mean == pytest.approx(np.mean(values), abs=1e-6)
    assert moments.sd == pytest.approx(np.std(values, ddof=1), rel=1e-6, abs=1e-6)
    assert moments.mc_se == pytest.approx(moments.sd / math.sqrt(len(values)))
    assert (moments.low, moments.high) == (min(values), max(values))


def test_a_single_value_has_no_error() -> None:
    summary = Summary()
    summary.add("exact", {"x": 3.0})
    assert summary.mc_se("exact", "x") is None
    assert math.isnan(summary.of("exact", "x").sd)


def test_unknown_cells_and_columns_are_named_with_a_suggestion() -> None:
    summary = Summary()
    summary.add("epsilon=0.1", {"power": 0.4})
    with pytest.raises(StudyError, match=r"no rows of cell 'epsilon=0.2'.*epsilon=0.1"):
        summary.mean("epsilon=0.2", "power")
    with pytest.raises(StudyError, match=r"no column 'pover'. Did you mean 'power'"):
        summary.mean("epsilon=0.1", "pover")


def entry(ours: float, **fields: object) -> Entry:
    values = {"row": ("CADS",), "measure": "power", "published": 0.4, "mc_se": 0.01}
    return Entry(ours=ours, **(values | {"expected": near(0.4, 0.03)} | fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        (entry(0.42), "within"),
        (entry(0.43), "within"),
        (entry(0.45), "noise"),
        (entry(0.47), "off"),
        (entry(0.31), "off"),
        (entry(0.47, mc_se=None), "off"),
        (entry(0.4300001, mc_se=None), "off"),
        (entry(0.47, note="The page does not say which.", is_open=True), "explained"),
        (entry(0.47, note="A remark."), "off"),
        (entry(0.47, is_open=True), "off"),
        (entry(0.42, note="The page does not say which.", is_open=True), "within"),
        (entry(0.9, expected=None), "no figure"),
        (entry(math.nan), "off"),
    ],
)
def test_verdicts_follow_from_the_figures(made: Entry, verdict: str) -> None:
    assert made.verdict == verdict


def test_a_table_refuses_entries_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        Table(title="T", label_columns=("rule", "q"), entries=[entry(0.4)])


def test_every_study_is_found_and_its_items_are_unique() -> None:
    everything = find_items(["all"])
    assert list(everything) == list(study_names())
    items = [item for names in everything.values() for item in names]
    assert len(items) == len(set(items))
    for name in study_names():
        study = load_study(name)
        assert study.name == name
        cells = study.cells(load_config(name), tuple(study.items))
        assert len({cell.name for cell in cells}) == len(cells)


def test_items_studies_and_mistakes_are_told_apart() -> None:
    assert find_items(["table1"]) == {"primary": ("table1",)}
    assert find_items(["primary"])["primary"][:2] == ("table1", "table-s1")
    with pytest.raises(StudyError, match=r"'tabel1'. Did you mean 'table1'"):
        find_items(["tabel1"])
    with pytest.raises(StudyError, match="Unknown study"):
        load_study("nothing")


def test_a_config_knows_its_settings() -> None:
    assert load_config("primary", {"seeds": 3})["seeds"] == 3
    with pytest.raises(StudyError, match=r"no setting 'sedes'. Did you mean 'seeds'"):
        load_config("primary", {"sedes": 3})
    with pytest.raises(StudyError, match="cannot be read"):
        load_config("nothing")

"""Changed settings must look like the shipped ones, and an odd one is named."""

from __future__ import annotations

import math
from typing import Any

import pytest

from cads_env.errors import CadsError, StudyError
from cads_env.report.studies.content import build_items
from cads_env.studies import load_config, load_study, study_names
from cads_env.studies.play import StudyRows, play_study
from cads_env.studies.shapes import fitted

VARIANTS = [{"name": "a", "delta": 0.1}, {"name": "b", "timing": "front"}]


@pytest.mark.parametrize(
    ("shipped", "value"),
    [
        (1000, 3), (0.1, 1), (0.1, 0.2), ("sweep", "standard"), (True, False), (None, "x.csv"),
        (None, None), ([0.1, 0.2], [0.3]), (["a"], ["b", "c"]), ([0.0, "inf"], ["inf", 2.0]),
        (VARIANTS, [{"name": "c", "delta": 1}]), (VARIANTS, [{"name": "c", "timing": "x"}]),
    ],
)  # fmt: skip
def test_what_looks_alike_passes(shipped: Any, value: Any) -> None:
    assert fitted("setting", value, shipped) == value


@pytest.mark.parametrize(
    ("shipped", "value", "said"),
    [
        (1000, -1, "whole number from 0"), (1000, 1.5, "whole number"), (1000, True, "whole"),
        (1000, 10**10, "whole number"), (0.1, math.nan, "finite number"), (0.1, "x", "finite"),
        (0.1, 10**400, "finite number"), ("sweep", "", "a text"), ("sweep", 5, "a text"),
        (True, 1, "true or false"), (None, True, "a value or nothing"), 
        ([0.1], 0.1, "expected a list"), ([0.1], ["x"], "entry 'x'"),
        (VARIANTS, {"name": "c"}, "a list"), (VARIANTS, [{"delta": 1}], "'name' is missing"),
        (VARIANTS, [{"name": "c", "dleta": 1}], "'delta'"), (VARIANTS, [[]], "expected a mapping"),
        ({"power": 0.03}, {"pover": 1}, "Did you mean 'power'"), ({"power": 0.03}, 5, "mapping"),
        ({"power": 0.03}, {"power": "x"}, "setting.power is 'x'"),
    ],
)  # fmt: skip
def test_what_does_not_is_refused_with_the_place(shipped: Any, value: Any, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        fitted("setting", value, shipped)


def test_a_mapping_changes_the_entries_that_it_names() -> None:
    assert fitted("t", {"power": 0.1}, {"power": 0.03, "fdr": 0.03}) == {"power": 0.1, "fdr": 0.03}


ODD: list[Any] = [
    3, -1, 0, "x", [], {}, None, True, math.nan, math.inf, -0.5, [[]], [1, "a"], {"a": 1}, "", 1e9,
    10**20, ["x"], [None], [0.1], "/dev/null",
]  # fmt: skip


@pytest.mark.parametrize("name", study_names())
def test_no_odd_value_of_any_setting_escapes_as_something_else(name: str) -> None:
    study, refused = load_study(name), 0
    for setting in load_config(name):
        for value in ODD:
            try:
                config = load_config(name, {setting: value})
                StudyRows.plan(study, config, tuple(study.items), seeds=1)
            except CadsError:
                refused += 1
    assert refused > 20


def test_what_only_using_shows_is_said_plainly() -> None:
    study = load_study("cross")
    config = load_config("cross", {"tolerance": {"power": 0.5}, "depmap": []})
    with pytest.raises(StudyError, match=r"settings of study 'cross' \(depmap, tolerance\) cannot"):
        StudyRows.plan(study, config, ("table-s2",), seeds=1)
    primary = load_study("primary")
    plan = StudyRows.plan(primary, load_config("primary", {"qs": []}), ("table1",), seeds=1)
    summary = play_study(plan)
    with pytest.raises(StudyError, match=r"no column|cannot be used"):
        build_items(plan, summary)

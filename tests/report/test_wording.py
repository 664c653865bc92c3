"""How numbers and other people's text are written."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cads_env.report.wording import (
    counted,
    e_text,
    interval,
    last_rounds,
    listed,
    number,
    p_cell,
    p_text,
    ranges,
    shortened,
    signed,
    visible,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1234.5, "1,234.50"),
        (-3.699, "−3.70"),
        (-0.001, "0.00"),
        (0.0, "0.00"),
        (math.nan, "-"),
        (None, "-"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
    ],
)
def test_a_number_has_two_digits_and_a_true_minus(value: float | None, expected: str) -> None:
    assert number(value) == expected


def test_only_what_is_above_zero_as_shown_has_a_plus_sign() -> None:
    shown = [signed(v) for v in (0.85, -0.85, 0.0, 0.001, math.nan)]
    assert shown == ["+0.85", "−0.85", "0.00", "0.00", "-"]


def test_an_interval_that_is_not_defined_is_a_dash() -> None:
    assert interval(-1.5, 2.0) == "[−1.50, 2.00]"
    assert interval(math.nan, math.nan) == "-"


def test_small_p_values_are_bounds() -> None:
    assert [p_text(p) for p in (0.54, 0.0471, 1e-9, math.nan)] == [
        "p = 0.54",
        "p = 0.047",
        "p < 0.001",
        "p undefined",
    ]
    assert [p_cell(p) for p in (0.54, 1e-9, math.nan)] == ["0.54", "< 0.001", "-"]


def test_an_e_value_is_plain_until_it_is_too_long() -> None:
    shown = [e_text(math.log(e)) for e in (0.0234, 1.0, 78.4, 263_456.0)]
    assert shown == ["0.023", "1.00", "78", "263,000"]
    assert e_text(100 * math.log(10)) == "10^100.0"
    assert e_text(math.nan) == "-"


def test_counts_and_lists_read_as_sentences() -> None:
    assert [counted(n, "campaign") for n in (0, 1, 2_000)] == [
        "0 campaigns",
        "1 campaign",
        "2,000 campaigns",
    ]
    assert [listed(list("abcd")[:n], limit=3) for n in range(5)] == [
        "",
        "a",
        "a and b",
        "a, b and c",
        "a, b, c and 1 more",
    ]


@given(st.sets(st.integers(0, 60), max_size=20))
def test_ranges_hold_the_numbers_and_no_others(numbers: set[int]) -> None:
    held: set[int] = set()
    for part in filter(None, ranges(list(numbers)).split(",")):
        first, _, last = part.partition("-")
        held |= set(range(int(first), int(last or first) + 1))
    assert held == numbers


@given(st.text(max_size=40))
def test_visible_text_is_one_line_of_characters_that_can_be_seen(text: str) -> None:
    shown = visible(text)
    assert len(shown.splitlines()) <= 1
    assert shown.encode().decode() == shown
    assert not any(c in shown for c in "\x00\x1b\u202e\u2066\u200b\ufeff")


def test_a_name_in_a_picture_is_never_longer_than_its_place() -> None:
    assert shortened("x" * 20, 20) == "x" * 20
    assert shortened("x" * 21, 20) == "x" * 19 + "…"
    assert len(shortened("\x1b" * 20, 20)) == 20


def test_a_long_text_is_cut_and_says_how_long_it_was() -> None:
    assert visible("x" * 10_000) == f"{'x' * 80}... (10,000 characters)"
    assert visible("a\x1b[31m\nb\u202ec\ud800") == r"a\x1b[31m b\u202ec\ud800"


def test_a_reach_before_the_first_round_is_none() -> None:
    assert last_rounds([-1]) == "none"
    assert last_rounds([3, -1, 2]) == "none to 3"
    assert last_rounds([2, 2]) == "2"
    assert last_rounds([]) == "-"

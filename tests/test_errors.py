"""What errors say: short, printable, with what to do, whatever they quote."""

from __future__ import annotations

import pickle

import pytest

from cads_env.errors import (
    MESSAGE_LIMIT,
    CadsError,
    MissingExtraError,
    RegistryError,
    quoted,
    suggest,
)


def test_a_long_message_keeps_its_beginning_and_what_to_do() -> None:
    said = str(RegistryError(f"my.csv has {'x' * 1_000_000}. Mend it."))
    assert len(said) <= MESSAGE_LIMIT
    assert said.startswith("my.csv has x")
    assert said.endswith("x. Mend it.")


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("a\u202eb", r"a\u202eb"),
        ("a\tb", "a b"),
        ("a\xa0b\u2028c", "a b c"),
        ("a\ud800b", r"a\ud800b"),
        ("Ä ½ 蛋", "Ä ½ 蛋"),
    ],
)
def test_a_message_never_holds_what_cannot_be_printed(raw: str, shown: str) -> None:
    assert str(CadsError(raw)) == shown


def test_lines_of_a_message_stay_lines() -> None:
    assert str(CadsError("Two problems:\n  one\n  two")) == "Two problems:\n  one\n  two"


def test_escapes_cannot_make_a_message_longer_than_the_limit() -> None:
    assert len(str(CadsError("\x01" * 3_000))) <= MESSAGE_LIMIT


def test_errors_survive_a_pickle_and_keep_their_other_arguments() -> None:
    for error in (RegistryError("x\ty"), MissingExtraError("no h5py"), CadsError(), CadsError(3)):
        back = pickle.loads(pickle.dumps(error))
        assert type(back) is type(error)
        assert back.args == error.args
    assert str(RegistryError("x\ty")) == "x y"


def test_a_suggestion_lists_forty_names_at_most() -> None:
    listing = suggest("zzz", [f"column{i:04d}" for i in range(3_000)])
    assert listing.endswith("column0039 and 2,960 more.")
    assert suggest("colum", ["column"]) == "Did you mean 'column'?"
    assert suggest("x", []) == "Available: none."


def test_a_quoted_value_is_cut() -> None:
    assert quoted("x" * 500) == repr("x" * 77 + "...")
    assert len(quoted(list(range(10_000)))) <= 80
    assert quoted(0.5) == "0.5"

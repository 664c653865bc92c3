"""`cads audit plan`: what it prints, and how it refuses."""

from __future__ import annotations

import sys

import pytest

from cads_env.cli import main


def cads(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["cads", *arguments])
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_a_plan_names_bounds_caps_and_reads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--controls", "200", "--tau", "1", "--Delta", "2", "--delta", "0.01")
    assert cads(monkeypatch, "audit", "plan", *arguments) == 0
    text = printed(capsys)
    for words in (
        "kappa 0.9772",
        "false alarms 0.0228",
        "flag rate 0.1203",
        "e-BH at q - delta = 0.09",
        "audited, over the rounds 0.227",
        "audited, before round 0 0.232",
        "oracle (known) 0.100",
        "blind (declared) 0.300",
        "200 controls before round 0 bound a contamination of 0.1 by 0.232",
    ):
        assert words in text
    assert "WARNING" not in text


def test_one_timing_and_one_declaration_are_shown_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--controls", "20", "--timing", "front", "--k", "1", "--rounds", "4")
    assert cads(monkeypatch, "audit", "plan", *arguments) == 0
    text = printed(capsys)
    assert "over the rounds" not in text
    assert "together" not in text


def test_corruptions_outside_the_declared_class_are_warned_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--epsilon", "0.4", "--low", "0.2", "--high", "0.5", "--controls", "500")
    assert cads(monkeypatch, "audit", "plan", *arguments) == 0
    assert "WARNING: the bound covers the contamination in" in printed(capsys)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--controls", "0"), "controls is 0; expected a whole number from 1"),
        (("--delta", "0.2"), "The audit leaves no level: received delta=0.2 and q=0.1"),
        (("--Delta", "-5"), "The controls cannot bound contamination"),
        (("--looks", "daily"), "looks is unknown"),
        (("--timing", "fron"), "Did you mean 'front'"),
        (("--epsilon", "nan"), "epsilon is not usable"),
        (("--m", "10", "--k", "11"), "k is 11; expected a whole number from 1 to 10"),
    ],
)
def test_nonsense_is_refused_in_one_paragraph(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    said: str,
) -> None:
    assert cads(monkeypatch, "audit", "plan", *arguments) == 1
    caught = capsys.readouterr()
    assert said in " ".join(caught.err.split())
    assert "Traceback" not in caught.err
    assert not caught.out

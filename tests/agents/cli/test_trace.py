"""`cads trace`: tables, whole exchanges, names and why they were refused, hostile text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from cads_agents.cli.trace import trace
from cads_env.errors import RunError
from cads_env.proposer import Journal, Proposal, ProposerFailed, View
from cads_env.run.evaluate import evaluate
from cads_env.run.evaluate_grid import evaluate_grid
from cads_env.run.settings import settings_of
from cads_env.testing import tiny_protocol, tiny_registry

HOSTILE = "see \x1b[31mred\x1b[0m and [bold]bold[/bold]\u202e\nGENE001"


class Asking:
    """Asks twice a round through the journal; its answers are a function of the round."""

    def __init__(self, *, seed: int, journal: Journal, is_broken: bool = False) -> None:
        self._seed, self._journal, self._is_broken = seed, journal, is_broken

    def propose(self, view: View) -> Proposal:
        answers = [self._ask(view, attempt) for attempt in (0, 1)]
        first, second = view.identifiers[view.round], view.identifiers[-1 - view.round]
        names = ((first, "NOPE"), (second, first, "GENE001"))
        usage = {"names_1": 2, "names_2": 3}
        said = tuple(name for part in names for name in part)
        return Proposal(said, "\n".join(answers), attempts=2, usage=usage)

    def _ask(self, view: View, attempt: int) -> str:
        request = {
            "kind": "chat",
            "round": view.round,
            "attempt": attempt,
            "model": "made-up",
            "messages": [
                {"role": "system", "content": "You choose."},
                {"role": "user", "content": f"Round {view.round}.\nName {view.slots}."},
            ],
            "sampling": {"temperature": 0.7, "seed": self._seed},
        }

        def answer() -> dict[str, Any]:
            if self._is_broken:
                msg = "the server [red]fell[/red] \x1b[2J over"
                raise ProposerFailed(msg)
            return {
                "text": HOSTILE if attempt else "GENE001, NOPE",
                "finish_reason": "stop",
                "model": "made-up",
                "fingerprint": "fp",
                "usage": {"tokens_in": 12, "tokens_out": 3, "tokens_cached": 8, "cost": 0.25},
                "retries": [{"error": "rate_limit", "status": 429, "wait_s": 1.5, "said": "slow"}],
            }

        return str(self._journal.exchange(request, answer)["text"])


def asking(*, seed: int, journal: Journal) -> Asking:
    return Asking(seed=seed, journal=journal)


def play(out: Path, seeds: Sequence[int] = (0, 1)) -> None:
    evaluate(
        {"model/thin": asking, "model/informed": asking},
        registry=tiny_registry(),
        protocol=tiny_protocol(),
        seeds=seeds,
        out=out,
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("traced") / "run"
    play(out)
    return out


def call(*words: str | Path) -> Result:
    app = typer.Typer()
    app.command()(trace)
    return CliRunner().invoke(app, [str(word) for word in words])


def refused(*words: str | Path) -> str:
    done = call(*words)
    assert isinstance(done.exception, RunError), done.output
    return str(done.exception)


def test_a_round_is_shown_whole_with_what_became_of_each_name(run: Path) -> None:
    done = call(run, "--arm", "thin", "--seed", "1", "--round", "1")
    assert done.exit_code == 0, done.output
    text = done.stdout
    assert "model/thin on tiny, seed 1" in text
    assert "-- system\nYou choose." in text
    assert "-- user\nRound 1.\nName " in text
    assert "12 tokens in (8 cached), 3 out" in text
    assert "cost $0.25" in text
    assert "rate_limit" in text
    lines = [line.split("  ") for line in text.splitlines()]
    shown = [(words[0].strip(), words[-1].strip()) for words in lines if len(words) > 1]
    assert shown == [
        ("GENE002", "accepted"),
        ("NOPE", "refused: names no candidate"),
        ("GENE059", "accepted"),
        ("GENE002", "refused: named before in this answer"),
        ("GENE001", "refused: tested in an earlier round"),
    ]
    assert "the proposer filled 2 of" in text


def test_what_a_model_wrote_is_shown_and_never_interpreted(run: Path) -> None:
    text = call(run, "--arm", "thin", "--seed", "0", "--round", "0").stdout
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert r"see \x1b[31mred\x1b[0m and [bold]bold[/bold]\u202e" in text
    assert "\nGENE001\n" in text


def test_one_attempt_is_shown_by_itself(run: Path) -> None:
    text = call(run, "--arm", "thin", "--seed", "0", "--round", "0", "--attempt", "2").stdout
    assert "attempt 2" in text
    assert "attempt 1" not in text


def test_without_a_round_the_delivery_of_each_try_is_a_table(run: Path) -> None:
    done = call(run, "--arm", "model/informed", "--seed", "0")
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.stdout.splitlines() if line.strip()[:1].isdigit()]
    rounds = tiny_protocol().rounds
    assert [row[:2] for row in rows] == [[str(r), a] for r in range(rounds) for a in "12"]
    first, second = rows[2], rows[3]
    # round, try, open, raw, ok, inv, dup, old, over, bad, retry
    assert first[3:11] == ["2", "1", "1", "0", "0", "0", "0", "1"]
    assert second[3:11] == ["3", "1", "0", "1", "1", "0", "0", "1"]
    assert first[12:15] == ["12", "8", "3"]
    assert first[-2:] == ["0.2500", "stop"]


def test_json_holds_every_exchange_on_a_line_of_ascii(run: Path) -> None:
    done = call(run, "--json", "--arm", "thin")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.stdout.isascii()
    assert len(rows) == 2 * 2 * tiny_protocol().rounds
    assert {(row["arm"], row["seed"]) for row in rows} == {("model/thin", 0), ("model/thin", 1)}
    assert rows[0]["names"] == [["GENE001", "accepted"], ["NOPE", "invalid"]]
    assert rows[1]["answer"]["text"] == HOSTILE
    [one] = call(run, "--json", "--arm", "thin", "--seed", "1", "--round", "1", "--attempt", "1") \
        .stdout.splitlines()  # fmt: skip
    assert json.loads(one) == next(r for r in rows if (r["seed"], r["round"]) == (1, 1))


def test_many_campaigns_are_listed_rather_than_shown(tmp_path: Path) -> None:
    play(tmp_path / "run", seeds=range(5))
    text = call(tmp_path / "run").stdout
    assert "10 campaigns have traces" in text
    assert "model/thin on tiny, seed 4" in text


def test_what_is_not_there_is_said(run: Path) -> None:
    assert "Did you mean 'model/thin'" in refused(run, "--arm", "model/thim")
    assert "no traces of such a campaign" in refused(run, "--seed", "7")
    assert "Nothing was asked in round 99" in refused(run, "--round", "99")
    assert "run by itself" in refused(run, "--setting", "full")
    with pytest.raises(RunError):
        raise call(run / "nowhere").exception or AssertionError


def test_a_failed_campaign_shows_why_and_no_names(tmp_path: Path) -> None:
    def breaking(*, seed: int, journal: Journal) -> Asking:
        return Asking(seed=seed, journal=journal, is_broken=True)

    evaluate(
        {"model": breaking},
        registry=tiny_registry(),
        protocol=tiny_protocol(),
        seeds=(1,),
        out=tmp_path / "run",
    )
    text = call(tmp_path / "run", "--seed", "1", "--round", "0").stdout
    assert r"failed for good: the server [red]fell[/red] \x1b[2J over" in text
    assert "what became of the names is not known" in text
    assert "accepted" not in text
    table = call(tmp_path / "run", "--seed", "1").stdout
    assert "FAILED" in table


def test_a_grid_shows_each_setting_or_the_one_that_is_named(tmp_path: Path) -> None:
    evaluate_grid(
        {"model": asking},
        settings=settings_of(feedback=("full", "none")),
        registry=tiny_registry(),
        protocol=tiny_protocol(),
        seeds=(0,),
        out=tmp_path / "grid",
    )
    both = call(tmp_path / "grid", "--round", "0").stdout
    assert "full: model on tiny" in both
    assert "none: model on tiny" in both
    one = call(tmp_path / "grid", "--round", "0", "--setting", "none").stdout
    assert "full: model" not in one
    assert "Did you mean 'none'" in refused(tmp_path / "grid", "--setting", "nine")

"""Delivery by attempt, counted from rows and traces, against what a scripted model said."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cads_env
from cads_env import Proposal, ProposerFailed, RunResult, View
from cads_env.errors import RecordError
from cads_env.proposer import Journal, Unrecorded
from cads_env.record import Delivery
from cads_env.report.llm.asked import has_traces
from cads_env.report.llm.attempts import (
    ATTEMPT_COLUMNS,
    DELIVERY_COUNTS,
    RETRY_COUNTS,
    attempts_of,
    delivery_of,
)
from cads_env.report.llm.delivery import spend_table, spent_words
from cads_env.run.load import load_run
from cads_env.testing import tiny_protocol, tiny_registry
from tests.report.llm_cases import ARMS, LLMProposer, play_grid


class Scripted:
    """Answers what its script says, attempt by attempt; the fourth round breaks where asked to."""

    script: Sequence[Sequence[Mapping[str, Any]]] = ()
    reports = True

    def __init__(self, seed: int = 0, journal: Journal | None = None) -> None:
        """Keep the journal."""
        self.journal = Unrecorded() if journal is None else journal

    def propose(self, view: View) -> Proposal:
        """The names of the script."""
        names: list[str] = []
        counts = {}
        tries = self.script[view.round] if view.round < len(self.script) else ()
        for number, answer in enumerate(tries):
            said = self.journal.exchange(
                {"round": view.round, "attempt": number}, lambda answer=answer: give(answer)
            )
            entries = [name for name in said.get("text", "").split(",") if name.strip()]
            names += entries
            counts[f"names_{number + 1}"] = len(entries)
        return Proposal(
            tuple(names), attempts=max(1, len(tries)), usage=counts if self.reports else {}
        )


def give(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    if "broken" in answer:
        raise ProposerFailed(answer["broken"])
    return answer


def play(folder: Path, script: Sequence[Sequence[Mapping[str, Any]]], **more: Any) -> RunResult:
    agent = type("Scripted", (Scripted,), {"script": script, **more})

    def build(seed: int = 0, journal: Journal | None = None) -> Scripted:
        return agent(seed, journal)  # type: ignore[no-any-return]

    cads_env.evaluate(
        {"model": build},
        registry=tiny_registry(),
        protocol=tiny_protocol(first_fresh=3, fresh=2, rounds=4),
        seeds=[0],
        out=folder,
    )
    return load_run(folder)


def genes(*numbers: int) -> str:
    return ",".join(f"GENE{n:03d}" for n in numbers)


USAGE = {"tokens_in": 11, "tokens_out": 7, "tokens_cached": 5, "cost": 0.25}
SCRIPT = [
    [
        {"text": genes(1, 2, 2) + ",NOPE", "finish_reason": "stop", "usage": USAGE,
         "model": "m", "fingerprint": "f",
         "retries": [{"error": "timeout"}, {"error": "rate_limit"}, {"error": "timeout"}]},
        {"text": genes(2, 3, 4), "finish_reason": "length", "usage": USAGE},
    ],
    [{"text": "  \n", "finish_reason": "stop"}, {"text": genes(1, 5), "finish_reason": "stop"}],
    [{"overflow": True}, {"text": " , ", "finish_reason": "stop"}],
]  # fmt: skip


def test_every_attempt_is_counted_as_the_screen_counts(tmp_path: Path) -> None:
    attempts = attempts_of(play(tmp_path / "run", SCRIPT))
    assert list(attempts.columns) == ATTEMPT_COLUMNS
    shown = attempts.set_index(["round", "attempt"])
    columns = ["requested", "raw", "valid", "accepted", "invalid", "duplicate", "already_tested",
               "over_delivered", "unparsed", "empty", "cut", "overflows", "fallback"]  # fmt: skip
    assert tuple(columns) == DELIVERY_COUNTS
    expected = {
        (0, 1): [3, 4, 2, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0],
        (0, 2): [1, 3, 2, 1, 0, 1, 0, 1, 0, 0, 1, 0, 0],
        (1, 1): [2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
        (1, 2): [2, 2, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1],
        (2, 1): [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0],
        (2, 2): [2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2],
        (3, 1): [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2],
    }
    assert {key: row[columns].tolist() for key, row in shown.iterrows()} == expected
    first = shown.loc[(0, 1)]
    assert [first[name] for name in RETRY_COUNTS] == [2, 0, 1, 0, 0]
    assert (first["tokens_in"], first["tokens_out"], first["tokens_cached"]) == (11, 7, 5)
    assert (first["model"], first["fingerprint"], first["finish_reason"]) == ("m", "f", "stop")
    assert shown.loc[(3, 1)]["requests"] == 0


def test_the_sums_of_an_arm_are_those_of_its_rounds_and_traces(tmp_path: Path) -> None:
    run = play_grid(tmp_path / "grid").runs["as-protocol"]
    sums = delivery_of(attempts_of(run)).set_index("arm")
    assert list(sums.index) == list(run.arms)
    rounds = run.rounds.groupby("arm")
    for name in Delivery.COUNTS:
        if name in sums.columns and name != "attempts":
            assert sums[name].to_dict() == rounds[name].sum().to_dict(), name
    assert sums["slots"].to_dict() == rounds["proposal_slots"].sum().to_dict()
    lines = [
        json.loads(line)
        for path in Path(str(run.folder)).glob("traces/*/*.jsonl")
        for line in path.read_text().splitlines()
    ]
    assert sums["requests"].sum() == len(lines) > 200
    assert sums["failed_requests"].sum() == sum("failed" in line for line in lines) > 0
    usage = [line["answer"]["usage"] for line in lines if "answer" in line]
    assert sums["tokens_in"].sum() == sum(u["tokens_in"] for u in usage)
    assert sums["cost"].sum() == pytest.approx(sum(u["cost"] for u in usage))
    assert sums["latency_s"].sum() == pytest.approx(sum(line["seconds"] for line in lines))


def test_a_failed_campaign_costs_but_delivers_nothing(tmp_path: Path) -> None:
    script = [SCRIPT[0], [{"broken": "no server"}]]
    run = play(tmp_path / "run", script)
    assert len(run.failures) == 1
    attempts = attempts_of(run)
    assert attempts["status"].tolist() == ["failed"] * 3
    assert attempts["requests"].tolist() == [1, 1, 1]
    assert attempts["failed_requests"].tolist() == [0, 0, 1]
    (row,) = delivery_of(attempts).to_dict("records")
    assert (row["campaigns"], row["raw"], row["slots"], row["tokens_in"]) == (0, 0, 0, 22)
    open_run = dataclasses.replace(run, failures=())
    assert set(attempts_of(open_run)["status"]) == {"unfinished"}


def test_without_the_agents_own_counts_a_rounds_entries_stand_on_its_last_attempt(
    tmp_path: Path,
) -> None:
    attempts = attempts_of(play(tmp_path / "run", SCRIPT, reports=False))
    first = attempts[attempts["round"] == 0]
    assert first["raw"].tolist() == [0, 7]
    assert first["accepted"].tolist() == [0, 3]
    assert first["unparsed"].tolist() == [0, 0]


def test_a_flood_beyond_what_a_record_lists_is_counted_whole(tmp_path: Path) -> None:
    flood = ",".join(["NOPE"] * 9_999)
    script = [[{"text": flood}, {"text": genes(1, 1) + f",{flood}"}]]
    run = play(tmp_path / "run", script)
    first = attempts_of(run)
    first = first[first["round"] == 0]
    assert first["raw"].tolist() == [9_999, 10_001]
    assert first["invalid"].tolist() == [9_999, 9_999]
    assert first["accepted"].tolist() == [0, 1]
    assert first["duplicate"].tolist() == [0, 1]


def test_what_a_server_makes_up_of_its_usage_counts_nothing(tmp_path: Path) -> None:
    odd = {"tokens_in": "many", "tokens_out": -5, "tokens_cached": True, "cost": 1e300}
    answer = {"text": genes(1), "usage": odd, "retries": ["x", {"error": []}], "model": 3}
    run = play(tmp_path / "run", [[{**answer, "finish_reason": {}}], [{**answer, "usage": 3}]])
    attempts = attempts_of(run)
    assert attempts[["tokens_in", "tokens_out", "tokens_cached"]].sum().sum() == 0
    assert attempts["cost"].sum() == 0
    assert attempts["model"].tolist()[0] == ""


def test_tokens_and_prices_that_nobody_knows_are_said_to_be_left_out(tmp_path: Path) -> None:
    answer = {"text": genes(1), "usage": USAGE}
    blind = {"text": genes(2), "usage_missing": True, "price_unknown": True}
    total = delivery_of(attempts_of(play(tmp_path / "run", [[answer], [blind], [blind]])))
    assert total[["uncounted", "unpriced"]].sum().tolist() == [2, 2]
    assert "Left out: the tokens of 2 answers" in spent_words(total)
    assert "the cost of 2 answers" in spend_table({"": total}, several=False).note  # type: ignore[union-attr]
    whole = delivery_of(attempts_of(play(tmp_path / "whole", [[answer]])))
    assert "Left out" not in spent_words(whole)


def test_what_no_table_can_hold_of_a_servers_words_is_replaced(tmp_path: Path) -> None:
    odd = {"text": genes(1), "usage": USAGE, "model": "\ud800m", "fingerprint": "\udfff"}
    run = play(tmp_path / "run", [[{**odd, "finish_reason": "\ud800"}], [odd]])
    attempts = attempts_of(run)
    assert attempts["model"].tolist()[0] == "?m"
    assert attempts["finish_reason"].tolist()[0] == attempts["fingerprint"].tolist()[0] == "?"
    assert attempts.groupby(["model", "fingerprint"]).size().sum() == len(attempts)


def test_a_damaged_trace_names_its_file_and_line(tmp_path: Path) -> None:
    run = play(tmp_path / "run", SCRIPT)
    (path,) = (tmp_path / "run" / "traces").glob("*/*.jsonl")
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], "[1]", *lines[2:]]) + "\n")
    with pytest.raises(RecordError, match=r"jsonl: line 2 "):
        attempts_of(run)


def test_rows_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    run = play(tmp_path / "run", SCRIPT)
    rounds = run.rounds.copy()
    rounds.at[0, "refused"] = [["OTHER", "invalid"]]
    with pytest.raises(RecordError, match="are not the accepted and refused ones"):
        attempts_of(dataclasses.replace(run, rounds=rounds))


def test_a_run_without_traces_has_an_attempt_a_round(tmp_path: Path) -> None:
    cads_env.evaluate(
        "random", registry=tiny_registry(), protocol=tiny_protocol(), seeds=[0], out=tmp_path / "r"
    )
    run = load_run(tmp_path / "r")
    assert not has_traces(run.folder)
    attempts = attempts_of(tmp_path / "r")
    assert attempts["attempt"].tolist() == [1] * 5
    assert attempts["requests"].sum() == 0
    assert attempts["accepted"].tolist() == run.rounds["accepted"].tolist()


def test_a_request_that_names_no_round_costs_and_delivers_nothing(tmp_path: Path) -> None:
    class Odd(Scripted):
        def propose(self, view: View) -> Proposal:
            self.journal.exchange({"hello": view.round}, lambda: {"text": "hi", "usage": USAGE})
            return Proposal(view.identifiers[:1])

    def build(seed: int = 0, journal: Journal | None = None) -> Odd:
        return Odd(seed, journal)

    run = cads_env.evaluate(
        {"odd": build}, registry=tiny_registry(), protocol=tiny_protocol(), seeds=[0],
        out=tmp_path / "run",
    )  # fmt: skip
    attempts = attempts_of(run)
    assert attempts["round"].tolist() == [-1, 0, 1, 2, 3, 4]
    (row,) = delivery_of(attempts).to_dict("records")
    assert (row["rounds"], row["attempts"], row["requests"], row["tokens_in"]) == (5, 5, 5, 55)
    assert row["slots"] == run.rounds["proposal_slots"].sum()


def test_an_empty_run_has_no_attempts(tmp_path: Path) -> None:
    run = play(tmp_path / "run", [[{"broken": "down"}]])
    for path in (tmp_path / "run" / "traces").glob("*/*.jsonl"):
        path.unlink()
    attempts = attempts_of(run)
    assert attempts.empty
    assert delivery_of(attempts).empty


def test_export_holds_the_attempts(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from cads_env.report.export import export_run

    run = play_grid(tmp_path / "grid", arms=ARMS[:3], seeds=range(4)).runs["as-protocol"]
    done = export_run(str(run.folder), tmp_path / "out", csv=True)
    expected = attempts_of(run)
    assert done.rows["attempts.parquet"] == done.rows["attempts.csv"] == len(expected)
    found = pd.read_parquet(done.folder / "attempts.parquet")
    assert found.to_dict("records") == expected.to_dict("records")
    sets = json.loads((done.folder / "croissant.json").read_text())["recordSet"]
    key = next(s["key"] for s in sets if s["@id"] == "attempts")
    names = [entry["@id"].split("/")[1] for entry in key]
    assert not expected.duplicated(names).any()


def test_the_made_up_model_is_deterministic() -> None:
    cads_env.testing.check_agent(LLMProposer)

"""One campaign's journal: asked once, given back in order, refused when it does not fit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cads_env.errors import AgentError, RecordError, ReplayError, RunError
from cads_env.proposer import ProposerFailed, Unrecorded
from cads_env.run import traces
from cads_env.run.executors import RunStopped, Stop
from cads_env.run.file_journal import FileJournal
from cads_env.run.journal import CampaignJournal, MemoryJournal
from cads_env.run.meter import Meter, Spent
from cads_env.run.rows import Key
from cads_env.run.traces import read_trace, trace_path
from tests.truth_scan import reachable


def request(n: int, **more: Any) -> dict[str, Any]:
    return {"round": n, "attempt": 0, "messages": [{"content": f"ask {n}"}], **more}


def play(journal: CampaignJournal, count: int, *, fails_at: int = -1) -> list[Any]:
    """Ask, and give what was asked of the world outside."""
    asked: list[int] = []
    failure: BaseException | None = None
    try:
        for n in range(count):

            def answer(n: int = n) -> Mapping[str, Any]:
                asked.append(n)
                if n == fails_at:
                    raise ProposerFailed("server down")
                return {"text": f"answer {n}"}

            assert journal.ticket.exchange(request(n), answer)["text"] == f"answer {n}"
    except ProposerFailed as error:
        failure = error
        raise
    finally:
        journal.end(failure)
    return asked


def test_what_was_answered_is_not_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "a" / "t.jsonl"
    assert play(FileJournal(path), 3) == [0, 1, 2]
    before = path.read_bytes()
    assert play(FileJournal(path), 3) == []
    assert play(FileJournal(path, mode="replay"), 3) == []
    assert path.read_bytes() == before


def test_a_line_tells_request_answer_hash_and_time(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    play(FileJournal(path), 1)
    row = json.loads(path.read_bytes())
    assert list(row) == ["n", "request", "request_sha256", "answer", "started", "seconds"]
    assert (row["n"], row["request"], row["answer"]) == (0, request(0), {"text": "answer 0"})
    text = json.dumps(request(0), sort_keys=True, separators=(",", ":"))
    assert row["request_sha256"] == traces.sha256_text(text)


def test_a_campaign_that_asks_nothing_leaves_no_file(tmp_path: Path) -> None:
    play(FileJournal(tmp_path / "a" / "t.jsonl"), 0)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("cut", [1, 40, 10_000])
def test_a_torn_last_line_is_dropped_and_asked_again(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "t.jsonl"
    play(FileJournal(path), 3)
    whole = path.read_bytes()
    last = whole.splitlines(keepends=True)[-1]
    path.write_bytes(whole[: max(len(whole) - cut, len(whole) - len(last) + 1)])
    assert [e.n for e in read_trace(path)] == [0, 1]
    assert play(FileJournal(path), 3) == [2]
    assert [e.n for e in read_trace(path)] == [0, 1, 2]


def test_an_answer_is_what_its_line_gives_back() -> None:
    journal = MemoryJournal()
    given = journal.ticket.exchange(request(0), lambda: {"b": (1, 2), "a": {3: None}})
    assert given == {"b": [1, 2], "a": {"3": None}}
    assert json.loads(journal.lines[0])["answer"] == given


def test_a_failure_is_recorded_with_its_errors_and_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with pytest.raises(ProposerFailed, match="server down"):
        play(FileJournal(path), 3, fails_at=1)
    assert [(e.n, e.failed) for e in read_trace(path)] == [(0, None), (1, "server down")]
    with pytest.raises(ProposerFailed, match="server down"):
        play(FileJournal(path, mode="replay"), 3)
    with pytest.raises(ProposerFailed, match="server down"):
        play(FileJournal(path), 3, fails_at=1)
    assert play(FileJournal(path), 3) == [1, 2]
    lines = [(0, None), (1, "server down"), (1, "server down"), (1, None), (2, None)]
    assert [(e.n, e.failed) for e in read_trace(path)] == lines
    assert play(FileJournal(path), 3) == []
    assert play(FileJournal(path, mode="replay"), 3) == []


def test_a_failure_that_the_agent_survived_is_raised_again_and_not_asked(tmp_path: Path) -> None:
    class Down(ProposerFailed):
        errors = ({"error": "timeout", "status": None},)

    def fails() -> Mapping[str, Any]:
        raise Down("one is down")

    path = tmp_path / "t.jsonl"
    for mode in ("live", "live", "replay"):
        journal = FileJournal(path, mode=mode)
        with pytest.raises(ProposerFailed, match="one is down"):
            journal.exchange(request(0), fails)
        assert journal.exchange(request(1), lambda: {"text": "other"}) == {"text": "other"}
        journal.end()
        first, second = read_trace(path)
        assert (first.n, first.errors, second.n) == (0, Down.errors, 1)


def test_another_request_than_the_recorded_one_is_refused_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    long = "x" * 500
    journal = FileJournal(path)
    journal.exchange(request(0, text=long + "old" + long, top=[1, {"p": 0.5}]), lambda: {})
    journal.end()
    for mode in ("live", "replay"):
        journal = FileJournal(path, mode=mode)
        with pytest.raises(ReplayError, match=r"(?s)Round 0, attempt 0.*text.*xold.*xnew") as info:
            journal.exchange(request(0, text=long + "new" + long, top=[1, {"p": 0.5}]), dict)
        assert len(str(info.value)) < 500
        with pytest.raises(ReplayError):
            journal.end()
        journal = FileJournal(path, mode=mode)
        with pytest.raises(ReplayError, match=r"top\[1\]\.p \(there 0\.5, now 0\.7\)"):
            journal.exchange(request(0, text=long + "old" + long, top=[1, {"p": 0.7}]), dict)


def test_a_replay_asks_nothing_and_wants_all(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    play(FileJournal(path), 2)
    with pytest.raises(ReplayError, match="Round 2, attempt 0: the record ends before"):
        play(FileJournal(path, mode="replay"), 3)
    for mode in ("live", "replay"):
        with pytest.raises(ReplayError, match=r"Round 1, attempt 0: .*not asked for any more"):
            play(FileJournal(path, mode=mode), 1)
    with pytest.raises(ReplayError, match="Round 0, attempt 0: the record ends"):
        play(FileJournal(tmp_path / "none.jsonl", mode="replay"), 1)


def test_an_agent_that_swallows_a_refusal_ends_with_it_all_the_same() -> None:
    stop = Stop()
    stop.give("enough")
    journal = MemoryJournal(stop=stop)
    with pytest.raises(RunStopped):
        journal.exchange(request(0), dict)
    with pytest.raises(RunStopped, match="enough"):
        journal.end()


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, object(), b"x"])
def test_what_is_no_json_is_the_agents_mistake(value: Any) -> None:
    journal = MemoryJournal()
    with pytest.raises(AgentError, match="request to the journal is no JSON"):
        journal.exchange({"a": value}, dict)
    with pytest.raises(AgentError, match="answer to the journal is no JSON"):
        journal.exchange({}, lambda: {"a": value})
    assert not journal.lines


def test_a_request_and_an_answer_are_mappings() -> None:
    with pytest.raises(AgentError, match="request to the journal is a list"):
        MemoryJournal().exchange([], dict)  # type: ignore[arg-type]
    with pytest.raises(AgentError, match="answer to the journal is a str"):
        MemoryJournal().exchange({}, lambda: "text")  # type: ignore[arg-type,return-value]


def test_a_ticket_tells_nothing_of_its_campaign(tmp_path: Path) -> None:
    journal = FileJournal(trace_path(tmp_path, Key("arm", "tiny", 345)), meter=Meter())
    journal.ticket.exchange(request(0), lambda: {"text": "x"})
    found = list(reachable(journal.ticket)) + list(reachable(journal.ticket.exchange))
    assert not [x for x in found if isinstance(x, (Path, Key, CampaignJournal, Meter))]
    assert not [x for x in found if isinstance(x, str) and "345" in x]
    journal.end()
    with pytest.raises(AgentError, match="campaign of this journal is over"):
        journal.ticket.exchange(request(1), dict)


def test_no_message_that_an_agent_can_catch_names_its_campaign(tmp_path: Path) -> None:
    path = trace_path(tmp_path, Key("arm", "tiny", 345))
    play(FileJournal(path), 1)
    path.write_bytes(path.read_bytes() + b"damage\n")
    journal = FileJournal(path)
    with pytest.raises(RecordError, match="line 2 is no exchange") as info:
        journal.exchange(request(0), dict)
    assert "345" not in str(info.value)


def test_outside_a_run_an_answer_is_asked_for() -> None:
    assert Unrecorded().exchange({}, lambda: {"text": "x"}) == {"text": "x"}


def test_recorded_answers_cost_nothing_again(tmp_path: Path) -> None:
    path, meter = tmp_path / "t.jsonl", Meter()
    usage = {"tokens_in": 7, "tokens_out": 2, "tokens_cached": 3, "cost": 0.5, "odd": "x"}
    answer = {"usage": usage, "retries": [{"error": "timeout"}, {"error": "server"}]}
    for _ in range(2):
        journal = FileJournal(path, meter=meter)
        for n in range(2):
            journal.exchange(request(n), lambda: answer)
        journal.end()
    expected = Spent(2, 14, 4, 6, 1.0, retries=4, rounds=2)
    assert meter.now == meter.total == expected
    assert traces.tally(tmp_path) == Spent()
    copy = trace_path(tmp_path, Key("arm", "tiny", 0))
    copy.parent.mkdir(parents=True)
    path.rename(copy)
    assert traces.tally(tmp_path) == expected


def line(n: int = 0, **changes: Any) -> bytes:
    text = traces.canonical(request(n))
    row = {
        "n": n, "request": request(n), "request_sha256": traces.sha256_text(text),
        "answer": {"text": "x"}, "started": "2026-01-01T00:00:00.000+00:00", "seconds": 0.5,
    }  # fmt: skip
    return (json.dumps({k: v for k, v in (row | changes).items() if v is not ...}) + "\n").encode()


@pytest.mark.parametrize(
    "raw",
    [
        b"not json\n",
        b"[]\n",
        b"{}\n",
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
        line().replace(b"0.5", b"NaN"),
        line().replace(b"0.5", b"9" * 5_000),
        line(n=1),
        line(n=-1),
        line(n=True),
        line(request=[]),
        line(request={"round": 9}),
        line(request_sha256="0" * 64),
        line(request_sha256=None),
        line(answer=None),
        line(answer="text"),
        line(answer=...),
        line(failed="why"),
        line(failed=3, answer=...),
        line(failed="why", answer=..., errors="none"),
        line(seconds="long"),
        line(seconds=-1),
        line(seconds=10**400),
        line(started=...),
        line() + line(),
        line() + line(n=2),
    ],
)
def test_a_damaged_trace_is_a_record_error_that_names_the_line(raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(raw)
    with pytest.raises(RecordError, match=r"t\.jsonl: line [12] "):
        list(read_trace(path))
    with pytest.raises(RecordError, match=r"line [12] "):
        play(FileJournal(path, mode="replay"), 3)


def test_a_line_too_long_for_an_exchange_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.jsonl"
    monkeypatch.setattr(traces, "MOST_LINE_BYTES", 1_000)
    path.write_bytes(line() + b"x" * 2_000)
    with pytest.raises(RecordError, match="line 2 is longer than 1,000 bytes"):
        list(read_trace(path))


@pytest.mark.parametrize(
    ("arm", "name"),
    [
        ("qwen/thin", "qwen%2Fthin"),
        ("..", "%2E%2E"),
        (".", "%2E"),
        ("a b:c\\d", "a%20b%3Ac%5Cd"),
        ("v2.5", "v2.5"),
        ("\ud800", "%ED%A0%80"),
        ("", "%"),
        ("%", "%25"),
    ],
)
def test_an_arm_is_one_folder_whatever_its_name(arm: str, name: str, tmp_path: Path) -> None:
    path = trace_path(tmp_path, Key(arm, "depmap/3", 7))
    assert path == tmp_path / "traces" / name / "depmap%2F3--7.jsonl"


def test_a_trace_that_cannot_be_written_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "traces").write_text("in the way")
    journal = FileJournal(trace_path(tmp_path, Key("arm", "tiny", 3)))
    with pytest.raises(RunError, match="A trace cannot be written"):
        journal.exchange(request(0), dict)
    with pytest.raises(RunError, match="A trace cannot be written"):
        journal.end()


def test_long_names_are_cut_and_stay_apart(tmp_path: Path) -> None:
    paths = [trace_path(tmp_path, Key("a" * 300 + x, "r" * 300 + x, 0)) for x in "xy"]
    assert paths[0].parent != paths[1].parent
    assert paths[0].name != paths[1].name
    assert all(len(part) < 120 for path in paths for part in path.relative_to(tmp_path).parts)

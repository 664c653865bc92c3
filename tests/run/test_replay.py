"""Runs that are played again from their folder: the same bytes, or the first difference named."""

from __future__ import annotations

import json
import re
import shutil
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cads_env.errors import RecordError, RegistryError, ReplayError, RunError
from cads_env.proposer import Nothing, Proposal, ProposerFailed, View
from cads_env.run import RunResult, evaluate, load_run, merge, split
from cads_env.run.agents import AgentSpec
from cads_env.run.replay import Replayed, replay
from cads_env.run.rows import Key
from cads_env.run.traces import canonical, read_trace, sha256_text, trace_files, trace_path
from cads_env.testing import tiny_registry
from tests.run.asking import PAIR, PROTOCOL, Asks, answer_to, recorded, rows_of

SOURCE = "tests.run.asking:Asks"


class Fails(Asks):
    """Fails in its second round, in campaigns of even seeds."""

    def _ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._seed % 2 == 0 and request["round"] == 1:
            raise ProposerFailed("server down " + "x" * 700)
        return answer_to(request)


def run(out: Path, agents: object = None, **changes: Any) -> RunResult:
    arguments: dict[str, Any] = {"registry": PAIR, "protocol": PROTOCOL, "seeds": range(4)}
    specs = [
        AgentSpec("asks/thin", SOURCE, Asks, {"style": "thin"}),
        AgentSpec("fails", f"{__name__}:Fails", Fails),
    ]
    return evaluate(specs if agents is None else agents, out=out, **(arguments | changes))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    result = run(folder, concurrency=3)
    assert 0 < len(result.failures) < 4
    return folder


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "run")
    return tmp_path / "run"


def again(folder: Path, **changes: Any) -> Replayed:
    return replay(folder, **({"registry": PAIR} | changes))


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text, path
    path.write_text(text.replace(old, new, 1))


def unsealed(folder: Path) -> Path:
    """The folder as that of a run that was interrupted, whose files nobody has sealed."""
    manifest = json.loads((folder / "manifest.json").read_text())
    for name in ("arms", "files", "traces"):
        manifest.pop(name, None)
    (folder / "manifest.json").write_text(json.dumps(manifest | {"status": "interrupted"}))
    return folder


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_replays_byte_for_byte_and_asks_nothing(
    whole: Path, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(*_: Any, **__: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(urllib.request, "urlopen", nobody)
    monkeypatch.setattr("tests.run.asking.answer_to", nobody)
    before = {p: p.read_bytes() for p in whole.rglob("*") if p.is_file()}
    found = again(whole, jobs=jobs)
    assert found.byte_identical
    assert (found.campaigns, found.traces, found.mismatches, found.notes) == (8, 8, (), ())
    assert {p: p.read_bytes() for p in whole.rglob("*") if p.is_file()} == before


def test_a_run_that_was_interrupted_replays_what_is_complete(tmp_path: Path) -> None:
    stopped = run(tmp_path / "run", {"a": SOURCE}, max_cost=6)
    assert stopped.status == "interrupted"
    assert 0 < len(stopped.campaigns) < 4
    found = again(tmp_path / "run")
    assert found.byte_identical
    assert (found.campaigns, found.planned) == (len(stopped.campaigns), 4)
    assert found.campaigns == len(stopped.campaigns)


def test_runs_of_named_registries_replay_without_being_told_them(tmp_path: Path) -> None:
    panel = "synthetic-depmap-6000:dev"
    evaluate(
        {"a": SOURCE, "prior": "prior"}, registry=panel, protocol="proposer", seeds=[3, 40],
        identifiers="shuffled", feedback="permuted", certificate={"q": 0.2}, out=tmp_path / "run",
    )  # fmt: skip
    found = replay(tmp_path / "run")
    assert (found.byte_identical, found.campaigns, found.traces) == (True, 4, 2)


def test_stored_reads_are_compared_too(tmp_path: Path) -> None:
    run(tmp_path / "run", {"a": SOURCE}, keep_reads=True)
    path = unsealed(tmp_path / "run") / "reads.jsonl"
    assert again(tmp_path / "run").byte_identical
    row = json.loads(path.read_text().splitlines()[0])
    change(path, row["values"], "A" * len(row["values"]))
    (found,) = again(tmp_path / "run").mismatches
    assert (found.file, found.seed) == ("reads.jsonl", 0)
    assert found.what.startswith("row 0: values (there ")


@pytest.mark.parametrize(
    ("name", "damage", "said"),
    [
        ("campaigns.jsonl", lambda row: row | {"gained": 99}, r"gained \(there 99, now \d"),
        (
            "rounds.jsonl",
            lambda row: row | {"text": "other " + row["text"]},
            r'text \(there "other',
        ),
        ("rounds.jsonl", lambda row: row | {"usage": {"a": 1}}, r"usage\.a \(there 1, now nothing"),
        ("declarations.jsonl", lambda row: row | {"log_e": 1.5}, r"log_e \(there 1\.5, now"),
        (
            "failures.jsonl",
            lambda row: row | {"reason": "rain"},
            r'reason \(there "rain", now "ser',
        ),
    ],
)
def test_each_kind_of_row_is_compared(
    copy: Path, name: str, damage: Callable[[Any], Any], said: str
) -> None:
    path = unsealed(copy) / name
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0] = damage(rows[0])
    lines = [json.dumps(row, separators=(",", ":")) + "\n" for row in rows]
    path.write_text("".join(lines))
    found = again(copy)
    assert not found.byte_identical
    (mismatch,) = found.mismatches
    assert mismatch.file == name
    assert (mismatch.arm, mismatch.seed) == (rows[0]["arm"], rows[0]["seed"])
    assert re.match("row 0: " + said, mismatch.what), mismatch.what
    assert name in str(mismatch)


def test_the_same_values_in_other_bytes_are_a_difference(copy: Path) -> None:
    path = unsealed(copy) / "campaigns.jsonl"
    change(path, '"hits":', '"hits": ')
    (found,) = again(copy).mismatches
    assert found.what == "row 0: the same values in other bytes"


def test_missing_rows_are_a_difference(copy: Path) -> None:
    path = unsealed(copy) / "rounds.jsonl"
    rows = path.read_text().splitlines(keepends=True)
    change(path, rows[0], "")
    with pytest.raises(RecordError, match="tells of"):
        again(copy)


def first_trace(folder: Path) -> Path:
    return trace_path(folder, Key("asks/thin", "tiny", 0))


def test_an_answer_that_was_changed_is_a_difference_in_the_rows(copy: Path) -> None:
    change(first_trace(unsealed(copy)), "NOBODY", "SOMEBODY")
    (found,) = again(copy).mismatches
    assert (found.file, found.arm, found.seed) == ("rounds.jsonl", "asks/thin", 0)
    assert "NOBODY" in found.what


def test_a_request_that_was_changed_is_named_with_its_round(copy: Path) -> None:
    path = first_trace(unsealed(copy))
    lines = path.read_bytes().splitlines(keepends=True)
    row = json.loads(lines[3])
    row["request"]["style"] = "fat"
    row["request_sha256"] = sha256_text(canonical(row["request"]))
    lines[3] = json.dumps(row).encode() + b"\n"
    path.write_bytes(b"".join(lines))
    (found,) = again(copy).mismatches
    assert found.file == "traces/asks%2Fthin/tiny--0.jsonl"
    assert "Round 1, attempt 1: " in found.what
    assert 'style (there "fat", now "thin")' in found.what


@pytest.mark.parametrize(
    ("cut", "said"),
    [
        (lambda lines: lines[:-1], "the record ends before this request"),
        (lambda lines: lines[:0], "the record ends before this request"),
        (lambda lines: [*lines, *extra(lines)], "which was not asked for any more"),
        (lambda lines: [*lines[:2], b"damage\n", *lines[2:]], "line 3 is no exchange"),
    ],
)
def test_a_trace_with_too_little_or_too_much_is_named(
    copy: Path, cut: Callable[[list[bytes]], list[bytes]], said: str
) -> None:
    path = first_trace(unsealed(copy))
    path.write_bytes(b"".join(cut(path.read_bytes().splitlines(keepends=True))))
    found = again(copy)
    (mismatch,) = found.mismatches
    assert mismatch.file == "traces/asks%2Fthin/tiny--0.jsonl"
    assert said in mismatch.what


def extra(lines: Sequence[bytes]) -> list[bytes]:
    row = json.loads(lines[-1])
    return [json.dumps(row | {"n": row["n"] + 1}).encode() + b"\n"]


def test_a_trace_that_is_gone_is_named(copy: Path) -> None:
    first_trace(unsealed(copy)).unlink()
    (found,) = again(copy).mismatches
    assert "the record ends before this request" in found.what


def test_changed_options_are_another_request(copy: Path) -> None:
    path = unsealed(copy) / "manifest.json"
    change(path, '"style": "thin"', '"style": "fat"')
    found = again(copy)
    assert [m.arm for m in found.mismatches] == ["asks/thin"] * 4
    assert 'style (there "thin", now "fat")' in found.mismatches[0].what


def test_changed_code_is_noted_and_changed_registries_are_refused(copy: Path) -> None:
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["config"]["agents"][0]["code_sha256"] = "0" * 64
    manifest["versions"]["cads-env"] = "0.0.0"
    manifest["protocol_hash"] = "1" * 64
    (copy / "manifest.json").write_text(json.dumps(manifest))
    found = again(copy)
    assert found.byte_identical
    assert len(found.notes) == 3
    assert "of cads-env 0.0.0" in found.notes[0]
    assert "protocol in the manifest is not the one" in found.notes[1]
    assert "code of arm 'asks/thin' is not that of the run" in found.notes[2]
    with pytest.raises(RegistryError, match="Registry 'tiny' has changed since the run began"):
        again(copy, registry=tiny_registry(m=50))
    with pytest.raises(RunError, match="played on tiny, but registry= gives other"):
        again(copy, registry=tiny_registry(name="other"))
    with pytest.raises(RunError, match=r"\(tiny\) cannot be loaded by name\. .*registry="):
        replay(copy)


def test_agents_of_python_are_handed_over(tmp_path: Path) -> None:
    class Local(Nothing):
        def propose(self, view: View) -> Sequence[str]:
            return view.identifiers[-view.slots :]

    agents = {"local": Local, "factory": lambda journal: Asks(journal, 5)}
    run(tmp_path / "run", agents)
    with pytest.raises(RunError, match=r"Arm 'local' cannot be made again from .*agents=\{'local'"):
        again(tmp_path / "run")
    with pytest.raises(RunError, match="Arm 'factory' cannot be made again"):
        again(tmp_path / "run", agents={"local": Local})
    assert again(tmp_path / "run", agents=agents).byte_identical
    with pytest.raises(RunError, match="has no arm 'fremd'"):
        again(tmp_path / "run", agents=agents | {"fremd": Local})
    other = agents | {"local": Nothing}
    assert {m.arm for m in again(tmp_path / "run", agents=other).mismatches} == {"local"}


def test_an_agent_that_breaks_in_a_replay_is_a_difference(tmp_path: Path) -> None:
    class Breaks(Nothing):
        def propose(self, view: View) -> Proposal:
            raise ValueError("mine")

    run(tmp_path / "run", {"n": "nothing"})
    found = again(tmp_path / "run", agents={"n": Breaks})
    assert len(found.mismatches) == 4
    assert "ValueError: mine" in found.mismatches[0].what


def test_merged_and_split_runs_keep_their_traces(whole: Path, tmp_path: Path) -> None:
    part = split(whole, tmp_path / "part", arms=["asks/thin"], seeds=[1, 3])
    assert part.manifest["traces"]["files"] == len(trace_files(tmp_path / "part")) == 2
    assert again(tmp_path / "part").byte_identical
    rest = split(whole, tmp_path / "rest", seeds=[0, 2])
    one = split(whole, tmp_path / "one", arms=["fails"], seeds=[1, 3])
    merge([tmp_path / "part", tmp_path / "one", tmp_path / "rest"], tmp_path / "again")
    assert rest.campaigns.shape[0] + one.campaigns.shape[0] > 0
    assert recorded(tmp_path / "again") == recorded(whole)
    assert load_run(tmp_path / "again").status == "complete"
    assert again(tmp_path / "again").byte_identical
    merged = merge([tmp_path / "part", whole], tmp_path / "labelled", label_arms=True)
    assert "part:asks/thin" in merged.arms
    assert trace_path(tmp_path / "labelled", Key("part:asks/thin", "tiny", 1)).is_file()
    found = again(tmp_path / "labelled")
    assert found.byte_identical
    assert found.campaigns == 10


def test_parts_of_an_interrupted_run_ask_nothing_twice(tmp_path: Path) -> None:
    arms = {"a": SOURCE, "b": SOURCE}
    stopped = run(tmp_path / "run", arms, max_cost=4)
    before = recorded(tmp_path / "run")
    assert len(trace_files(tmp_path / "run")) == len(stopped.campaigns) + 1
    # What a kill left of a line that was being written goes no further.
    begun = max(trace_files(tmp_path / "run"), key=lambda path: path.stat().st_mtime_ns)
    begun.write_bytes(begun.read_bytes() + b'{"n":')
    split(tmp_path / "run", tmp_path / "even", seeds=[0, 2])
    split(tmp_path / "run", tmp_path / "odd", seeds=[1, 3])
    merged = merge([tmp_path / "even", tmp_path / "odd"], tmp_path / "again")
    assert merged.status == "interrupted"
    assert recorded(tmp_path / "again") == before
    whole = run(tmp_path / "again", arms, seeds=merged.manifest["config"]["seeds"])
    assert whole.status == "complete"
    assert set(recorded(tmp_path / "again").values()) == {2}
    assert again(tmp_path / "again").byte_identical


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (
            lambda path: change(path, "NOBODY", "SOMEONE"),
            r"tiny--0\.jsonl is not what the run wrote",
        ),
        (lambda path: path.unlink(), r"tiny--0\.jsonl is missing"),
        (
            lambda path: shutil.copy(path, path.parent / "x--0.jsonl"),
            r"x--0\.jsonl is not what the",
        ),
    ],
)
def test_traces_of_a_complete_run_are_sealed(
    copy: Path, damage: Callable[[Path], object], said: str
) -> None:
    damage(first_trace(copy))
    with pytest.raises(RecordError, match=said):
        load_run(copy)
    with pytest.raises(RecordError, match=said):
        run(copy)
    with pytest.raises(RecordError, match=said):
        again(copy)


def test_the_list_of_hashes_is_as_common_tools_read_it(whole: Path, copy: Path) -> None:
    lines = (whole / "traces" / "SHA256SUMS").read_text().splitlines()
    assert len(lines) == 8
    digest, name = lines[0].split("  ")
    assert sha256_text((whole / "traces" / name).read_text()) == digest
    told = json.loads((whole / "manifest.json").read_text())["traces"]
    exchanges = sum(len(list(read_trace(path))) for path in trace_files(whole))
    assert (told["files"], told["exchanges"]) == (8, exchanges)
    assert told["sha256"] == sha256_text("\n".join(lines) + "\n")
    (copy / "traces" / "SHA256SUMS").unlink()
    assert load_run(copy).status == "complete"


@pytest.mark.parametrize("traces", [3, {"files": 1}, {"files": -1, "exchanges": 0, "sha256": ""}])
def test_a_manifest_that_tells_odd_things_of_traces_is_refused(copy: Path, traces: Any) -> None:
    manifest = json.loads((copy / "manifest.json").read_text()) | {"traces": traces}
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(RecordError, match="manifest's traces is not what a run writes"):
        load_run(copy)


def test_failed_campaigns_that_are_retried_keep_their_answers(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    asked: list[str] = []

    class Recovers(Asks):
        def _ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
            if request["round"] == 2 and not flag.exists():
                raise ProposerFailed("server down")
            asked.append(json.dumps(request, sort_keys=True))
            return answer_to(request)

    agents = {"a": Recovers}
    assert len(run(tmp_path / "run", agents).failures) == 4
    assert again(tmp_path / "run", agents=agents).byte_identical
    flag.touch()
    mended = run(tmp_path / "run", agents, retry_failed=True, concurrency=2)
    assert mended.failures == ()
    assert len(asked) == len(set(asked)) == 4 * PROTOCOL.rounds * 2
    run(tmp_path / "whole", agents)
    assert rows_of(tmp_path / "run") == rows_of(tmp_path / "whole")
    assert again(tmp_path / "run", agents=agents).byte_identical
    told = load_run(tmp_path / "run").manifest["traces"]
    assert told["exchanges"] == len(set(asked)) + 4


def test_changed_code_never_goes_on_with_another_record(tmp_path: Path) -> None:
    run(tmp_path / "run", {"a": Asks}, max_cost=4, seeds=range(2))

    class Changed(Asks):
        def propose(self, view: View) -> Proposal:
            self._style = "other"
            return super().propose(view)

    config = json.loads((tmp_path / "run" / "manifest.json").read_text())
    spec = AgentSpec("a", config["config"]["agents"][0]["source"], Changed)
    config["config"]["agents"][0]["code_sha256"] = spec.code_sha256
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(config))
    before = recorded(tmp_path / "run")
    for how in ({}, {"concurrency": 2}):
        with pytest.raises(ReplayError, match=r"tiny--\d\.jsonl\): Round 0, attempt 0.*new folder"):
            run(tmp_path / "run", [spec], seeds=range(2), **how)
    assert recorded(tmp_path / "run") == before


def test_a_damaged_trace_stops_a_run_that_goes_on_and_names_it(tmp_path: Path) -> None:
    run(tmp_path / "run", {"a": Asks}, max_cost=4)
    path = trace_files(tmp_path / "run")[0]
    path.write_bytes(b"damage\n" + path.read_bytes())
    before = (tmp_path / "run" / "manifest.json").read_bytes()
    with pytest.raises(RecordError, match=r"tiny--0\.jsonl: line 1 is no exchange"):
        run(tmp_path / "run", {"a": Asks})
    assert (tmp_path / "run" / "manifest.json").read_bytes() == before


def test_options_stay_as_they_are_in_the_manifest(tmp_path: Path) -> None:
    class Takes(Nothing):
        def __init__(self, prompt: Any) -> None:
            return

    prompt = {"name": "thin", "version": 1, "parts": ["a", {"b": [1.5, None, True]}]}
    run(tmp_path / "run", [AgentSpec("t", "x:y", Takes, {"prompt": prompt})])
    stored = load_run(tmp_path / "run").manifest["config"]["agents"][0]["options"]
    assert stored == {"prompt": prompt}

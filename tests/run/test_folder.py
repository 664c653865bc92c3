"""The files of a run: schema, bytes, hashes, reads that judge again, and what an end leaves."""

from __future__ import annotations

import hashlib
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cads_env.certificate import Certificate, reach
from cads_env.errors import AgentError, RunError
from cads_env.inference import clopper_pearson_upper, clustered
from cads_env.proposer import Nothing, Proposal, ProposerFailed, View
from cads_env.protocol import load_protocol
from cads_env.record import Record
from cads_env.run import RunResult, evaluate
from cads_env.run.folder import RunFolder, json_line, run_folder
from cads_env.run.plan import KEPT_READS
from cads_env.run.rows import (
    CAMPAIGN_COLUMNS,
    DECLARATION_COLUMNS,
    FAILURE_COLUMNS,
    ROUND_COLUMNS,
)
from cads_env.testing import tiny_protocol, tiny_registry

PAIR = tiny_registry()
PROTOCOL = tiny_protocol(reads_each=4, certificate={"q": 0.3})
AGENTS = {"learner": "module-learner", "none": "nothing"}
ROWS = ("campaigns.jsonl", "declarations.jsonl", "reads.jsonl", "rounds.jsonl")
COLUMNS = {
    "campaigns.jsonl": CAMPAIGN_COLUMNS,
    "rounds.jsonl": ROUND_COLUMNS,
    "declarations.jsonl": DECLARATION_COLUMNS,
    "reads.jsonl": [
        "arm", "registry", "seed", "version", "m", "candidates", "origins", "slots", "values",
        "round_starts",
    ],
}  # fmt: skip


def run(out: Any, agents: object = AGENTS, **changes: Any) -> RunResult:
    arguments: dict[str, Any] = {"registry": PAIR, "protocol": PROTOCOL, "seeds": range(3)}
    return evaluate(agents, out=out, **(arguments | changes))


def lines(path: Path) -> list[dict[str, Any]]:
    rows = path.read_text(encoding="ascii").splitlines()
    return [json.loads(row, parse_constant=lambda name: pytest.fail(name)) for row in rows]


def manifest(folder: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="ascii"))
    return data


def test_a_run_leaves_its_rows_a_log_and_a_manifest(tmp_path: Path) -> None:
    result = run(tmp_path / "run")
    folder = Path(str(result.folder))
    assert sorted(p.name for p in folder.iterdir()) == sorted(
        [".lock", *ROWS, "log.jsonl", "manifest.json"]
    )
    for name, columns in COLUMNS.items():
        rows = lines(folder / name)
        assert rows, name
        assert all(list(row) == columns for row in rows), name
    frames = (result.campaigns, result.rounds, result.declarations)
    for name, frame in zip(("campaigns", "rounds", "declarations"), frames, strict=True):
        rows = lines(folder / f"{name}.jsonl")
        key = ["arm", "seed"]
        expected = sorted(json.loads(json.dumps(frame.to_dict("records"))), key=lambda r: [
            r[k] for k in key])  # fmt: skip
        assert sorted(rows, key=lambda r: [r[k] for k in key]) == expected


def test_the_manifest_tells_how_to_run_it_again_and_hashes_the_files(tmp_path: Path) -> None:
    run(tmp_path / "run", keep_reads=True)
    data = manifest(tmp_path / "run")
    assert data["status"] == "complete"
    assert data["schema_version"] == 2
    assert sorted(data["files"]) == sorted(ROWS)
    for name, digest in data["files"].items():
        assert hashlib.sha256((tmp_path / "run" / name).read_bytes()).hexdigest() == digest
    config = data["config"]
    assert config["seeds"] == [0, 1, 2]
    assert [agent["arm"] for agent in config["agents"]] == ["learner", "none"]
    assert config["agents"][0]["source"] == "cads_agents.module_learner:ModuleLearner"
    assert (config["panel"], config["identifiers"], config["keep_reads"]) == ("tiny", "named", True)
    assert load_protocol(config["protocol"]) == PROTOCOL
    assert load_protocol(config["protocol"]).hash == data["protocol_hash"]
    assert Certificate(**config["certificate"]) == Certificate(q=0.3)
    assert data["registries"] == [
        {
            "name": "tiny",
            "hash": PAIR[0].hash,
            "oracle_hash": PAIR[1].hash,
            "m": 60,
            "hits": 12,
            "contrary_hits": 0,
            "description": PAIR[0].description,
            "side_tables": {n: t.description for n, t in PAIR[0].side_tables.items()},
        }
    ]
    assert {"python", "numpy", "scipy", "cads-env"} <= set(data["versions"])


def test_the_same_run_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        run(tmp_path / name, [*AGENTS.values(), "random"])
    one, two = tmp_path / "one", tmp_path / "two"
    for name in (*ROWS, "manifest.json"):
        assert (one / name).read_bytes() == (two / name).read_bytes(), name


def test_timestamps_stand_in_the_log_alone(tmp_path: Path) -> None:
    run(tmp_path / "run")
    log = lines(tmp_path / "run" / "log.jsonl")
    assert [entry["event"] for entry in log] == ["start", *["campaign"] * 6, "end"]
    assert all(entry["time"] for entry in log)
    year = log[0]["time"][:8]
    for name in (*ROWS, "manifest.json"):
        assert year not in (tmp_path / "run" / name).read_text(encoding="ascii")


def test_every_number_of_a_summary_follows_from_the_files(tmp_path: Path) -> None:
    result = run(tmp_path / "run", [*AGENTS.values(), "prior"])
    campaigns = lines(tmp_path / "run" / "campaigns.jsonl")
    rounds = lines(tmp_path / "run" / "rounds.jsonl")
    config = manifest(tmp_path / "run")["config"]
    certificate = Certificate(**config["certificate"])
    for name, arm in result.arms.items():
        mine = [row for row in campaigns if row["arm"] == name]
        n = len(mine)

        def mean(column: str, mine: list[dict[str, Any]] = mine) -> float:
            return math.fsum(row[column] for row in mine) / len(mine)

        k = max(1.0, mean("reference_true"))
        last = reach(load_protocol(config["protocol"]), k, 60, certificate=certificate)
        slots = [r for r in rounds if r["arm"] == name]
        near = [r for r in slots if r["round"] <= last]
        spread = mean("reference_true") - mean("twin_true")
        assert spread > 1
        expected = {
            "n": n,
            "failed": len(config["seeds"]) - n,
            "true": mean("true"),
            "false": mean("false"),
            "fdr_bound": clopper_pearson_upper(sum(row["false"] > 0 for row in mine), n),
            "twin": mean("twin_true"),
            "net": clustered([row["true"] - row["twin_true"] for row in mine], ["tiny"] * n),
            "gained": mean("gained"),
            "lost": mean("lost"),
            "reference": mean("reference_true"),
            "normalised_net": mean("net") / spread,
            "raw_hits": mean("tested_hits"),
            "slots": sum(r["proposal_slots"] for r in slots) / n,
            "slots_in_reach": sum(r["proposal_slots"] for r in near) / n,
            "filled": sum(len(r["accepted_identifiers"]) for r in slots) / n,
            "filled_in_reach": sum(len(r["accepted_identifiers"]) for r in near) / n,
        }
        for field, value in expected.items():
            assert getattr(arm, field) == pytest.approx(value), field


def test_the_kept_reads_give_the_declarations_again(tmp_path: Path) -> None:
    run(tmp_path / "run")
    folder = tmp_path / "run"
    certificate = Certificate(**manifest(folder)["config"]["certificate"])
    declared = lines(folder / "declarations.jsonl")
    campaigns = {(r["arm"], r["seed"]): r for r in lines(folder / "campaigns.jsonl")}
    reads = lines(folder / "reads.jsonl")
    assert len(reads) == len(campaigns) == 6
    judged = 0
    for row in reads:
        record = Record.from_json(row)
        assert record.sha256 == campaigns[row["arm"], row["seed"]]["reads_sha256"]
        declaration = certificate.declare(record)
        mine = [d for d in declared if (d["arm"], d["seed"]) == (row["arm"], row["seed"])]
        names = [PAIR[0].identifiers[i] for i in declaration.indices.tolist()]
        assert [d["identifier"] for d in mine] == names
        assert [d["log_e"] for d in mine] == declaration.log_e.tolist()
        judged += len(mine)
    assert judged > 0


def test_reads_of_long_campaigns_are_kept_only_when_asked_for(tmp_path: Path) -> None:
    long = tiny_protocol(rounds=2, reread_candidates=5, reads_each=1_000)
    assert sum(plan.reads for plan in long.plan(60)) > KEPT_READS == 5_000
    shorter = long.override(reads_each=900)
    for name, protocol, keep, is_kept in (
        ("long", long, False, False),
        ("kept", long, True, True),
        ("short", shorter, False, True),
    ):
        run(tmp_path / name, "random", protocol=protocol, seeds=[0], keep_reads=keep)
        assert (tmp_path / name / "reads.jsonl").exists() is is_kept
        assert ("reads.jsonl" in manifest(tmp_path / name)["files"]) is is_kept


def test_a_campaign_can_be_played_again_from_its_rounds(tmp_path: Path) -> None:
    run(tmp_path / "run", "module-learner")
    rounds = lines(tmp_path / "run" / "rounds.jsonl")
    campaigns = lines(tmp_path / "run" / "campaigns.jsonl")

    class Again:
        def __init__(self) -> None:
            self.answers = answers.pop(0)

        def propose(self, view: View) -> Sequence[str]:
            return self.answers[view.round]

    by_seed = [[r["proposed"] for r in rounds if r["seed"] == seed] for seed in range(3)]
    # The first instance is built to check its side tables.
    answers: list[list[list[str]]] = [by_seed[0], *by_seed]
    again = run(None, Again)
    assert again.campaigns["reads_sha256"].tolist() == [row["reads_sha256"] for row in campaigns]


def test_names_accepted_late_in_a_huge_answer_are_listed(tmp_path: Path) -> None:
    class Huge:
        def propose(self, view: View) -> Proposal:
            return Proposal(("nobody",) * 12_000 + view.identifiers, "\ud800 text", 2, {"n": 1.5})

    result = run(tmp_path / "run", Huge, seeds=[0])
    first = lines(tmp_path / "run" / "rounds.jsonl")[0]
    assert first["accepted_identifiers"] == list(PAIR[0].identifiers[:6])
    assert (first["raw"], first["invalid"], len(first["proposed"])) == (12_060, 12_000, 10_000)
    assert (first["text"], first["attempts"], first["usage"]) == ("? text", 2, {"n": 1.5})
    assert result.campaigns["accepted"][0] == 22


def test_runs_without_a_folder_of_their_own_are_numbered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folders = [run(True, "random", seeds=[0]).folder for _ in range(2)]
    assert folders == [str(Path("runs/0001")), str(Path("runs/0002"))]
    (tmp_path / "runs" / "0041").mkdir()
    (tmp_path / "runs" / "notes").mkdir()
    assert run_folder(None) == Path("runs/0042")


@pytest.mark.parametrize("out", [None, False])
def test_a_run_without_out_writes_nothing(
    out: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(out, "random", seeds=[0]).folder is None
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_holds_something_is_refused_before_any_agent_is_asked(
    tmp_path: Path,
) -> None:
    (tmp_path / "note.txt").write_text("mine", encoding="utf-8")

    class Never(Nothing):
        def propose(self, view: View) -> Sequence[str]:
            raise AssertionError

    with pytest.raises(RunError, match="is not empty and holds no run; name a new one with --out"):
        run(tmp_path, Never)
    with pytest.raises(RunError, match="cannot be made"):
        run(tmp_path / "note.txt" / "run", Never)
    with pytest.raises(RunError, match="no folder"):
        run(tmp_path / "note.txt", Never)
    assert [p.name for p in tmp_path.iterdir()] == ["note.txt"]


def test_an_empty_folder_and_missing_parents_are_used(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for out in (tmp_path / "empty", str(tmp_path / "a" / "b")):
        assert run(out, "random", seeds=[0]).folder == str(out)


def test_a_mistake_in_the_arguments_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(AgentError):
        run(tmp_path / "run", "randum")
    assert not (tmp_path / "run").exists()


def breaking(error: BaseException, at: int) -> Callable[[], Nothing]:
    """A factory whose campaign number `at` raises in round 1."""
    built = [-1]

    class Breaks(Nothing):
        def __init__(self) -> None:
            self.number = built[0]
            built[0] += 1

        def propose(self, view: View) -> Sequence[str]:
            if self.number == at and view.round == 1:
                raise error
            return ()

    return Breaks


@pytest.mark.parametrize(
    ("error", "raised", "status", "reason"),
    [
        (ValueError("mine"), AgentError, "failed", "AgentError: Agent 'Breaks' broke in round 1"),
        (KeyboardInterrupt(), KeyboardInterrupt, "interrupted", "KeyboardInterrupt: "),
    ],
)
def test_a_run_that_ends_early_says_why_and_keeps_the_campaigns_before(
    error: BaseException,
    raised: type[BaseException],
    status: str,
    reason: str,
    tmp_path: Path,
) -> None:
    with pytest.raises(raised):
        run(tmp_path / "run", breaking(error, 1))
    data = manifest(tmp_path / "run")
    assert data["status"] == status
    assert data["reason"].startswith(reason)
    assert [row["seed"] for row in lines(tmp_path / "run" / "campaigns.jsonl")] == [0]
    digest = hashlib.sha256((tmp_path / "run" / "campaigns.jsonl").read_bytes()).hexdigest()
    assert data["files"]["campaigns.jsonl"] == digest


def test_a_failed_campaign_leaves_no_row_and_stands_in_manifest_and_log(tmp_path: Path) -> None:
    result = run(tmp_path / "run", breaking(ProposerFailed("server down"), 1))
    failure = {"arm": "Breaks", "registry": "tiny", "seed": 1, "reason": "server down"}
    row = lines(tmp_path / "run" / "failures.jsonl")[0]
    assert list(row) == FAILURE_COLUMNS
    assert {k: row[k] for k in failure} == failure
    assert manifest(tmp_path / "run")["status"] == "complete"
    for name in ("campaigns", "rounds", "reads"):
        assert {row["seed"] for row in lines(tmp_path / "run" / f"{name}.jsonl")} == {0, 2}
    failed = [e for e in lines(tmp_path / "run" / "log.jsonl") if e["event"] == "failed"]
    assert [{k: entry[k] for k in failure} for entry in failed] == [failure]
    assert [f._asdict() for f in result.failures] == [failure]


KILLED = """
import os, signal
from cads_env.run import evaluate
from cads_env.testing import tiny_protocol, tiny_registry

built = [-1]

class Kills:
    def __init__(self):
        self.number = built[0]
        built[0] += 1

    def propose(self, view):
        if self.number == 2 and view.round == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return []

evaluate(Kills, registry=tiny_registry(), protocol=tiny_protocol(), seeds=range(4), out="run")
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
def test_a_killed_run_stays_marked_as_running_with_whole_lines(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "-c", KILLED], cwd=tmp_path, env=environment, check=False, timeout=60
    )
    assert done.returncode == -signal.SIGKILL
    data = manifest(tmp_path / "run")
    assert data["status"] == "running"
    assert "files" not in data
    for name, count in (("campaigns", 2), ("rounds", 10), ("reads", 2)):
        path = tmp_path / "run" / f"{name}.jsonl"
        assert path.read_bytes().endswith(b"\n")
        assert len(lines(path)) == count


def test_a_row_is_one_line_of_strict_ascii_json() -> None:
    row = {"name": "a\nb\u2028é\ud800", "x": 0.1, "none": None}
    line = json_line(row)
    assert line.isascii()
    assert line.count("\n") == 1
    assert json.loads(line) == row
    for value in (math.nan, math.inf):
        with pytest.raises(ValueError, match="not JSON compliant"):
            json_line({"x": value})


def test_rows_are_on_disk_before_the_next_campaign(tmp_path: Path) -> None:
    with RunFolder(tmp_path, {"config": {}, "status": "running"}) as files:
        files.append("rounds", [{"a": 1}, {"a": 2}])
        assert lines(tmp_path / "rounds.jsonl") == [{"a": 1}, {"a": 2}]
        assert manifest(tmp_path)["status"] == "running"
        files.append("rounds", [])
        files.note("extra", [3])
    assert manifest(tmp_path)["extra"] == [3]
    assert list(manifest(tmp_path)["files"]) == ["rounds.jsonl"]

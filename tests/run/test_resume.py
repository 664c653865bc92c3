"""Runs that ended early and go on: same bytes, nothing mixed, nothing lost, nothing guessed."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cads_env.errors import RecordError, RegistryError, RunError
from cads_env.panel import load_panel
from cads_env.proposer import Nothing, ProposerFailed, View
from cads_env.registry import Oracle
from cads_env.run import RunResult, evaluate, load_run
from cads_env.testing import tiny_protocol, tiny_registry

PAIR = tiny_registry()
PROTOCOL = tiny_protocol(reads_each=4, certificate={"q": 0.3})
ROWS = ("campaigns", "declarations", "reads", "rounds", "failures")


class Fails(Nothing):
    """Fails on every third campaign of a process."""

    def __init__(self, seed: int) -> None:
        self._fails = seed % 3 == 0

    def propose(self, view: View) -> Sequence[str]:
        if self._fails:
            msg = "server down"
            raise ProposerFailed(msg)
        return view.identifiers[-view.slots :]


class Never(Nothing):
    """Must not be asked."""

    def propose(self, view: View) -> Sequence[str]:
        raise AssertionError


AGENTS = {"learner": "module-learner", "fails": Fails}


def run(out: Path | None, agents: object = AGENTS, **changes: Any) -> RunResult:
    arguments: dict[str, Any] = {"registry": PAIR, "protocol": PROTOCOL, "seeds": range(6)}
    return evaluate(agents, out=out, **(arguments | changes))


def content(folder: Path) -> dict[str, bytes]:
    names = [*(f"{name}.jsonl" for name in ROWS), "manifest.json"]
    return {name: (folder / name).read_bytes() for name in names}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    result = run(folder)
    assert 0 < len(result.failures) < 6
    return folder


def as_if_killed(whole: Path, folder: Path, cuts: random.Random) -> None:
    """Cut every file at some byte, as a kill between two writes and a torn write would."""
    shutil.copytree(whole, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    for name in ("arms", "files"):
        del manifest[name]
    manifest["status"] = "running"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / ".campaigns.jsonl.abc.partial").write_text("unfinished")
    raw = {name: (folder / f"{name}.jsonl").read_bytes() for name in ROWS}
    done = raw["campaigns"][: cuts.randrange(len(raw["campaigns"]) + 1)]
    last = [json.loads(line) for line in done.splitlines(keepends=True) if line.endswith(b"\n")]
    (folder / "campaigns.jsonl").write_bytes(done)
    (folder / "failures.jsonl").write_bytes(raw["failures"][: cuts.randrange(400)])
    for name in ("declarations", "reads", "rounds"):
        ends, at = [0], 0
        keys = {(row["arm"], row["seed"]) for row in last}
        for line in raw[name].splitlines(keepends=True):
            at += len(line)
            row = json.loads(line)
            if (row["arm"], row["seed"]) in keys:
                ends.append(at)
        # What belongs to a complete campaign was on disk before it; more may follow.
        cut = cuts.randrange(max(ends), len(raw[name]) + 1)
        (folder / f"{name}.jsonl").write_bytes(raw[name][:cut])


def test_a_run_cut_anywhere_goes_on_to_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    expected, told = content(whole), []
    for case in range(12):
        folder = tmp_path / str(case)
        as_if_killed(whole, folder, random.Random(case))
        early = load_run(folder)
        assert early.status == "running"
        assert len(early.campaigns) + len(early.failures) <= early.planned == 12
        steps: list[tuple[int, int, str]] = []

        def told_of(*step: Any, steps: list[tuple[int, int, str]] = steps) -> None:
            steps.append(step)  # type: ignore[arg-type]

        run(folder, progress=told_of)
        assert content(folder) == expected, case
        told.append(steps[0][0] if steps[0][2] == "" else 0)
        assert steps[-1][:2] == (12, 12)
        assert not [p for p in folder.iterdir() if p.name.endswith(".partial")]
    assert len(set(told)) > 3


def test_a_complete_run_is_read_and_not_played(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "run")
    before = content(tmp_path / "run")
    again = run(tmp_path / "run")
    assert content(tmp_path / "run") == before
    stored = load_run(tmp_path / "run")
    assert again.campaigns.equals(stored.campaigns)
    assert again.rounds.equals(stored.rounds)
    assert again.failures == stored.failures
    assert again.arms == stored.arms
    assert stored.status == "complete"


def test_what_is_read_back_is_what_was_played(whole: Path) -> None:
    memory, stored = run(None), load_run(whole)
    assert memory.campaigns.equals(stored.campaigns)
    assert memory.rounds.equals(stored.rounds)
    assert memory.declarations.equals(stored.declarations)
    assert (memory.arms, memory.twin, memory.reference) == (
        stored.arms,
        stored.twin,
        stored.reference,
    )
    assert memory.manifest["config"] == stored.manifest["config"]
    assert memory.manifest["registries"] == stored.manifest["registries"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": range(7)}, r"seeds \(there"),
        ({"protocol": PROTOCOL.override(rounds=4)}, r"protocol\.rounds \(there 5, now 4\)"),
        ({"agents": "random"}, r"agents \(there"),
        ({"agents": {"learner": "random", "fails": Fails}}, r"agents\[0\]\.source \(there"),
        ({"certificate": {"q": 0.2}}, r"certificate\.q \(there 0\.3, now 0\.2\)"),
        ({"identifiers": "shuffled"}, r'identifiers \(there "named", now "shuffled"\)'),
        ({"registry": tiny_registry(m=50)}, r"Registry 'tiny' has changed since the run began"),
    ],
)
def test_another_run_never_goes_on_in_the_folder(
    changes: dict[str, Any], message: str, whole: Path, tmp_path: Path
) -> None:
    shutil.copytree(whole, tmp_path / "run")
    before = content(tmp_path / "run")
    with pytest.raises((RunError, RegistryError), match=message):
        run(tmp_path / "run", **changes)
    assert content(tmp_path / "run").keys() == before.keys()
    for name in ROWS:
        assert content(tmp_path / "run")[f"{name}.jsonl"] == before[f"{name}.jsonl"]


def test_changed_effects_and_changed_code_are_another_run(tmp_path: Path) -> None:
    agent = tmp_path / "mine.py"
    text = "class Mine:\n    def propose(self, view):\n        return []\n"
    agent.write_text(text)
    run(tmp_path / "run", str(agent))
    agent.write_text(text + "# changed\n")
    with pytest.raises(RunError, match=r"agents\[0\]\.code_sha256"):
        run(tmp_path / "run", str(agent))
    agent.write_text(text)
    registry, oracle = PAIR
    other = Oracle(np.array(oracle.signal) * 1.5, oracle.labels, oracle.panel, oracle.instance)
    with pytest.raises(RegistryError, match="other effects or labels"):
        run(tmp_path / "run", str(agent), registry=(registry, other))


def test_changed_data_of_an_agent_is_another_run(tmp_path: Path) -> None:
    ranking = tmp_path / "rank.txt"
    agent = f"replay-list:path={ranking}"
    ranking.write_text("\n".join(PAIR[0].identifiers))
    run(tmp_path / "run", agent)
    ranking.write_text("\n".join(PAIR[0].identifiers[::-1]))
    with pytest.raises(RunError, match=r"agents\[0\]\.data_sha256\.path"):
        run(tmp_path / "run", agent)


def test_another_salt_is_another_run(tmp_path: Path) -> None:
    def salted(salt: str) -> RunResult:
        panel = load_panel("synthetic-depmap-6000/1", salt=salt)
        return run(tmp_path / "run", "random", registry=panel, seeds=range(1))

    salted("one")
    assert salted("one").status == "complete"
    with pytest.raises(RegistryError, match="give the salt of that run"):
        salted("two")


def test_an_interrupted_run_ends_with_the_manifest_of_an_unbroken_one(
    whole: Path, tmp_path: Path
) -> None:
    as_if_killed(whole, tmp_path / "run", random.Random(3))
    path = tmp_path / "run" / "manifest.json"
    stopped = json.loads(path.read_text()) | {"reason": "Ctrl-C", "files": {}}
    path.write_text(json.dumps(stopped | {"status": "interrupted"}))
    run(tmp_path / "run")
    assert content(tmp_path / "run") == content(whole)


def test_failed_campaigns_are_played_again_only_when_asked_for(tmp_path: Path) -> None:
    flag = tmp_path / "flag"

    class Recovers(Nothing):
        def propose(self, view: View) -> Sequence[str]:
            if view.round == 2 and not flag.exists():
                msg = "server down"
                raise ProposerFailed(msg)
            return view.identifiers[: view.slots]

    agents = {"a": Recovers, "b": "random"}
    first = run(tmp_path / "run", agents, seeds=range(3))
    assert [f.arm for f in first.failures] == ["a"] * 3
    flag.touch()
    again = run(tmp_path / "run", agents, seeds=range(3))
    assert len(again.failures) == 3
    mended = run(tmp_path / "run", agents, seeds=range(3), retry_failed=True)
    assert mended.failures == ()
    unbroken = run(tmp_path / "other", agents, seeds=range(3))
    assert unbroken.arms == mended.arms
    for name in ("campaigns", "rounds", "declarations", "reads"):
        one, two = (tmp_path / f / f"{name}.jsonl" for f in ("run", "other"))
        assert one.read_bytes() == two.read_bytes()
    assert not (tmp_path / "run" / "failures.jsonl").exists()


@pytest.mark.parametrize(
    ("name", "change", "error", "message"),
    [
        ("rounds.jsonl", lambda s: s[:40] + b"\n" + s[40:], RecordError, "not the file that the"),
        ("declarations.jsonl", lambda _: None, RecordError, "is missing"),
        ("manifest.json", lambda s: s[:50], RecordError, "is no JSON"),
        ("manifest.json", lambda _: None, RunError, "holds no manifest.json"),
        ("manifest.json", lambda _: b"[]", RecordError, "no schema_version"),
        ("manifest.json", lambda _: b'{"schema_version": 2}', RecordError, "incomplete: status"),
        ("manifest.json", lambda _: b'{"schema_version": 1}', RunError, "of schema version 1"),
        ("manifest.json", lambda _: b'{"schema_version": 99}', RunError, "of schema version 99"),
        ("manifest.json", lambda _: b"\xff\xfe", RunError, "cannot be read"),
    ],
)
def test_a_damaged_folder_is_refused_and_named(
    name: str, change: Any, error: type[Exception], message: str, whole: Path, tmp_path: Path
) -> None:
    shutil.copytree(whole, tmp_path / "run")
    path = tmp_path / "run" / name
    changed = change(path.read_bytes())
    path.unlink()
    if changed is not None:
        path.write_bytes(changed)
    with pytest.raises(error, match=message):
        load_run(tmp_path / "run")


def test_a_complete_run_that_was_changed_is_refused_and_not_sealed_again(
    whole: Path, tmp_path: Path
) -> None:
    shutil.copytree(whole, tmp_path / "run")
    path = tmp_path / "run" / "campaigns.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"tested_hits":', b'"tested_hits":1', 1))
    before = content(tmp_path / "run")
    with pytest.raises(RecordError, match=r"campaigns\.jsonl is not the file that the run wrote"):
        run(tmp_path / "run")
    assert content(tmp_path / "run") == before


def test_a_run_that_is_retried_is_not_called_complete_meanwhile(
    whole: Path, tmp_path: Path
) -> None:
    shutil.copytree(whole, tmp_path / "run")
    seen: list[str] = []

    def look(*_: Any) -> None:
        if not seen:
            seen.append(json.loads((tmp_path / "run" / "manifest.json").read_text())["status"])

    run(tmp_path / "run", retry_failed=True, progress=look)
    assert seen == ["running"]
    assert content(tmp_path / "run") == content(whole)


def test_a_damaged_line_in_the_middle_is_never_dropped(whole: Path, tmp_path: Path) -> None:
    as_if_killed(whole, tmp_path / "run", random.Random(5))
    path = tmp_path / "run" / "rounds.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1][:30] + b"\n"
    path.write_bytes(b"".join(lines))
    for attempt in (lambda: load_run(tmp_path / "run"), lambda: run(tmp_path / "run")):
        with pytest.raises(RecordError, match=r"rounds\.jsonl: line 2 is no row of a run"):
            attempt()
    assert path.read_bytes() == b"".join(lines)


def test_a_campaign_that_stands_twice_is_refused(whole: Path, tmp_path: Path) -> None:
    as_if_killed(whole, tmp_path / "run", random.Random(5))
    path = tmp_path / "run" / "campaigns.jsonl"
    first = path.read_bytes().splitlines(keepends=True)[0]
    path.write_bytes(first + first)
    with pytest.raises(RecordError, match="twice"):
        run(tmp_path / "run")


def test_no_folder_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="does not exist"):
        load_run(tmp_path / "none")
    with pytest.raises(RunError, match=r"holds no manifest\.json"):
        load_run(tmp_path)

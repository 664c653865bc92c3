"""The command line: what it prints, where it writes, how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cads_env.cli import main, parse_pairs, parse_seeds
from cads_env.errors import RunError

SMALL = ("--registry", "synthetic-depmap-6000/1", "--set", "rounds=3", "--seeds", "0-1")
TABLE = "identifier,effect,score\n" + "".join(
    f"G{i:03d},{-1.5 if i % 7 == 0 else 0.1},{i * 37 % 100}\n" for i in range(200)
)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))


def cads(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["cads", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_run_prints_the_table_and_writes_numbered_folders(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cads(monkeypatch, "run", *SMALL) == 0
    printed = capsys.readouterr().out
    for word in ("random", "prior", "module-learner", "reference*", "runs/0001", "not biology"):
        assert word in printed
    assert max(map(len, printed.splitlines())) <= 100
    before = {p.name: p.read_bytes() for p in Path("runs/0001").iterdir()}
    assert cads(monkeypatch, "run", *SMALL) == 0
    assert {p.name: p.read_bytes() for p in Path("runs/0001").iterdir()} == before
    for name in ("campaigns", "rounds", "declarations", "reads"):
        assert Path(f"runs/0002/{name}.jsonl").read_bytes() == before[f"{name}.jsonl"]
    manifest = json.loads(Path("runs/0002/manifest.json").read_text())
    assert manifest["status"] == "complete"
    assert manifest["config"]["protocol"]["name"] == "standard+rounds=3"
    assert [arm["arm"] for arm in manifest["arms"]] == ["random", "prior", "module-learner"]


def test_run_takes_a_table_an_agent_file_and_protocol_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("screen.csv").write_text(TABLE)
    Path("mine.py").write_text(
        "class Mine:\n    def propose(self, view):\n        return view.identifiers[:3]\n"
    )
    options = ["-O", "direction=lower", "-O", "threshold=-0.5", "-O", "prior=score"]
    options += ["-O", "prior_direction=lower"]
    arms = ["--agent", "mine.py", "--agent", "mine:Mine", "--agent", "prior"]
    command = ["run", "--registry", "screen.csv", *options, *arms, "--protocol", "proposer"]
    more = ["--feedback", "permuted", "--q", "0.2", "--epsilon-bar", "0.05", "--seeds", "3,5-6"]
    assert cads(monkeypatch, *command, *more, "--budget", "2", "--out", "here") == 0
    config = json.loads(Path("here/manifest.json").read_text())["config"]
    assert config["seeds"] == [3, 5, 6]
    assert config["protocol"]["rounds"] == 24
    assert config["protocol"]["feedback_reselection"] == "permuted"
    assert (config["certificate"]["q"], config["certificate"]["epsilon_bar"]) == (0.2, 0.05)
    assert [agent["arm"] for agent in config["agents"]] == ["Mine", "Mine-2", "prior"]
    assert "FDR <= q is not guaranteed" in capsys.readouterr().out.replace(" \n", " ")


def test_failed_campaigns_end_with_a_code_of_their_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("dead.py").write_text(
        "from cads_env import ProposerFailed\n"
        "class Dead:\n    def propose(self, view):\n        raise ProposerFailed('no server')\n"
    )
    assert cads(monkeypatch, "run", *SMALL, "--agent", "dead.py", "--agent", "random") == 3
    printed = capsys.readouterr().out
    assert "no server" in printed
    assert "n = 2 campaigns (none of Dead)" in printed
    assert "nan" not in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--agent", "randm"], ["Unknown agent 'randm'", "Did you mean 'random'?"]),
        (["--agent", "no_such:Agent"], ["'no_such' cannot be imported", "Installed agents"]),
        (["--agent", "missing.py"], ["'missing.py' does not exist"]),
        (["--protocol", "standrd"], ["Unknown protocol", "Did you mean 'standard'?"]),
        (["--protocol", "no.yaml"], ["'no.yaml' cannot be read: No such file"]),
        (["--set", "round=3"], ["Unknown protocol field 'round'", "Did you mean 'rounds'?"]),
        (["--set", "rounds=0"], ["rounds is 0", "expected a whole number from 1"]),
        (["--set", "rounds"], ["expected --set name=value"]),
        (["--panel", "synthetic-depmap:test"], ["Unknown split 'test'", "train, dev, eval"]),
        (["--registry", "synthetic"], ["synthetic"]),
        (["--registry", "missing.csv"], ["missing.csv"]),
        (["--panel", "a", "--registry", "b"], ["Both --panel and --registry"]),
        (["--seeds", "5-1"], ["'5-1' is empty"]),
        (["--seeds", "x"], ["Cannot read seeds 'x'"]),
        (["--seeds", "1,1"], ["seeds repeats [1]"]),
        (["--feedback", "some"], ["feedback_proposer is 'some'", "full, none, permuted"]),
        (["--identifiers", "odd"], ["Unknown identifiers mode 'odd'"]),
        (["--q", "2"], ["q"]),
        (["--agent", "prior", "--identifiers", "blinded"], ["needs the side table 'prior'"]),
        (["--out", "full"], ["'full' is not empty"]),
    ],
)
def test_a_users_mistake_is_one_paragraph_and_code_1(
    arguments: list[str],
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("full").mkdir()
    Path("full/file").write_text("x")
    assert cads(monkeypatch, "run", "--seeds", "0", *arguments) == 1
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err + captured.out
    for word in words:
        assert word in captured.err.replace("\n", " ")
    assert not Path("runs").exists() or not any(Path("runs").iterdir())


def test_an_agents_exception_names_its_place_and_what_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.py").write_text(
        "class Bad:\n    built = 0\n"
        "    def __init__(self):\n        Bad.built += 1\n"
        "    def propose(self, view):\n        return [()][Bad.built - 2]\n"
    )
    assert cads(monkeypatch, "run", *SMALL, "--agent", "random", "--agent", "bad.py") == 1
    message = capsys.readouterr().err
    # The first is built to look at what it needs, the second plays seed 0.
    for word in (
        "'Bad' broke in round 0 of seed 1",
        "IndexError",
        "bad.py, line 6).",
        "in runs/0001; with --out runs/0001 the same command goes on.",
    ):
        assert word in message
    assert json.loads(Path("runs/0001/manifest.json").read_text())["status"] == "failed"


def test_markup_in_names_is_shown_as_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("screen.csv").write_text(TABLE)
    options = ["-O", "direction=lower", "-O", "threshold=-0.5", "-O", "name=[red]x[/nope]"]
    assert cads(monkeypatch, "registry", "show", "screen.csv", *options) == 0
    assert "[red]x[/nope]" in capsys.readouterr().out
    command = ["run", "--registry", "screen.csv", *options, "--agent", "random", "--seeds", "0"]
    assert cads(monkeypatch, *command) == 0
    assert "[red]x[/nope]" in capsys.readouterr().out


def test_agents_registries_and_version_are_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cads(monkeypatch, "agents") == 0
    printed = capsys.readouterr().out
    for name in ("nothing", "random", "prior", "replay-list", "module-learner"):
        assert name in printed
    assert cads(monkeypatch, "registry", "list") == 0
    printed = capsys.readouterr().out
    for name in ("synthetic-depmap-6000", "depmap-26q1-mean", "prior_direction", ":train (512)"):
        assert name in printed
    assert cads(monkeypatch, "registry", "show", "synthetic-depmap-6000:dev") == 0
    printed = capsys.readouterr().out
    assert "32 registries" in printed
    assert "synthetic-depmap-6000/513" in printed
    assert cads(monkeypatch, "--version") == 0
    assert capsys.readouterr().out.startswith("cads-env 0")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupted_run_says_so_and_marks_its_folder(jobs: str, tmp_path: Path) -> None:
    command = [
        *(sys.executable, "-m", "cads_env", "run", "--registry", "synthetic-depmap-6000:dev"),
        *("--seeds", "0-400", "--agent", "random", "--jobs", jobs),
    ]
    # What a shell starts in the background ignores the signal, and hands that on.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    # A group of its own gets the signal as all processes of a terminal do.
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, cwd=tmp_path, start_new_session=True
    )
    signal.signal(signal.SIGINT, before)
    rows = tmp_path / "runs" / "0001" / "campaigns.jsonl"
    deadline = time.monotonic() + 60
    while not (rows.exists() and rows.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in stderr
    assert "with --out runs/0001 the same command goes on" in " ".join(stderr.split())
    assert "Traceback" not in stderr
    manifest = json.loads((tmp_path / "runs/0001/manifest.json").read_text())
    assert manifest["status"] == "interrupted"
    assert all(json.loads(line)["arm"] == "random" for line in rows.read_text().splitlines())


def test_seeds_and_pairs_are_read() -> None:
    assert parse_seeds("0-3,7") == [0, 1, 2, 3, 7]
    assert parse_pairs(["a=1e-3", "b=(1.0, -0.5)", "c=x", "d="], "-O") == {
        "a": 0.001,
        "b": [1.0, -0.5],
        "c": "x",
        "d": None,
    }
    with pytest.raises(RunError, match="longer than a million"):
        parse_seeds("0-99999999999999")

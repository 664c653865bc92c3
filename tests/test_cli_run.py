"""`cads run` with agent files, run files, prompts and settings; dry runs; what grids allow then."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from cads_env.cli import main
from cads_env.cli import progress as progress_module
from cads_env.cli.progress import CampaignProgress, short, spent_words
from cads_env.run.evaluate_grid import evaluate_grid
from cads_env.run.grid import load_grid
from cads_env.run.meter import Meter, Spent
from cads_env.run.settings import settings_of
from cads_env.testing import tiny_protocol, tiny_registry
from tests.run.talker import Talker

TALKER = "tests.run.talker:Talker"
TABLE = "identifier,effect,score\n" + "".join(
    f"G{i:03d},{-1.5 if i % 7 == 0 else 0.1},{i * 37 % 100}\n" for i in range(200)
)
SCREEN = ("--registry", "screen.csv", "-O", "direction=lower", "-O", "threshold=-0.5")
SMALL = (*SCREEN, "--set", "rounds=3", "--seeds", "0-1")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("screen.csv").write_text(TABLE)
    Path("mine.yaml").write_text(yaml.safe_dump({"agent": TALKER}))
    Talker.asked = 0


def cads(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["cads", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def config(folder: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(Path(folder, "manifest.json").read_text())["config"]
    return value


def write_run_file(**changes: Any) -> None:
    content: dict[str, Any] = {
        "agents": ["mine.yaml", {"agent": "random", "arm": "floor"}],
        "registry": "screen.csv",
        "options": {"direction": "lower", "threshold": -0.5},
        "set": {"rounds": 3},
        "seeds": "0-1",
        "agent_options": {"cost": 0.5},
        "q": 0.2,
    }
    Path("run.yaml").write_text(yaml.safe_dump(content | changes))


def test_agents_come_as_words_or_as_options_with_an_arm_for_each_prompt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = ("-A", "guided=candidates", "--prompt", "thin", "--prompt", "informed,own.yaml")
    Path("own.yaml").write_text("my own words")
    assert cads(monkeypatch, "run", "mine.yaml", "random", *SMALL, *options, "--out", "a") == 0
    agents = config("a")["agents"]
    assert [entry["arm"] for entry in agents] == [
        "mine/thin+guided", "mine/informed+guided", "mine/own+guided", "random",
    ]  # fmt: skip
    assert agents[2]["options"] == {
        "guided": "candidates", "prompt": {"name": "own", "text": "my own words"},
    }  # fmt: skip
    same = ("--agent", "mine.yaml", "--agent", "random")
    assert cads(monkeypatch, "run", *same, *SMALL, *options, "--out", "b", "--jobs", "2") == 0
    assert config("b") == config("a")
    rows = [Path(name, "campaigns.jsonl").read_bytes() for name in "ab"]
    assert rows[0] == rows[1]


@pytest.mark.parametrize(
    "words",
    [
        ("--feedback", "full", "proposer=permuted", "mine.yaml"),
        ("mine.yaml", "--feedback", "full", "--feedback", "proposer=permuted"),
        ("mine.yaml", "--feedback=full,proposer=permuted"),
    ],
)
def test_several_settings_make_a_grid(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cads(monkeypatch, "run", *words, *SMALL, "--concurrency", "3", "--out", "g") == 0
    printed = capsys.readouterr().out
    assert "Setting full" in printed
    assert "Setting proposer-permuted" in printed
    assert "cads report g" in printed
    assert config("g/full")["protocol"]["feedback_proposer"] == "full"
    split = config("g/proposer-permuted")["protocol"]
    assert (split["feedback_proposer"], split["feedback_reselection"]) == ("permuted", "full")


def test_identifiers_take_several_words_and_one_setting_is_a_plain_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = ("run", "--identifiers", "named", "blinded", "--feedback", "none", "mine.yaml")
    assert cads(monkeypatch, *words, *SMALL, "--out", "g") == 0
    assert list(load_grid("g").runs) == ["named", "blinded"]
    assert config("g/blinded")["protocol"]["feedback_proposer"] == "none"
    words = ("run", "mine.yaml", "--identifiers", "shuffled", "--feedback", "proposer=none")
    assert cads(monkeypatch, *words, *SMALL, "--out", "one") == 0
    assert config("one")["identifiers"] == "shuffled"
    assert not Path("one/grid.json").exists()


def test_a_run_file_says_it_all_and_the_command_line_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    write_run_file(prompts=["thin", "informed"], feedback="none", concurrency=2)
    assert cads(monkeypatch, "run", "run.yaml", "--out", "a") == 0
    found = config("a")
    assert [entry["arm"] for entry in found["agents"]] == ["mine/thin", "mine/informed", "floor"]
    assert found["agents"][0]["options"]["cost"] == 0.5
    assert (found["seeds"], found["certificate"]["q"]) == ([0, 1], 0.2)
    assert found["protocol"]["name"].startswith("standard+rounds=3+feedback_proposer=none")
    more = ("--seeds", "4", "--prompt", "own", "-A", "cost=0.25", "--q", "0.3", "mine.yaml")
    assert cads(monkeypatch, "run", "run.yaml", *more, "--set", "fresh=2", "--out", "b") == 0
    found = config("b")
    assert [entry["arm"] for entry in found["agents"]] == ["mine/own"]
    assert found["agents"][0]["options"]["cost"] == 0.25
    assert (found["seeds"], found["certificate"]["q"]) == ([4], 0.3)
    assert (found["protocol"]["rounds"], found["protocol"]["fresh"]) == (3, 2)
    panel = ("--panel", "synthetic-depmap-6000:dev", "--agent", "random")
    # What the file sets for its own agents does not concern a floor that is typed in their place...
    assert cads(monkeypatch, "run", "run.yaml", *panel, "--seeds", "0", "--out", "c") == 0
    assert config("c")["panel"] == "synthetic-depmap-6000:dev"
    assert [entry["arm"] for entry in config("c")["agents"]] == ["random"]
    # ... but what is typed must fit.
    typed = ("--prompt", "thin")
    assert cads(monkeypatch, "run", "run.yaml", *panel, *typed, "--out", "d") == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seed": "0-1"}, ["unknown key 'seed'", "Did you mean 'seeds'"]),
        ({"agents": []}, ["agents: []; expected a list of agents"]),
        ({"agents": ["run.yaml"]}, ["'run.yaml'", "is that of a run"]),
        ({"q": "high"}, ["q: 'high'; expected a number"]),
        ({"seeds": []}, ["seeds: []; expected at least one seed"]),
        ({"seeds": [0, "1"]}, ["seeds: [0, '1']; expected a whole number"]),
        ({"budget": 1.5}, ["budget: 1.5; expected a whole number"]),
        ({"keep_reads": "yes please"}, ["expected true or false"]),
        ({"panel": "x"}, ["has both panel and registry"]),
        ({"prompts": [3]}, ["prompts: [3]; expected a text or a list of texts"]),
        ({"feedback": ["full", "some"]}, ["feedback_proposer is 'some'"]),
        ({"agent_options": {"cst": 1}}, ["has an option 'cst'", "Did you mean 'cost'"]),
        ({"max_cost": -1}, ["max_cost=-1.0 is no limit"]),
    ],
)
def test_a_run_file_that_says_something_else_is_refused(
    changes: dict[str, Any],
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_run_file(**changes)
    assert cads(monkeypatch, "run", "run.yaml", "--out", "a") == 1
    said = " ".join(capsys.readouterr().err.split())
    for word in words:
        assert word in said
    assert not Path("a").exists()


def test_two_run_files_or_none_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run_file()
    Path("other.yaml").write_text(Path("run.yaml").read_text())
    assert cads(monkeypatch, "run", "run.yaml", "other.yaml") == 1
    assert "Two run files were given" in capsys.readouterr().err
    assert cads(monkeypatch, "run", "nowhere.yaml") == 1
    assert "'nowhere.yaml' does not exist" in capsys.readouterr().err


def test_a_dry_run_shows_messages_and_estimates_and_asks_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("mine.yaml", "random", "--feedback", "full", "none", "--tokens-per-second", "10")
    assert cads(monkeypatch, "run", *words, *SMALL, "--dry-run", "--out", "a") == 0
    printed = capsys.readouterr().out
    assert Talker.asked == 0
    assert not Path("a").exists()
    assert "8 campaigns: 2 arms, 2 settings, 2 seeds." in printed
    assert "Round 0: about 100 tokens in, at most 50 out\n[user]\na thin prompt: \n" in printed
    assert "Round 2: about 102 tokens in" in printed
    assert "Arm random\nasks nothing that it could show ahead." in printed
    # Two settings, two seeds, three rounds; two attempts a round.
    assert "full: mine: 6 requests at least, 12 at most; about 101 tokens in a request" in printed
    assert "In all: 12 requests at least, 24 at most; about 1,212 to 2,424 tokens in" in printed
    assert "at most 0:01:00 with one request a round, 0:02:00 with all attempts" in printed
    assert cads(monkeypatch, "run", "random", *SMALL, "--dry-run") == 0
    assert "No arm asks anything" in capsys.readouterr().out
    assert cads(monkeypatch, "run", *SMALL, "--dry-run", "--tokens-per-second", "0") == 1
    slow = ("run", "mine.yaml", *SMALL, "--dry-run", "--tokens-per-second", "1e-300")
    assert cads(monkeypatch, *slow) == 0
    assert "at most years with one request" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--concurrency", "0"), "concurrency=0 is not usable"),
        (("--jobs", "0"), "jobs=0"),
        (("--max-tokens", "-1"), "max_tokens=-1 is no limit"),
        (("--jobs", "2", "--max-cost", "1"), "need all exchanges in one process"),
        (("--identifiers", "shuffled-within-prior", "--registry", "bare.csv"), "prior"),
    ],
)
def test_a_dry_run_refuses_what_the_run_refuses(
    words: tuple[str, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("bare.csv").write_text(TABLE.replace("score", "unused"))
    source = () if "bare.csv" in words else SCREEN[:2]
    heard = []
    for more in (("--dry-run",), ("--out", "a")):
        command = ("run", "mine.yaml", *source, *SCREEN[2:], "--seeds", "0", *words, *more)
        assert cads(monkeypatch, *command) == 1
        heard.append(" ".join(capsys.readouterr().err.split()))
    assert heard[0] == heard[1]
    assert said in heard[0]


def test_a_protocol_in_which_no_proposal_can_be_certified_is_told_before_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("run", "random", *SCREEN, "--seeds", "0")
    warning = "warning: nothing that an agent proposes can be certified in this protocol at m = 200"
    for more in (("--dry-run",), ("--out", "a")):
        assert cads(monkeypatch, *words, "--set", "rounds=1", *more) == 0
        said = " ".join(capsys.readouterr().err.split())
        assert warning in said
        assert "in 1 round no proposal gets the reads that it needs. Use more rounds" in said
    assert cads(monkeypatch, *words, "--set", "rounds=6", "--dry-run") == 0
    assert "warning" not in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--feedback", "--identifiers", "--prompt"])
@pytest.mark.parametrize("value", ["", ","])
def test_an_option_without_a_value_is_no_default(
    option: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cads(monkeypatch, "run", "mine.yaml", *SMALL, option, value, "--out", "a") == 1
    assert f"{option} was given without a value" in " ".join(capsys.readouterr().err.split())
    assert not Path("a").exists()


def test_a_limit_ends_with_a_code_of_its_own_and_the_same_command_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("run", "mine.yaml", *SMALL, "--feedback", "full", "none", "--out", "g")
    assert cads(monkeypatch, *words, "--max-tokens", "500") == 3
    said = " ".join(capsys.readouterr().err.split())
    assert "stopped: the limit max_tokens = 500 is reached" in said
    assert "(--out g)" in said
    asked = Talker.asked
    assert 5 <= asked < 12
    assert cads(monkeypatch, *words) == 0
    assert Talker.asked == 12
    assert load_grid("g").status == "complete"
    plain = ("run", "mine.yaml", *SMALL, "--out", "p")
    assert cads(monkeypatch, *plain, "--max-cost", "0.02") == 3
    assert cads(monkeypatch, *plain) == 0


def test_a_grid_is_compared_reported_and_replayed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("mine.yaml", "--prompt", "thin,informed", "--feedback", "full", "permuted", "none")
    assert cads(monkeypatch, "run", *words, *SMALL, "--concurrency", "4", "--out", "g") == 0
    capsys.readouterr()
    assert cads(monkeypatch, "compare", "g", "informed", "thin") == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "adjusted over the 3 contrasts above" in printed
    assert "permuted:" in printed
    assert cads(monkeypatch, "compare", "g/full", "informed", "thin") == 0
    assert "mine/informed" in capsys.readouterr().out
    across = ("g/full", "g/permuted", "--across", "protocol", "--score", "true")
    assert cads(monkeypatch, "compare", *across) == 0
    assert cads(monkeypatch, "report", "g") == 0
    assert Path("g/report.html").exists()
    assert "Report: g/report.html" in capsys.readouterr().out
    assert cads(monkeypatch, "report", "g", "--format", "html") == 1
    assert cads(monkeypatch, "export", "g") == 1
    assert "g is a grid of settings; name the folder of one" in capsys.readouterr().err
    assert cads(monkeypatch, "report", "g/full", "--natural", "g/none") == 1
    capsys.readouterr()
    asked = Talker.asked
    assert cads(monkeypatch, "replay", "g", *SCREEN) == 0
    printed = capsys.readouterr().out
    assert printed.count("4 campaigns, byte-identical") == 3
    assert Talker.asked == asked


def test_a_replay_that_differs_names_the_campaign_and_ends_with_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cads(monkeypatch, "run", "mine.yaml", *SMALL, "--out", "a") == 0
    # Another agent for the arm: it asks something else than what was recorded.
    Path("long.yaml").write_text(yaml.safe_dump({"agent": TALKER, "options": {"prompt": "long"}}))
    other = ("--arm", "mine", "--agent", "long.yaml", *SCREEN)
    assert cads(monkeypatch, "replay", "a", *other) == 3
    printed = capsys.readouterr().out
    assert "2 campaigns, 2 of them not as in the files" in printed
    assert "seed 0" in printed
    assert "seed 1" in printed
    assert cads(monkeypatch, "replay", "a", "--arm", "mine") == 1
    assert "--arm was given 1 times and --agent 0 times" in capsys.readouterr().err
    assert cads(monkeypatch, "replay", "a", "--arm", "nobody", "--agent", "random") == 1
    assert cads(monkeypatch, "replay", "nowhere") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a", "thin"], "expected none or two of them"),
        (["a", "mine", "randm"], "Unknown arm 'randm'. Did you mean 'random'"),
        (["missing", "mine", "random"], "missing does not exist"),
        (["a", "./nowhere", "random"], "Unknown arm './nowhere'"),
    ],
)
def test_words_of_compare_that_name_nothing_are_refused(
    words: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cads(monkeypatch, "run", "mine.yaml", "random", *SMALL, "--out", "a") == 0
    # A folder of the name of an arm is no run.
    Path("mine").mkdir()
    assert cads(monkeypatch, "compare", "a", "mine", "random") == 0
    assert cads(monkeypatch, "compare", *words) == 1
    assert said in " ".join(capsys.readouterr().err.split())


def test_agents_lists_the_files_of_the_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cads(monkeypatch, "agents") == 0
    printed = capsys.readouterr().out
    assert "qwen2.5-7b" in printed
    assert "agent file: llm" in printed


def test_an_interrupted_grid_is_left_whole_and_says_how_to_go_on(tmp_path: Path) -> None:
    Path("slow.py").write_text(
        "import time\nfrom tests.run.talker import Talker\n\n\n"
        "class Slow(Talker):\n"
        "    def propose(self, view):\n"
        "        time.sleep(0.05)\n"
        "        return super().propose(view)\n"
    )
    command = [
        *(sys.executable, "-m", "cads_env", "run", "slow.py", *SCREEN, "--seeds", "0-200"),
        *("--feedback", "full", "none", "--concurrency", "4", "--out", "g"),
    ]
    root = str(Path(__file__).parents[1])
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, cwd=tmp_path, start_new_session=True,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    signal.signal(signal.SIGINT, before)
    rows = [tmp_path / "g" / name / "campaigns.jsonl" for name in ("full", "none")]
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and process.poll() is None:
        if all(row.exists() and row.stat().st_size for row in rows):
            break
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    said = " ".join(stderr.split())
    assert "stopping when the answers under way are here; Ctrl-C again ends at once." in said
    assert "interrupted. Campaigns completed before that are in g; with --out g" in said
    assert "Traceback" not in stderr
    found = load_grid(tmp_path / "g")
    assert [run.status for run in found.runs.values()] == ["interrupted", "interrupted"]


def lines_of(log: io.StringIO) -> list[str]:
    """What was printed; an old rich ends a hidden bar with an empty line."""
    return [line for line in log.getvalue().splitlines() if line]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What progress prints where nobody watches, a line for each look."""
    written = io.StringIO()
    monkeypatch.setattr(progress_module, "ERR", Console(file=written, width=200))
    monkeypatch.setattr(progress_module, "LINE_EVERY_S", 0.0)
    return written


def test_progress_adds_up_what_meters_count(log: io.StringIO) -> None:
    meter, other = Meter(), Meter()
    meter.add_earlier(Spent(requests=1, tokens_in=900, tokens_out=100, cost=0.5))
    with CampaignProgress(8) as shown:
        shown.watch(meter)
        shown.watch(meter)
        shown.watch(other)
        shown(2, 8, "")
        other.add(Spent(requests=1, tokens_in=1_000, cost=0.5))
        shown(4, 8, "a")
    line = lines_of(log)[-1]
    assert line.startswith("cads: 4 of 8 campaigns, ")
    assert line.endswith("2k tokens (about 2k to come), cost 1.00 (about 1.00 to come)")


def test_progress_looks_at_rounds_while_no_campaign_is_done(
    log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_module, "LOOK_EVERY_S", 0.01)
    meter = Meter()
    with CampaignProgress(8, rounds=40) as shown:
        shown.watch(meter)
        meter.add(Spent(requests=10, tokens_in=1_000, rounds=10))
        deadline = time.monotonic() + 30
        while not log.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    line = lines_of(log)[0]
    assert line.startswith("cads: 0 of 8 campaigns, ")
    assert line.endswith("left; 1k tokens (about 3k to come)")


def test_progress_never_says_that_nothing_is_left_while_a_campaign_is_open(
    log: io.StringIO,
) -> None:
    meter = Meter()
    with CampaignProgress(4, rounds=8) as shown:
        shown.watch(meter)
        # Every round has begun; the last campaigns still ask.
        meter.add(Spent(requests=8, tokens_in=1_000, rounds=8))
        shown(2, 4, "a")
        shown(4, 4, "a")
    open_, done = lines_of(log)
    assert open_ == "cads: 2 of 4 campaigns, less than a minute left; 1k tokens"
    assert done == "cads: 4 of 4 campaigns, 0:00:00 left; 1k tokens (about 0 to come)"


def test_time_left_is_that_of_the_rounds_and_not_of_what_came_before_the_first(
    log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress_module, "LOOK_EVERY_S", 3600.0)
    meter = Meter()
    shown = CampaignProgress(10, rounds=400)
    # Loading, then the first answers, then three rounds a second.
    for at, rounds in ((100.0, 0), (150.0, 4), (160.0, 30)):
        now[0] = at
        shown.watch(meter)
        meter.add(Spent(requests=rounds, tokens_in=rounds, rounds=rounds))
        shown(0, 10, "")
    lines = lines_of(log)
    assert [line.split(", ")[1].split(" left")[0] for line in lines] == ["1:22:30", "0:02:02"]


def test_numbers_of_tokens_are_short() -> None:
    assert [short(n) for n in (0, 950, 12_345, 4_560_000, 2e9)] == [
        "0", "950", "12.3k", "4.56M", "2G",
    ]  # fmt: skip
    assert spent_words(Spent(tokens_in=5), None) == "5 tokens"


def test_progress_of_a_grid_counts_all_its_settings() -> None:
    class Watching:
        def __init__(self) -> None:
            self.meters: list[Meter] = []
            self.steps: list[tuple[int, int, str]] = []

        def __call__(self, done: int, total: int, arm: str) -> None:
            self.steps.append((done, total, arm))

        def watch(self, meter: Meter) -> None:
            self.meters.append(meter)

    shown = Watching()
    evaluate_grid(
        {"talker": Talker}, settings=settings_of(["full", "none"]), registry=tiny_registry(),
        protocol=tiny_protocol(), seeds=range(2), progress=shown, concurrency=2,
    )  # fmt: skip
    assert [step[:2] for step in shown.steps] == [(i, 4) for i in (1, 2, 3, 4)]
    assert {step[2] for step in shown.steps} == {"full: talker", "none: talker"}
    assert len({id(meter) for meter in shown.meters}) == 1
    assert shown.meters[0].total.requests == 20

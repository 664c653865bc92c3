"""Grids: settings and their names, playing at once, going on, limits, and damaged folders."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from cads_env.errors import AgentError, ProtocolError, RecordError, RunError
from cads_env.panel import Panel
from cads_env.proposer import Proposal, ProposerFailed, View
from cads_env.run import evaluate
from cads_env.run.evaluate_grid import evaluate_grid
from cads_env.run.grid import Grid, is_grid, load_grid
from cads_env.run.manifest import GRID_FILE
from cads_env.run.settings import Setting, protocol_of, settings_of
from cads_env.testing import tiny_protocol, tiny_registry
from tests.run.talker import Talker

PANEL = Panel.of([tiny_registry(name=f"tiny-{i}") for i in range(2)], name="tinies")
PROTOCOL = tiny_protocol(reads_each=4, certificate={"q": 0.3})
SETTINGS = settings_of(["full", "permuted", "proposer=permuted"])
FILES = ("campaigns", "declarations", "rounds", "reads", "failures")


@pytest.fixture(autouse=True)
def _nothing_asked_yet() -> None:
    Talker.asked = 0


def grid(folder: Path | None, **changes: Any) -> Grid:
    arguments: dict[str, Any] = {
        "registry": PANEL, "protocol": PROTOCOL, "seeds": range(3), "settings": SETTINGS,
    }  # fmt: skip
    agents = changes.pop("agents", {"talker": Talker, "random": "random"})
    return evaluate_grid(agents, out=folder, **(arguments | changes))


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*.jsonl"))
        if path.stem in FILES
    }


def test_settings_are_named_after_what_varies() -> None:
    names = [s.name for s in settings_of(["full", "proposer=none", None])]
    assert names == ["full", "proposer-none", "as-protocol"]
    assert [s.name for s in settings_of(["full"], ["named", "shuffled"])] == ["named", "shuffled"]
    both = settings_of(["full", "none"], ["named", "blinded"])
    assert [s.name for s in both] == ["full+named", "full+blinded", "none+named", "none+blinded"]
    assert settings_of() == (Setting("as-protocol", None, "named"),)
    with pytest.raises(RunError, match="feedback names full twice"):
        settings_of(["full", "full"])


def test_a_setting_changes_the_feedback_that_it_names_and_no_other() -> None:
    full, permuted, split = (protocol_of(setting, PROTOCOL) for setting in SETTINGS)
    assert full == PROTOCOL
    assert (permuted.feedback_proposer, permuted.feedback_reselection) == ("permuted", "permuted")
    assert (split.feedback_proposer, split.feedback_reselection) == ("permuted", "full")
    with pytest.raises(ProtocolError, match="feedback_proposer is 'some'"):
        protocol_of(Setting("x", "proposer=some", "named"), PROTOCOL)
    with pytest.raises(RunError, match="Unknown identifiers mode 'odd'"):
        protocol_of(Setting("x", None, "odd"), PROTOCOL)


@pytest.mark.parametrize("how", [{"concurrency": 4}, {"concurrency": 1}, {"jobs": 2}])
def test_every_setting_is_the_run_that_it_would_be_alone(
    how: dict[str, int], tmp_path: Path
) -> None:
    steps: list[tuple[int, int]] = []
    found = grid(tmp_path / "g", progress=lambda done, total, arm: steps.append((done, total)),
                 **how)  # fmt: skip
    assert (found.status, found.failures) == ("complete", ())
    assert steps == [(i + 1, 18) for i in range(18)]
    for setting in SETTINGS:
        evaluate(
            {"talker": Talker, "random": "random"},
            registry=PANEL, protocol=protocol_of(setting, PROTOCOL), seeds=range(3),
            out=tmp_path / setting.name,
        )  # fmt: skip
        assert contents(tmp_path / "g" / setting.name) == contents(tmp_path / setting.name)
    loaded = load_grid(tmp_path / "g")
    assert loaded.settings == SETTINGS
    for name, run in loaded.runs.items():
        assert run.campaigns.equals(found.runs[name].campaigns)


def test_a_limit_holds_for_all_settings_and_the_same_call_goes_on(tmp_path: Path) -> None:
    whole = grid(tmp_path / "whole", concurrency=3)
    asked, Talker.asked = Talker.asked, 0
    stopped = grid(tmp_path / "g", concurrency=3, max_cost=0.1)
    assert stopped.status == "interrupted"
    # Three campaigns may be under way when the tenth answer comes.
    assert 10 <= Talker.asked <= 12
    reasons = {run.manifest.get("reason", "") for run in stopped.runs.values()}
    assert any("max_cost = 0.1" in reason for reason in reasons)
    found = grid(tmp_path / "g", concurrency=3)
    assert found.status == "complete"
    assert Talker.asked == asked == 5 * 3 * 3
    assert contents(tmp_path / "g") == contents(tmp_path / "whole")
    assert whole.runs.keys() == found.runs.keys()


def test_a_grid_may_leave_no_files() -> None:
    found = grid(None, concurrency=2)
    assert found.folder is None
    assert [len(run.campaigns) for run in found.runs.values()] == [6, 6, 6]


def test_failed_campaigns_are_counted_by_setting_and_played_again(tmp_path: Path) -> None:
    class Dead(Talker):
        is_dead = True

        def propose(self, view: View) -> Any:
            if Dead.is_dead:
                raise ProposerFailed("no server")
            return super().propose(view)

    found = grid(tmp_path / "g", agents={"dead": Dead}, concurrency=2)
    assert [name for name, _ in found.failures] == [s.name for s in SETTINGS for _ in range(3)]
    assert found.status == "complete"
    Dead.is_dead = False
    again = grid(tmp_path / "g", agents={"dead": Dead}, concurrency=2, retry_failed=True)
    assert again.failures == ()


def test_an_agents_own_error_ends_the_grid_and_says_how_to_go_on(tmp_path: Path) -> None:
    class Odd(Talker):
        def propose(self, view: View) -> Any:
            if view.round == 3:
                raise IndexError("mine")
            return super().propose(view)

    with pytest.raises(AgentError, match=r"'odd' broke in round 3.*IndexError: mine") as caught:
        grid(tmp_path / "g", agents={"odd": Odd, "random": "random"}, concurrency=2)
    assert caught.value.__notes__ == [
        f"Campaigns completed before that are in {tmp_path / 'g'}; with --out {tmp_path / 'g'} the "
        "same command goes on."
    ]
    found = load_grid(tmp_path / "g")
    assert found.status == "interrupted"


def test_what_is_wrong_is_said_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="needs the side table"):
        grid(tmp_path / "g", agents="prior", settings=settings_of((), ["named", "blinded"]))
    with pytest.raises(RunError, match="concurrency=2 means threads"):
        grid(tmp_path / "g", concurrency=2, jobs=2)
    with pytest.raises(RunError, match="max_cost and max_tokens need"):
        grid(tmp_path / "g", jobs=2, max_cost=1)
    with pytest.raises(RunError, match="are none, or two have one name"):
        grid(tmp_path / "g", settings=[SETTINGS[0], SETTINGS[0]])
    assert not (tmp_path / "g").exists()


def test_a_server_that_is_not_there_leaves_no_folder(tmp_path: Path) -> None:
    class Unready(Talker):
        def check_ready(self) -> None:
            raise ProposerFailed("no server answers")

    with pytest.raises(AgentError, match="'a' cannot start: no server answers"):
        grid(tmp_path / "g", agents={"a": Unready})
    assert not (tmp_path / "g").exists()


def test_another_grid_in_the_folder_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "g"
    grid(place)
    before = contents(place)
    with pytest.raises(RunError, match="holds another grid: its settings are full, permuted"):
        grid(place, settings=SETTINGS[:2])
    with pytest.raises(RunError, match="holds another run; it differs in: seeds"):
        grid(place, seeds=range(4))
    evaluate("random", registry=PANEL, protocol=PROTOCOL, seeds=[0], out=tmp_path / "run")
    with pytest.raises(RunError, match=r"'.*run' holds a run"):
        grid(tmp_path / "run")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("x")
    with pytest.raises(RunError, match="is not empty and holds no grid"):
        grid(tmp_path / "other")
    assert contents(place) == before


def test_a_part_of_a_grid_is_loaded_as_it_is(tmp_path: Path) -> None:
    (tmp_path / GRID_FILE).write_text(
        json.dumps({"schema_version": 1, "settings": [s._asdict() for s in SETTINGS]})
    )
    assert is_grid(tmp_path)
    found = load_grid(tmp_path)
    assert (found.status, dict(found.runs)) == ("interrupted", {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no JSON"),
        ("[]", "does not name the settings"),
        ('{"schema_version": 2, "settings": []}', "schema version 2; this cads-env reads 1"),
        ('{"schema_version": 1, "settings": []}', "does not name the settings"),
        ('{"schema_version": 1, "settings": [{"name": "a"}]}', "does not name the settings"),
        (
            '{"schema_version": 1, "settings": '
            '[{"name": "../a", "feedback": null, "identifiers": "named"}]}',
            "does not name the settings",
        ),
        (
            '{"schema_version": 1, "settings": '
            '[{"name": "a", "feedback": 1, "identifiers": "named"}]}',
            "does not name the settings",
        ),
    ],
)
def test_a_damaged_grid_file_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / GRID_FILE).write_text(text)
    with pytest.raises((RecordError, RunError), match=message):
        load_grid(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "a" * 300},
        {"name": "a\x00"},
        {"name": "\ud800"},
        {"name": "a\nb"},
        {"name": ".hidden"},
        {"name": "a\\b"},
        {"feedback": "weird"},
        {"feedback": "proposer=weird"},
        {"identifiers": "weird"},
        {"identifiers": None},
    ],
)
def test_settings_that_no_run_could_have_are_refused(
    change: dict[str, Any], tmp_path: Path
) -> None:
    setting = {"name": "a", "feedback": "full", "identifiers": "named"} | change
    (tmp_path / GRID_FILE).write_text(json.dumps({"schema_version": 1, "settings": [setting]}))
    with pytest.raises(RecordError, match="does not name the settings"):
        load_grid(tmp_path)


def test_a_setting_with_a_name_that_is_no_folder_begins_nothing(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"A setting is called '\.\./x'"):
        grid(tmp_path / "grid", settings=[Setting("../x", "full", "named")])
    assert list(tmp_path.iterdir()) == []


def test_runs_that_changed_places_are_told_apart(tmp_path: Path) -> None:
    place = tmp_path / "grid"
    grid(place, agents=["random"], seeds=[0], settings=SETTINGS[:2])
    (place / "full").rename(place / "x")
    (place / "permuted").rename(place / "full")
    (place / "x").rename(place / "permuted")
    with pytest.raises(RecordError, match="full is no run of the setting 'full'"):
        load_grid(place)


def test_one_process_plays_in_a_grids_folder_and_no_run_does(tmp_path: Path) -> None:
    place = tmp_path / "grid"
    refused: list[str] = []

    class Second:
        """Plays in the same folder while the grid is played."""

        def propose(self, view: View) -> tuple[str, ...]:
            for play in (grid, run):
                with pytest.raises(RunError, match="Another process is writing") as caught:
                    play(place)
                refused.append(str(caught.value))
            return ()

    def run(folder: Path) -> None:
        evaluate("random", registry=PANEL, protocol=PROTOCOL, seeds=[0], out=folder)

    assert grid(place, agents=Second, seeds=[0]).status == "complete"
    assert len(refused) == 2 * len(SETTINGS) * PROTOCOL.rounds
    with pytest.raises(RunError, match="not empty and holds no run"):
        run(place)
    assert grid(place, agents=Second, seeds=[0]).status == "complete"


def test_a_folder_of_something_else_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match="is not empty and holds no grid"):
        grid(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_what_a_file_manager_leaves_does_not_make_a_folder_used(tmp_path: Path) -> None:
    (tmp_path / ".DS_Store").write_bytes(b"x")
    assert grid(tmp_path, agents=["random"], seeds=[0]).status == "complete"


def test_a_folder_without_a_grid_is_said_to_be_one(tmp_path: Path) -> None:
    assert not is_grid(tmp_path)
    with pytest.raises(RunError, match=r"holds no grid.json"):
        load_grid(tmp_path)


class Slow(Talker):
    """Takes so long that whoever does not wait for it is noticed."""

    playing = threading.Event()

    def propose(self, view: View) -> Proposal:
        Slow.playing.set()
        time.sleep(0.4)
        return super().propose(view)


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal to a thread")
def test_ctrl_c_is_let_out_after_a_setting_has_closed_its_files(tmp_path: Path) -> None:
    main = threading.get_ident()
    Slow.playing.clear()

    def interrupt() -> None:
        Slow.playing.wait(60)
        signal.pthread_kill(main, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    sender = threading.Thread(target=interrupt, daemon=True)
    sender.start()
    try:
        with pytest.raises(KeyboardInterrupt) as error:
            # One setting alone: no other one's end is waited for in its place.
            grid(
                tmp_path / "g", agents={"slow": Slow}, seeds=range(20), settings=SETTINGS[:1],
                concurrency=2,
            )  # fmt: skip
    finally:
        signal.signal(signal.SIGINT, before)
    assert "the same command goes on" in error.value.__notes__[0]
    runs = load_grid(tmp_path / "g").runs
    assert [run.status for run in runs.values()] == ["interrupted"]
    sender.join()

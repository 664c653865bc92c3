"""The doctor: what it sees, what it makes of it, and that nothing broken breaks it."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cads_agents.serving import interpreter
from cads_env.cli import app as command_line
from cads_env.cli import main
from cads_env.report import doctor
from cads_env.report.doctor import Finding, examine, installation, is_well, places, self_check
from cads_env.report.doctor.finding import guarded
from cads_env.report.doctor.versions import Requirement, is_met, parse_requirement

# Which package has which module is looked up in every file of every package: once is enough here.
OWNERS = functools.cache(importlib.metadata.packages_distributions)


@pytest.fixture(autouse=True)
def _a_machine_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("CADS_HOME", str(tmp_path / "secret-home"))
    monkeypatch.setattr(importlib.metadata, "packages_distributions", OWNERS)


def named(found: list[Finding], name: str) -> Finding:
    (finding,) = [finding for finding in found if finding.name == name]
    return finding


def cads(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["cads", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_an_installation_that_works_is_well_and_told_in_sections(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Whether this machine's other packages fit is not what is tested here.
    assert cads(monkeypatch, "doctor", "--json") == 0
    value = json.loads(capsys.readouterr().out)
    assert (value["version"], value["well"]) == (1, True)
    sections = dict.fromkeys(f["section"] for f in value["findings"])
    assert list(sections)[:3] == ["versions", "extras", "agents"]
    assert list(sections)[-4:] == ["data", "runs", "machine", "self-check"]
    by_name = {f["name"]: f for f in value["findings"]}
    assert by_name["random"]["text"].startswith("cads_agents.random_order:RandomOrder")
    assert by_name["campaign"] == {
        "section": "self-check",
        "name": "campaign",
        "status": "ok",
        "text": "gives its known answer",
    }
    assert "standard" in by_name["protocols"]["text"]


def test_a_problem_ends_with_code_1_and_a_note_does_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [Finding("extras", "x", "note", "[red]not[/nope] there"), Finding("a", "b", "ok", "c")]
    monkeypatch.setattr(command_line.doctor.__module__ + ".examine", lambda: found)
    assert cads(monkeypatch, "doctor") == 0
    printed = capsys.readouterr().out
    assert "note: [red]not[/nope] there" in printed
    assert "All that the core needs is well; 1 marked note" in printed
    found.append(Finding("versions", "numpy", "problem", "missing"))
    assert cads(monkeypatch, "doctor") == 1
    printed = capsys.readouterr().out
    assert "PROBLEM: missing" in printed
    assert "1 to mend" in printed


def test_the_folder_of_data_is_told_and_no_home_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    told = doctor.as_json(examine())
    assert named(places.places(), "home").text.startswith("~/secret-home (set by CADS_HOME)")
    assert str(tmp_path) not in told
    monkeypatch.delenv("CADS_HOME")
    told = doctor.as_json(places.places())
    assert str(tmp_path) not in told


@pytest.mark.parametrize(
    ("version", "wanted", "met"),
    [
        ("1.26", ">=1.26", True),
        ("1.26.0", "<=1.26,==1.26", True),
        ("1.9", ">=1.26", False),
        ("2.0", ">=1.1,<2", False),
        ("1.10.3", "<2,>=1.1", True),
        ("2.0rc1", ">=2.0", False),
        ("2.0.post1", ">2.0", True),
        ("1.4.5", "~=1.4.2", True),
        ("1.5", "~=1.4.2", False),
        ("1.5", "~=1.4", True),
        ("2", "~=1.4", False),
        ("1.4", "!=1.4.0", False),
        ("3.1.1+local", ">=3", True),
        ("anything", "", None),
        ("1.0", "==1.*", None),
        ("1.0", "===1.0", None),
        ("1.0", "", True),
    ],
)
def test_ranges_are_read_or_said_not_to_be(version: str, wanted: str, met: bool | None) -> None:
    assert is_met(version, wanted) is met


def test_ranges_agree_with_the_library_of_installers() -> None:
    specifiers = pytest.importorskip("packaging.specifiers")
    versions = ["0.9", "1", "1.0.1", "1.1", "1.1rc2", "1.10", "2.0.dev3", "2", "2.0.1", "10.0"]
    for bound in ("1", "1.1", "1.1.0", "2.0", "1.10.0"):
        for operator in (">=", "<=", "==", "!=", *([] if bound == "1" else ["~="])):
            wanted = specifiers.SpecifierSet(f"{operator}{bound}")
            for version in versions:
                expected = wanted.contains(version, prereleases=True)
                assert is_met(version, f"{operator}{bound}") is expected, (version, operator, bound)


def test_requirements_are_read_with_extras_and_markers() -> None:
    line = "cads-env[test,data] ; extra == 'conformance'"
    assert parse_requirement(line) == Requirement(
        "cads-env", ("test", "data"), "", "conformance", False
    )
    assert parse_requirement("numpy<3,>=1.26") == Requirement("numpy", (), "<3,>=1.26", None, False)
    windows = parse_requirement('x>=1; sys_platform == "win32" and extra == "dev"')
    assert windows == Requirement("x", (), ">=1", "dev", True)
    assert parse_requirement("???") is None


def fake_versions(monkeypatch: pytest.MonkeyPatch, **versions: str | None) -> None:
    real = importlib.metadata.version

    def version(name: str) -> str:
        found = versions.get(name.replace("-", "_"), "real")
        if found is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name) if found == "real" else found

    monkeypatch.setattr(importlib.metadata, "version", version)


def test_a_missing_or_old_package_of_the_core_is_a_problem_with_the_line_that_mends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_versions(monkeypatch, scipy=None, pandas="1.5", rich="strange")
    found = installation.installation()
    assert named(found, "scipy").status == named(found, "pandas").status == "problem"
    assert "missing" in named(found, "scipy").text
    assert "pip install 'scipy" in named(found, "scipy").text
    assert named(found, "pandas").text.startswith("1.5; needs >=")
    assert named(found, "rich").status == "note"
    assert not is_well(found)


def test_a_package_of_the_core_that_cannot_be_imported_is_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The module of pyyaml has another name.
    monkeypatch.setitem(sys.modules, "yaml", None)
    monkeypatch.setitem(sys.modules, "scipy", None)
    found = installation.installation()
    for name in ("pyyaml", "scipy"):
        assert named(found, name).status == "problem"
        assert "but cannot be imported: ModuleNotFoundError" in named(found, name).text
    assert named(found, "numpy").status == "ok"


def test_an_extra_that_is_not_installed_is_a_note_with_its_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Metadata:
        def get_all(self, _: str) -> list[str]:
            return ["parquet", "test", "conformance"]

    lines = [
        "numpy>=1.26",
        "pyarrow>=14.0; extra == 'parquet'",
        "pytest>=8.0; extra == 'test'",
        "hypothesis>=6.100; extra == 'test'",
        "colorama; sys_platform == 'win32' and extra == 'test'",
        "cads-env[test]; extra == 'conformance'",
    ]
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: lines)
    monkeypatch.setattr(importlib.metadata, "metadata", lambda _: Metadata())
    fake_versions(monkeypatch, pyarrow=None, hypothesis=None, pytest="8.1")
    found = {f.name: f for f in installation.installation() if f.section == "extras"}
    assert found["parquet"].status == "note"
    assert found["parquet"].text.endswith("pip install 'cads-env[parquet]'")
    assert "pyarrow>=14.0" in found["parquet"].text
    # An extra that asks for another one lacks what that lacks.
    assert "hypothesis" in found["conformance"].text
    assert "pytest" not in found["test"].text


def entry_points(
    monkeypatch: pytest.MonkeyPatch, group: str, *points: tuple[str, str, str | None]
) -> None:
    """Make these the only entry points of a group: name, value, package."""
    real = importlib.metadata.entry_points

    class Owner:
        def __init__(self, name: str) -> None:
            self.name = name

    made = []
    for name, value, owner in points:
        point = importlib.metadata.EntryPoint(name, value, group)
        # An entry point is immutable but for what importlib itself sets so.
        vars(point)["dist"] = None if owner is None else Owner(owner)
        made.append(point)

    def fake(**wanted: Any) -> Any:
        return made if wanted.get("group") == group else real(**wanted)

    monkeypatch.setattr(importlib.metadata, "entry_points", fake)


def test_an_agent_that_cannot_be_imported_is_told_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "quitter.py").write_text("raise SystemExit('no licence')\n")
    monkeypatch.syspath_prepend(tmp_path)
    entry_points(
        monkeypatch,
        "cads_env.agents",
        ("theirs", "quitter:Agent", "their-agents"),
        ("odd", "no_such_module:Agent", None),
        ("ours", "cads_agents.no_such:Agent", "cads-env"),
    )
    found = installation.installation()
    assert named(found, "theirs").status == named(found, "odd").status == "note"
    assert "SystemExit: no licence" in named(found, "theirs").text
    assert "their-agents" in named(found, "theirs").text
    assert "No module named 'no_such_module'" in named(found, "odd").text
    assert named(found, "ours").status == "problem"


def test_a_broken_command_of_others_takes_no_other_with_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = command_line.app
    monkeypatch.setattr(app, "registered_commands", list(app.registered_commands))
    entry_points(monkeypatch, "cads_env.commands", ("serve", "no_such_module:app", "servers"))
    assert cads(monkeypatch, "agents") == 0
    capsys.readouterr()
    assert cads(monkeypatch, "serve") == 1
    message = capsys.readouterr().err
    assert "'serve' (no_such_module:app) cannot be imported: ModuleNotFoundError" in message
    assert "Traceback" not in message
    assert named(installation.installation(), "serve").status == "note"


@pytest.mark.parametrize("arguments", [("doctor",), ("doctor", "--json"), ("run",)])
def test_a_command_line_that_cannot_be_imported_is_one_paragraph(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "cads_env.cli.app", None)
    found = [Finding("versions", "scipy", "problem", "missing")]
    monkeypatch.setattr(doctor, "examine", lambda: found)
    assert cads(monkeypatch, *arguments) == 1
    captured = capsys.readouterr()
    assert "missing or broken (ModuleNotFoundError" in captured.err
    assert "pip install --force-reinstall cads-env" in captured.err
    assert ("scipy" in captured.out) == (arguments[0] == "doctor")
    if "--json" in arguments:
        assert json.loads(captured.out)["well"] is False


def test_another_answer_of_the_machine_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_check, "tape_sha256", lambda: "0" * 64)
    found = list(self_check.self_check())
    assert [f.status for f in found] == ["problem", "ok"]
    assert "cannot be compared" in found[0].text


def test_whatever_a_check_raises_is_a_finding() -> None:
    def check() -> Iterator[Finding]:
        yield Finding("a", "b", "ok", "c")
        raise ValueError("half \ud83d\nand more")

    found = guarded("a", check)
    assert [f.status for f in found] == ["ok", "problem"]
    assert found[1].text == "could not be made: ValueError: half ? and more"


def test_a_home_that_is_no_folder_or_cannot_be_written_is_a_note(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert named(places.places(), "home").text.endswith("writable; made when it is first used")
    (tmp_path / "secret-home").write_text("a file")
    assert "is no folder" in named(places.places(), "home").text
    (tmp_path / "secret-home").unlink()
    monkeypatch.setattr(os, "access", lambda *_: False)
    found = places.places()
    assert "is not writable" in named(found, "home").text
    assert named(found, "this folder").status == "note"
    assert is_well(found)


def test_remembered_registries_whose_files_are_gone_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "secret-home" / "registries"
    folder.mkdir(parents=True)
    (tmp_path / "there.csv").write_text("x")
    (folder / "kept.yaml").write_text(f"source: table\npath: {tmp_path / 'there.csv'}\n")
    (folder / "lost.yaml").write_text(f"source: table\npath: {tmp_path / 'gone.csv'}\n")
    (folder / "odd.yaml").write_text("a: [\n")
    (folder / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    found = places.places()
    assert named(found, "registry kept").status == "ok"
    assert "gone.csv is gone" in named(found, "registry lost").text
    assert "cads registry remove lost" in named(found, "registry lost").text
    for name in ("odd", "bytes"):
        assert named(found, f"registry {name}").status == "note"


def test_runs_of_this_folder_are_counted_by_state(tmp_path: Path) -> None:
    assert named(places.places(), "runs").text == "none in this folder"
    texts = {"0001": '{"status": "complete"}', "0002": '{"status": "running"}', "0003": "["}
    for name, text in texts.items():
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "manifest.json").write_text(text)
    (tmp_path / "runs" / "0001-export").mkdir()
    found = named(places.places(), "runs")
    assert found.text == "1 complete, 1 running or killed, 1 with a damaged manifest in ./runs"


def test_a_terminal_that_lacks_the_characters_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    class Narrow:
        encoding = "ascii"

    monkeypatch.setattr(sys, "stdout", Narrow())
    found = places.places()
    assert named(found, "terminal").status == "note"
    assert "PYTHONUTF8=1" in named(found, "terminal").text


def test_where_a_server_would_be_found_is_told_without_the_value_of_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert places.SERVER_VARIABLE == interpreter.PYTHON_VARIABLE
    assert places.SERVER_FOLDER == interpreter.USUAL_FOLDER
    monkeypatch.delenv(places.SERVER_VARIABLE, raising=False)
    assert "cads serve needs vLLM" in named(places.places(), "server").text
    (tmp_path / ".vllm").mkdir()
    assert named(places.places(), "server")[2:] == ("ok", ".vllm in this folder")
    monkeypatch.setenv(places.SERVER_VARIABLE, str(tmp_path / "secret"))
    gone = named(places.places(), "server")
    assert gone.status == "note"
    assert "but not there" in gone.text
    assert "secret" not in gone.text
    monkeypatch.setenv(places.SERVER_VARIABLE, sys.executable)
    assert named(places.places(), "server")[2:] == ("ok", "named by CADS_VLLM_PYTHON")

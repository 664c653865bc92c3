"""The commands that a report prints repeat the run, byte for byte."""

from __future__ import annotations

import dataclasses
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml

import cads_env
from cads_env import RunResult, View
from cads_env.cli import main
from cads_env.report.content import Code, Listing, Paragraph
from cads_env.report.repeat import LONGEST, command, repeat, repeat_blocks
from cads_env.run import merge, split, vary
from cads_env.run.agents import find_agents
from cads_env.run.load import load_run
from tests.report.conftest import PROTOCOL, panel, play
from tests.run.talker import Talker

RULES = "standard+first_fresh=4+fresh=2+rounds=2"
LINES = ("ACH-000001", "ACH-000002", "ACH-000003")


class Last:
    """Proposes from the end of the list."""

    def propose(self, view: View) -> list[str]:
        """The last ones."""
        tested = set(view.tested)
        return [n for n in reversed(view.identifiers) if n not in tested][: view.slots]


def cads(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["cads", *words])
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a matrix of three lines and a table; the data folder lies in it too."""
    monkeypatch.setenv("CADS_HOME", str(tmp_path / "home"))
    names = [f"GENE{i}" for i in range(40)]
    head = ",".join(["", *(f"{name} ({i + 1})" for i, name in enumerate(names))])
    rows = [
        ",".join([line, *(f"{-((i * 7 + k) % 40) / 25:.3f}" for i in range(40))])
        for k, line in enumerate(LINES)
    ]
    (tmp_path / "effects.csv").write_text("\n".join([head, *rows]) + "\n")
    table = [f"{name},{(i * 11 % 40) / 20 - 1:.3f},{i % 5}" for i, name in enumerate(names)]
    (tmp_path / "screen.csv").write_text("\n".join(["gene,lfc,prior", *table]) + "\n")
    return tmp_path


def replayed(
    monkeypatch: pytest.MonkeyPatch, data: Path, result: RunResult, words: Sequence[str]
) -> tuple[bytes, bytes]:
    """The campaigns of a run and of the command that repeats it, with paths put back."""
    for name, text in repeat(result).files.items():
        (data / name).write_text(text)
    # What a shell hands over; files are looked up where they lie.
    typed = shlex.split(command(words))
    monkeypatch.chdir(data)
    again = data / f"again-{len(list(data.iterdir()))}"
    cads(monkeypatch, *typed[1:], "--out", str(again))
    assert result.folder is not None
    first = Path(result.folder) / "campaigns.jsonl"
    return first.read_bytes(), (again / "campaigns.jsonl").read_bytes()


DEPMAP = ("--registry", "depmap", "-O", "path=effects.csv")
TABLE = ("--registry", "screen.csv", "-O", "identifier=gene", "-O", "effect=lfc", "-O")


@pytest.mark.parametrize(
    ("words", "seeds"),
    [
        ((*DEPMAP, "-O", "lines=all"), "0-3"),
        # Of a panel of three, one registry is never played.
        ((*DEPMAP, "-O", f"lines=[{LINES[2]}, {LINES[0]}, {LINES[1]}]", "-O", "name=mine", "-O",
          "threshold=-0.8"), "0,2,3"),
        (("--registry", "kpn"), "0-1"),
        ((*TABLE, "direction=lower", "-O", "threshold=-0.25", "-O", "prior=prior", "-O",
          "prior_direction=higher", "-O", 'name="123"'), "0-1"),
        (("--panel", "synthetic-depmap-6000:dev", "-O", "structure=0.5", "-O", "subsample=50"),
         "0"),
        (("--registry", "synthetic-depmap-6000/3", "--registry", "kpn"), "0-1"),
    ],
)  # fmt: skip
def test_the_command_repeats_the_run(
    words: tuple[str, ...], seeds: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data)
    if "kpn" in words:
        cads(monkeypatch, "registry", "add", "effects.csv", "--line", LINES[1], "--name", "kpn")
    rest = ("--protocol", RULES, "--seeds", seeds, "--agent", "random", "--out", "first")
    cads(monkeypatch, "run", *words, *rest, "--q", "0.2", "--identifiers", "shuffled")
    result = load_run(data / "first")
    found = repeat(result)
    assert found.parts == ()
    assert found.notes == ()
    # A remembered name lives on one machine alone.
    assert "kpn" not in found.whole
    before, after = replayed(monkeypatch, data, result, found.whole)
    assert before.count(b"\n") == len(result.campaigns) > 0
    assert after == before


def test_a_protocol_without_a_name_is_given_as_a_file(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = dataclasses.replace(cads_env.load_protocol(RULES), name="mine")
    result = play({"prior": "prior"}, data / "run", registry="synthetic-depmap-6000/1",
                  protocol=rules, seeds=[0])  # fmt: skip
    found = repeat(result)
    assert found.whole[found.whole.index("--protocol") + 1] == "protocol.yaml"
    before, after = replayed(monkeypatch, data, result, found.whole)
    assert after == before


def test_a_part_of_a_run_keeps_its_panel(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(data)
    rest = ("--protocol", RULES, "--seeds", "0-5", "--agent", "random", "--agent", "prior")
    cads(monkeypatch, "run", *DEPMAP, "-O", "lines=all", *rest, "--out", "first")
    part = split("first", "part", arms=["prior"], registries=[f"effects/{LINES[1]}"])
    before, after = replayed(monkeypatch, data, load_run(data / "part"), repeat(part).whole)
    assert after == before


def test_a_ragged_merge_is_told_to_be_several_commands(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: Mapping[str, object] = {"registry": "synthetic-depmap-6000/1", "protocol": RULES}
    play({"random": "random"}, data / "a", seeds=[0, 1], **settings)
    play({"prior": "prior"}, data / "b", seeds=[1], **settings)
    merge([data / "a", data / "b"], data / "all")
    result = load_run(data / "all")
    found = repeat(result)
    assert [words[words.index("--seeds") + 1] for words in found.parts] == ["0-1", "1"]
    text = " ".join(b.text for b in repeat_blocks(result) if isinstance(b, Paragraph))
    assert "That plays all 4 campaigns that were planned" in text
    assert "by no single command" in text
    assert result.folder is not None
    whole = (Path(result.folder) / "campaigns.jsonl").read_bytes().splitlines()
    for words in found.parts:
        _, after = replayed(monkeypatch, data, result, words)
        assert set(after.splitlines()) <= set(whole)


def lines_run(run: RunResult, count: int) -> RunResult:
    """The run as if it had played so many lines of a file."""
    lines = [f"ACH-{i:06d}" for i in range(count)]
    entries = [
        {"name": f"e/{x}", "source": "depmap", "options": {"path": "e.csv", "line": x, "name": "e"}}
        for x in lines
    ]
    config = {**run.manifest["config"], "registries": [f"e/{x}" for x in lines]}
    manifest = {**run.manifest, "config": config, "registries": entries}
    return dataclasses.replace(run, manifest=manifest)


def test_a_list_of_lines_is_never_cut(run: RunResult) -> None:
    text = command(repeat(lines_run(run, 400)).whole)
    assert all(f"ACH-{i:06d}" in text for i in range(400))
    longer = lines_run(run, 3_000)
    assert len(command(repeat(longer).whole)) > LONGEST
    said = [b.text for b in repeat_blocks(longer) if isinstance(b, Paragraph)]
    assert "too many to type" in said[1]


def test_what_no_command_says_is_said_beside_it(tmp_path: Path) -> None:
    result = play({"mine": Last}, tmp_path / "run", registry=panel(1), seeds=[0],
                  certificate={"q": 0.2, "s": 0.6}, keep_reads=True)  # fmt: skip
    notes = next(b for b in repeat_blocks(result) if isinstance(b, Listing))
    said = " ".join(notes.entries)
    assert "handed over in Python" in said
    assert "mine = tests.report.test_repeat:Last" in said
    assert "s = 0.6" in said
    code = [b.text for b in repeat_blocks(result) if isinstance(b, Code)]
    for word in ("--q 0.2", "--keep-reads", "--registry tiny-0"):
        assert word in code[0]
    rules = cads_env.protocol.protocol_from_mapping(yaml.safe_load(code[1])) if code[1:] else None
    assert (rules or PROTOCOL).hash == PROTOCOL.hash


def test_a_secret_salt_has_a_place_and_is_not_told(tmp_path: Path) -> None:
    source = cads_env.load_panel("synthetic-depmap-6000:dev", salt="geheim")
    result = play({"random": "random"}, tmp_path / "run", registry=source, protocol=RULES,
                  seeds=[0])  # fmt: skip
    text = command(repeat(result).whole)
    assert "-O salt=SALT" in text
    assert "geheim" not in text
    assert re.search("--panel synthetic-depmap-6000:dev ", text)


def test_options_that_cannot_be_typed_stand_in_an_agent_file(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs = vary(find_agents({"mine": Talker}), "prompt", ["thin", "long"])
    result = play(specs, data / "run", registry="synthetic-depmap-6000/1", protocol=RULES,
                  seeds=[0])  # fmt: skip
    found = repeat(result)
    assert sorted(found.files) == ["agent-1.yaml", "agent-2.yaml"]
    content = yaml.safe_load(found.files["agent-1.yaml"])
    assert (content["agent"], content["arm"]) == ("tests.run.talker:Talker", "mine/thin")
    assert content["options"] == {"prompt": {"name": "thin", "text": "a thin prompt"}}
    (note,) = found.notes
    assert "`cads replay`" in note
    before, after = replayed(monkeypatch, data, result, found.whole)
    assert after == before
    big = dataclasses.replace(specs[0], options={"prompt": {"name": "x", "text": "y" * LONGEST}})
    longer = play([big], data / "big", registry="synthetic-depmap-6000/1", protocol=RULES,
                  seeds=[0])  # fmt: skip
    blocks = [b.text for b in repeat_blocks(longer) if isinstance(b, (Code, Paragraph))]
    assert max(map(len, blocks)) < 1_000
    assert "agent-1.yaml has 30," in " ".join(blocks)

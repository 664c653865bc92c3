"""Malformed inputs through the real command line: each has its own message, and leaves nothing.

A message says what was wrong, what was received and what to do, in one paragraph on stderr.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cads_env.cli import main
from cads_env.run import evaluate
from cads_env.testing import tiny_protocol, tiny_registry

TABLE = "identifier,effect,score\n" + "".join(
    f"G{i:02d},{-1.5 if i % 5 == 0 else 0.1},{i * 7 % 24}\n" for i in range(24)
)
MATRIX = ",ALFA (1),BRAVO (2),DELTA (3)\nACH-000001,0.1,-1.25,-0.6\nACH-000002,-0.9,-0.75,0.2\n"
DECLARED = ("-O", "direction=lower", "-O", "threshold=-0.5")
LINE = ("-O", "line=ACH-000001")
RANDOM = ("--agent", "random", "--seeds", "0")
PROTOCOL = "name: mine\nrounds: 3\nfirst_fresh: 4\nfresh: 2\n"


class Case(NamedTuple):
    """One malformed input.

    Attributes:
        arguments: What follows `cads`.
        words: What its message must say.
        files: Files to write first, by name.
        code: The exit code.
        begins: Whether a run had begun, whose folder stays so that it can go on.
    """

    arguments: tuple[str, ...]
    words: tuple[str, ...]
    files: dict[str, str | bytes] = {}  # noqa: RUF012
    code: int = 1
    begins: bool = False


def table(content: str | bytes, *words: str, options: tuple[str, ...] = DECLARED) -> Case:
    """A faulty table that a run is to play on."""
    return Case(("run", "--registry", "bad.csv", *options, *RANDOM), words, {"bad.csv": content})


def matrix(content: str | bytes, *words: str, options: tuple[str, ...] = LINE) -> Case:
    """A faulty matrix of gene effects that is to be remembered."""
    command = ("registry", "add", "m.csv", "--name", "mine", "--source", "depmap")
    return Case((*command, *options), words, {"m.csv": content})


def yaml(content: str, *words: str) -> Case:
    """A faulty registry or panel file."""
    return Case(("registry", "show", "bad.yaml"), words, {"bad.yaml": content})


def protocol(content: str, *words: str) -> Case:
    """A faulty protocol file."""
    command = ("run", "--registry", "screen.csv", *DECLARED, *RANDOM, "--protocol", "p.yaml")
    return Case(command, words, {"p.yaml": content})


def agent(content: str, *words: str) -> Case:
    """A faulty file of an agent."""
    command = ("run", "--registry", "screen.csv", *DECLARED, "--seeds", "0", "--agent", "a.py")
    return Case(command, words, {"a.py": content})


def run(*arguments: str, words: tuple[str, ...], code: int = 1) -> Case:
    """A faulty option of a run on a good table."""
    return Case(("run", "--registry", "screen.csv", *DECLARED, *arguments), words, code=code)


ROW = "identifier,effect\n"
CASES: dict[str, Case] = {
    "empty table": table("", "bad.csv has no rows", "expected a header"),
    "header alone": table(ROW, "a header and no data rows"),
    "one column": table("identifier\nA\nB\n", "one column", "Say sep="),
    "another separator": table("identifier;effect\nA;1\nB;2\n", "one column", "sep=';' were meant"),
    "binary": table(b"a,b\0\n1,2\n3,4\n", "binary file", "expected a text table"),
    "latin-1": table("identifier,effect\nÄ,1\nB,2\n".encode("latin-1"), "not UTF-8", "0xc4"),
    "utf-16": table(TABLE.encode("utf-16"), "not UTF-8 text: byte 0 is 0xff"),
    "ragged": table(ROW + "A,1\nB,2,3\nC\n", "2 rows have another number", "row 3 has 3"),
    "unpaired quote": table(ROW + 'A,1\n"B,2\n', "well-formed", "unpaired quotation mark"),
    "column twice": table("identifier,effect,effect\nA,1,1\nB,2,2\n", "repeats column names"),
    "no effect": table("identifier,value\nA,1\nB,2\n", "neither a column 'effect'", "'value'"),
    "name twice": table(ROW + "A,1\nB,-1\nA,0\n", "repeat an identifier", "row 4: 'A (first in"),
    "no name": table(ROW + "A,1\n,-1\n", "1 rows have no identifier", "row 3: ''"),
    "unseen letters": table(ROW + "A,1\nA\u200b,-1\n", "cannot be seen", r"'A\u200b'"),
    "a word": table(ROW + "A,1\nB,high\n", "are no numbers", "row 3: 'high'"),
    "missing": table(ROW + "A,1\nB,\nC,-1\n", "are missing", "drop_missing=true"),
    "infinite": table(ROW + "A,1\nB,-inf\n", "are infinite", "row 3: '-inf'"),
    "no hit": table(ROW + "A,1\nB,2\n", "0 hits among 2", "Check direction and threshold"),
    "one candidate": table(ROW + "A,1\n", "1 candidates; expected at least 2"),
    "spreadsheet": table(ROW + "1-Mar,1\nB,-1\n", "'1-Mar' (probably MARCHF1", "excel_names=keep"),
    "a label": table(
        "identifier,effect,label\nA,1,maybe\nB,-1,1\n", "none of 0, 1", "row 2: 'maybe'"
    ),
    "label against": table("identifier,effect,label\nA,1,1\nB,-1,1\n", "contradicts", "label=null"),
    "copied truth": table(
        "identifier,effect,copy\nA,1,3\nB,-1,1\nC,0,2\n", "'copy'", "copy of the truth",
        options=(*DECLARED, "-O", "features=[copy]"),
    ),
    "undeclared": table(TABLE, "still to be declared", "direction=lower", options=()),
    "a side": table(TABLE, "direction='down'", "'lower' or 'higher'",
                    options=("-O", "direction=down", "-O", "threshold=0")),
    "a limit": table(TABLE, "threshold='low'", "a finite number",
                     options=("-O", "direction=lower", "-O", "threshold=low")),
    "unknown option": table(TABLE, "no option 'treshold'", "Did you mean 'threshold'?",
                            options=("-O", "treshold=0")),
    "an option twice": table(TABLE, "gives 'threshold' more than once",
                             options=(*DECLARED, "-O", "threshold=0")),
    "no value": table(TABLE, "Cannot read --option 'threshold'", options=("-O", "threshold")),
    "subsample": table(TABLE, "subsample=99 is out of range", "24 candidates",
                       options=(*DECLARED, "-O", "subsample=99")),
    "cut matrix": matrix(MATRIX[:-9], "another number of fields", "Download it again"),
    "no lines": matrix("gene,a,b\nX,1,2\n", "neither rows nor columns", "ACH-000446"),
    "a word in a matrix": matrix(MATRIX.replace("-1.25", "n.d."), "'n.d.'", "'BRAVO (2)'"),
    "a huge effect": matrix(MATRIX.replace("-1.25", "1e9"), "beyond 16,384", "BRAVO (2): 1e9"),
    "probabilities": matrix(
        MATRIX.replace("-", "").replace("ACH", "ACH-").replace("1.25", "0.5"),
        "between 0 and 1", "CRISPRGeneEffect.csv",
    ),
    "another line": matrix(MATRIX, "no cell line 'ACH-000003'", "Did you mean 'ACH-00000",
                           options=("-O", "line=ACH-000003")),
    "a line twice": matrix(MATRIX.replace("000002", "000001"), "cell lines more than once"),
    "a symbol twice": matrix(MATRIX.replace("BRAVO", "ALFA"), "share a symbol", "identifiers=full"),
    "an index as data": Case(
        ("registry", "add", "Model.csv", "--name", "mine"), ("Model.csv", "holds no effects"),
        {"Model.csv": "ModelID,OncotreeLineage\nACH-000001,Lung\n"},
    ),
    "a taken name": Case(
        ("registry", "add", "screen.csv", "--name", "depmap", *DECLARED),
        ("'depmap' is the name of a source",),
    ),
    "an odd name": Case(
        ("registry", "add", "screen.csv", "--name", "a/b", *DECLARED), ("'a/b' is no usable name",)
    ),
    "a salt": Case(
        ("registry", "add", "screen.csv", "--name", "mine", *DECLARED, "-O", "salt=x"),
        ("salt is a secret",),
    ),
    "nothing to remove": Case(("registry", "remove", "mine"), ("No registry is called 'mine'",)),
    "parquet": Case(
        ("registry", "show", "x.parquet", *DECLARED), ("x.parquet", "not a readable Parquet file"),
        {"x.parquet": "PAR1 nothing"},
    ),
    "no yaml": yaml("a: [1\n", "bad.yaml is not readable YAML"),
    "yaml list": yaml("- a\n- b\n", "bad.yaml holds no options", "threshold: -0.5"),
    "key twice": yaml("path: a\npath: b\n", "the key 'path' twice (line 2)"),
    "alias": yaml("source: &a table\npath: *a\n", "uses an alias", "write the value out"),
    "no source": yaml("path: screen.csv\n", "no key 'source'", "lists registries"),
    "unknown source": yaml("source: tabel\npath: screen.csv\n", "'tabel'", "mean 'table'?"),
    "no path": yaml("source: table\n", "bad.yaml has no key 'path'"),
    "lost table": yaml("source: table\npath: lost.csv\n", "lost.csv does not exist", "bad.yaml"),
    "unknown key": yaml(
        "source: table\npath: screen.csv\nthreshhold: 0\n", "no option 'threshhold' (in", "bad.yaml"
    ),
    "long name": yaml(
        f"source: table\npath: screen.csv\nname: {'x' * 300}\n", "at most 200 printable"
    ),
    "unknown split": yaml("registries: [screen.csv]\nsplits: {test: [a]}\n", "split 'test'"),
    "shared split": yaml(
        "source: depmap\npath: effect.csv\nsplits: {train: [ACH-000001], eval: [ACH-000001]}\n",
        "'train' and 'eval'", "share no registry",
    ),
    "empty panel": yaml("registries: []\n", "registries=[] is not usable"),
    "panel of itself": yaml("registries: [bad.yaml]\n", "does one name itself?"),
    "protocol without rounds": protocol("name: mine\n", "lacks rounds"),
    "protocol key": protocol(PROTOCOL + "round: 3\n", "unknown key 'round'", "mean 'rounds'?"),
    "protocol value": protocol(
        PROTOCOL + "noise_sd: much\n", "p.yaml", "noise_sd is 'much'", "expected a number"
    ),
    "protocol list": protocol("- 1\n", "'p.yaml' holds a list", "a mapping of fields"),
    "protocol tabs": protocol("name:\tmine\n\trounds: 3\n", "'p.yaml' is not valid YAML"),
    "protocol certificate": protocol(
        PROTOCOL + "certificate: {q: 0.1, alpha: 1}\n", "p.yaml", "certificate field 'alpha'"
    ),
    "protocol folder": Case(
        ("run", "--registry", "screen.csv", *DECLARED, *RANDOM, "--protocol", "home.yaml"),
        ("'home.yaml' cannot be read", "No such file"),
    ),
    "broken agent": agent("def propose(:\n", "a.py", "SyntaxError"),
    "no agent": agent("x = 1\n", "a.py", "propose"),
    "agent raises": agent(
        "class A:\n    def propose(self, view):\n        return view.nothing\n",
        "'A' broke in round 0 of seed 0", "AttributeError",
    )._replace(begins=True),
    "agent answers a number": agent(
        "class B:\n    def propose(self, view):\n        return 7\n", "'B' broke", "received a int"
    )._replace(begins=True),
    "agent wants more": agent(
        "class C:\n    def __init__(self, key):\n        pass\n"
        "    def propose(self, view):\n        return []\n", "'C'", "key",
    ),
    "unknown agent": run("--agent", "rondom", words=("Unknown agent 'rondom'", "mean 'random'?")),
    "agent option": run(
        "--agent", "random:speed=3", "--seeds", "0", words=("'random'", "speed")
    ),
    "side table": run("--agent", "module-learner", "--seeds", "0", words=("'module'",)),
    "seeds": run("--seeds", "0-", words=("Cannot read seeds '0-'", "0,2,5-9")),
    "seeds backwards": run("--seeds", "9-3", words=("'9-3' is empty",)),
    "seeds twice": run("--agent", "random", "--seeds", "0,0", words=("seeds repeats [0]",)),
    "huge seed": run(
        "--agent", "random", "--seeds", "99999999999999999999", words=("seeds holds 9999", "2**63")
    ),
    "no budget": run("--budget", "0", words=("--budget",), code=2),
    "unknown flag": run("--bugdet", "2", words=("--bugdet",), code=2),
    "a word as q": run("--q", "small", words=("--q", "Invalid value"), code=2),
    "unknown command": Case(("rnu",), ("rnu",), code=2),
    "large q": run(*RANDOM, "--q", "1.5", words=("q", "1.5")),
    "large epsilon": run(*RANDOM, "--epsilon-bar", "-1", words=("epsilon_bar", "-1")),
    "feedback": run(*RANDOM, "--feedback", "loud", words=("'loud'", "permuted")),
    "identifiers": run(*RANDOM, "--identifiers", "bare", words=("'bare'", "blinded")),
    "jobs": run(*RANDOM, "--jobs", "0", words=("jobs=0", "from 1 to 1024")),
    "set": run(*RANDOM, "--set", "fresh=-1", words=("fresh is -1",)),
    "retry without out": run("--retry-failed", words=("--retry-failed needs --out",)),
    "out is a file": run(*RANDOM, "--out", "screen.csv", words=("'screen.csv' is no folder",)),
    "out in use": run(*RANDOM, "--out", "used", words=("'used' is not empty",)),
    "another run": run(*RANDOM, "--out", "done", words=("holds another run", "differs in")),
    "no run": Case(("report", "used"), ("used holds no manifest.json",)),
    "no folder": Case(("report", "lost"), ("lost does not exist", "folder of a run")),
    "format": Case(("report", "done", "--format", "pdf"), ("Unknown format 'pdf'", "html")),
    "changed rows": Case(("compare", "torn"), ("is not the file that the run wrote", "SHA-256")),
    "torn manifest": Case(("report", "cut"), ("cut/manifest.json is no JSON",)),
    "old manifest": Case(("report", "old"), ("schema version 1", "reads version")),
    "odd manifest": Case(("report", "odd"), ("config.seeds is not what a run writes",)),
    "one arm": Case(("compare", "done", "--baseline", "x"), ("'x'",)),
    "merge one": Case(("merge", "done", "--out", "new"), ("1 runs were given",)),
    "merge with itself": Case(("split", "done", "--out", "new", "--arm", "x"), ("no arm 'x'",)),
    "export in use": Case(("export", "done", "--csv", "--out", "used"), ("used",)),
}  # fmt: skip
"""What is malformed, by a name for it."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders that cases name: a good run, damaged ones, and one in use."""
    place = tmp_path_factory.mktemp("folders")
    evaluate("random", registry=tiny_registry(), protocol=tiny_protocol(), seeds=range(2),
             out=place / "done")  # fmt: skip
    (place / "used").mkdir()
    (place / "used" / "notes.txt").write_text("mine")
    manifest = (place / "done" / "manifest.json").read_text()
    content = json.loads(manifest)
    changed: dict[str, Any] = {
        "cut": manifest[:99],
        "old": json.dumps({**content, "schema_version": 1}),
        "odd": json.dumps({**content, "config": {**content["config"], "seeds": "0-1"}}),
        "torn": manifest,
    }
    for name, text in changed.items():
        (place / name).mkdir()
        for path in (place / "done").glob("*.jsonl"):
            (place / name / path.name).write_bytes(path.read_bytes())
        (place / name / "manifest.json").write_text(text)
    (place / "torn" / "campaigns.jsonl").write_text("{}\n")
    return place


@pytest.fixture
def workplace(folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with good files and the folders."""
    monkeypatch.setenv("CADS_HOME", str(tmp_path / "home"))
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    Path("screen.csv").write_text(TABLE)
    Path("effect.csv").write_text(MATRIX)
    for folder in folders.iterdir():
        Path(folder.name).mkdir()
        for path in folder.iterdir():
            Path(folder.name, path.name).write_bytes(path.read_bytes())
    return place


def content(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, and every folder as an empty entry."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
        if path.name != ".lock"
    }


_said: dict[str, str] = {}


@pytest.mark.parametrize("name", CASES)
def test_a_malformed_input_has_its_own_message_and_leaves_nothing(
    name: str,
    workplace: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    case = CASES[name]
    if name == "parquet":
        pytest.importorskip("pyarrow")
    for file, text in case.files.items():
        Path(file).write_bytes(text.encode() if isinstance(text, str) else text)
    before = content(workplace.parent)
    monkeypatch.setattr(sys, "argv", ["cads", *case.arguments])
    with pytest.raises(SystemExit) as end:
        main()
    said = capsys.readouterr().err.strip()
    assert end.value.code == case.code, said
    assert [word for word in case.words if word not in said] == [], said
    assert "Traceback" not in said
    if case.code == 1:
        assert said.startswith("cads: ")
        assert said.endswith((".", "?", "!"))
        assert "\n\n" not in said
        assert len(said) < 2_100
    after = content(workplace.parent)
    begun = {path for path in after if path.startswith("here/runs")}
    assert bool(begun) == case.begins
    assert {path: raw for path, raw in after.items() if path not in begun} == before
    twin = _said.setdefault(said.replace(str(workplace), "."), name)
    assert twin == name, f"{name} says the same as {twin}: {said}"


def test_there_are_enough_of_them() -> None:
    assert len(CASES) >= 60

"""An exported run: equal to the run's rows, described, whole or not there, refused in time."""

from __future__ import annotations

import csv
import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cads_env.cli import main
from cads_env.errors import MissingExtraError, RecordError, RunError
from cads_env.proposer import Nothing, Proposal, ProposerFailed, View
from cads_env.record import Record
from cads_env.report.export import export_run, folder, source
from cads_env.report.export.columns import KEY, Column, TableColumns, tables
from cads_env.report.export.write import write_csv
from cads_env.run import RunResult, evaluate, merge
from cads_env.testing import tiny_protocol, tiny_registry

TABLES = ("campaigns", "rounds", "declarations", "reads", "failures")


class Talker:
    """Says awkward things, and dies in one campaign."""

    def __init__(self, seed: int) -> None:
        Talker.built = getattr(Talker, "built", -1) + 1
        self.number = Talker.built

    def propose(self, view: View) -> Proposal:
        # The first is built to look at what it needs.
        if self.number == 2:
            raise ProposerFailed('=cmd("no server")')
        names = [*view.identifiers[:3], '=1+1,"x"', "café\n", "half \ud83d"]
        usage = {"tokens": 9007199254740993, "price": 0.1} if view.round else {}
        return Proposal(names, raw="=HYPERLINK(1)\r\n\x01é" if view.round else "", usage=usage)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    Talker.built = -1
    return evaluate(
        {"talker": Talker, "none": Nothing},
        registry=tiny_registry(),
        protocol=tiny_protocol(reads_each=4, certificate={"q": 0.3}),
        seeds=range(3),
        out=tmp_path_factory.mktemp("runs") / "p1",
    )


@pytest.fixture
def run(result: RunResult, tmp_path: Path) -> Path:
    """A copy of the run that a test may change."""
    place = tmp_path / "p1"
    place.mkdir()
    for path in Path(str(result.folder)).iterdir():
        (place / path.name).write_bytes(path.read_bytes())
    return place


def json_rows(place: Path, name: str) -> list[dict[str, Any]]:
    text = (place / f"{name}.jsonl").read_text(encoding="ascii")
    return [json.loads(line) for line in text.splitlines()]


def clean(value: Any) -> Any:
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def read_rows(place: Path) -> list[dict[str, Any]]:
    """Reads of a run, one row a read, decoded here once more."""
    rows = []
    for line in json_rows(place, "reads"):
        record = Record.from_json(line)
        for slot, round, value in zip(record.slots, record.read_rounds, record.values, strict=True):
            rows.append(
                {
                    **{name: line[name] for name in KEY},
                    "candidate": int(record.candidates[slot]),
                    "origin": ("fallback", "proposer")[record.origins[slot]],
                    "round": int(round),
                    "value": float(value),
                }
            )
    return rows


def rows_of(place: Path, name: str) -> list[dict[str, Any]]:
    rows = read_rows(place) if name == "reads" else clean(json_rows(place, name))
    for row in rows:
        if "usage" in row:
            row["usage"] = json.dumps(row["usage"], separators=(",", ":"))
    assert rows
    return rows


@pytest.mark.parametrize("batch_rows", [7, 65_536])
def test_parquet_reads_back_equal_to_the_runs_rows(
    run: Path, batch_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(source, "BATCH_ROWS", batch_rows)
    done = export_run(run)
    assert done.folder == run.with_name("p1-parquet")
    assert sorted(p.name for p in done.folder.iterdir()) == sorted(
        [*(f"{name}.parquet" for name in TABLES), "croissant.json"]
    )
    for name in TABLES:
        path = done.folder / f"{name}.parquet"
        expected = rows_of(run, name)
        # Floats are equal to the last bit: == on them, and no NaN is among them.
        assert pq.read_table(path).to_pylist() == expected
        assert done.rows[path.name] == len(expected)
        groups = pq.ParquetFile(path).metadata.num_row_groups
        assert (groups > 1) == (batch_rows == 7 and len(expected) > 7), name


def test_parquet_reads_back_equal_to_the_frames_of_the_result(run: Path, result: RunResult) -> None:
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    place = export_run(run).folder
    for name in ("campaigns", "declarations"):
        order = [*KEY, *(["identifier"] if name == "declarations" else [])]
        found = pandas.read_parquet(place / f"{name}.parquet").sort_values(order)
        expected = getattr(result, name).sort_values(order)
        assert not expected.empty
        assert list(found.columns) == list(expected.columns)
        assert found.to_dict("records") == expected.to_dict("records")


def test_schemas_are_declared_and_the_same_for_an_empty_table(run: Path, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    full = pq.read_schema(export_run(run).folder / "rounds.parquet")
    assert full.field("seed").type == pa.int64()
    assert pa.types.is_list(full.field("proposed").type)
    assert full.field("refused").type.value_type.value_type == pa.string()
    assert not full.field("text").nullable
    assert full.field("text").metadata[b"description"] == b"Raw text of the answer."
    dead = tmp_path / "dead"
    evaluate(_Dead, registry=tiny_registry(), protocol=tiny_protocol(), seeds=[0], out=dead)
    place = export_run(dead).folder
    assert pq.read_schema(place / "rounds.parquet").equals(full, check_metadata=True)
    assert pq.read_table(place / "campaigns.parquet").num_rows == 0
    assert pq.read_table(place / "failures.parquet")["reason"].to_pylist() == ["gone"]
    assert not (place / "reads.parquet").exists()


class _Dead:
    def propose(self, view: View) -> list[str]:
        raise ProposerFailed("gone")


def test_csv_holds_the_same_values_and_no_formula(run: Path, tmp_path: Path) -> None:
    done = export_run(run, tmp_path / "out" / "csv", parquet=False, csv=True)
    types = {
        "integer": int,
        "real": float,
        "flag": {"true": True, "false": False}.get,
        "text": str,
        "json": str,
    }
    for name, table in tables().items():
        with (done.folder / f"{name}.csv").open(encoding="utf-8", newline="") as handle:
            found = list(csv.DictReader(handle))
        for row in found:
            assert not any(cell.startswith(("=", "@", "\t", "\r")) for cell in row.values())
        values = [
            {c.name: types.get(c.kind, json.loads)(row[c.name]) for c in table.columns}  # type: ignore[operator]
            for row in found
        ]
        assert values == rows_of(run, name), name


@pytest.mark.parametrize("name", ["=1+1", "+x", "-x", "@x", "\tx", "\rx"])
def test_a_name_that_a_spreadsheet_would_run_is_refused_in_csv(name: str, tmp_path: Path) -> None:
    table = TableColumns("t", "", (Column("identifier", "text", ""),))
    with pytest.raises(RunError, match=r"begins like a spreadsheet formula.*--parquet"):
        write_csv(tmp_path / "t.csv", table, [{"identifier": ["fine", name]}])
    free = TableColumns("t", "", (Column("text", "free text", ""),))
    assert write_csv(tmp_path / "f.csv", free, [{"text": [name]}]) == 1


def test_croissant_hashes_every_file_and_refers_to_unique_keys(run: Path) -> None:
    pytest.importorskip("pyarrow")
    place = export_run(run, csv=True).folder
    data = json.loads((place / "croissant.json").read_text(encoding="ascii"))
    assert data["conformsTo"] == "http://mlcommons.org/croissant/1.1"
    files = {file["@id"]: file for file in data["distribution"]}
    assert set(files) == {p.name for p in place.iterdir()} - {"croissant.json"}
    for name, file in files.items():
        content = (place / name).read_bytes()
        assert file["sha256"] == hashlib.sha256(content).hexdigest()
        assert file["contentSize"] == f"{len(content)} B"
    sets = {record_set["@id"]: record_set for record_set in data["recordSet"]}
    key_sets = {"arm": "arms", "registry": "registries", "seed": "seeds"}
    assert tuple(sets) == (*key_sets.values(), *tables())
    campaigns = json_rows(run, "campaigns") + json_rows(run, "failures")
    for column, name in key_sets.items():
        values = [row[f"{name}/{column}"] for row in sets.pop(name)["data"]]
        assert sorted(values) == sorted({row[column] for row in campaigns})
    for name, record_set in sets.items():
        fields = {field["name"]: field for field in record_set["field"]}
        assert list(fields) == [column.name for column in tables()[name].columns]
        sources = {field["source"]["fileObject"]["@id"] for field in fields.values()}
        assert sources == {f"{name}.parquet"}
        referring = {n: f["references"] for n, f in fields.items() if "references" in f}
        assert referring == {n: {"field": {"@id": f"{key_sets[n]}/{n}"}} for n in KEY}
    text = json.dumps(data)
    assert str(place.parent) not in text
    assert "talker, none" in data["description"]


def test_two_exports_of_one_run_are_equal_byte_for_byte(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    first, second = (export_run(run, tmp_path / name, csv=True).folder for name in "ab")
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes(), path.name


def test_an_export_that_fails_leaves_nothing(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> int:
        raise OSError(28, "No space left on device")

    before = sorted(run.parent.iterdir())
    monkeypatch.setattr(folder, "write_csv", broken)
    with pytest.raises(RunError, match=r"No space left on device\. Name another with --out"):
        export_run(run, parquet=False, csv=True)
    assert sorted(run.parent.iterdir()) == before


def test_a_target_that_holds_something_is_refused_and_an_empty_one_is_used(
    run: Path, tmp_path: Path
) -> None:
    for target in (run, run / "manifest.json"):
        with pytest.raises(RunError, match=r"is (not empty|no folder); name a new one with --out"):
            export_run(run, target, parquet=False, csv=True)
    (tmp_path / "empty").mkdir()
    export_run(run, tmp_path / "empty", parquet=False, csv=True)
    assert (tmp_path / "empty" / "campaigns.csv").is_file()


def _cut(place: Path) -> None:
    path = place / "rounds.jsonl"
    path.write_bytes(path.read_bytes()[:-100])


def _manifest(**changes: Any) -> Callable[[Path], None]:
    def change(place: Path) -> None:
        path = place / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (_cut, "rounds.jsonl"),
        (lambda place: (place / "reads.jsonl").unlink(), "reads.jsonl"),
        (_manifest(status="running"), "status 'running'; expected one of complete"),
        (_manifest(schema_version=99), "99"),
        (lambda place: (place / "manifest.json").write_text("{"), "manifest.json"),
        (lambda place: (place / "manifest.json").unlink(), "manifest.json"),
    ],
)
def test_a_run_that_has_not_ended_or_was_changed_is_refused(
    run: Path, harm: Callable[[Path], object], words: str
) -> None:
    harm(run)
    with pytest.raises((RunError, RecordError), match=words):
        export_run(run, parquet=False, csv=True)
    assert not run.with_name("p1-csv").exists()


def _rehash(place: Path) -> None:
    path = place / "manifest.json"
    manifest = json.loads(path.read_text())
    for name in manifest["files"]:
        manifest["files"][name] = hashlib.sha256((place / name).read_bytes()).hexdigest()
    path.write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("reads", {"version": 2}, r"reads\.jsonl, line 2: .*schema version 2"),
        ("reads", {"seed": 77}, r"line 2: the reads do not match reads_sha256"),
        ("rounds", {"extra": 1}, r"rounds\.jsonl, line 2, has other columns .*\(extra\)"),
        ("campaigns", {"net": "1"}, r"campaigns\.jsonl, line 2: net is '1', no integer"),
        ("rounds", {"refused": [["a", 1]]}, r"no text pairs"),
        ("rounds", {"seed": 2**63}, r"seed is .*no integer"),
        ("declarations", {"log_e": None}, r"line 2: log_e is 'None', no real"),
    ],
)
def test_a_line_that_no_run_writes_is_refused(
    run: Path, name: str, change: dict[str, Any], words: str
) -> None:
    pytest.importorskip("pyarrow")
    rows = json_rows(run, name)
    rows[1] |= change
    (run / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    _rehash(run)
    with pytest.raises(RecordError, match=words):
        export_run(run)
    assert not run.with_name("p1-csv").exists()


def test_parquet_without_pyarrow_names_the_line_that_installs_it(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [n for n in sys.modules if n.split(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'cads-env\[parquet\]'"):
        export_run(run)
    assert not run.with_name("p1-parquet").exists()
    assert export_run(run, parquet=False, csv=True).has_reads


def cads(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", ["cads", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_the_command_writes_what_is_asked_for_and_says_what_to_add(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(run.parent)
    assert cads(monkeypatch, "export", "p1", "--csv", "--out", "mine") == 0
    printed = capsys.readouterr().out
    for word in ("campaigns.csv", "Files: mine", "license", "croissant.json"):
        assert word in printed
    assert "--keep-reads" not in printed
    assert not list(Path("mine").glob("*.parquet"))
    assert cads(monkeypatch, "export", "p1", "--csv", "--out", "mine") == 1
    assert "'mine' is not empty" in capsys.readouterr().err
    assert cads(monkeypatch, "export", "nowhere", "--csv") == 1
    message = capsys.readouterr().err
    assert "nowhere" in message
    assert "Traceback" not in message


def test_the_command_writes_parquet_when_no_format_is_named(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    assert cads(monkeypatch, "export", str(run)) == 0
    names = {path.suffix for path in run.with_name("p1-parquet").iterdir()}
    assert names == {".parquet", ".json"}


def test_both_formats_one_after_the_other_have_folders_of_their_own(run: Path) -> None:
    first = export_run(run, parquet=False, csv=True)
    assert first.folder == run.with_name("p1-csv")
    pytest.importorskip("pyarrow")
    assert export_run(run).folder == run.with_name("p1-parquet")
    assert export_run(run, csv=True).folder == run.with_name("p1-export")


def test_a_ragged_merge_is_exported_and_says_how_much_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for arm, seeds in (("random", range(4)), ("prior", range(2))):
        evaluate(
            arm, registry=tiny_registry(), protocol=tiny_protocol(), seeds=seeds, out=tmp_path / arm
        )
    merge([tmp_path / "random", tmp_path / "prior"], tmp_path / "all")
    assert cads(monkeypatch, "export", str(tmp_path / "all"), "--csv") == 0
    assert "not complete: 6 of 8 campaigns are exported" in capsys.readouterr().out
    place = tmp_path / "all-csv"
    with (place / "campaigns.csv").open(newline="", encoding="utf-8") as handle:
        assert len(list(csv.DictReader(handle))) == 6
    assert "6 of 8 campaigns" in json.loads((place / "croissant.json").read_text())["description"]


def test_rows_that_the_end_of_a_run_cut_off_are_left_out(run: Path) -> None:
    lines = (run / "campaigns.jsonl").read_text().splitlines(keepends=True)
    (run / "campaigns.jsonl").write_text("".join(lines[:-1]))
    _rehash(run)
    _manifest(status="interrupted")(run)
    whole = export_run(run, parquet=False, csv=True)
    gone = json.loads(lines[-1])
    with (whole.folder / "rounds.csv").open(newline="", encoding="utf-8") as handle:
        keys = {(row["arm"], row["seed"]) for row in csv.DictReader(handle)}
    assert len(keys) == len(lines) - 1
    assert (gone["arm"], str(gone["seed"])) not in keys
    assert whole.played == whole.planned - 1

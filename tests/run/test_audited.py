"""Audited runs: rows, files that go on, exports, reports and the command line."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from cads_env.certificate import AuditCap, Certificate
from cads_env.cli import main
from cads_env.cli.arguments import parse_audit
from cads_env.errors import RecordError, RunError
from cads_env.report.answers import warnings_of
from cads_env.report.export import export_run
from cads_env.report.methods import methods_paragraph
from cads_env.report.repeat import repeat
from cads_env.report.verdict import early_graduation, undeclared_contamination
from cads_env.run import RunResult, evaluate, load_run
from cads_env.run.load import read_records
from cads_env.run.rows import AUDIT_COLUMNS, CAMPAIGN_COLUMNS
from cads_env.testing import tiny_protocol, tiny_registry

PAIR = tiny_registry()
PROTOCOL = tiny_protocol(reads_each=4, audit_controls=30)
ROWS = ("campaigns", "declarations", "reads", "rounds")


def run(out: Path | None, **changes: Any) -> RunResult:
    arguments: dict[str, Any] = {
        "registry": PAIR,
        "protocol": PROTOCOL,
        "certificate": {"q": 0.3, "audit": {"tau": 1.0}},
        "seeds": range(5),
    }
    return evaluate({"a": "random", "b": "nothing"}, out=out, **(arguments | changes))


def content(folder: Path) -> dict[str, bytes]:
    return {name: (folder / f"{name}.jsonl").read_bytes() for name in ROWS}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audited") / "run"
    run(folder)
    return folder


def test_rows_tell_bound_and_flags_and_the_stored_reads_give_them_again(whole: Path) -> None:
    result = load_run(whole)
    assert result.certificate == Certificate(q=0.3, audit=AuditCap())
    assert list(result.campaigns.columns) == [*CAMPAIGN_COLUMNS, *AUDIT_COLUMNS]
    rows = {(r["arm"], r["seed"]): r for r in result.campaigns.to_dict("records")}
    records = dict(read_records(whole))
    assert len(records) == len(rows) == 10
    for key, record in records.items():
        outcome = result.certificate.audit_outcome(record)
        row = rows[key.arm, key.seed]
        assert (row["audit_bound"], row["audit_flags"]) == (outcome.final_bound, outcome.flag_count)
        assert row["reads_sha256"] == record.sha256
    assert len({row["audit_bound"] for row in rows.values()}) > 1


def test_an_audited_run_that_was_interrupted_goes_on_to_the_same_bytes(
    whole: Path, tmp_path: Path
) -> None:
    def stop(done: int, total: int, arm: str) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", progress=stop)
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["status"] == "interrupted"
    run(tmp_path / "run")
    assert content(tmp_path / "run") == content(whole)
    assert (tmp_path / "run" / "manifest.json").read_bytes() == (
        whole / "manifest.json"
    ).read_bytes()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"certificate": {"q": 0.3, "audit": {"tau": 1.5}}}, r"certificate.audit.tau \(there 1.0"),
        ({"certificate": {"q": 0.3}}, r"certificate.audit \(there {"),
        ({"protocol": PROTOCOL.override(audit_controls=31)}, "audit_controls"),
        ({"protocol": PROTOCOL.override(audit_timing="front")}, "audit_timing"),
    ],
)
def test_another_audit_is_another_run(whole: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(RunError, match=f"holds another run.*{said}"):
        run(whole, **change)


def test_a_run_without_an_audit_says_nothing_of_one(tmp_path: Path) -> None:
    result = run(tmp_path / "run", protocol=tiny_protocol(reads_each=4), certificate={"q": 0.3})
    assert list(result.campaigns.columns) == CAMPAIGN_COLUMNS
    for path in (tmp_path / "run").iterdir():
        assert b"audit" not in path.read_bytes()


def test_a_run_may_have_controls_that_its_certificate_leaves_alone() -> None:
    told = run(None, certificate={"q": 0.3}).campaigns
    bare = run(None, certificate={"q": 0.3}, protocol=tiny_protocol(reads_each=4)).campaigns
    assert list(told.columns) == CAMPAIGN_COLUMNS
    assert told["declared"].tolist() == bare["declared"].tolist()


@pytest.mark.parametrize("value", [1.5, -0.1, "0.5", None])
def test_a_damaged_bound_is_refused_with_its_line(whole: Path, tmp_path: Path, value: Any) -> None:
    copy = tmp_path / "run"
    copy.mkdir()
    for path in whole.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps(manifest | {"status": "running"}))
    lines = (copy / "campaigns.jsonl").read_text().splitlines()
    lines[2] = json.dumps(json.loads(lines[2]) | {"audit_bound": value})
    (copy / "campaigns.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(RecordError, match="line 3 has no usable 'audit_bound'"):
        load_run(copy)


def test_an_export_holds_the_bounds(whole: Path, tmp_path: Path) -> None:
    export_run(whole, tmp_path / "out", parquet=False, csv=True)
    with (tmp_path / "out" / "campaigns.csv").open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert [float(row["audit_bound"]) for row in rows] == load_run(whole).campaigns[
        "audit_bound"
    ].tolist()
    metadata = json.loads((tmp_path / "out" / "croissant.json").read_text())
    assert "audited cap (tau = 1.0, Delta = 2.0, delta = 0.01" in metadata["description"]


def test_reports_say_that_the_cap_was_audited_and_how_to_repeat_it(whole: Path) -> None:
    result = load_run(whole)
    text = methods_paragraph(result)
    for words in (
        "level q - delta = 0.29 (FDR level q = 0.3)",
        "30 blinded controls a campaign, split over the rounds",
        "tau = 1, Delta = 2, rho = 0, delta = 0.01",
    ):
        assert words in text
    assert "epsilon_bar" not in text
    assert "audited cap (tau = 1, Delta = 2, delta = 0.01)" in str(result)
    words = list(repeat(result).whole)
    fields = parse_audit(words[words.index("--audit") + 1])
    assert Certificate(q=0.3, audit=fields) == result.certificate  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("audit_epsilon", "rho", "said"),
    [
        (None, 0.0, None),
        (0.07, 0.03, None),
        (0.05, 0.0, "audit_epsilon + rho = 0.05"),
        (0.2, 0.0, None),
    ],
)
def test_controls_that_are_cleaner_than_the_reads_are_warned_of(
    audit_epsilon: float | None, rho: float, said: str | None
) -> None:
    result = run(
        None,
        seeds=[0],
        protocol=PROTOCOL.override(audit_epsilon=audit_epsilon),
        certificate={"q": 0.3, "epsilon_bar": 0.0, "audit": {"rho": rho}},
    )
    assert undeclared_contamination(result) == said


@pytest.mark.parametrize(
    ("changes", "is_early"),
    [({}, True), ({"rank_epsilon_bar": 0.9}, False), ({"graduation": False}, False)],
)
def test_a_frozen_rule_that_graduates_before_the_audit_can_declare_is_warned_of(
    changes: dict[str, Any], is_early: bool
) -> None:
    result = run(None, seeds=[0], protocol=PROTOCOL.override(**changes))
    said = early_graduation(result)
    assert (said is not None) == is_early
    assert (said in warnings_of(result)) == is_early


@pytest.mark.parametrize(
    ("words", "audit"),
    [
        (["--audit"], AuditCap()),
        (["--audit", "--jobs", "1"], AuditCap()),
        (["--audit", "tau=1.2,Delta=2.5,delta=0.02,looks=per_read"],
         AuditCap(tau=1.2, Delta=2.5, delta=0.02, looks="per_read")),
        (["--audit=Delta=inf"], AuditCap(Delta=float("inf"))),
    ],
)  # fmt: skip
def test_the_command_line_takes_an_audit_with_and_without_fields(
    words: list[str],
    audit: AuditCap,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    small = ["--registry", "synthetic-depmap-6000/1", "--set", "rounds=2", "--seeds", "0"]
    given = ["--set", "audit_controls=20", "--agent", "random", "--out", "there"]
    monkeypatch.setattr(sys, "argv", ["cads", "run", *small, *given, *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    assert load_run(tmp_path / "there").certificate.audit == audit
    assert "audited cap" in capsys.readouterr().out

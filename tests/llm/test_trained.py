"""A trained model of 135 million weights: at most twenty short requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from cads_env.run.load import load_run
from tests.llm.proxy import CountingProxy
from tests.llm.runs import lines_of
from tests.llm.server import run_cads

pytestmark = pytest.mark.llm

GENES = (
    "TP53", "MYC", "KRAS", "EGFR", "BRCA1", "PTEN", "CDK4", "CDK6", "MDM2", "RB1", "ATM", "CHEK1",
    "PLK1", "AURKA", "BRAF", "NRAS",
)  # fmt: skip
MOST_REQUESTS = 20


@pytest.fixture
def genes(tmp_path: Path) -> Path:
    rows = [f"{name},{-1.5 if i % 4 == 0 else 0.1}" for i, name in enumerate(GENES)]
    (tmp_path / "genes.csv").write_text("gene,effect\n" + "\n".join(rows) + "\n", encoding="utf-8")
    text = (
        "source: table\npath: genes.csv\nname: genes\nidentifier: gene\neffect: effect\n"
        "direction: lower\nthreshold: -0.5\n"
        "description: Knockout of each gene; a hit is a gene that the cells need.\n"
    )
    (tmp_path / "genes.yaml").write_text(text, encoding="utf-8")
    return tmp_path / "genes.yaml"


def test_a_trained_model_gets_a_paired_report_and_its_guided_picks_are_candidates(
    trained_url: str, genes: Path, tmp_path: Path
) -> None:
    fields = ["rounds=2", "first_fresh=4", "fresh=4", "reread_candidates=2"]
    with CountingProxy(trained_url) as proxy:
        words = ["run", "--registry", str(genes), "--protocol", "proposer", "--seeds", "0-3"]
        words += [x for field in fields for x in ("--set", field)]
        options = f"model=smollm2-135m,base_url={proxy.base_url},max_tokens=64,attempts=1"
        words += ["--agent", f"llm:{options}", "--agent", f"llm:{options},guided=untested"]
        run_cads([*words, "--concurrency", "8", "--out", "run"], folder=tmp_path)
        assert proxy.count() <= MOST_REQUESTS
    result = load_run(tmp_path / "run")
    assert not result.failures
    assert all(arm.net.n == 4 for arm in result.arms.values())
    lines = [line for lines in lines_of(tmp_path / "run").values() for line in lines]
    assert len(lines) == 16
    assert all(line["answer"]["usage"]["tokens_out"] <= 64 for line in lines)
    guided = result.rounds[result.rounds["arm"].str.endswith("+guided")]
    assert guided["accepted"].sum() > 0
    assert guided["invalid"].sum() == 0
    assert {name for names in guided["proposed"] for name in names} <= set(GENES)
    run_cads(["report", "run"], folder=tmp_path)
    report = (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
    assert "Did the proposer add anything" in report
    assert "smollm2-135m" in report

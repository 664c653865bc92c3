"""Real screens give the figures of the protocols: HT-29, ACH-000446's 149 genes, a 44-line panel.

Bands are those seen on other code with another noise, widened by three standard errors of the
seeds played here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cads_env
from cads_env.certificate import Certificate
from cads_env.score import play_reference
from tests.slow.loops import Pair, nothing, play_many, true_counts

DATA = Path(__file__).parents[2] / ".." / "shared" / "data"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DATA.is_dir(), reason="the shared test data are absent"),
]
JUDGE = Certificate()


def power(pair: Pair, seeds: range) -> tuple[float, float]:
    """Mean power and mean false declarations of the sweep without a proposer."""
    records = play_many(lambda _: pair, seeds, cads_env.load_protocol("sweep"), nothing)
    true, false = true_counts(lambda _: pair, seeds, records, JUDGE)
    return float(true.mean() / pair[1].hit_count), float(false.mean())


def twin(pair: Pair, name: str, budget: int, seeds: range) -> float:
    """Mean hits of the proposer-removed loop."""
    protocol = cads_env.load_protocol(name).with_budget(budget)
    records = play_many(lambda _: pair, seeds, protocol, nothing)
    return float(true_counts(lambda _: pair, seeds, records, JUDGE)[0].mean())


def test_ht29_from_its_table() -> None:
    path = DATA / "ht29_three_libraries.csv"
    options = {"direction": "lower", "threshold": -0.5, "label": "label"}
    pair = cads_env.load_registry(path, **options)
    assert (pair[0].m, pair[1].hit_count) == (18_392, 1_290)
    powers = []
    for subset in range(3):
        part = cads_env.load_registry(path, subsample=6_000, subsample_seed=subset, **options)
        found, false = power(part, range(32))
        powers.append(found)
        assert false < 0.1
    loops = [twin(pair, "proposer", b, range(64)) for b in (1, 2, 4)]
    print("HT-29 sweep power", np.round(powers, 3), "proposer twins", loops)
    assert all(0.14 <= found <= 0.23 for found in powers)
    assert loops[0] <= 0.6
    assert 2.2 <= loops[1] <= 4.4
    assert 8.7 <= loops[2] <= 12.3


def test_the_149_genes_of_ach_000446_from_the_matrix() -> None:
    pair = cads_env.load_registry(
        "depmap", path=DATA / "depmap24q4_CRISPRGeneEffect_149genes.csv", line="ACH-000446"
    )
    assert (pair[0].m, pair[1].hit_count) == (149, 20)
    found, false = power(pair, range(200))
    standard = cads_env.load_protocol("standard")
    seeds = range(32)
    best = [play_reference(*pair, standard, seed) for seed in seeds]
    reference = float(true_counts(lambda _: pair, seeds, best, JUDGE)[0].mean())
    loop = twin(pair, "standard", 1, seeds)
    print(f"149 genes: sweep power {found:.3f}, twin {loop}, reference {reference}")
    assert found == pytest.approx(0.487, abs=0.04)
    assert false < 0.05
    # Every gene is read: nothing is left for a proposer to add.
    assert abs(reference - loop) < 1.0
    result = cads_env.evaluate("prior", registry=pair, seeds=range(4))
    assert result.arms["prior"].normalised_net is None


def test_a_panel_of_44_real_lines(tmp_path: Path) -> None:
    panel = tmp_path / "lines.yaml"
    path = (DATA / "depmap_chronos_sample_avana.csv").resolve()
    panel.write_text(f"source: depmap\npath: {path}\nlines: all\n")
    result = cads_env.evaluate(
        ["random", "prior"], registry=panel, seeds=range(44), jobs=2, out=tmp_path / "run"
    )
    print(result)
    assert result.registry_count == 44
    assert result.arms["random"].net.registries == 44
    assert result.arms["random"].net.low < 0 < result.arms["random"].net.high
    assert result.arms["prior"].net.low > 20

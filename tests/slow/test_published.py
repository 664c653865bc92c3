"""Instance 0 gives the published operating points, within the tolerances of the protocols."""

from __future__ import annotations

import numpy as np
import pytest

import cads_env
from cads_env.campaign import open_screen, play
from cads_env.certificate import Certificate, naive_bh
from cads_env.score import play_reference
from tests.slow.loops import CHUNK, Order, Pair, nothing, play_many, true_counts

pytestmark = pytest.mark.slow

JUDGE = Certificate()
SEEDS = range(200)


def test_table_1_of_the_published_sweep() -> None:
    pair = cads_env.load_registry("synthetic-depmap-6000/0")
    labels = pair[1].labels
    protocol = cads_env.load_protocol("sweep")
    uncapped = Certificate(epsilon_bar=0.0)
    rows: dict[str, list[tuple[float, float]]] = {"cads": [], "naive": [], "uncapped": []}
    for start in range(0, len(SEEDS), CHUNK):
        seeds = list(SEEDS[start : start + CHUNK])
        for record in play(open_screen([pair] * len(seeds), seeds, protocol), [None] * len(seeds)):
            assert record.read_count == 45_899
            declared = {
                "cads": JUDGE.declare(record).indices,
                "uncapped": uncapped.declare(record).indices,
                "naive": naive_bh(
                    record.means, record.counts, 0.1, m=6000, indices=record.candidates
                ),
            }
            for rule, indices in declared.items():
                true = int(labels[indices].sum())
                rows[rule].append(
                    (true / labels.sum(), (indices.size - true) / max(indices.size, 1))
                )
    means = {rule: np.mean(values, axis=0) for rule, values in rows.items()}
    print({rule: np.round(mean, 5).tolist() for rule, mean in means.items()})
    assert means["cads"][0] == pytest.approx(0.396, abs=0.03)
    assert means["cads"][1] < 1e-3
    assert means["naive"] == pytest.approx([0.816, 0.372], abs=0.03)
    assert means["uncapped"] == pytest.approx([0.711, 0.251], abs=0.03)


def _mean_true(name: str, budget: int, **changes: str) -> float:
    pair = cads_env.load_registry("synthetic-depmap/0")
    protocol = cads_env.load_protocol(name, **changes).with_budget(budget)
    records = play_many(lambda _: pair, SEEDS, protocol, nothing)
    true, false = true_counts(lambda _: pair, SEEDS, records, JUDGE)
    assert false.mean() < 0.05
    return float(true.mean())


def test_the_no_llm_loop_of_proposer_at_three_budgets() -> None:
    found = [_mean_true("proposer", budget) for budget in (1, 2, 4)]
    print("proposer twin:", found)
    assert 1.2 <= found[0] <= 2.6
    assert 9.5 <= found[1] <= 12
    assert 18.5 <= found[2] <= 22


@pytest.mark.parametrize("feedback", ["none", "permuted"])
def test_the_no_llm_loop_of_proposer_scores_zero_without_feedback(feedback: str) -> None:
    assert [_mean_true("proposer", b, feedback=feedback) for b in (1, 2, 4)] == [0.0, 0.0, 0.0]


def _prior(pair: Pair, seed: int) -> Order:
    scores = pair[0].side_tables["prior"].values
    return Order(pair[0], np.argsort(-scores, kind="stable"))


def test_the_external_prior_and_the_default_protocol() -> None:
    pair = cads_env.load_registry("synthetic-depmap/0")
    seeds = range(50)
    proposer, standard = map(cads_env.load_protocol, ("proposer", "standard"))
    records = play_many(lambda _: pair, seeds, proposer, _prior)
    prior = true_counts(lambda _: pair, seeds, records, JUDGE)[0].mean()
    twin = _mean_true("standard", 1)
    best = [play_reference(*pair, standard, seed) for seed in range(10)]
    reference = true_counts(lambda _: pair, range(10), best, JUDGE)[0].mean()
    blind = [_mean_true("standard", b, feedback="permuted") for b in (1, 2, 4)]
    print(f"prior {prior}, standard twin {twin}, reference {reference}, permuted {blind}")
    assert 11 <= prior <= 17
    assert 8.0 <= twin <= 11.0
    assert 79.0 <= reference <= 81.0

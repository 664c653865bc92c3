"""Table S3: the burn-in, and Algorithm 2 below and above it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cads_env.certificate import zhou_liu_burn_in, zhou_liu_e_bh
from cads_env.channel import Channel
from cads_env.errors import CertificateError
from cads_env.protocol import load_protocol
from cads_env.registry import Oracle
from cads_env.studies import load_config, load_study
from cads_env.studies.study import Summary
from cads_env.studies.tables import Table
from cads_env.studies.zhou_liu import cells, play_cell
from cads_env.studies.zhou_liu_algorithm import algorithm_2

CONFIG = load_config("zhou-liu")
CELLS = {cell.name: cell for cell in cells(CONFIG, ("table-s3",))}
SWEEP = load_protocol("sweep", epsilon=0.1)
BURN_IN = zhou_liu_burn_in(6, 0.1, 0.1)


def oracle(signal: list[float]) -> Oracle:
    values = np.array(signal)
    return Oracle(signal=values, labels=values > 0, panel="few", instance=0)


FEW = oracle([1.0, 0.8, 0.12, -0.3, -0.5, -0.7])


def run(reads: int, **options: Any) -> Any:
    return algorithm_2(FEW, 3, SWEEP, reads=reads, epsilon=0.1, q=0.1, **options)


def test_below_the_burn_in_nothing_is_declared_whatever_was_read() -> None:
    outcome = run(6 * BURN_IN - 1)
    assert not outcome.burn_in_complete
    assert outcome.declared.tolist() == []
    assert outcome.reads == 6 * BURN_IN - 1
    assert sorted(outcome.pulls.tolist()) == [BURN_IN - 1] + [BURN_IN] * 5


def test_one_read_more_and_the_clear_hits_are_declared() -> None:
    outcome = run(6 * BURN_IN)
    assert outcome.burn_in_complete
    assert outcome.declared.tolist() == [0, 1]
    assert outcome.pulls.tolist() == [BURN_IN] * 6


def test_after_the_burn_in_the_undeclared_arm_of_largest_robust_mean_is_pulled() -> None:
    outcome = run(6 * BURN_IN + 50)
    assert outcome.reads == outcome.pulls.sum() == 6 * BURN_IN + 50
    # The weak hit, arm 2, promises most of what is not declared yet.
    assert outcome.pulls.tolist() == [BURN_IN, BURN_IN, BURN_IN + 50, *[BURN_IN] * 3]


def test_it_ends_when_every_arm_is_declared() -> None:
    # Every read is corrupted upwards, more than the method allows for.
    flooded = load_protocol("sweep", epsilon=1.0)
    outcome = algorithm_2(FEW, 0, flooded, reads=10 * BURN_IN, epsilon=0.1, q=0.1)
    assert outcome.declared.tolist() == [0, 1, 2, 3, 4, 5]
    assert outcome.reads == 6 * BURN_IN


def test_its_evidence_is_that_of_the_public_rule_on_the_same_reads() -> None:
    channel = Channel([FEW], [3], SWEEP)
    arms = np.arange(6, dtype=np.int64)
    channel.admit(arms[None], 0, 6)
    rounds = []
    for visit in range(BURN_IN):
        rounds.append(
            channel.read(
                round=visit,
                positions=arms,
                visits=np.full(6, visit),
                candidates=arms[None],
                past_reads=lambda i: np.empty(0),
                past_sums=np.zeros((1, 6)),
                past_counts=np.zeros((1, 6), np.int64),
            )
        )
    reads, slots = np.concatenate(rounds), np.tile(arms, BURN_IN)
    found = zhou_liu_e_bh(reads, slots, 0.1, m=6, epsilon=0.1)
    assert found.tolist() == run(6 * BURN_IN).declared.tolist()


@pytest.mark.parametrize("reads", [-1, 2.5, True])
def test_a_budget_that_is_no_number_of_reads_is_refused(reads: Any) -> None:
    with pytest.raises(CertificateError, match="reads is"):
        run(reads)


def test_the_table_holds_the_published_figures() -> None:
    summary = Summary()
    for name, cell in CELLS.items():
        settings = dict(cell.settings)
        seeds = [0, 1] if "reads" not in settings or settings["reads"] > 40_000 else [0]
        for row in play_cell(settings, seeds):
            summary.add(name, row)
    table = load_study("zhou-liu").items["table-s3"](CONFIG, summary)
    assert isinstance(table, Table)
    assert {e.verdict for e in table.entries if e.published is not None} == {"within"}
    assert not [e for e in table.entries if e.verdict == "off"]
    by_cads = next(e for e in table.entries if e.measure == "declared by CADS")
    assert by_cads.ours > 200


def test_rows_do_not_depend_on_how_seeds_are_cut() -> None:
    cell = CELLS["evidence of the sweep"]
    together = [dict(row) for row in play_cell(cell.settings, [4, 5])]
    assert [dict(play_cell(cell.settings, [s])[0]) for s in (4, 5)] == together

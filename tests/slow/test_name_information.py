"""What names bring: 0 without name information, and more with more of it."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

import cads_env
from cads_env.certificate import Certificate
from cads_env.sources.expectation import name_strengths
from tests.slow.loops import Order, nothing, play_many, true_counts

pytestmark = pytest.mark.slow

JUDGE = Certificate()
LEARNT = range(64)
# One campaign an instance: of a fixed list, the variance between instances dominates.
SEEDS = range(128, 256)
INFORMATION = (0.0, 0.1, 0.25)


def _net(nu: float, order: NDArray[np.int64]) -> tuple[float, float]:
    """Mean net of a fixed list on fresh instances, and its standard error."""
    panel = cads_env.load_panel("synthetic-depmap:train", name_information=nu)
    protocol = cads_env.load_protocol("standard")
    mine, twin = (
        true_counts(panel.for_seed, SEEDS, play_many(panel.for_seed, SEEDS, protocol, make), JUDGE)[
            0
        ]
        for make in (lambda pair, _: Order(pair[0], order), nothing)
    )
    net = mine - twin
    return float(net.mean()), float(net.std(ddof=1) / np.sqrt(net.size))


def _memorised(nu: float) -> NDArray[np.int64]:
    """Candidates by how often campaigns without a proposer declared them on other instances."""
    panel = cads_env.load_panel("synthetic-depmap:train", name_information=nu)
    protocol = cads_env.load_protocol("standard")
    declared: Counter[int] = Counter()
    for record in play_many(panel.for_seed, LEARNT, protocol, nothing):
        declared.update(JUDGE.declare(record).indices.tolist())
    return np.array([index for index, _ in declared.most_common()])


@pytest.mark.parametrize("kind", ["memory", "knowledge"])
def test_what_names_bring_grows_with_name_information(kind: str) -> None:
    symbols = cads_env.load_registry("synthetic-depmap")[0].identifiers
    known = np.argsort(-name_strengths(symbols), kind="stable")[:1000]
    nets = [_net(nu, known if kind == "knowledge" else _memorised(nu)) for nu in INFORMATION]
    print(kind, nets)
    assert abs(nets[0][0]) < 3 * nets[0][1]
    for (lower, _), (higher, _) in pairwise(nets):
        assert higher > lower
    assert nets[-1][0] - nets[0][0] > 4 * np.hypot(nets[0][1], nets[-1][1])

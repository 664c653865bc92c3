"""The instrument's own checks: scores rise with skill and with nothing else."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

import cads_env
from cads_env.certificate import Certificate
from cads_env.inference import paired_t
from cads_env.tape import bits, candidate_words, normals
from tests.slow.loops import Make, Order, Pair, nothing, play_many, true_counts

pytestmark = pytest.mark.slow

JUDGE = Certificate()
# Perfect ranking from round t on, best (t = 0) to worst.
STARTS = (0, 1, 3, 4, 6, 7, 9, 10, 11)
NOISES = (0.0, 0.4, 0.8, 1.2, 2.0, 4.0)


def _late(start: int) -> Make:
    return lambda pair, seed: Order(pair[0], np.argsort(-pair[1].signal, kind="stable"), start)


def _noisy(sd: float) -> Make:
    def make(pair: Pair, seed: int) -> Order:
        key = np.uint64(pair[1].key("test-noise", seed))
        words = candidate_words(np.array([key]), np.arange(pair[0].m))
        noise = normals(bits(words, np.zeros(pair[0].m, np.int64), 0))
        return Order(pair[0], np.argsort(-(pair[1].signal + sd * noise), kind="stable"))

    return make


def _true(protocol_name: str, seeds: range, make: Make) -> NDArray[np.int64]:
    panel = cads_env.load_panel("synthetic-depmap:dev")
    protocol = cads_env.load_protocol(protocol_name)
    records = play_many(panel.for_seed, seeds, protocol, make)
    true, false = true_counts(panel.for_seed, seeds, records, JUDGE)
    assert false.mean() < 0.1
    return true


def test_quality_ladder_holds_under_standard_and_not_under_proposer() -> None:
    seeds = range(32)
    for makes in ([_late(t) for t in STARTS], [_noisy(sd) for sd in NOISES]):
        scores = [_true("standard", seeds, make) for make in makes]
        print("standard", [round(float(s.mean()), 2) for s in scores])
        for better, worse in pairwise(scores):
            step = paired_t((better - worse).tolist())
            # Nondecreasing in quality: no step down that is more than noise.
            assert step.high > 0 or step.mean == 0
        assert scores[0].mean() > scores[-1].mean() + 40
    twin = _true("proposer", seeds, nothing)
    from_round_4 = paired_t((_true("proposer", seeds, _late(4)) - twin).tolist())
    print("proposer, perfect ranking from round 4:", from_round_4)
    assert from_round_4.high < 0


def test_module_learner_nets_where_there_is_structure_and_not_where_there_is_none() -> None:
    nets = {
        structure: cads_env.evaluate(
            "module-learner",
            registry=cads_env.load_panel("synthetic-depmap:dev", structure=structure),
            seeds=range(64),
        ).net
        for structure in (0.4, 0.0)
    }
    print(nets)
    assert nets[0.4].low > 0
    assert nets[0.0].low <= 0 <= nets[0.0].high


def test_names_bring_nothing_once_shuffled_and_memory_brings_nothing_on_eval(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    ranking = tmp_path_factory.mktemp("ranking") / "memory.txt"
    ranking.write_text("\n".join(_memorised_on_train()), encoding="utf-8")
    replay = f"replay-list:path={ranking}"
    agents = ["random", "prior", "module-learner", replay]
    shuffled = cads_env.evaluate(agents, seeds=range(96), identifiers="shuffled")
    named = cads_env.evaluate(["prior"], seeds=range(8))
    print(shuffled)
    assert named.net.low > 40
    for arm in shuffled.arms.values():
        assert abs(arm.net.mean) < 3 * arm.net.sd / np.sqrt(arm.net.n), arm.arm
    fresh = cads_env.evaluate(replay, registry="synthetic-depmap:eval", seeds=range(128)).net
    print("memoriser on eval:", fresh)
    assert abs(fresh.mean) < 3 * fresh.sd / np.sqrt(fresh.n)


def test_a_memoriser_gains_on_the_registry_it_memorised() -> None:
    pair = cads_env.load_registry("synthetic-depmap/1")
    protocol = cads_env.load_protocol("standard")
    records = play_many(lambda _: pair, range(100, 140), protocol, _late(0))
    declared = Counter(i for r in records for i in JUDGE.declare(r).indices.tolist())
    order = np.array([index for index, _ in declared.most_common()])
    seeds = range(20)
    mine = play_many(lambda _: pair, seeds, protocol, lambda p, _: Order(p[0], order))
    twin = play_many(lambda _: pair, seeds, protocol, nothing)
    gain = true_counts(lambda _: pair, seeds, mine, JUDGE)[0]
    gain = gain - true_counts(lambda _: pair, seeds, twin, JUDGE)[0]
    assert paired_t(gain.tolist()).low > 10


def _memorised_on_train() -> list[str]:
    """Identifiers by how often they were declared in public train campaigns, most often first."""
    panel = cads_env.load_panel("synthetic-depmap:train")
    protocol = cads_env.load_protocol("standard")
    declared: Counter[str] = Counter()
    seeds = range(96)
    for seed, record in zip(
        seeds, play_many(panel.for_seed, seeds, protocol, _late(0)), strict=True
    ):
        names = panel.for_seed(seed)[0].identifiers
        declared.update(names[i] for i in JUDGE.declare(record).indices.tolist())
    return [name for name, _ in declared.most_common()]

"""Re-selection beside a sort of Python tuples: ties, graduation, long rows, extra reads."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from cads_env.reselection import ranked, reread_positions, top


def best_first(scores: list[float], graduated: list[bool] | None = None) -> list[int]:
    late = graduated or [False] * len(scores)
    return sorted(range(len(scores)), key=lambda i: (late[i], -scores[i], i))


def rows(kind: str, n: int, k: int) -> NDArray[np.float64]:
    """Scores with no, few, many, or only ties."""
    rng = random.Random(f"{kind}-{n}-{k}")
    draws: dict[str, Callable[[], float]] = {
        "distinct": rng.random,
        "few ties": lambda: float(rng.randrange(4 * k)),
        "many ties": lambda: rng.choice([-1.5, -0.0, 0.0, 2.25, 2.25]),
        "one value": lambda: 3.0,
        "two scales": lambda: rng.choice([1.0, 1e9]) * rng.random(),
        "infinite": lambda: rng.choice([math.inf, -math.inf, rng.random()]),
    }
    return np.array([[draws[kind]() for _ in range(k)] for _ in range(n)])


KINDS = ["distinct", "few ties", "many ties", "one value", "two scales", "infinite"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 2, 9, 40, 1023, 1024, 1025, 3000])
def test_top_is_the_front_of_the_ranking_in_first_read_order(kind: str, k: int) -> None:
    scores = rows(kind, 3, k)
    for count in sorted({0, 1, 2, k // 3, k // 2, k - 1, k} & set(range(k + 1))):
        expected = [sorted(best_first(row)[:count]) for row in scores.tolist()]
        assert top(scores, count).tolist() == expected


@pytest.mark.parametrize("shape", ["ascending", "descending", "peak at the sample", "spike"])
def test_top_is_exact_where_a_sample_of_a_long_row_misleads(shape: str) -> None:
    k = 5_000
    scores = {
        "ascending": np.arange(k, dtype=np.float64),
        "descending": -np.arange(k, dtype=np.float64),
        "peak at the sample": np.where(np.arange(k) % (k // 256) == 0, 1e6, 0.0) + np.arange(k) % 7,
        "spike": np.where(np.arange(k) == 1234, 9.0, 0.0),
    }[shape][None]
    for count in (1, 2, 100, 300, 2_500, 3_500, 4_999):
        assert top(scores, count).tolist() == [sorted(best_first(scores[0].tolist())[:count])]


def test_top_is_exact_where_campaigns_score_on_scales_of_their_own() -> None:
    rng = random.Random(3)
    centres = [0.0, 1e6, -1e6, 0.5]
    scores = np.array([[centre + rng.random() for _ in range(2_000)] for centre in centres])
    for count in (1, 600, 1_400, 1_999):
        expected = [sorted(best_first(row)[:count]) for row in scores.tolist()]
        assert top(scores, count).tolist() == expected


@pytest.mark.parametrize("kind", KINDS)
def test_ranked_is_the_total_order_of_graduation_score_and_first_read(kind: str) -> None:
    scores = rows(kind, 4, 30)
    rng = random.Random(kind)
    graduated = np.array([[rng.random() < 0.3 for _ in range(30)] for _ in range(4)])
    expected = [best_first(s, g) for s, g in zip(scores.tolist(), graduated.tolist(), strict=True)]
    assert ranked(scores, graduated).tolist() == expected
    assert ranked(scores, None).tolist() == [best_first(s) for s in scores.tolist()]
    assert ranked(scores, np.zeros_like(graduated)).tolist() == ranked(scores, None).tolist()


def test_a_graduated_candidate_is_read_again_only_after_all_others() -> None:
    scores = np.array([[9.0, 1.0, 2.0, 3.0]])
    graduated = np.array([[True, False, False, False]])
    for rereads, expected in ((3, [1, 2, 3]), (4, [0, 1, 2, 3])):
        positions, _ = reread_positions(scores, graduated, rereads=rereads, reads_each=1, extra=0)
        assert positions.tolist() == [expected]


def test_one_row_with_graduates_changes_nothing_in_the_others() -> None:
    scores = rows("many ties", 2, 12)
    graduated = np.zeros((2, 12), np.bool_)
    graduated[1, 3] = True
    both, _ = reread_positions(scores, graduated, rereads=5, reads_each=2, extra=0)
    alone, _ = reread_positions(scores[:1], graduated[:1], rereads=5, reads_each=2, extra=0)
    assert both[:1].tolist() == alone.tolist()


def test_each_reread_candidate_gets_its_reads_in_a_row_then_the_extra_ones_cycle() -> None:
    scores = np.array([[5.0, 7.0, 6.0]])
    positions, turns = reread_positions(scores, None, rereads=2, reads_each=2, extra=5)
    assert turns is not None
    # The top two, 1 and 2, twice each; then from the third-ranked on: 0, 1, 2, 0, 1.
    assert positions.tolist() == [[1, 1, 2, 2, 0, 1, 2, 0, 1]]
    assert turns.tolist() == [[0, 1, 0, 1, 0, 2, 2, 1, 3]]


@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_turns_count_the_reads_of_each_candidate_in_the_round(k: int) -> None:
    scores = rows("distinct", 2, k)
    for rereads in range(k + 1):
        for extra in range(2 * k + 3):
            positions, turns = reread_positions(
                scores, None, rereads=rereads, reads_each=3, extra=extra
            )
            assert turns is not None
            for row, numbers in zip(positions.tolist(), turns.tolist(), strict=True):
                seen = dict.fromkeys(range(k), 0)
                for position, turn in zip(row, numbers, strict=True):
                    assert turn == seen[position]
                    seen[position] += 1


def test_no_turns_are_told_when_every_read_is_its_candidates_first_of_the_round() -> None:
    positions, turns = reread_positions(
        np.array([[1.0, 3.0, 2.0]]), None, rereads=2, reads_each=1, extra=0
    )
    assert positions.tolist() == [[1, 2]]
    assert turns is None

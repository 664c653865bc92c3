"""The tape: published and frozen numbers, exactness, distribution, and the fallback's order."""

from __future__ import annotations

import hashlib
import re
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from scipy.special import ndtri

import cads_env
from cads_env.tape import (
    WORDS_PER_VISIT,
    bits,
    candidate_words,
    coin_bits,
    coins,
    coins_each,
    derive_key,
    normal_quantile,
    normals,
    priority,
    uniforms,
    visit_states,
)

CANDIDATES = np.arange(10_000)
VISITS = CANDIDATES % 7


def keys(*values: int) -> NDArray[np.uint64]:
    return np.array(values, np.uint64)


def frozen_words() -> NDArray[np.uint64]:
    return candidate_words(keys(derive_key("tape", seed=0)), CANDIDATES)


def sha256(array: NDArray[Any]) -> str:
    little = array.astype(array.dtype.newbyteorder("<"))
    return hashlib.sha256(np.ascontiguousarray(little).tobytes()).hexdigest()


def order(key: int, m: int) -> list[int]:
    """A whole priority order."""
    candidates: list[int] = priority(keys(key), np.arange(m), m)[0].tolist()
    return candidates


def test_bits_are_the_published_outputs_of_splitmix64() -> None:
    # Seed 1234567: the test vector that implementations of SplitMix64 carry.
    published = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    word = keys(1234567)
    places = [divmod(j, WORDS_PER_VISIT) for j in range(5)]
    assert [int(bits(word, np.array([v]), slot)[0]) for v, slot in places] == published


@pytest.mark.parametrize(
    ("stream", "parts", "key"),
    [
        ("tape", {}, 4142450632636132531),
        ("tape", {"seed": 0}, 8298301238181626979),
        ("tape", {"seed": 2**200}, 3415628636038052620),
        (
            "priority",
            {"panel": "tiny", "instance": 3, "salt": b"", "seed": 7},
            7999416700179475561,
        ),
    ],
)
def test_keys_are_frozen(stream: str, parts: dict[str, Any], key: int) -> None:
    assert derive_key(stream, **parts) == key


def test_candidate_words_are_frozen() -> None:
    words = frozen_words()
    assert words[:2].tolist() == [17597236972651322935, 1133653614420660145]
    assert sha256(words) == "f50d1c0d06158c2e78bd70d5f886eeda2bd43d905848a1b98a34120dfac10fc2"


def test_bits_and_uniforms_are_frozen() -> None:
    raw = bits(frozen_words(), VISITS, 2)
    assert sha256(raw) == "91fc02f72222567592e888c25e8cbab4300d30e2e1a09d739984ee624d89e90f"
    numbers = uniforms(raw)
    assert numbers[:2].tolist() == [0.660488790381305, 0.7298309820959189]
    assert sha256(numbers) == "7fb9808d0fe4536199791439725fdb6de97014cfa2df3f804f798859b51a33e9"


def test_normals_are_frozen() -> None:
    numbers = normals(bits(frozen_words(), VISITS, 0))
    assert numbers[:3].tolist() == [-0.42845296124485505, 0.2328342523272506, 0.8722980194452125]
    assert sha256(numbers) == "12671578142be38e68193c990dcc65ac51aed8a5b47d638c52f8d1f31b0e198d"


def test_the_priority_order_is_frozen() -> None:
    entries = order(derive_key("priority", seed=0), 18_159)
    assert entries[:5] == [5899, 10881, 7318, 3383, 14927]
    assert (
        sha256(np.array(entries[:10_000], np.int64))
        == "42444ebde16c0e7f60e82e787b7a660a8fb58e2b8a40cc3f39162bb97e92a90d"
    )


def test_every_part_of_a_key_matters_and_their_order_does_not() -> None:
    parts: dict[str, Any] = {"panel": "p", "instance": 1, "salt": b"s", "seed": 2}
    changed: list[dict[str, Any]] = [
        {**parts, "panel": "q"},
        {**parts, "instance": 2},
        {**parts, "salt": b"t"},
        {**parts, "seed": 1},
        {**parts, "seed": "2"},
        {**parts, "seed": b"2"},
        {**parts, "seed": -2},
        {**parts, "round": 0},
        {k: v for k, v in parts.items() if k != "salt"},
        {"panel": "p", "instance": 2, "salt": b"s", "seed": 1},
    ]
    base = derive_key("tape", **parts)
    assert derive_key("tape", **dict(reversed(parts.items()))) == base
    every = {base, derive_key("tap", **parts), *(derive_key("tape", **c) for c in changed)}
    assert len(every) == len(changed) + 2


def test_a_part_cannot_pose_as_two() -> None:
    assert derive_key("s", a="x:b:str:1:y") != derive_key("s", a="x", b="y")


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.int32])
def test_a_number_of_numpy_gives_the_key_of_the_same_int(kind: type[np.integer[Any]]) -> None:
    assert derive_key("tape", seed=kind(7)) == derive_key("tape", seed=7)  # type: ignore[arg-type]


@given(st.integers(), st.text(max_size=20), st.binary(max_size=20))
def test_a_key_has_64_bits(seed: int, panel: str, salt: bytes) -> None:
    panel = panel.encode(errors="ignore").decode()
    assert 0 <= derive_key("tape", seed=seed, panel=panel, salt=salt) < 2**64


def test_normals_agree_with_scipys_quantile_to_2e_15() -> None:
    words = candidate_words(keys(1), np.arange(200_000))
    raw = bits(words, np.zeros(200_000, np.int64), 0)
    # The ends and the middle, where relative accuracy is hardest, and both sides of each branch.
    raw[:6] = [0, 2**64 - 1, 2**63, 2**63 - 1, 2**40, 2**20]
    p = ((raw >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    np.testing.assert_allclose(normals(raw), ndtri(p), rtol=2e-15, atol=0)


def test_quantiles_cover_both_tails_smoothly() -> None:
    p = np.array(
        [1, 2**10, 2**17, 2**49, 5 * 2**50, 2**52, 2**53 - 2**49, 2**53 - 2**10, 2**53 - 1]
    )
    p = p * 2.0**-53
    np.testing.assert_allclose(normal_quantile(p), ndtri(p), rtol=2e-15, atol=0)
    assert normal_quantile(p.reshape(3, 3)).shape == (3, 3)
    assert (np.diff(normal_quantile(np.linspace(0.001, 0.999, 9_999))) > 0).all()


def test_normals_are_symmetric_about_zero() -> None:
    raw = bits(frozen_words(), VISITS, 0)
    np.testing.assert_array_equal(normals(raw.copy()), -normals(~raw))


def test_the_largest_normal_has_magnitude_8_2() -> None:
    ends = normals(np.array([0, 2**64 - 1], np.uint64))
    assert ends.tolist() == [-8.209536151601386, 8.209536151601386]


def test_normals_are_standard_normal() -> None:
    words = candidate_words(keys(derive_key("tape", seed=3)), np.arange(100_000))
    numbers = normals(bits(words, np.ones(100_000, np.int64), 0))
    # Four standard errors of each moment.
    n = numbers.size
    assert abs(numbers.mean()) < 4 / n**0.5
    assert abs((numbers**2).mean() - 1) < 4 * (2 / n) ** 0.5
    assert abs((numbers**3).mean()) < 4 * (15 / n) ** 0.5
    assert abs((numbers**4).mean() - 3) < 4 * (96 / n) ** 0.5
    assert stats.kstest(numbers, "norm").pvalue > 1e-3


def test_neighbouring_candidates_visits_and_slots_are_uncorrelated() -> None:
    n = 20_000
    words = candidate_words(keys(derive_key("tape", seed=3)), np.arange(n))

    def column(visit: int, slot: int) -> NDArray[np.float64]:
        return normals(bits(words, np.full(n, visit), slot))

    columns = np.array([column(v, s) for v in range(3) for s in range(WORDS_PER_VISIT)])
    shifted = np.vstack([columns, np.roll(columns, 1, axis=1)])
    correlations = np.corrcoef(shifted)[np.triu_indices(len(shifted), 1)]
    assert np.abs(correlations).max() < 5 / n**0.5


@pytest.mark.parametrize("size", [1, 32_767, 32_768, 32_769, 70_000])
def test_normals_do_not_depend_on_how_many_are_drawn_at_once(size: int) -> None:
    raw = bits(candidate_words(keys(5), np.arange(size)), np.zeros(size, np.int64), 0)
    together = normals(raw.copy())
    at = sorted({0, size // 2, size - 1, *(i for i in (32_767, 32_768, 65_536) if i < size)})
    for i in at:
        assert normals(raw[i : i + 1].copy()).tobytes() == together[i : i + 1].tobytes()
    np.testing.assert_array_equal(
        together, np.concatenate([normals(part.copy()) for part in np.array_split(raw, 7)])
    )


def test_uniforms_lie_in_the_half_open_unit_interval() -> None:
    ends = uniforms(np.array([0, 2**11 - 1, 2**64 - 1], np.uint64))
    assert ends.tolist() == [0.0, 0.0, 1 - 2.0**-53]
    numbers = uniforms(bits(frozen_words(), VISITS, 3))
    assert stats.kstest(numbers, "uniform").pvalue > 1e-3


def falls(probability: float, n: int = 100_000, key: int = 9) -> NDArray[np.int64]:
    """Candidates whose coin falls at their first read."""
    states = visit_states(candidate_words(keys(key), np.arange(n)), np.zeros(n, np.int64))
    first = coin_bits(bits(candidate_words(keys(key), np.arange(n)), np.zeros(n, np.int64), 0))
    return coins(first, states, probability)


def test_a_coin_of_probability_0_never_falls_and_of_1_always() -> None:
    assert falls(0.0).tolist() == []
    assert falls(1.0).tolist() == list(range(100_000))


@pytest.mark.parametrize("probability", [0.0001, 0.1, 0.5, 0.9, 819 / 4096, 820.5 / 4096])
def test_a_coin_falls_as_often_as_its_probability_says(probability: float) -> None:
    count = falls(probability).size
    assert stats.binomtest(count, 100_000, probability).pvalue > 1e-3


def test_a_coin_is_decided_by_12_bits_and_in_a_tie_by_64_more() -> None:
    n = 50_000
    words, visits = candidate_words(keys(9), np.arange(n)), np.zeros(n, np.int64)
    first = (bits(words, visits, 0) % np.uint64(2**12)).tolist()
    second = bits(words, visits, 1).tolist()
    for probability in (0.1, 0.3, 1 - 2**-53, 2**-30):
        bar = int(probability * 2**76)
        pairs = zip(first, second, strict=True)
        expected = [i for i, (a, b) in enumerate(pairs) if a * 2**64 + b < bar]
        assert falls(probability, n).tolist() == expected
    ties = sum(a == int(0.1 * 2**12) for a in first)
    assert ties > 0


def test_a_likelier_coin_falls_wherever_a_less_likely_one_does() -> None:
    few, more = set(falls(0.1).tolist()), set(falls(0.1001).tolist())
    assert few < more


def test_coins_do_not_depend_on_the_normals_of_their_reads() -> None:
    n = 100_000
    words, visits = candidate_words(keys(9), np.arange(n)), np.zeros(n, np.int64)
    z = normals(bits(words, visits, 0))
    for part in (z[falls(0.1)], z[falls(0.5)]):
        assert stats.kstest(part, "norm").pvalue > 1e-3


@pytest.mark.parametrize(
    "m", [1, 2, 3, 4, 5, 7, 8, 9, 31, 33, 63, 64, 65, 100, 127, 129, 1000, 4096, 4097, 18_159]
)
def test_a_priority_order_holds_every_candidate_once(m: int) -> None:
    for key in (0, 1, 2**64 - 1, derive_key("priority", seed=m)):
        assert sorted(order(key, m)) == list(range(m))


@pytest.mark.parametrize("m", [2, 3, 4])
def test_every_order_of_a_tiny_registry_is_equally_likely(m: int) -> None:
    counts = dict.fromkeys(permutations(range(m)), 0)
    many = np.array([derive_key("priority", seed=k) for k in range(8_000)], np.uint64)
    for row in priority(many, np.arange(m), m):
        counts[tuple(row.tolist())] += 1
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


@pytest.mark.parametrize("m", [5, 12, 60, 64, 100, 300])
def test_every_candidate_is_equally_likely_at_the_front_and_at_the_end(m: int) -> None:
    many = np.array([derive_key("priority", seed=k) for k in range(6_000)], np.uint64)
    places = np.array([0, 1, m // 2, m - 1])
    entries = priority(many, places, m)
    for place, column in zip(places, entries.T, strict=True):
        assert stats.chisquare(np.bincount(column, minlength=m)).pvalue > 1e-4, place
    # Whether the second comes later in the registry than the first is a fair coin.
    rises = int((entries[:, 1] > entries[:, 0]).sum())
    assert stats.binomtest(rises, len(entries)).pvalue > 1e-4


def test_consecutive_keys_give_unrelated_orders() -> None:
    m = 64
    entries = priority(np.arange(3_000, dtype=np.uint64), np.arange(m), m)
    agreements = int((entries[1:] == entries[:-1]).sum())
    expected = entries[1:].size / m
    assert abs(agreements - expected) < 5 * expected**0.5


@pytest.mark.parametrize("m", [3, 64, 1000])
def test_one_entry_equals_the_same_entry_of_a_batch(m: int) -> None:
    many = keys(3, 2**63, 77)
    positions = np.arange(m)
    batch = priority(many, positions, m)
    for row, key in enumerate(many):
        for place in {0, 1, m // 2, m - 1}:
            single = priority(np.array([key]), np.array([[place]]), m)
            assert single.tolist() == [[batch[row, place]]]
    own = np.tile(positions[::-1], (3, 1))
    np.testing.assert_array_equal(priority(many, own, m), batch[:, ::-1])


def test_a_priority_order_of_a_registry_of_any_size_can_be_entered_anywhere() -> None:
    m = 2**40 + 1
    entries = priority(keys(1), np.array([0, 1, 2**40]), m)[0]
    assert len(set(entries.tolist())) == 3
    assert ((entries >= 0) & (entries < m)).all()


@pytest.mark.parametrize("m", [7, 40, 1000])
def test_neighbours_in_a_priority_order_are_unrelated(m: int) -> None:
    many = np.array([derive_key("priority", seed=k) for k in range(8_000)], np.uint64)
    entries = priority(many, np.arange(3), m)
    for left, right in ((0, 1), (1, 2), (0, 2)):
        difference = (entries[:, right] - entries[:, left]) % m
        counts = np.bincount(difference, minlength=m)
        assert counts[0] == 0
        # Every other difference modulo m is equally likely.
        assert stats.chisquare(counts[1:]).pvalue > 1e-4


def test_no_source_file_of_the_package_draws_from_numpy_or_the_global_generator() -> None:
    root = Path(cads_env.__file__).parent
    forbidden = re.compile(
        # The generator that Gymnasium hands to an environment may be named, and draws seeds alone.
        r"np\.random\.(?!Generator\b)|numpy\.random\b(?!, )|default_rng|from numpy import random|"
        r"^(import|from) random\b|\.(standard_normal|normal|permutation|shuffle|choice)\(",
        re.MULTILINE,
    )
    found: dict[str, list[str]] = {}
    files = sorted(root.rglob("*.py"))
    assert len(files) > 20
    for path in files:
        code = [
            line
            for line in path.read_text(encoding="utf-8").splitlines()
            if not line.lstrip().startswith("#")
        ]
        hits = [line for line in code if forbidden.search(line)]
        if hits:
            found[str(path.relative_to(root))] = hits
    # A bootstrap judges a finished run: it resamples with a keyed generator and changes no stream.
    assert found == {"inference/resampling.py": ["from numpy.random import PCG64, Generator"]}


@pytest.mark.parametrize(
    "probability", [0.0, 2.0**-76, 2.0**-12, 0.1, 0.3, 1 / 3, 0.5, 1 - 2.0**-53, 1.0]
)
def test_coins_of_one_probability_each_are_those_of_a_common_one(probability: float) -> None:
    states = visit_states(frozen_words(), VISITS)
    first = coin_bits(bits(frozen_words(), VISITS, 0))
    each = coins_each(first, states, np.full(first.size, probability))
    assert each.tolist() == coins(first, states, probability).tolist()


def test_every_coin_meets_its_own_probability() -> None:
    states = visit_states(frozen_words(), VISITS)
    first = coin_bits(bits(frozen_words(), VISITS, 0))
    probabilities = np.linspace(0.0, 1.0, first.size)
    together = coins_each(first, states, probabilities).tolist()
    alone = [
        i
        for i in range(0, first.size, 7)
        if coins(first[i : i + 1], states[i : i + 1], float(probabilities[i])).size
    ]
    assert [i for i in together if i % 7 == 0] == alone


@given(st.floats(0.0, 1.0), st.integers(0, 4095), st.integers(0, 2**64 - 1))
def test_a_coins_76_bits_are_compared_exactly(probability: float, head: int, state: int) -> None:
    states = keys(state)
    rest = int(bits(states, np.zeros(1, np.int64), 1)[0])
    falls = (head << 64 | rest) < int(probability * 2**76)
    first = np.array([head], np.uint16)
    assert (coins_each(first, states, np.array([probability])).size == 1) is falls
    assert (coins(first, states, probability).size == 1) is falls

"""The channel: Y = u + s z, contamination at the stated rate, and laws with their options."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cads_env.campaign import open_screen, play
from cads_env.channel import Channel
from cads_env.contamination import make_law
from cads_env.contamination.laws import Uniform
from cads_env.errors import ProtocolError
from cads_env.protocol import Protocol
from cads_env.record import Record
from cads_env.registry import Oracle
from cads_env.tape import bits, candidate_words, normals
from cads_env.testing import tiny_protocol, tiny_registry


def many_reads(**changes: Any) -> tuple[Record, Oracle]:
    """One campaign that reads each of 20 candidates 500 times."""
    pair = tiny_registry(20, 5)
    protocol = Protocol(
        name="many",
        rounds=2,
        first_fresh=20,
        fresh=0,
        reread_candidates=20,
        reads_each=499,
        **changes,
    )
    return play(open_screen([pair], [1], protocol), [None])[0], pair[1]


def residuals(record: Record, oracle: Oracle) -> Any:
    return record.values - oracle.signal[record.candidates[record.slots]]


def test_a_clean_read_is_the_signal_plus_the_tapes_normal() -> None:
    record, oracle = many_reads(epsilon=0.0, noise_sd=0.5)
    key = np.array([oracle.key("tape", 1)], np.uint64)
    first = record.candidates
    z = normals(bits(candidate_words(key, first), np.zeros(20, np.int64), 0))
    assert record.values[:20].tolist() == (0.5 * z + oracle.signal[first]).tolist()
    third = normals(bits(candidate_words(key, first[:1]), np.array([2]), 0))
    assert record.values[record.slots == 0][2] == 0.5 * third[0] + oracle.signal[first[0]]


@pytest.mark.parametrize("noise_sd", [0.25, 2.0])
def test_clean_reads_have_the_protocols_noise(noise_sd: float) -> None:
    z = residuals(*many_reads(epsilon=0.0, noise_sd=noise_sd)) / noise_sd
    assert z.size == 10_000
    assert stats.kstest(z, "norm").pvalue > 1e-3


@pytest.mark.parametrize("epsilon", [0.05, 0.5])
def test_each_read_is_contaminated_independently_at_the_stated_rate(epsilon: float) -> None:
    clean, dirty = (many_reads(epsilon=e)[0].values for e in (0.0, epsilon))
    added = dirty - clean
    hit = added != 0
    assert stats.binomtest(int(hit.sum()), hit.size, epsilon).pvalue > 1e-3
    uniform = (added[hit] - 2.0) / 2.0
    assert uniform.min() >= -1e-12
    assert uniform.max() < 1 + 1e-12
    assert stats.kstest(uniform, "uniform").pvalue > 1e-3
    # Neighbouring reads of one candidate are not contaminated together.
    assert abs(np.corrcoef(hit[20:-1], hit[21:])[0, 1]) < 4 / hit.size**0.5


def test_contamination_is_added_to_the_clean_read_and_never_replaces_it() -> None:
    clean, dirty = (many_reads(epsilon=e)[0].values for e in (0.0, 1.0))
    added = dirty - clean
    assert added.min() >= 2.0 - 1e-12
    assert added.max() < 4.0 + 1e-12
    assert abs(np.corrcoef(added, clean)[0, 1]) < 4 / added.size**0.5


def test_a_higher_epsilon_contaminates_the_same_reads_and_more() -> None:
    clean, few, many = (many_reads(epsilon=e)[0].values for e in (0.0, 0.1, 0.3))
    contaminated_few, contaminated_many = few != clean, many != clean
    assert contaminated_few.sum() < contaminated_many.sum()
    assert (few[contaminated_few] == many[contaminated_few]).all()


def test_the_range_of_the_law_comes_from_its_options() -> None:
    clean = many_reads(epsilon=0.0)[0].values
    dirty = many_reads(epsilon=1.0, law_options={"low": -3, "high": -3})[0].values
    np.testing.assert_allclose(dirty - clean, -3.0, rtol=1e-12)


@pytest.mark.parametrize(
    ("law", "options", "message"),
    [
        ("unifrom", {}, "Unknown contamination law 'unifrom'. Did you mean 'uniform'"),
        ("uniform", {"lo": 2.0}, "does not accept {'lo': 2.0}"),
        ("uniform", {3: 2.0}, "does not accept"),
        ("uniform", {"low": 5.0}, "low = 5 is above high = 4"),
        ("uniform", {"low": float("nan")}, "low is nan; expected a finite number"),
        ("uniform", {"high": float("inf")}, "high is inf; expected a finite number"),
        ("uniform", {"low": "2"}, "low is '2'; expected a finite number"),
        ("uniform", {"low": True}, "low is True; expected a finite number"),
    ],
)
def test_an_unusable_law_is_refused_before_the_first_read(
    law: str, options: Any, message: str
) -> None:
    with pytest.raises(ProtocolError, match=message):
        make_law(law, 0.1, options)
    # What no law could use is refused with the protocol already.
    with pytest.raises(ProtocolError, match=f"{message}|law_options"):
        open_screen([tiny_registry()], [0], tiny_protocol(law=law, law_options=options))


def test_the_law_of_a_protocol_is_built_with_its_epsilon() -> None:
    law = make_law("uniform", 0.25, {"low": 1, "high": 2})
    assert isinstance(law, Uniform)
    assert (law.epsilon, law.low, law.high) == (0.25, 1.0, 2.0)


def test_named_streams_have_keys_of_their_own_in_every_campaign() -> None:
    oracles = [tiny_registry(seed=i)[1] for i in range(2)]
    channel = Channel(oracles, [0, 0], tiny_protocol())
    every = [
        *channel.keys("tape"),
        *channel.keys("priority"),
        *channel.keys("priority", round=0),
        *channel.keys("priority", round=1),
    ]
    assert len({int(key) for key in every}) == 8
    assert int(channel.keys("tape")[1]) == oracles[1].key("tape", 0)


def test_a_pickled_channel_reads_on() -> None:
    screen = open_screen([tiny_registry()], [0], tiny_protocol())
    screen.step([None])
    copy = pickle.loads(pickle.dumps(screen))
    for played in (screen, copy):
        played.step([None])
    assert screen.records()[0].sha256 == copy.records()[0].sha256

"""Contamination laws: which reads they touch, what becomes of them, and what they refuse."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from cads_env.campaign import open_screen, play
from cads_env.certificate import Certificate
from cads_env.certificate.cap import working_model
from cads_env.certificate.evidence import capped_log
from cads_env.contamination import LAWS, law_of, make_law
from cads_env.contamination.aimed import Reread
from cads_env.errors import ProtocolError
from cads_env.protocol import Protocol, load_protocol
from cads_env.record import Record
from cads_env.testing import tiny_registry

PAIR = tiny_registry(20, 5)


def many(
    law: str, epsilon: float = 0.3, *, seed: int = 1, reads_each: int = 60, **options: Any
) -> tuple[Protocol, Record]:
    """One campaign that reads each of 20 candidates 1 + 5 * reads_each times, and its protocol."""
    protocol = Protocol(
        name="many",
        rounds=6,
        first_fresh=20,
        fresh=0,
        reread_candidates=20,
        reads_each=reads_each,
        epsilon=epsilon,
        law=law,
        law_options=options,
    )
    return protocol, play(open_screen([PAIR], [seed], protocol), [None])[0]


def values(law: str, epsilon: float = 0.3, **options: Any) -> NDArray[np.float64]:
    return by_visit(many(law, epsilon, **options)[1])


def by_visit(record: Record) -> NDArray[np.float64]:
    """Reads by candidate and visit, which no order of re-selection changes."""
    order = np.lexsort((np.arange(record.slots.size), record.candidates[record.slots]))
    return record.values[order].reshape(20, -1)


CLEAN = values("uniform", 0.0)
VISITS = np.broadcast_to(np.arange(CLEAN.shape[1]), CLEAN.shape)


@pytest.mark.parametrize("law", ["uniform", "point-mass", "subthreshold", "mixed-sign"])
def test_laws_of_one_rate_touch_the_same_reads(law: str) -> None:
    touched = values(law) != CLEAN
    assert (touched == (values("uniform") != CLEAN)).all()
    assert stats.binomtest(int(touched.sum()), touched.size, 0.3).pvalue > 1e-3


@pytest.mark.parametrize("law", sorted(LAWS))
def test_without_epsilon_no_law_of_default_options_touches_a_read(law: str) -> None:
    assert (values(law, 0.0) == CLEAN).all()


@pytest.mark.parametrize("law", sorted(LAWS))
def test_every_law_gives_the_same_reads_in_any_company(law: str) -> None:
    protocol, alone = many(law, 0.4, seed=3)
    pairs = [tiny_registry(20, 5, seed=7), PAIR]
    together = play(open_screen(pairs, [2, 3], protocol), [None, None])
    assert together[1].values.tobytes() == alone.values.tobytes()


def test_the_point_mass_is_the_smallest_read_of_the_largest_evidence() -> None:
    options = {"epsilon_bar": 0.2, "theta": 0.9, "s": 0.6}
    mass = float(np.unique(values("point-mass", 1.0, **options))[0])
    certificate = Certificate(**options)
    model = working_model(certificate.theta, certificate.s)
    reads = np.array([mass - 1e-6, mass + 1e-12, mass + 1])
    below, at, above = capped_log(reads, model, log_cap=certificate.log_cap)
    assert below < at == above == certificate.log_cap
    assert make_law("point-mass", 0.1, {}).at == pytest.approx(0.76685, abs=1e-4)  # type: ignore[attr-defined]


def test_a_mass_can_be_placed_or_added() -> None:
    assert (values("point-mass", 1.0, at=-1.5) == -1.5).all()
    np.testing.assert_allclose(values("point-mass", 1.0, at=-1.5, mode="add") - CLEAN, -1.5)


def test_a_subthreshold_read_lies_just_under_tau() -> None:
    assert (values("subthreshold", 1.0, tau=2.0, gap=0.25) == 1.75).all()
    assert 0.99 < float(values("subthreshold", 1.0)[0, 0]) < 1.0


def test_mixed_signs_have_equal_odds_and_the_size_of_their_range() -> None:
    added = values("mixed-sign", 1.0, low=1.0, high=3.0) - CLEAN
    assert stats.binomtest(int((added > 0).sum()), added.size, 0.5).pvalue > 1e-3
    sizes = (np.abs(added).reshape(-1) - 1.0) / 2.0
    assert stats.kstest(sizes, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(np.sign(added).reshape(-1), sizes)[0, 1]) < 4 / sizes.size**0.5


@pytest.mark.parametrize("law", ["uniform", "reread", "past-high", "near-boundary"])
def test_a_replacing_law_leaves_nothing_of_the_clean_read(law: str) -> None:
    rates: dict[str, Any] = {
        "uniform": {},
        "reread": {"rate": 1, "first_rate": 1},
        "past-high": {"rate": 1, "other_rate": 1},
        "near-boundary": {"rate": 1, "other_rate": 1},
    }
    replaced = values(law, 1.0, mode="replace", low=2, high=4, **rates[law])
    assert replaced.min() >= 2.0
    assert replaced.max() < 4.0
    assert abs(np.corrcoef(replaced.reshape(-1), CLEAN.reshape(-1))[0, 1]) < 4 / CLEAN.size**0.5


def test_re_reads_are_touched_at_a_rate_of_their_own() -> None:
    touched = values("reread", rate=0.7, first_rate=0.0) != CLEAN
    assert not touched[VISITS == 0].any()
    assert stats.binomtest(int(touched.sum()), int((VISITS > 0).sum()), 0.7).pvalue > 1e-3
    only_first = values("reread", rate=0.0, first_rate=1.0) != CLEAN
    assert (only_first == (VISITS == 0)).all()


def test_the_rate_on_re_reads_keeps_the_share_of_contaminated_reads() -> None:
    law = law_of(load_protocol("sweep").override(law="reread", law_options={}), 6000)
    assert isinstance(law, Reread)
    assert law.rate == pytest.approx(0.1 * 45_899 / 39_899, rel=1e-12)
    mixed = law_of(
        load_protocol("sweep").override(law="reread", law_options={"first_rate": 0.04}), 6000
    )
    assert isinstance(mixed, Reread)
    assert 0.04 * 6000 + mixed.rate * 39_899 == pytest.approx(4589.9, rel=1e-12)
    half = law_of(load_protocol("sweep").override(law="reread", law_options={}), 6000, epsilon=0.05)
    assert isinstance(half, Reread)
    assert half.rate == pytest.approx(law.rate / 2, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "first_rate"), [(0.95, 0.0), (0.01, 0.9)])
def test_a_share_that_no_rate_on_re_reads_keeps_is_refused(
    epsilon: float, first_rate: float
) -> None:
    protocol = load_protocol("sweep").override(
        law="reread", epsilon=epsilon, law_options={"first_rate": first_rate}
    )
    with pytest.raises(ProtocolError, match=r"39,899 of 45,899 are re-reads.*rate="):
        law_of(protocol, 6000)


def test_only_candidates_with_a_high_past_are_touched() -> None:
    record = many("past-high", rate=1.0, above=0.2)[1]
    touched = by_visit(record) != CLEAN
    past = CLEAN[:, :1] > 0.2
    # 60 reads a round: a candidate's second round sees one clean read, later ones the sums.
    assert not touched[:, 0].any()
    assert (touched[:, 1:61] == past).all()
    assert touched[past[:, 0], 1:].all()


def test_only_candidates_near_the_boundary_are_touched() -> None:
    width = float(np.sort(np.abs(PAIR[1].signal))[8]) + 1e-9
    touched = values("near-boundary", rate=1.0, width=width) != CLEAN
    near = np.abs(PAIR[1].signal) < width
    assert 0 < near.sum() < 20
    assert (touched == near[:, None]).all()
    elsewhere = values("near-boundary", rate=0.0, other_rate=1.0, width=width) != CLEAN
    assert (elsewhere == ~near[:, None]).all()


def test_one_coin_a_campaign_touches_all_of_its_reads_or_none() -> None:
    fallen = []
    for seed in range(40):
        clean, coin = (
            many(law, epsilon, seed=seed, reads_each=1)[1].values
            for law, epsilon in (("uniform", 0.0), ("campaign-coin", 0.3))
        )
        share = float((clean != coin).mean())
        assert share in (0.0, 1.0)
        fallen.append(share)
    assert stats.binomtest(int(sum(fallen)), 40, 0.3).pvalue > 1e-3


@pytest.mark.parametrize(
    ("law", "options", "message"),
    [
        ("point-mas", {}, "Did you mean 'point-mass'.*module:Class"),
        ("point-mass", {"low": 2.0}, "'point-mass' does not accept {'low': 2.0}"),
        ("point-mass", {"epsilon_bar": 0}, "epsilon_bar is 0"),
        ("point-mass", {"epsilon_bar": 1.5}, "epsilon_bar is outside its range"),
        ("point-mass", {"theta": -1}, "theta is outside its range"),
        ("point-mass", {"at": "high"}, "at is 'high'; expected a finite number"),
        ("point-mass", {"at": 10**400}, "expected a finite number"),
        ("subthreshold", {"gap": 0}, "gap is 0; expected a number above 0"),
        ("subthreshold", {"tau": None}, "tau is None"),
        ("mixed-sign", {"low": 5}, "low = 5 is above high = 4"),
        ("uniform", {"mode": "ad"}, "mode is 'ad'; expected add or replace"),
        ("reread", {"rate": 1.5}, "rate is 1.5; expected a probability"),
        ("reread", {"first_rate": -0.1}, "first_rate is -0.1"),
        ("past-high", {"above": "x"}, "above is 'x'"),
        ("near-boundary", {"width": -1}, "width is -1"),
        ("near-boundary", {"rate": True}, "rate is True"),
        ("campaign-coin", {"rate": 0.5}, "does not accept"),
    ],
)
def test_an_option_that_a_law_cannot_use_is_named(law: str, options: Any, message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        make_law(law, 0.1, options)


@pytest.mark.parametrize("name", sorted(LAWS))
def test_a_law_can_be_sent_to_another_process(name: str) -> None:
    law = pickle.loads(pickle.dumps(make_law(name, 0.1, {})))
    assert type(law) is LAWS[name]
    assert law.epsilon == 0.1


def test_another_law_starts_from_its_own_options() -> None:
    changed = load_protocol("sweep+law=point-mass")
    assert dict(changed.law_options) == {}
    assert load_protocol(changed.name).hash == changed.hash
    law_of(changed, 6000)
    given = load_protocol("sweep", law="mixed-sign", law_options={"low": 1.0})
    assert dict(given.law_options) == {"low": 1.0}
    assert dict(load_protocol("sweep", law="uniform").law_options) == {"low": 2.0, "high": 4.0}

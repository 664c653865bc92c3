"""Synthetic lines, T-cell-like and PRISM-like screens: exact sizes, frozen bytes, sane words."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from cads_env.errors import RegistryError
from cads_env.panel import load_panel, load_registry
from cads_env.registry import Oracle, Registry
from cads_env.sources.cross_settings import LINE_BENDS, PRISM_BEND, TCELL_BEND, Bend, bent_effects
from cads_env.sources.modules import symbol_subset
from cads_env.sources.synthetic import stratified_quantiles

BENDS = {
    **{f"synthetic-lines/{line}": bend for line, bend in LINE_BENDS.items()},
    "synthetic-tcell/0": TCELL_BEND,
    "synthetic-prism/0": PRISM_BEND,
}

FROZEN = {
    "synthetic-lines/1": (
        "01eb0e6ea30829b0f04785471157655cd0c9357c2a8832cb2fb865895f7a1276",
        "53cf7569651051602f4567499fa1c92aa6b797aaa8e439380b1761b9d372495f",
    ),
    "synthetic-lines/6": (
        "66a487ca4c373b2e9918453a66284bf50a96687935fcfb8acbd41bce0bc824e3",
        "ab9c2875c63ef801c32004ab7aaae530f72587d32dd1bb10a47e48123ff8fa33",
    ),
    "synthetic-tcell/0": (
        "3952ca89bff3c700190d7ece9558d24752c18427ad662f298e157ef4f19f6149",
        "faab83c5fea6c072f3d0f04ceeab50166e1f746462550c0ac77c375a569ea38f",
    ),
    "synthetic-tcell/3": (
        "4e0ab313e1b3fcea47752d2c971ddc51859354095cc711b5e22fe6284d132fc9",
        "9e372fc11b86e4cf20a4e9e1b6268e150aa470415749341d5e42b6dd956ed8c4",
    ),
    "synthetic-prism/0": (
        "13605fe3641eff4f767cf0663f32edd306cc80b05436f541f072373bb106cdbe",
        "9679632c7bc04b9f929e61c60a2854e9b2b1f506ed78ce430cb813015f8aa5c6",
    ),
}


@cache
def loaded(name: str) -> tuple[Registry, Oracle]:
    return load_registry(name)


@pytest.mark.parametrize("name", BENDS)
def test_every_registry_has_exactly_its_hits_among_6000(name: str) -> None:
    registry, oracle = loaded(name)
    assert (registry.m, oracle.hit_count) == (6000, BENDS[name].hit_count)
    assert np.array_equal(oracle.labels, oracle.signal > 0)
    effects = -oracle.signal - 0.5
    assert np.allclose(effects, np.round(effects, 4), atol=1e-12)


@pytest.mark.parametrize("name", FROZEN)
def test_the_bytes_of_a_registry_are_frozen(name: str) -> None:
    registry, oracle = loaded(name)
    assert (registry.hash, oracle.hash) == FROZEN[name]


def test_a_bend_that_bends_nothing_gives_the_distribution_back() -> None:
    ranks = np.arange(500, dtype=np.float64)
    straight = bent_effects(ranks, Bend(50, 1.0, 0.0, 0.0, 1.0, 0.0))
    assert np.array_equal(straight, stratified_quantiles(500, 50))


def test_effects_rise_with_the_score_under_every_bend() -> None:
    scores = np.random.default_rng(1).permutation(6000).astype(np.float64)
    for bend in BENDS.values():
        effects = bent_effects(scores, bend)
        assert np.all(np.diff(effects[np.argsort(scores)]) >= 0)
        assert np.count_nonzero(effects < -0.5) == bend.hit_count


def test_instances_differ_in_order_and_not_in_effects() -> None:
    for source in ("synthetic-tcell", "synthetic-prism"):
        first, other = loaded(f"{source}/0")[1], loaded(f"{source}/4")[1]
        assert np.array_equal(np.sort(first.signal), np.sort(other.signal))
        assert np.mean(first.labels & other.labels) < 0.03
        salted = load_registry(source, salt="secret")[1]
        assert np.mean(salted.signal == first.signal) < 0.01


def test_the_six_lines_are_one_panel_whose_lines_share_their_hits() -> None:
    panel = load_panel("synthetic-lines:all")
    assert panel.names == tuple(f"synthetic-lines/{line}" for line in range(1, 7))
    hits = [oracle.labels for _, oracle in panel]
    assert np.mean(hits[0][hits[1]]) > 0.4
    assert len({oracle.key("tape", 0) for _, oracle in panel}) == 6


@pytest.mark.parametrize("name", ["synthetic-lines", "synthetic-lines/0", "synthetic-lines/7"])
def test_a_line_that_does_not_exist_is_refused_with_those_that_do(name: str) -> None:
    with pytest.raises(RegistryError, match=r"lines 1 to 6; .*synthetic-lines:all"):
        load_registry(name)


@pytest.mark.parametrize("name", ["synthetic-lines/1", "synthetic-tcell", "synthetic-prism"])
def test_an_option_out_of_range_is_refused(name: str) -> None:
    with pytest.raises(RegistryError, match=r"structure=1\.5 is out of range"):
        load_registry(name, structure=1.5)


@pytest.mark.parametrize("name", BENDS)
def test_the_prior_ranks_and_does_not_give_the_effects_away(name: str) -> None:
    registry, oracle = loaded(name)
    prior = registry.side_tables["prior"].values
    top = np.argsort(-prior, kind="stable")[:95]
    assert oracle.labels[top].mean() > 0.6
    assert abs(np.corrcoef(prior, oracle.signal)[0, 1]) < 0.95


def test_compounds_have_made_up_names_and_classes_of_25() -> None:
    registry, _ = loaded("synthetic-prism/0")
    assert registry.identifiers[0] == "CPD00001"
    labels, sizes = np.unique(registry.side_tables["module"].values, return_counts=True)
    assert (labels.size, set(sizes.tolist())) == (240, {25})
    assert loaded("synthetic-tcell/0")[0].identifiers == symbol_subset(6000)


@pytest.mark.parametrize("name", BENDS)
def test_the_text_says_that_it_is_synthetic_and_nothing_of_the_instance(name: str) -> None:
    registry, _ = loaded(name)
    assert "synthetic: plumbing and calibration, not biology" in registry.description
    if name.startswith("synthetic-lines"):
        assert registry.description == loaded("synthetic-lines/1")[0].description

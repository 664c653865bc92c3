"""The synthetic panels: the recipe, its randomness, and what it must not give away."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from itertools import combinations
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import gamma, norm

from cads_env.errors import RegistryError
from cads_env.panel import load_registry
from cads_env.registry import Oracle, Registry
from cads_env.sources.modules import LARGEST_MODULE, module_labels, symbol_subset
from cads_env.sources.synthetic import (
    HIT_FRACTION,
    RECIPES,
    Draw,
    effects_at,
    line_scores,
    shared_scores,
)

Float64s = NDArray[np.float64]
FULL = "synthetic-depmap"
SMALL = "synthetic-depmap-6000"
ROOT = Path(__file__).parents[2]

FROZEN = {
    "synthetic-depmap/0": (
        "4e45dff8deab0813bc60c2d491333693a27c1f857b32b27cbc3971d099ddb92b",
        "f5d4f1fe2ca8dba9c6c68b3739b138364367735bba25f14e50040119b8ca0dd0",
    ),
    "synthetic-depmap/17": (
        "8e833bf4ad2f4b8c0a3afc7f2ac24a53b28e7995ea8e0c0057de79cb07dd0091",
        "75f8422ff451b1210db3772aad7fe69de15e27ce8b6c311eaad59f0f15479b50",
    ),
    "synthetic-depmap-6000/0": (
        "2ac01e745515b76dda48e8239a08558a4e392d38717393ec2ee5cabdb3d88a3f",
        "57907e926ffeeb18811985a72c0d449e833f6e2a0c880811cc31d63693a7bca4",
    ),
}


@cache
def loaded(name: str) -> tuple[Registry, Oracle]:
    return load_registry(name)


def effects_of(oracle: Oracle) -> Float64s:
    return -oracle.signal - 0.5


def recipe_quantile(p: float) -> float:
    """The distribution as it is stated, straight from scipy."""
    if p < HIT_FRACTION:
        return -0.5 - float(gamma.isf(p / HIT_FRACTION, 1.106, scale=0.648))

    def null_cdf(x: float) -> float:
        tail = 2 * norm.cdf((x - 0.030) / 0.155) if x < 0.030 else 1.0
        return float(0.953 * norm.cdf((x - 0.030) / 0.131) + 0.047 * tail)

    low = null_cdf(-0.5)
    target = low + (1 - low) * (p - HIT_FRACTION) / (1 - HIT_FRACTION)
    return float(brentq(lambda x: null_cdf(x) - target, -0.5, 2.0, xtol=1e-13))


def table_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tool", ROOT / "tools/make_quantile_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_shipped_quantile_table_is_what_its_tool_computes() -> None:
    path = ROOT / "cads_env/sources/data/depmap_effect_quantiles.txt"
    shipped = np.loadtxt(path)
    knots, effects = table_tool().quantile_table()
    assert np.array_equal(shipped[:, 0], knots)
    assert np.abs(shipped[:, 1] - effects).max() < 1e-6


def test_the_shipped_quantile_table_is_the_stated_distribution() -> None:
    shipped = np.loadtxt(ROOT / "cads_env/sources/data/depmap_effect_quantiles.txt")
    origin = norm.ppf(HIT_FRACTION)
    for j, effect in shipped[200:-400:25]:
        if j != 0:
            assert effect == pytest.approx(recipe_quantile(norm.cdf(origin + j / 256)), abs=1e-6)
    assert np.all(np.diff(shipped[:, 1]) > 0)


def test_the_effect_at_the_quantile_of_the_hit_fraction_is_the_threshold() -> None:
    origin = float(norm.ppf(HIT_FRACTION))
    below, at, above = effects_at(np.array([origin - 1e-3, origin, origin + 1e-3]))
    assert below < at == -0.5 < above


def test_scores_beyond_the_table_get_its_end_values() -> None:
    ends = effects_at(np.array([-50.0, -8.0, 8.0, 50.0]))
    assert ends[0] == ends[1] < -10
    assert ends[2] == ends[3] > 0.8


def test_effects_have_four_decimals_and_no_negative_zero() -> None:
    effects = effects_at(np.linspace(-4, 4, 20001))
    assert np.array_equal(effects, np.round(effects, 4))
    assert not np.any(np.signbit(effects) & (effects == 0))


@pytest.mark.parametrize(("name", "m", "hits"), [(FULL, 18159, 1822), (SMALL, 6000, 620)])
def test_instance_0_has_exactly_the_published_number_of_hits(name: str, m: int, hits: int) -> None:
    registry, oracle = loaded(name)
    assert (registry.m, oracle.hit_count) == (m, hits)
    assert np.array_equal(oracle.labels, oracle.signal > 0)
    assert oracle.contrary_hit_count == 0


def test_instance_0_has_the_quantiles_of_the_recipe() -> None:
    effects = np.sort(effects_of(loaded(FULL)[1]))
    for rank in (3, 40, 400, 1200, 1700, 1821, 1900, 2500, 5000, 9000, 14000, 18000, 18158):
        hit = rank < 1822
        share = (rank + 0.5) / 1822 if hit else (rank - 1822 + 0.5) / (18159 - 1822)
        p = HIT_FRACTION * share if hit else HIT_FRACTION + (1 - HIT_FRACTION) * share
        assert effects[rank] == pytest.approx(recipe_quantile(p), abs=1e-3)


def test_a_random_instance_has_about_the_hit_fraction_of_the_recipe() -> None:
    counts = [loaded(f"{SMALL}/{i}")[1].hit_count for i in range(1, 25)]
    assert np.mean(counts) / 6000 == pytest.approx(HIT_FRACTION, abs=0.004)
    assert len(set(counts)) > 12


def test_reloading_gives_the_same_bytes() -> None:
    for name in (f"{SMALL}/0", f"{SMALL}/9"):
        registry, oracle = load_registry(name)
        assert (registry.hash, oracle.hash) == (loaded(name)[0].hash, loaded(name)[1].hash)


@pytest.mark.parametrize("name", FROZEN)
def test_the_bytes_of_an_instance_are_frozen(name: str) -> None:
    registry, oracle = loaded(name)
    assert (registry.hash, oracle.hash) == FROZEN[name]


def test_instances_differ_in_truth_and_in_prior() -> None:
    hashes = {(loaded(f"{SMALL}/{i}")[0].hash, loaded(f"{SMALL}/{i}")[1].hash) for i in range(6)}
    assert len({public for public, _ in hashes}) == len({private for _, private in hashes}) == 6


def test_a_salt_changes_effects_prior_and_random_streams_but_no_name() -> None:
    registry, oracle = loaded(f"{SMALL}/3")
    salted, private = load_registry(f"{SMALL}/3", salt="secret")
    assert np.mean(private.signal == oracle.signal) < 0.01
    prior = [r.side_tables["prior"].values for r in (registry, salted)]
    assert np.mean(prior[0] == prior[1]) < 0.01
    assert private.key("tape", 0) != oracle.key("tape", 0)
    assert salted.identifiers == registry.identifiers
    assert load_registry(f"{SMALL}/3", salt=b"secret")[1].hash == private.hash


def test_the_prior_is_as_good_as_the_mean_of_five_lines_was_seen_to_be() -> None:
    precisions = []
    for i in range(12):
        registry, oracle = loaded(f"{FULL}/{i}")
        top = np.argsort(-registry.side_tables["prior"].values, kind="stable")[:95]
        precisions.append(oracle.labels[top].mean())
    assert precisions[0] == pytest.approx(0.936, abs=0.06)
    assert np.mean(precisions) == pytest.approx(0.936, abs=0.025)


def test_lines_share_module_and_gene_and_keep_a_third_of_their_variance() -> None:
    draw = Draw(FULL, 7, b"")
    shared = shared_scores(draw, m=18159, rho=0.4)
    lines = [line_scores(draw, shared, line=line, rho=0.4) for line in range(6)]
    assert np.std(lines) == pytest.approx(1.0, abs=0.02)
    for a, b in combinations(lines, 2):
        assert np.corrcoef(a, b)[0, 1] == pytest.approx(0.67, abs=0.02)


@pytest.mark.parametrize(("rho", "low", "high"), [(0.4, 0.36, 0.44), (0.0, -0.01, 0.01)])
def test_candidates_of_a_module_correlate_by_the_structure(
    rho: float, low: float, high: float
) -> None:
    draw = Draw(FULL, 5, b"")
    shared = shared_scores(draw, m=18159, rho=rho)
    scores = line_scores(draw, shared, line=0, rho=rho)
    modules = np.array(module_labels(symbol_subset(18159)))
    order = np.argsort(modules, kind="stable")
    left, right = scores[order][:-1], scores[order][1:]
    same = modules[order][:-1] == modules[order][1:]
    assert low < np.corrcoef(left[same], right[same])[0, 1] < high


def test_hits_cluster_in_modules_only_where_there_is_structure() -> None:
    def spread(structure: float) -> float:
        registry, oracle = load_registry(f"{FULL}/4", structure=structure)
        _, codes = np.unique(registry.side_tables["module"].values, return_inverse=True)
        sizes = np.bincount(codes)
        rates = np.bincount(codes, oracle.labels) / sizes
        overall = oracle.labels.mean()
        # Variance of module hit rates over what independent labels would give.
        return float(np.mean((rates - overall) ** 2 / (overall * (1 - overall) / sizes)))

    assert spread(0.0) == pytest.approx(1.0, abs=0.15)
    assert spread(0.4) > 3.0


def test_the_truth_is_not_affine_in_a_side_table() -> None:
    registry, oracle = loaded(FULL)
    prior = registry.side_tables["prior"].values
    for truth in (oracle.signal, oracle.labels.astype(float)):
        assert abs(np.corrcoef(prior, truth)[0, 1]) < 0.95
    modules = registry.side_tables["module"].values
    mixed = [np.ptp(oracle.labels[modules == label].astype(int)) for label in np.unique(modules)]
    assert np.mean(mixed) > 0.5


def test_the_text_for_proposers_says_what_it_is_and_not_which_instance() -> None:
    registry, _ = loaded(f"{FULL}/17")
    text = registry.description + "".join(t.description for t in registry.side_tables.values())
    assert "synthetic: plumbing and calibration, not biology" in text
    assert "below -0.5" in text
    assert not re.search(r"\b17\b", text)
    assert registry.description == loaded(FULL)[0].description


def test_every_instance_of_a_panel_has_the_same_candidates_and_modules() -> None:
    first, other = loaded(SMALL)[0], loaded(f"{SMALL}/8")[0]
    assert first.identifiers == other.identifiers == symbol_subset(RECIPES[SMALL].m)
    assert np.array_equal(first.side_tables["module"].values, other.side_tables["module"].values)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"structure": 1.1}, "structure=1.1 is out of range"),
        ({"structure": 1.0}, "structure=1.0 is out of range"),
        ({"structure": -0.1}, "structure=-0.1"),
        ({"structure": float("nan")}, "structure=nan"),
        ({"structure": "0.4"}, "structure='0.4'"),
        ({"structure": True}, "structure=True"),
        ({"name_information": 1.0}, "name_information=1.0 is out of range"),
        ({"name_information": -0.1}, "name_information=-0.1"),
        ({"name_information": "0.1"}, "name_information='0.1'"),
        ({"instance": -1}, "instance=-1"),
        ({"instance": 1.5}, "instance=1.5"),
    ],
)
def test_an_option_out_of_range_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(RegistryError, match=re.escape(words)):
        load_registry(SMALL, **options)


def test_modules_at_full_structure_have_one_score() -> None:
    draw = Draw(SMALL, 2, b"")
    scores = line_scores(draw, shared_scores(draw, m=6000, rho=1.0), line=0, rho=1.0)
    modules = np.array(module_labels(symbol_subset(6000)))
    assert len(set(scores.tolist())) == len(set(modules.tolist()))


def test_named_complexes_and_families_are_modules_of_at_most_25() -> None:
    symbols = symbol_subset(18159)
    labels = module_labels(symbols)
    of = dict(zip(symbols, labels, strict=True))
    assert of["RPL3"].startswith("RPL-")
    assert of["RPLP0"].startswith("RPL-")
    assert of["PSMA1"].startswith("PSM-")
    assert of["CCT2"] == of["CCT8"] == "CCT-1"
    families = {label.rsplit("-", 1)[0] for label in labels}
    expected = {"RPL", "RPS", "PSM", "POLR", "SNRP", "MCM", "CCT", "EIF", "NUP", "ZNF"}
    assert expected <= families
    sizes = np.unique(np.array(labels), return_counts=True)[1]
    assert sizes.max() == LARGEST_MODULE
    assert sizes.min() >= 6
    assert 20 < sizes.mean() <= 25


def test_large_families_are_cut_into_near_equal_alphabetical_blocks() -> None:
    symbols = [f"ABC{i:03d}" for i in range(60)] + [f"X{i:03d}Y" for i in range(3)]
    labels = module_labels(symbols)
    assert labels == ("ABC-1",) * 20 + ("ABC-2",) * 20 + ("ABC-3",) * 20 + ("OTHER-1",) * 3


def test_a_smaller_symbol_set_is_part_of_a_larger_one_in_alphabetical_order() -> None:
    small, large = symbol_subset(6000), symbol_subset(18159)
    assert list(small) == sorted(small)
    assert set(small) < set(large)
    with pytest.raises(RegistryError, match="18421 gene symbols"):
        symbol_subset(20000)


def test_the_scale_registry_has_any_size_and_made_up_names() -> None:
    registry, oracle = load_registry("synthetic-scale", m=20000)
    assert (registry.m, registry.identifiers[0]) == (20000, "G0000001")
    assert registry.name == "synthetic-scale/0+m=20000"
    assert not registry.side_tables
    assert oracle.labels.mean() == pytest.approx(HIT_FRACTION, abs=0.01)
    _, longer = load_registry("synthetic-scale", m=30000)
    assert np.array_equal(longer.signal[:20000], oracle.signal)


@pytest.mark.parametrize("m", [1, 0, -5, 1e6, True, 10**9])
def test_the_scale_registry_refuses_an_impossible_size(m: object) -> None:
    with pytest.raises(RegistryError, match="m="):
        load_registry("synthetic-scale", m=m)

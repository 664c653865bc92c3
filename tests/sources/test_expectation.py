"""Name information: what a name leads one to expect, and how far effects follow it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from cads_env.panel import load_panel, load_registry
from cads_env.proposer import View
from cads_env.registry import Oracle, Registry
from cads_env.run import evaluate
from cads_env.sources.expectation import expected_scores, name_strengths
from cads_env.sources.modules import symbol_subset
from cads_env.sources.synthetic import Draw, line_scores, named_scores, shared_scores

FULL = "synthetic-depmap"
SMALL = "synthetic-depmap-6000"
M = 18159


@cache
def loaded(name: str, nu: float) -> tuple[Registry, Oracle]:
    return load_registry(name, name_information=nu)


def scores_of(instance: int, line: int, nu: float) -> NDArray[np.float64]:
    draw = Draw(FULL, instance, b"")
    shared = shared_scores(draw, m=M, rho=0.4)
    return named_scores(line_scores(draw, shared, line=line, rho=0.4), FULL, nu=nu)


def test_names_of_core_machines_are_expected_to_be_essential() -> None:
    symbols = symbol_subset(M)
    strength = dict(zip(symbols, name_strengths(symbols).tolist(), strict=True))
    for name in ("RPL3", "RPLP0", "RPS19", "PSMA1", "POLR2B", "SNRPD1", "MCM2", "CCT2", "NUP107"):
        assert strength[name] == 3.0, name
    for name in ("RPS6KA1", "PSMB8", "TP53", "ZNF10", "OR1A1", "KRT1", "MCMBP", "EIF2AK1"):
        assert strength[name] == 0.0, name
    assert 0.05 < np.mean(np.array(list(strength.values())) > 0) < 0.1


def test_expected_scores_are_standard_normal_with_the_core_machines_at_the_strong_end() -> None:
    scores = expected_scores(FULL, M)
    assert scores.mean() == pytest.approx(0, abs=1e-9)
    assert scores.std() == pytest.approx(1, abs=1e-3)
    assert np.unique(scores).size == M
    strength = name_strengths(symbol_subset(M))
    assert scores[strength == 3.0].mean() < -1.5
    assert (strength > 0.0)[np.argsort(scores)[:300]].mean() > 0.9


def test_expected_scores_belong_to_the_panel_and_cannot_be_changed() -> None:
    assert np.abs(np.corrcoef(expected_scores(FULL, M), expected_scores("x", M))[0, 1]) < 0.5
    with pytest.raises(ValueError, match="read-only"):
        expected_scores(FULL, M)[0] = 0.0


def test_scores_keep_their_distribution_and_share_what_names_tell() -> None:
    expected = expected_scores(FULL, M)
    lines = [scores_of(instance, line, 0.25) for instance in (3, 4) for line in (0, 1)]
    for scores in lines:
        assert scores.mean() == pytest.approx(0, abs=0.06)
        assert scores.std() == pytest.approx(1, abs=0.02)
        assert np.corrcoef(expected, scores)[0, 1] == pytest.approx(0.25, abs=0.02)
    for other in lines[2:]:
        assert np.corrcoef(lines[0], other)[0, 1] == pytest.approx(0.0625, abs=0.03)
    # A companion shares name, module and gene: .0625 + .9375 (.40 + .27).
    assert np.corrcoef(lines[0], lines[1])[0, 1] == pytest.approx(0.6906, abs=0.02)


def test_without_name_information_instances_share_nothing() -> None:
    assert abs(np.corrcoef(scores_of(3, 0, 0.0), scores_of(4, 0, 0.0))[0, 1]) < 0.03


def test_effects_keep_their_distribution_whatever_names_tell() -> None:
    plain, named = loaded(f"{SMALL}/0", 0.0)[1], loaded(f"{SMALL}/0", 0.25)[1]
    assert np.array_equal(np.sort(plain.signal), np.sort(named.signal))
    assert not np.array_equal(plain.signal, named.signal)
    counts = [loaded(f"{SMALL}/{i}", 0.25)[1].hit_count for i in range(1, 13)]
    assert np.mean(counts) / 6000 == pytest.approx(1822 / 18159, abs=0.006)


def test_hits_of_two_instances_overlap_by_name_as_far_as_names_tell() -> None:
    def overlap(nu: float) -> float:
        first, other = (loaded(f"{FULL}/{i}", nu)[1].labels for i in (1, 600))
        return float((first & other).sum() / first.sum())

    assert overlap(0.0) == pytest.approx(0.1, abs=0.03)
    assert overlap(0.0) + 0.02 < overlap(0.25) < overlap(0.5) - 0.05 < 0.5


def test_a_salt_changes_effects_but_not_what_names_lead_one_to_expect() -> None:
    plain = loaded(f"{FULL}/3", 0.25)[1]
    salted = load_registry(f"{FULL}/3", name_information=0.25, salt="secret")[1]
    expected = expected_scores(FULL, M)
    assert np.mean(plain.signal == salted.signal) < 0.01
    for oracle in (plain, salted):
        assert np.mean(expected[oracle.labels]) < -0.3


def test_name_information_is_part_of_the_name_of_a_registry_and_of_a_panel() -> None:
    registry, _ = loaded(f"{SMALL}/3", 0.1)
    assert registry.name == f"{SMALL}/3+name_information=0.1"
    assert loaded(f"{SMALL}/3", 0.0)[0].name == f"{SMALL}/3"
    panel = load_panel(f"{SMALL}:eval", name_information=0.1)
    assert panel.name == f"{SMALL}:eval+name_information=0.1"


def test_the_prior_still_tells_of_the_screened_line() -> None:
    registry, oracle = loaded(f"{FULL}/5", 0.25)
    top = np.argsort(-registry.side_tables["prior"].values, kind="stable")[:95]
    assert oracle.labels[top].mean() > 0.85


def test_the_bytes_of_a_named_instance_are_frozen() -> None:
    registry, oracle = loaded(f"{SMALL}/17", 0.1)
    assert (registry.hash, oracle.hash) == (
        "b4b82ada01b6e477ccd2594a3623f2b10f6815ceb04e444116fe9a419885501a",
        "15b991e985572ad9ae3c1335ea137f3ebf42dab90317a280718653cf4ef54928",
    )


class Fixed:
    """Proposes one list in its order."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def propose(self, view: View) -> Sequence[str]:
        tested = set(view.tested)
        return [name for name in self.names if name not in tested][: view.slots]


def test_a_fixed_list_of_expected_genes_nets_something_only_where_names_say_something() -> None:
    # What anyone knows without an answer: ribosome, proteasome, splicing, replication, chaperonin.
    families = ("RPL", "RPS", "PSMA", "PSMB", "PSMD", "SNRP", "POLR2", "MCM", "CCT", "EIF3")
    symbols = load_registry(FULL)[0].identifiers
    known = [name for family in families for name in symbols if name.startswith(family)]
    nets = {}
    for nu in (0.0, 0.25):
        panel = load_panel(f"{FULL}:train", name_information=nu)
        run = evaluate(
            {"known": lambda: Fixed(known)}, registry=panel, protocol="standard", seeds=range(12)
        )
        nets[nu] = run.campaigns["net"].to_numpy(float)
    error = nets[0.25].std(ddof=1) / np.sqrt(12)
    assert nets[0.25].mean() > 2 * error
    assert nets[0.25].mean() > nets[0.0].mean() + 1

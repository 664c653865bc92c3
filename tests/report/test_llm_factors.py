"""Measured factors against their recomputation: by scipy, and by the comparison of runs."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from cads_env import RunResult
from cads_env.report.llm import probes as probing
from cads_env.report.llm.arms import (
    Arm,
    SettingRun,
    arms_of,
    find,
    primary,
    prompt_pairs,
    setting_runs,
)
from cads_env.report.llm.factors import (
    against_floors,
    estimate_of,
    flat_p,
    naive_fdr,
    origins,
    paired,
    precision,
    prompt_effects,
    scores,
)
from cads_env.report.llm.feedback import _gate, gates, splits
from cads_env.report.llm.probes import probes, values_of_names
from cads_env.report.llm.tables import leak_words
from cads_env.run import compare
from cads_env.run.grid import Grid
from tests.report.conftest import panel
from tests.report.llm_cases import ARMS, play_grid


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Grid:
    """Every feedback, on three registries."""
    return play_grid(
        tmp_path_factory.mktemp("grids") / "feedback",
        feedback=("full", "none", "permuted", "proposer=permuted"),
        registry=panel(3),
        seeds=range(12),
    )


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """One setting on one registry."""
    folder = tmp_path_factory.mktemp("grids") / "one"
    return play_grid(folder, registry=panel(1), seeds=range(10)).runs["as-protocol"]


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Grid:
    """Every kind of identifiers that an arm without side tables can play."""
    return play_grid(
        tmp_path_factory.mktemp("grids") / "identifiers",
        identifiers=("named", "blinded", "shuffled"),
        arms=ARMS[:4],
    )


def frame(run: RunResult, arm: str) -> pd.DataFrame:
    rows = run.campaigns[run.campaigns["arm"] == arm]
    return rows.set_index(["registry", "seed"])


def test_origins_add_up_to_the_net(grid: Grid) -> None:
    run = grid.runs["full"]
    found = {o.arm: o for o in origins(run)}
    assert list(found) == list(run.arms)
    for arm, o in found.items():
        assert o.net == pytest.approx(o.originated - o.displaced)
        assert o.net == pytest.approx(o.gained - o.lost)
        assert o.certified == pytest.approx(o.originated + o.by_fallback)
        means = frame(run, arm).groupby("registry")["displaced"].mean()
        assert o.displaced == pytest.approx(means.mean())


def test_precision_is_the_mean_of_the_campaigns_own(one: RunResult) -> None:
    rows = frame(one, "qwen/thin")
    shares = (rows["proposed_hits"] / rows["accepted"]).to_numpy()
    found = precision(one, "qwen/thin")
    low, high = stats.t.interval(0.95, len(shares) - 1, shares.mean(), stats.sem(shares))
    assert found.estimate.mean == pytest.approx(shares.mean())
    assert (found.estimate.low, found.estimate.high) == pytest.approx((low, high))
    assert (found.hits, found.filled) == (rows["proposed_hits"].sum(), rows["accepted"].sum())
    campaigns = one.campaigns.copy()
    campaigns.loc[campaigns["seed"] == 0, ["accepted", "proposed_hits"]] = 0
    without = precision(dataclasses.replace(one, campaigns=campaigns), "qwen/thin")
    assert without.estimate.n == found.estimate.n - 1


def test_naive_fdr_is_the_mean_share_of_nulls(one: RunResult) -> None:
    rows = frame(one, "random")
    total = rows["naive_true"] + rows["naive_false"]
    shares = np.where(total > 0, rows["naive_false"] / np.maximum(total, 1), 0.0)
    assert naive_fdr(one, "random") == pytest.approx(shares.mean())
    assert math.isnan(naive_fdr(one, "nobody"))


def test_prompt_effects_are_those_of_the_comparison_of_runs(grid: Grid) -> None:
    run = grid.runs["full"]
    (effect,) = prompt_effects(run)
    assert (effect.arm.name, effect.base.name) == ("qwen/informed", "qwen/thin")
    (row,) = compare(run, contrasts=[("qwen/informed", "qwen/thin")]).rows
    assert effect.contrast.estimate == row.contrast.estimate
    assert effect.contrast.holm == row.contrast.holm
    assert effect.contrast.equivalence == row.contrast.equivalence
    mine, other = frame(run, "qwen/informed"), frame(run, "qwen/thin")
    change = mine["proposed_hits"] / mine["accepted"] - other["proposed_hits"] / other["accepted"]
    by_registry = change.groupby("registry").mean().to_numpy()
    test = stats.ttest_1samp(by_registry, 0)
    assert effect.precision.estimate.mean == pytest.approx(by_registry.mean())
    assert effect.precision.estimate.p_value == pytest.approx(test.pvalue)


def test_the_family_of_prompts_is_each_against_its_models_baseline() -> None:
    def arm(model: str, prompt: str, *, guided: bool = False) -> Arm:
        name = f"{model}/{prompt}{'+guided' if guided else ''}"
        return Arm(name, model, prompt, guided, True, (model,), f"{model} {guided}")

    arms = [
        arm("a", "informed"), arm("a", "thin"), arm("a", "asked"), arm("b", "listed"),
        arm("b", "asked"), arm("c", "thin"), arm("a", "thin", guided=True), arm("random", ""),
    ]  # fmt: skip
    pairs = [(one.name, other.name) for one, other in prompt_pairs(arms)]
    assert pairs == [("a/informed", "a/thin"), ("a/asked", "a/thin"), ("b/asked", "b/listed")]


def test_arms_that_differ_in_more_than_the_prompt_are_no_pair(one: RunResult) -> None:
    agents = [dict(agent) for agent in one.manifest["config"]["agents"]]
    agents[0] = {**agents[0], "options": {**agents[0]["options"], "temperature": 0}}
    config = {**one.manifest["config"], "agents": agents}
    changed = dataclasses.replace(one, manifest={**one.manifest, "config": config})
    assert prompt_effects(one)
    assert prompt_effects(changed) == ()


def test_prompts_are_known_by_name_path_and_content(one: RunResult) -> None:
    config = dict(one.manifest["config"])
    texts: list[object] = ["thin", "/my/own.yaml", {"name": "mine", "sha256": "0"}, 3]
    config["agents"] = [
        {"arm": f"x{i}/thin", "source": "m:LLMProposer", "options": {"prompt": text}}
        for i, text in enumerate(texts)
    ]
    changed = dataclasses.replace(one, manifest={**one.manifest, "config": config})
    arms = list(arms_of(changed).values())
    assert [arm.prompt for arm in arms] == ["thin", "own", "mine", ""]
    assert [arm.model for arm in arms] == ["x0", "x1/thin", "x2/thin", "x3/thin"]


def test_floors_are_paired_with_every_model_arm(grid: Grid) -> None:
    run = grid.runs["full"]
    found = dict(against_floors(run))
    (row,) = compare(run, contrasts=[("broken/thin", "random")]).rows
    assert found["broken/thin - random"].estimate == row.contrast.estimate
    assert found["broken/thin - random"].second_only == row.second_only > 0
    (row,) = compare(run, contrasts=[("prior", "qwen/informed")]).rows
    assert found["prior - qwen/informed"].estimate == row.contrast.estimate
    assert len(found) == 6


def test_the_gate_is_the_certified_hits_paired_over_feedbacks(grid: Grid) -> None:
    found = {gate.arm: gate for gate in gates(setting_runs(grid.runs))}
    assert list(found) == ["", *grid.runs["full"].arms]
    for mode in ("none", "permuted"):
        runs = [grid.runs["full"], grid.runs[mode]]
        rows = compare(runs, score="true", across={"protocol"}).rows
        for row, arm in zip(rows, grid.runs["full"].arms, strict=True):
            estimate = found[arm].contrasts[mode].estimate
            assert abs(estimate.mean) == pytest.approx(abs(row.contrast.estimate.mean))
            assert estimate.p_value == pytest.approx(row.contrast.estimate.p_value)
    for gate in found.values():
        assert gate.passes == all(gate.contrasts[m].estimate.low > 0 for m in gate.contrasts)
    twin = grid.runs["full"].campaigns.groupby(["registry", "seed"])["twin_true"].first()
    other = grid.runs["none"].campaigns.groupby(["registry", "seed"])["twin_true"].first()
    means = (twin - other).groupby("registry").mean()
    assert found[""].contrasts["none"].estimate.mean == pytest.approx(means.mean())


def test_a_gate_passes_only_above_both_controls(grid: Grid) -> None:
    def shifted(run: RunResult, true: float) -> RunResult:
        campaigns = run.campaigns.copy()
        campaigns["true"] = true + campaigns["seed"] % 2
        return dataclasses.replace(run, campaigns=campaigns)

    runs = {name: shifted(run, 9 if name == "full" else 2) for name, run in grid.runs.items()}
    assert all(gate.passes for gate in gates(setting_runs(runs)) if gate.arm)
    runs["permuted"] = shifted(grid.runs["permuted"], 9)
    assert not any(gate.passes for gate in gates(setting_runs(runs)) if gate.arm)
    del runs["permuted"]
    assert {gate.passes for gate in gates(setting_runs(runs))} == {None}
    del runs["full"]
    assert gates(setting_runs(runs)) == ()


def test_the_split_contrast_keeps_re_selections_feedback(grid: Grid) -> None:
    found = splits(setting_runs(grid.runs))
    assert [s.arm for s in found] == list(grid.runs["full"].arms)
    for split in found:
        mine = scores(grid.runs["full"], split.arm, "true")
        theirs = scores(grid.runs["proposer-permuted"], split.arm, "true")
        assert split.contrast == paired(mine, theirs)
    assert splits(setting_runs({"full": grid.runs["full"]})) == ()


def test_settings_are_known_by_their_runs_and_not_by_their_names(grid: Grid) -> None:
    renamed = {f"x{i}": run for i, run in enumerate(reversed(grid.runs.values()))}
    settings = setting_runs(renamed)
    assert primary(settings).run is grid.runs["full"]
    assert [s.feedback for s in settings] == ["proposer=permuted", "permuted", "none", "full"]
    assert find(settings, "none") is not None
    assert find(settings, "none", "full") is None
    assert primary(settings[:2]) is settings[0]


def as_mode(run: RunResult, mode: str, nets: list[int]) -> SettingRun:
    """A setting whose arms have these nets on the seeds of one registry."""
    rows = [
        {"arm": arm, "registry": "r", "seed": seed, "net": net + bump}
        for bump, arm in enumerate(("calm", "odd"))
        for seed, net in enumerate(nets)
    ]
    frame = pd.DataFrame(rows)
    frame.loc[frame["arm"] == "calm", "net"] = [1, -1] * (len(nets) // 2)
    changed = dataclasses.replace(
        run, campaigns=frame, arms=dict.fromkeys(("calm", "odd")), identifiers=mode
    )
    return SettingRun(mode, changed, "full", "full", mode)


def test_an_interval_off_zero_without_names_is_a_leak_or_luck(one: RunResult) -> None:
    modes = ("named", "shuffled", "blinded")
    settings = [as_mode(one, mode, [3, 4, 5, 4, 3, 5]) for mode in modes]
    found = {(p.arm, p.mode): p for p in probes(settings)}
    assert found["calm", "shuffled"].is_clean
    assert found["odd", "shuffled"].is_clean is False
    assert found["odd", "shuffled"].is_decided
    assert found["odd", "named"].is_clean is None
    raw = [found[arm, mode].net.p_value for arm in ("calm", "odd") for mode in modes[1:]]
    assert found["odd", "shuffled"].holm == pytest.approx(min(1, 4 * min(raw)))
    words = leak_words([found["odd", mode] for mode in modes[1:]])
    assert words.startswith("LEAK or luck: shuffled +5.00, p (Holm) ")
    assert leak_words([found["calm", mode] for mode in modes[1:]]) == "none seen"
    assert leak_words([]) == "-"
    below = probes([as_mode(one, "shuffled", [-3, -4, -5, -4, -3, -5])])
    assert [p.is_clean for p in below] == [True, False]


def test_values_of_names_are_paired_by_registry_and_seed(named: Grid) -> None:
    settings = setting_runs(named.runs)
    found = {(p.arm, p.mode): p for p in probes(settings)}
    assert {mode for _, mode in found} == {"named", "blinded", "shuffled"}
    values = values_of_names(settings)
    assert {v.mode for v in values} == {"shuffled"}
    for value in values:
        pair = [named.runs[name] for name in ("named", "shuffled")]
        (row,) = (
            r
            for r in compare(pair, across={"identifiers"}).rows
            if r.first.endswith(f":{value.arm}")
        )
        assert value.contrast.estimate.mean == pytest.approx(-row.contrast.estimate.mean)
    assert probes(setting_runs({"named": named.runs["named"]})) == ()


def test_registries_that_agree_by_chance_are_no_leak_and_pass_no_gate() -> None:
    two = {("a", 0): 2.0, ("a", 1): 1.0, ("b", 0): 0.0, ("b", 1): 3.0}
    assert (estimate_of(two).low, estimate_of(two).p_value) == (1.5, 0.0)
    assert flat_p(two) == pytest.approx(0.25)
    many = {(name, seed): 1.5 for name in "ab" for seed in range(3)}
    assert flat_p(many) == pytest.approx(2.0**-5)
    zeros = dict.fromkeys(many | two, 0.0)
    assert flat_p(zeros) is None
    assert flat_p({**two, ("b", 1): 2.0}) is None
    assert flat_p({("a", 0): 1.0}) is None
    assert _gate("x", two, {"none": zeros, "permuted": zeros}).passes is None
    assert _gate("x", many, {"none": zeros, "permuted": zeros}).passes is True


def test_a_flat_net_of_few_units_under_shuffled_names_is_not_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = play_grid(tmp_path / "grid", identifiers=("named", "shuffled"), seeds=range(2))
    flat = {("a", 0): 1.0, ("b", 0): 1.0}
    monkeypatch.setattr(probing, "scores", lambda run, arm, column: flat)
    found = [p for p in probing.probes(setting_runs(grid.runs)) if p.mode == "shuffled"]
    assert {(p.is_clean, p.is_decided) for p in found} == {(None, False)}

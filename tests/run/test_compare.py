"""Contrasts over shared campaigns, and runs put together and taken apart."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cads_env.errors import RunError
from cads_env.inference import clustered, holm, tost
from cads_env.panel import Panel
from cads_env.proposer import Nothing, ProposerFailed, View
from cads_env.registry import Oracle
from cads_env.run import compare, evaluate, evaluate_grid, load_run, merge, settings_of, split
from cads_env.testing import tiny_protocol, tiny_registry

PAIRS = [tiny_registry(name=f"tiny-{i}") for i in range(2)]
PANEL = Panel.of(PAIRS, name="tinies")
PROTOCOL = tiny_protocol(reads_each=4, certificate={"q": 0.3})
ROWS = ("campaigns", "declarations", "reads", "rounds")


def run(folder: Path, agents: object, **changes: Any) -> Path:
    arguments: dict[str, Any] = {"registry": PANEL, "protocol": PROTOCOL, "seeds": range(6)}
    evaluate(agents, out=folder, **(arguments | changes))
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("runs")
    both = ["module-learner", "random"]
    return {
        "all": run(place / "all", both),
        "early": run(place / "early", both, seeds=range(4)),
        "late": run(place / "late", both, seeds=range(2, 6)),
        "learner": run(place / "learner", both[:1]),
        "random": run(place / "random", both[1:]),
        "prior": run(place / "prior", "prior"),
    }


def test_a_contrast_is_the_clustered_mean_of_paired_differences(runs: dict[str, Path]) -> None:
    found = compare(runs["all"], margin=2)
    frame = load_run(runs["all"]).campaigns
    a, b = (
        frame[frame["arm"] == arm].set_index(["registry", "seed"]).sort_index()
        for arm in ("random", "module-learner")
    )
    differences = (a["net"] - b["net"]).tolist()
    estimate = clustered(differences, [key[0] for key in a.index])
    (row,) = found.rows
    assert row.contrast.name == "random - module-learner"
    assert row.contrast.estimate[:7] == pytest.approx(estimate[:7])
    assert row.contrast.estimate[7:] == estimate[7:]
    assert row.contrast.equivalence == pytest.approx(tost(estimate, margin=2))
    assert (row.shared, row.first_only, row.second_only) == (6, 0, 0)


def test_only_shared_campaigns_are_paired_and_the_rest_is_counted(runs: dict[str, Path]) -> None:
    found = compare([runs["early"], runs["late"]])
    assert [(r.first, r.second) for r in found.rows] == [
        ("late:module-learner", "early:module-learner"),
        ("late:random", "early:random"),
    ]
    assert [(r.shared, r.first_only, r.second_only) for r in found.rows] == [(2, 2, 2)] * 2
    assert all(r.contrast.estimate.mean == 0 for r in found.rows)


def test_the_family_is_what_was_declared(runs: dict[str, Path]) -> None:
    folders = [runs["learner"], runs["random"], runs["prior"]]
    every = compare(folders)
    assert len(every.rows) == 3
    raw = [row.contrast.estimate.p_value for row in every.rows]
    assert [row.contrast.holm for row in every.rows] == pytest.approx(holm(raw).tolist())
    one = compare(folders, contrasts=[("prior:prior", "random:random")])
    assert one.rows[0].contrast.holm == pytest.approx(one.rows[0].contrast.estimate.p_value)
    based = compare(folders, baseline="random:random")
    assert [row.second for row in based.rows] == ["random:random"] * 2


def other_truth(scale: float) -> Panel:
    pairs = [
        (r, Oracle(np.array(o.signal) * scale, o.labels, o.panel, o.instance)) for r, o in PAIRS
    ]
    return Panel.of(pairs, name="tinies")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"protocol": PROTOCOL.override(rounds=4)},
            r"differ in protocol\.rounds .*across protocol",
        ),
        ({"feedback": "permuted"}, r"protocol\.feedback_proposer .*--across protocol"),
        ({"certificate": {"q": 0.2}}, r"certificate\.q .*--across certificate"),
        ({"identifiers": "shuffled"}, r"identifiers .*--across identifiers"),
        ({"registry": other_truth(1.5)}, r"'tiny-0' is not the same .*other effects or labels"),
        ({"registry": tiny_registry(name="tiny-0", m=50)}, "other names or side tables"),
        ({"registry": tiny_registry(name="elsewhere")}, "share no scored campaign"),
    ],
)
def test_what_is_not_the_same_campaign_is_never_paired(
    changes: dict[str, Any], message: str, runs: dict[str, Path], tmp_path: Path
) -> None:
    other = run(tmp_path / "other", "random", **changes)
    with pytest.raises(RunError, match=message):
        compare([runs["all"], other])
    with pytest.raises(RunError, match=r"cannot be merged|is not the same"):
        merge([runs["all"], other], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_named_difference_is_allowed_and_noted(runs: dict[str, Path], tmp_path: Path) -> None:
    other = run(tmp_path / "other", "random", feedback="permuted")
    found = compare([runs["all"], other], across=["protocol"], score="true")
    assert any("feedback_proposer" in note for note in found.notes)
    assert not any("--score true" in note for note in found.notes)
    nets = compare([runs["all"], other], across=["protocol"])
    assert any("--score true" in note for note in nets.notes)
    frames = [load_run(folder).campaigns for folder in (other, runs["all"])]
    keyed = [f[f["arm"] == "random"].set_index(["registry", "seed"])["true"] for f in frames]
    expected = (keyed[0] - keyed[1]).groupby("registry").mean().mean()
    assert found.rows[0].contrast.estimate.mean == pytest.approx(expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"contrasts": [("random", "randum")]}, "Did you mean 'random'"),
        ({"contrasts": [("random", "random")]}, "against itself"),
        ({"baseline": "nobody"}, "Unknown arm 'nobody'"),
        ({"baseline": "random", "contrasts": [("random", "module-learner")]}, "one of them"),
        ({"score": "hits"}, "Unknown score 'hits'"),
    ],
)
def test_a_family_that_cannot_be_is_refused(
    arguments: dict[str, Any], message: str, runs: dict[str, Path]
) -> None:
    with pytest.raises(RunError, match=message):
        compare(runs["all"], **arguments)


def test_odd_lists_of_runs_are_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(RunError, match="No run was given"):
        compare([])
    with pytest.raises(RunError, match="given twice"):
        compare([runs["all"], runs["all"]])
    with pytest.raises(RunError, match="Unknown across='seeds'"):
        compare([runs["all"], runs["early"]], across=["seeds"])
    with pytest.raises(RunError, match="nothing to compare"):
        compare(runs["prior"])
    with pytest.raises(RunError, match="at least two"):
        merge([runs["all"]], tmp_path / "out")
    with pytest.raises(RunError, match="holds a run"):
        merge([runs["early"], runs["late"]], runs["all"])


@pytest.mark.parametrize("parts", [("early", "late"), ("learner", "random"), ("late", "all")])
def test_parts_merge_into_the_bytes_of_the_whole(
    parts: tuple[str, str], runs: dict[str, Path], tmp_path: Path
) -> None:
    merged = merge([runs[name] for name in sorted(parts)], tmp_path / "out")
    assert merged.status == "complete"
    whole = load_run(runs["all"])
    assert merged.arms == whole.arms
    for name in (*(f"{name}.jsonl" for name in ROWS), "manifest.json"):
        assert (tmp_path / "out" / name).read_bytes() == (runs["all"] / name).read_bytes(), name


def test_a_merge_with_gaps_is_gone_on_with(runs: dict[str, Path], tmp_path: Path) -> None:
    early = run(tmp_path / "early", "random", seeds=range(2))
    merged = merge([runs["learner"], early], tmp_path / "out")
    assert merged.status == "interrupted"
    assert load_run(tmp_path / "out").manifest["reason"] == "4 campaigns are still to be played"
    run(tmp_path / "out", ["module-learner", "random"])
    for name in ROWS:
        files = [
            (folder / f"{name}.jsonl").read_bytes() for folder in (tmp_path / "out", runs["all"])
        ]
        assert files[0] == files[1]


def test_a_split_is_the_run_of_those_campaigns(runs: dict[str, Path], tmp_path: Path) -> None:
    split(runs["all"], tmp_path / "learner", arms=["module-learner"])
    split(runs["all"], tmp_path / "early", seeds=range(4))
    for name in ("learner", "early"):
        for kind in ROWS:
            one, two = (folder / f"{kind}.jsonl" for folder in (tmp_path / name, runs[name]))
            assert one.read_bytes() == two.read_bytes(), (name, kind)
    of_one = split(runs["all"], tmp_path / "registry", registries=["tiny-1"])
    assert set(of_one.campaigns["registry"]) == {"tiny-1"}
    assert [r["name"] for r in of_one.manifest["registries"]] == ["tiny-1"]
    for arguments, message in (
        ({"arms": ["rendom"]}, "no arm 'rendom'. Did you mean 'random'"),
        ({"seeds": [77]}, "no seed '77'"),
        ({"registries": ["tiny-7"]}, "no registry 'tiny-7'"),
        ({"registries": ["tiny-1"], "seeds": [0]}, "No campaign of .* is left"),
    ):
        with pytest.raises(RunError, match=message):
            split(runs["all"], tmp_path / "none", **arguments)  # type: ignore[arg-type]
    assert not (tmp_path / "none").exists()


def test_failures_travel_and_a_scored_campaign_wins(tmp_path: Path) -> None:
    class Fails(Nothing):
        def propose(self, view: View) -> Sequence[str]:
            if flag.exists():
                return ()
            msg = "down"
            raise ProposerFailed(msg)

    flag = tmp_path / "flag"
    failed = run(tmp_path / "failed", {"a": Fails}, seeds=range(3))
    flag.touch()
    good = run(tmp_path / "good", {"a": Fails}, seeds=range(2))
    both = merge([failed, good], tmp_path / "both")
    assert [f.seed for f in both.failures] == [2]
    assert both.campaigns["seed"].tolist() == [0, 1]
    assert both.status == "complete"


def test_different_tellings_of_one_campaign_are_refused(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    other = split(runs["early"], tmp_path / "early")
    path = tmp_path / "early" / "campaigns.jsonl"
    path.write_text(path.read_text().replace('"tested_hits":', '"tested_hits":1', 1))
    manifest = json.loads((tmp_path / "early" / "manifest.json").read_text())
    manifest["status"] = "interrupted"
    (tmp_path / "early" / "manifest.json").write_text(json.dumps(manifest))
    assert other.status == "complete"
    with pytest.raises(RunError, match="tell different things of the campaign"):
        merge([runs["late"], tmp_path / "early", runs["all"]], tmp_path / "out")
    apart = merge([runs["all"], tmp_path / "early"], tmp_path / "apart", label_arms=True)
    assert list(apart.arms)[-1] == "early:random"


def test_every_pair_of_several_runs_is_checked(tmp_path: Path) -> None:
    # The first run meets neither of the two that differ.
    first = run(tmp_path / "m1", "random", seeds=[0, 2])
    second = run(tmp_path / "m2", "random", seeds=[1])
    registry, oracle = PAIRS[1]
    signal = np.array(oracle.signal) * 1.5
    changed = (registry, Oracle(signal, oracle.labels, oracle.panel, oracle.instance))
    panel = Panel.of([PAIRS[0], changed], name="tinies")
    third = run(tmp_path / "m3", "random", seeds=[3], registry=panel)
    for call in (lambda: merge([first, second, third], tmp_path / "out"),
                 lambda: compare([first, second, third])):  # fmt: skip
        with pytest.raises(RunError, match="'tiny-1' is not the same"):
            call()


def test_contrasts_whose_names_would_collide_stay_apart(tmp_path: Path) -> None:
    arms = {"a": "random", "b - c": "prior", "a - b": "module-learner", "c": "nothing"}
    folder = run(tmp_path / "run", arms)
    found = compare(folder, contrasts=[("a", "b - c"), ("a - b", "c")])
    assert [row.contrast.name for row in found.rows] == ["'a' - 'b - c'", "'a - b' - 'c'"]


def test_an_arm_that_failed_everywhere_does_not_hide_the_others(tmp_path: Path) -> None:
    class Fails(Nothing):
        def propose(self, view: View) -> Sequence[str]:
            msg = "down"
            raise ProposerFailed(msg)

    folder = run(tmp_path / "run", {"a": "random", "b": "prior", "c": Fails})
    found = compare(folder)
    assert [row.shared for row in found.rows] == [6, 0, 0]
    assert [row.contrast.verdict for row in found.rows][1:] == ["not decided"] * 2
    # It stays in the family that was declared.
    assert found.rows[0].contrast.holm == pytest.approx(
        min(1.0, 3 * found.rows[0].contrast.estimate.p_value)
    )


def test_the_last_part_of_an_arms_name_is_enough_where_only_one_has_it(tmp_path: Path) -> None:
    folder = run(tmp_path / "a", {"x/thin": "random", "x/long": "prior", "y/long": Nothing})
    (row,) = compare(folder, contrasts=[("thin", "x/long")]).rows
    assert (row.first, row.second) == ("x/thin", "x/long")
    assert compare(folder, baseline="thin").rows[0].second == "x/thin"
    with pytest.raises(RunError, match="last part of several arms: x/long, y/long"):
        compare(folder, contrasts=[("thin", "long")])
    with pytest.raises(RunError, match="Unknown arm 'hin'"):
        compare(folder, contrasts=[("hin", "x/long")])


def test_a_grid_is_compared_setting_by_setting_as_one_family(tmp_path: Path) -> None:
    settings = settings_of(["full", "permuted"])
    arms = {"x/a": "random", "x/b": "prior"}
    grid = evaluate_grid(arms, settings=settings, registry=PANEL, protocol=PROTOCOL,
                         seeds=range(6), out=tmp_path / "g")  # fmt: skip
    found = compare(tmp_path / "g", contrasts=[("b", "a")])
    assert found == compare(grid, contrasts=[("b", "a")])
    assert [row.contrast.name for row in found.rows] == [
        "full: x/b - x/a", "permuted: x/b - x/a",
    ]  # fmt: skip
    assert [(row.first, row.second) for row in found.rows] == [
        ("full:x/b", "full:x/a"), ("permuted:x/b", "permuted:x/a"),
    ]  # fmt: skip
    alone = [compare(tmp_path / "g" / s.name, contrasts=[("b", "a")]).rows[0] for s in settings]
    assert [r.contrast.estimate for r in found.rows] == [r.contrast.estimate for r in alone]
    raw = [row.contrast.estimate.p_value for row in found.rows]
    assert [row.contrast.holm for row in found.rows] == pytest.approx(holm(raw).tolist())
    across = compare([tmp_path / "g" / s.name for s in settings], across=["protocol"], score="true")
    assert [row.first for row in across.rows] == ["permuted:x/a", "permuted:x/b"]
    with pytest.raises(RunError, match="is a grid of settings, which is compared alone"):
        compare([tmp_path / "g", tmp_path / "g" / "full"])
    for file in (tmp_path / "g" / "permuted").iterdir():
        if file.is_file():
            file.unlink()
    assert compare(tmp_path / "g").notes == ("Not begun yet: permuted.",)

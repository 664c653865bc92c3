"""The self-check played from end to end, on tiny registries and few campaigns."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import cads_env
from cads_env import Panel, View
from cads_env.certificate import Certificate
from cads_env.errors import AgentError, RegistryError, RunError
from cads_env.run.executors import Executor
from cads_env.selfcheck import SelfCheck, load_settings, selfcheck
from cads_env.selfcheck.checks import NEGATIVE, POSITIVE
from cads_env.selfcheck.play import play_scenes
from cads_env.selfcheck.scenes import OWN, OWN_TRAIN, choose_agents, make_stage
from cads_env.testing import tiny_registry

RULES = cads_env.load_protocol(
    "standard", rounds=4, first_fresh=8, fresh=4, reread_candidates=6, reads_each=4
)
PANEL = Panel.of([tiny_registry(60, 15, seed=i, name=f"tiny-{i}") for i in range(2)], name="tiny")
GRID = load_settings(
    {"surface": {"structure": [0.0, 0.4], "name_information": [0.0, 0.25]}}
).with_seeds(2)


class Breaks:
    """An agent with a bug."""

    def propose(self, view: View) -> Sequence[str]:
        """Never answers."""
        msg = "no such thing"
        raise KeyError(msg)


@pytest.fixture(scope="module")
def tiny() -> SelfCheck:
    return selfcheck(RULES, PANEL, seeds=4)


def test_on_a_table_of_ones_own_the_generators_checks_do_not_apply(tiny: SelfCheck) -> None:
    verdicts = {check.name: check.verdict for check in tiny.checks}
    assert verdicts[POSITIVE] == "not applicable"
    assert len(tiny.applicable) == 5
    assert tiny.protocol_hash == RULES.hash
    assert {point.series for point in tiny.points} == {"noise", "late"}


def test_every_installed_agent_is_played_and_the_others_are_accounted_for(tiny: SelfCheck) -> None:
    check = next(check for check in tiny.checks if check.name == NEGATIVE)
    names = {row.name for row in check.rows}
    assert {"nothing", "random", "prior", "module-learner", "memoriser"} <= names
    assert any(note.startswith("replay-list left out: Agent replay-list") for note in check.notes)


def test_processes_do_not_change_the_scores() -> None:
    settings = load_settings().with_seeds(4)
    stage = make_stage(PANEL, RULES, settings, choose_agents(["random"])[0])
    scenes = stage.second({OWN_TRAIN: ("GENE001", "GENE002")})
    here, there = (
        play_scenes(scenes, protocol=RULES, certificate=Certificate(), executor=Executor(jobs=jobs))
        for jobs in (1, 2)
    )
    for name, scores in here.items():
        for arm in scores.scene.arms:
            assert scores.true(arm.name).tolist() == there[name].true(arm.name).tolist()
        assert scores.positions == there[name].positions == [0, 1, 0, 1] or name == OWN


def test_the_sentences_hold_the_verdict(tiny: SelfCheck) -> None:
    text = str(tiny)
    assert text.startswith(tiny.verdict)
    assert len(text.splitlines()) == 1 + len(tiny.checks)
    assert tiny.passed == (tiny.word == "passed")


def test_a_generator_is_asked_for_every_cell_of_the_surface() -> None:
    progress: list[tuple[int, int]] = []
    found = selfcheck(
        RULES,
        "synthetic-depmap-6000:dev",
        agents=["random"],
        settings=GRID,
        progress=lambda done, total: progress.append((done, total)),
    )
    assert all(check.rows for check in found.checks)
    cells = {(point.at, point.by) for point in found.points if point.series == "feedback"}
    assert cells == {(0.0, 0.0), (0.0, 0.25), (0.4, 0.0), (0.4, 0.25)}
    assert progress[-1] == (len(progress), len(progress))


def test_an_agent_that_breaks_in_play_is_left_out() -> None:
    found = selfcheck(RULES, PANEL, seeds=2, agents=[Breaks])
    check = next(check for check in found.checks if check.name == NEGATIVE)
    assert [row.name for row in check.rows] == ["memoriser"]
    assert check.notes == ("Breaks left out: KeyError: 'no such thing'",)


def test_what_cannot_be_checked_is_refused() -> None:
    with pytest.raises(AgentError, match="Agent replay-list needs a file"):
        selfcheck(RULES, PANEL, agents=["replay-list"])
    with pytest.raises(RunError, match="at least 2"):
        selfcheck(RULES, PANEL, seeds=1)


def test_a_panel_gives_its_registries_under_other_options() -> None:
    panel = cads_env.load_panel("synthetic-depmap-6000:dev", salt="secret")
    other = panel.varied(structure=0.2)
    assert len(other) == len(panel)
    assert other[0][1].salt == b"secret"
    assert other[0][1] != panel[0][1]
    assert panel.varied(structure=0.4)[0][1] == panel[0][1]
    assert (
        panel.split("train")[0][1]
        == cads_env.load_panel("synthetic-depmap-6000/1", salt="secret")[0][1]
    )
    assert panel.only(3).names == (panel.names[3],)


def test_a_panel_that_was_handed_in_has_no_other_options_and_no_splits() -> None:
    with pytest.raises(RegistryError, match="handed in ready made, so structure"):
        PANEL.varied(structure=0.2)
    with pytest.raises(RegistryError, match="has no splits"):
        PANEL.split("train")

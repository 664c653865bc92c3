"""Agents and folders that misbehave: nothing is lost, nothing leaks, and the right one is named."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import cads_env
from cads_env.delivery import LISTED_TEXT
from cads_env.errors import AgentError, ProtocolError, RegistryError, RunError
from cads_env.inference import Estimate
from cads_env.proposer import Nothing, Proposal, ProposerFailed, View
from cads_env.run import evaluate
from cads_env.run.folder import RunFolder, run_folder
from cads_env.testing import tiny_protocol, tiny_registry
from cads_env.values import load_yaml

PAIR = tiny_registry(80, 16)


def run(agents: object, **options: Any) -> cads_env.RunResult:
    defaults: dict[str, Any] = {"registry": PAIR, "protocol": tiny_protocol(), "seeds": range(3)}
    return evaluate(agents, **(defaults | options))


class Raises:
    error: ClassVar[BaseException]

    def propose(self, view: View) -> Sequence[str]:
        raise self.error


def raising(error: BaseException) -> type[Raises]:
    return type("Raising", (Raises,), {"error": error})


@pytest.mark.parametrize(
    "error",
    [SystemExit(0), asyncio.CancelledError(), GeneratorExit(), RecursionError(), ValueError()],
)
def test_whatever_an_agent_raises_names_the_agent(error: BaseException) -> None:
    with pytest.raises(AgentError, match="'Raising' broke in round 0 of seed 0: "):
        run(raising(error))


def test_an_interrupt_stays_an_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt):
        run(raising(KeyboardInterrupt()))


def test_a_long_complaint_is_cut() -> None:
    with pytest.raises(AgentError) as caught:
        run(raising(ValueError("x" * 1_000_000)))
    assert len(str(caught.value)) < 1_000


def test_a_factory_that_returns_one_instance_for_all_campaigns_is_refused() -> None:
    shared = Nothing()
    with pytest.raises(AgentError, match="returned the same object again"):
        run(lambda: shared)


def test_a_proposer_that_fails_while_it_is_built_fails_its_campaign_only() -> None:
    built: list[int] = []

    def factory() -> Nothing:
        built.append(1)
        if len(built) == 3:
            msg = "no \ud800 server"
            raise ProposerFailed(msg)
        return Nothing()

    result = run(factory)
    assert [f.reason for f in result.failures] == ["no ? server"]
    assert result.arms["factory"].n == 2
    with pytest.raises(AgentError, match="cannot start: refused"):
        run(lambda: (_ for _ in ()).throw(ProposerFailed("refused")))


class Poisoner:
    """Tries every way to change what the next agent sees."""

    def propose(self, view: View) -> Sequence[str]:
        table = view.side_tables["prior"]
        values = table.values
        for attack in (
            lambda: values.__setitem__(0, 9.0),
            lambda: values.setflags(write=True),
            lambda: setattr(values, "shape", (2, -1)),
            lambda: setattr(values, "dtype", np.int64),
            lambda: setattr(table, "_raw", b"\0" * 640),
            lambda: object.__setattr__(table, "values", values * 0),
            lambda: object.__setattr__(table, "description", "poisoned"),
        ):
            try:
                attack()
            except (ValueError, AttributeError, TypeError):
                continue
        return ()


def test_no_agent_can_change_what_another_one_sees() -> None:
    alone = run("prior")
    after = run([Poisoner, "prior"])
    clean = after.campaigns[after.campaigns["arm"] == "prior"]
    assert clean["reads_sha256"].tolist() == alone.campaigns["reads_sha256"].tolist()
    assert PAIR[0].side_tables["prior"].description != "poisoned"


class Positions:
    """Remembers across campaigns, against the rules, which positions read high."""

    high: ClassVar[set[int]] = set()

    def propose(self, view: View) -> Sequence[str]:
        position = {name: i for i, name in enumerate(view.identifiers)}
        self.high.update(position[name] for name in view.high)
        tested = set(view.tested)
        names = [view.identifiers[i] for i in sorted(self.high)]
        return [name for name in names if name not in tested]


@pytest.mark.parametrize("mode", ["shuffled", "blinded"])
def test_positions_tell_nothing_under_other_names(mode: str) -> None:
    def net(identifiers: Any) -> Estimate:
        Positions.high = set()
        return run(Positions, registry="synthetic-depmap-6000/0", seeds=range(24),
                   protocol="standard", identifiers=identifiers).net  # fmt: skip

    assert net("named").low > 0
    hidden = net(mode)
    assert abs(hidden.mean) < 3 * hidden.sd / np.sqrt(hidden.n)


def test_a_long_answer_is_kept_cut_and_counted_whole() -> None:
    text = "é" * (LISTED_TEXT + 5)
    result = run(lambda: type("Long", (), {"propose": lambda s, v: Proposal((), raw=text)})())
    kept = result.rounds["text"].iloc[0]
    assert kept.startswith("é" * LISTED_TEXT)
    assert f"({len(text):,} characters)" in kept


class Altered:
    """Changes its proposal after it was checked."""

    def __init__(self, change: Callable[[Any], None]) -> None:
        self.change = change

    def propose(self, view: View) -> Proposal:
        proposal = Proposal(("GENE001",), usage={"tokens": 1})
        self.change(proposal)
        return proposal


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.usage.update(a=float("nan")),
        lambda p: p.usage.update(a=object()),
        lambda p: object.__setattr__(p, "attempts", 10**5000),
        lambda p: object.__setattr__(p, "attempts", "x"),
        lambda p: object.__setattr__(p, "identifiers", (1,)),
        lambda p: object.__setattr__(p, "raw", 3),
    ],
)
def test_a_proposal_altered_after_its_check_is_refused(change: Any, tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="broke in round 0"):
        run(lambda: Altered(change), out=tmp_path / "run")
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["status"] == "failed"


def test_an_agent_that_changes_the_folder_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()

    class Mover(Nothing):
        def propose(self, view: View) -> Sequence[str]:
            os.chdir(tmp_path / "elsewhere")
            return ()

    run(Mover, out="run")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["status"] == "complete"
    assert not any((tmp_path / "elsewhere").iterdir())


def test_truth_of_a_campaign_is_written_after_its_last_arm(tmp_path: Path) -> None:
    class Reader(Nothing):
        seen: ClassVar[list[int]] = []

        def propose(self, view: View) -> Sequence[str]:
            rows = tmp_path / "run" / "declarations.jsonl"
            text = rows.read_text() if rows.exists() else ""
            self.seen.append(max((json.loads(x)["seed"] for x in text.splitlines()), default=-1))
            return ()

    run(["prior", Reader], out=tmp_path / "run")
    rounds = tiny_protocol().rounds
    for seed in range(3):
        assert max(Reader.seen[seed * rounds : (seed + 1) * rounds]) < seed


MANIFEST: dict[str, Any] = {"status": "running", "config": {}, "registries": []}


def test_of_two_runs_on_one_folder_one_is_refused(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run")
    with (
        RunFolder(folder, MANIFEST),
        pytest.raises(RunError, match="Another process is writing"),
        RunFolder(folder, MANIFEST),
    ):
        pass
    for odd in (5, b"x"):
        with pytest.raises(RunError, match="expected a path"):
            run_folder(odd)  # type: ignore[arg-type]
    with pytest.raises(RunError, match="cannot be made"):
        run_folder("a\0b")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_a_clear_error(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run")

    def write() -> None:
        with RunFolder(folder, MANIFEST) as files:
            (folder / "rounds.jsonl").symlink_to("/dev/full")
            files.append("rounds", [{"a": 1}])

    with pytest.raises(RunError, match="No space left on device"):
        write()
    assert json.loads((folder / "manifest.json").read_text())["status"] == "failed"


BOMB = "a0: &a0 [x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10)
)


@pytest.mark.parametrize(
    "text",
    [BOMB, "!!int ''", "!!bool x", "!!timestamp x", "2024-13-45", "9" * 5000, "[" * 5000, "a: *b"],
)
def test_yaml_that_is_not_plain_is_a_value_error(text: str, tmp_path: Path) -> None:
    with contextlib.suppress(ValueError):
        load_yaml(text)
    path = tmp_path / "p.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ProtocolError):
        cads_env.load_protocol(path)
    with pytest.raises(RegistryError):
        cads_env.load_registry(path)


def test_yaml_reads_exponents_without_a_point() -> None:
    assert load_yaml("epsilon: 1e-5\nx: -5e-1\ny: 1.5\nz: 12") == {
        "epsilon": 1e-5,
        "x": -0.5,
        "y": 1.5,
        "z": 12,
    }


@pytest.mark.parametrize("field", ["noise_sd", "epsilon", "rank_q", "high_above", "rounds"])
def test_a_number_beyond_every_float_is_refused(field: str) -> None:
    with pytest.raises(ProtocolError, match=field):
        cads_env.load_protocol("standard", **{field: 10**400})


def test_many_rounds_cost_in_proportion() -> None:
    protocol = tiny_protocol(
        rounds=3_000, first_fresh=1, fresh=1, reread_candidates=1, reads_each=1
    )
    assert run(Nothing, protocol=protocol, seeds=[0]).arms["Nothing"].n == 1


def test_the_seed_of_a_factory_fits_common_generators() -> None:
    seeds: list[int] = []

    def factory(seed: int) -> Nothing:
        seeds.append(seed)
        return Nothing()

    run(factory)
    assert all(0 <= seed < 2**32 for seed in seeds)
    assert len(set(seeds)) == 3


def test_an_exception_that_cannot_say_itself_is_told_all_the_same() -> None:
    class Mute(ProposerFailed):
        def __str__(self) -> str:
            raise RuntimeError

    class Silent(ValueError):
        def __str__(self) -> str:
            raise RuntimeError

    def raising(error: Exception) -> type[Nothing]:
        class Raises(Nothing):
            def propose(self, view: View) -> Sequence[str]:
                raise error

        return Raises

    assert run(raising(Mute()), seeds=[0]).failures[0].reason == "(its message cannot be shown)"
    with pytest.raises(AgentError, match=r"Silent: \(its message cannot be shown"):
        run(raising(Silent()), seeds=[0])


def test_numbers_of_subclasses_do_not_enter_the_record() -> None:
    class Odd(float):
        def __reduce__(self) -> Any:
            raise RuntimeError

    class Counts(Nothing):
        def propose(self, view: View) -> Proposal:
            return Proposal((), usage={"tokens": Odd(2.5)})

    usage = run(Counts, seeds=[0]).rounds["usage"][0]
    assert type(usage["tokens"]) is float


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_copy_of_the_process_that_an_agent_forked_writes_nothing(tmp_path: Path) -> None:
    class Forks(Nothing):
        def propose(self, view: View) -> Sequence[str]:
            if view.round == 1:
                os.fork()
            return ()

    run(Forks, out=tmp_path / "run", seeds=range(2))
    rows = (tmp_path / "run" / "campaigns.jsonl").read_text().splitlines()
    assert [json.loads(row)["seed"] for row in rows] == [0, 1]

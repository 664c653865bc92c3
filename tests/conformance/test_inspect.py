"""The Inspect task under the real package, with its own mock model."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import cads_env

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

REGISTRY = "synthetic-depmap-6000/0"
SMALL = {"registry": REGISTRY, "seeds": 2, "overrides": {"rounds": 3}}
ANSWER = "TP53\nMYC\nKRAS\n\x00nonsense"


def inspect() -> Any:
    return pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")


def model(answer: str = ANSWER) -> Any:
    models: Any = importlib.import_module("inspect_ai.model")

    def said(*_: Any) -> Any:
        output = models.ModelOutput.from_content("mockllm/model", answer)
        # Without it the mock model counts tokens with a vocabulary that it would download.
        output.usage = models.ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    return models.get_model("mockllm/model", custom_outputs=said)


def log_of(task: Any, folder: Path, **arguments: Any) -> Any:
    (log,) = inspect().eval(task, model=model(), log_dir=str(folder), display="none", **arguments)
    assert log.status == "success", log.error
    return log


def by_hand(seed: int) -> dict[str, Any]:
    env = gym.make("CADSScreenText-v0", registry=REGISTRY, rounds=3)
    env.reset(seed=seed)
    for _ in range(3):
        *_, info = env.step(ANSWER.replace("\x00", ""))
    return info


def task_module() -> Any:
    inspect()
    return importlib.import_module("cads_env.adapters.inspect_task")


def test_every_sample_is_a_campaign_scored_like_the_environment(tmp_path: Path) -> None:
    module = task_module()
    log = log_of(module.cads_screen(**SMALL), tmp_path)
    nets = []
    for sample in log.samples:
        score, info = sample.scores["campaign_score"], by_hand(sample.id)
        assert score.value == {name: info[name] for name in module.VALUES}
        nets.append(info["net"])
        # Prompt and answer of each of three rounds, without the campaign's number.
        assert [message.role for message in sample.messages] == ["user", "assistant"] * 3
        assert sample.input.startswith("Round 1 of 3")
        assert "seed" not in " ".join(message.text for message in sample.messages)
    assert len(nets) == 2
    means = {score.name: score.metrics["mean"].value for score in log.results.scores}
    assert means["net"] == pytest.approx(sum(nets) / 2)
    assert set(means) == set(module.VALUES)


def test_a_campaign_that_a_limit_cuts_short_has_no_score(tmp_path: Path) -> None:
    log = log_of(task_module().cads_screen(**SMALL), tmp_path, message_limit=3)
    assert [sample.limit.type for sample in log.samples] == ["message"] * 2
    assert all(not sample.scores for sample in log.samples)


@pytest.mark.parametrize("name", ["cads_env/cads_screen", "inspect_task.py"])
def test_the_task_is_found_by_its_name_and_by_its_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inspect()
    monkeypatch.chdir(Path(cads_env.__file__).parent / "adapters")
    log = log_of(name, tmp_path, task_args=SMALL)
    assert log.eval.task == name.removesuffix(".py").replace("inspect_task", "cads_screen")
    values = [sample.scores["campaign_score"].value["net"] for sample in log.samples]
    assert values == [by_hand(seed)["net"] for seed in range(2)]


@pytest.mark.parametrize("seeds", [0, True, 1.5])
def test_a_number_of_campaigns_that_is_none_is_refused(seeds: Any) -> None:
    with pytest.raises(cads_env.errors.ActionError, match="seeds is"):
        task_module().cads_screen(seeds=seeds)

"""Recorded answers as a chat model: found by what was asked, refused with the first difference."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain_core")

import cads_env
from cads_agents.llm import LLMProposer, ReplayChatModel
from cads_agents.llm.recorded import Recordings
from cads_env.errors import RecordError, ReplayError
from cads_env.testing import tiny_protocol, tiny_registry
from tests.agents.llm.stub import StubClient

SAMPLING = ("temperature", "top_p", "max_tokens", "seed")


def play(out: Path, factory: Any) -> Any:
    return cads_env.evaluate(
        {"llm": factory}, registry=tiny_registry(), protocol=tiny_protocol(),
        seeds=range(3), out=out,
    )  # fmt: skip


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    play(tmp_path / "run", lambda: LLMProposer("m", client=StubClient()))
    return tmp_path / "run"


def lines_of(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("traces/*/*.jsonl"))
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def chat_of(line: dict[str, Any]) -> list[tuple[str, str]]:
    return [(m["role"], m["content"]) for m in line["request"]["messages"]]


def sampling_of(line: dict[str, Any]) -> dict[str, Any]:
    return {name: line["request"]["sampling"][name] for name in SAMPLING}


def test_as_the_model_of_an_agent_it_replays_the_run(recorded: Path, tmp_path: Path):
    model = ReplayChatModel(recorded)
    again = play(tmp_path / "again", lambda: LLMProposer(model))
    assert again.failures == ()
    for name in ("campaigns.jsonl", "rounds.jsonl", "declarations.jsonl"):
        assert (tmp_path / "again" / name).read_bytes() == (recorded / name).read_bytes()


def test_an_answer_comes_back_with_its_metadata(recorded: Path):
    line = lines_of(recorded)[0]
    message = ReplayChatModel(recorded).invoke(chat_of(line), **sampling_of(line))
    answer = line["answer"]
    assert message.content == answer["text"]
    assert message.usage_metadata["input_tokens"] == answer["usage"]["tokens_in"]
    assert message.usage_metadata["input_token_details"]["cache_read"] == 3
    assert message.response_metadata["finish_reason"] == "stop"
    assert message.response_metadata["system_fingerprint"] == "stub-1"
    assert message.response_metadata["model_name"] == "stub"


def test_batches_are_answered_in_any_number_of_threads(recorded: Path):
    lines = lines_of(recorded)[:8]
    model = ReplayChatModel(recorded).bind(temperature=0.7)
    for line in lines[:1]:
        batch = model.batch([chat_of(line)] * 8, config={"max_concurrency": 4}, **sampling_of(line))
        assert {message.content for message in batch} == {line["answer"]["text"]}


def test_another_prompt_is_refused_with_its_place_and_the_first_difference(recorded: Path):
    line = lines_of(recorded)[-1]
    chat = chat_of(line)
    changed = [chat[0], ("user", chat[1][1].replace("Candidates that read", "Those that read"))]
    with pytest.raises(ReplayError) as caught:
        ReplayChatModel(recorded).invoke(changed, **sampling_of(line))
    place = f"round {line['request']['round']}, attempt {line['request']['attempt']}"
    assert place in str(caught.value)
    assert "messages[1], character" in str(caught.value)
    assert "now" in str(caught.value)
    assert "Those that read" in str(caught.value)


def test_another_seed_or_temperature_is_refused_by_name(recorded: Path):
    line = lines_of(recorded)[0]
    with pytest.raises(ReplayError, match=r"sampling\.seed is \d+, asked with 12"):
        ReplayChatModel(recorded).invoke(chat_of(line), **(sampling_of(line) | {"seed": 12}))
    with pytest.raises(ReplayError, match=r"sampling\.temperature is 0\.7, asked with 0\.1"):
        ReplayChatModel(recorded).invoke(
            chat_of(line), **(sampling_of(line) | {"temperature": 0.1})
        )


def test_a_request_without_a_seed_must_be_the_only_one(recorded: Path):
    """All campaigns begin with the same prompt, each with a seed of its own."""
    line = lines_of(recorded)[0]
    with pytest.raises(ReplayError, match="different seeds; expected seed="):
        ReplayChatModel(recorded).invoke(chat_of(line))


def test_an_unknown_prompt_fails_the_campaign_with_the_reason(recorded: Path, tmp_path: Path):
    model = ReplayChatModel(recorded)
    result = play(tmp_path / "thin", lambda: LLMProposer(model, prompt="thin", retries=0))
    assert len(result.failures) == 3
    assert "No recorded request" in str(result.failures[0])


def test_guided_answers_are_found_by_the_list_that_guided_them(tmp_path: Path):
    play(tmp_path / "g", lambda: LLMProposer("m", client=StubClient(), guided="untested"))
    model = ReplayChatModel(tmp_path / "g")
    [line, *_] = lines_of(tmp_path / "g")
    names = list(tiny_registry()[0].identifiers)
    body = {"structured_outputs": {"json": {"items": {"enum": names}}}}
    found = model.invoke(chat_of(line), extra_body=body, **sampling_of(line))
    assert found.content == line["answer"]["text"]
    with pytest.raises(ReplayError, match=r"guided is of \w+, asked of None"):
        model.invoke(chat_of(line), **sampling_of(line))


def test_a_refused_prompt_is_refused_again(tmp_path: Path):
    client = StubClient(context_tokens=430)
    play(tmp_path / "o", lambda: LLMProposer("m", client=client))
    assert any(line["answer"].get("overflow") for line in lines_of(tmp_path / "o"))
    model = ReplayChatModel(tmp_path / "o")
    play(tmp_path / "again", lambda: LLMProposer(model))
    for name in ("campaigns.jsonl", "rounds.jsonl"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "o" / name).read_bytes()


def test_a_folder_without_traces_or_with_damaged_ones_is_refused(recorded: Path, tmp_path: Path):
    with pytest.raises(RecordError, match="holds no recorded answer"):
        ReplayChatModel(tmp_path / "nothing")
    with pytest.raises(RecordError, match="holds no answer of 'other', but of stub"):
        ReplayChatModel(recorded, model="other")
    path = next(recorded.glob("traces/*/*.jsonl"))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"n": 99, "request"')
    assert ReplayChatModel(recorded).model_name == "stub"  # a torn line is left out
    path.write_bytes(whole + b"[]\n")
    with pytest.raises(RecordError, match="is no exchange"):
        ReplayChatModel(recorded)


def test_the_runs_of_a_grid_are_read_together(recorded: Path, tmp_path: Path):
    grid = tmp_path / "grid"
    grid.mkdir()
    recorded.rename(grid / "full")
    assert Recordings(grid).models == ("stub",)

"""A served model plays: any number of campaigns at once, free and guided, and without it again."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cads_env
from cads_agents.serving.recipes import words
from cads_env.errors import RecordError
from cads_env.run.load import load_run
from cads_env.run.replay import replay
from cads_env.run.result import RunResult
from tests.llm.runs import ROUNDS, answers_of, lines_of, rows_of
from tests.llm.server import free_port, run_cads

pytestmark = pytest.mark.llm

ARMS = {
    "thin": "prompt=thin",
    "informed": "prompt=informed",
    "thin, guided": "prompt=thin,guided=candidates",
    "informed, guided": "prompt=informed,guided=untested",
}
REPLAY = """
import sys
for name in ("langchain", "langchain_core", "langchain_openai", "openai", "httpx"):
    sys.modules[name] = None
from cads_env.run.replay import replay
done = replay(sys.argv[1], registry=sys.argv[2])
print(done.campaigns, done.byte_identical, done.mismatches)
"""


def play(base_url: str, screen: Path, out: Path, *, concurrency: int) -> RunResult:
    agents = {
        arm: f"llm:model=tiny-random,base_url={base_url},max_tokens=64,{options}"
        for arm, options in ARMS.items()
    }
    return cads_env.evaluate(
        agents,
        registry=str(screen),
        protocol=cads_env.load_protocol("proposer").override(rounds=ROUNDS),
        seeds=range(8),
        concurrency=concurrency,
        out=out,
    )


@pytest.fixture(scope="module")
def played(base_url: str, screen: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of every arm with eight campaigns under way at once."""
    out = tmp_path_factory.mktemp("played") / "run"
    play(base_url, screen, out, concurrency=8)
    return out


def test_every_campaign_is_played_and_every_answer_kept(played: Path) -> None:
    result = load_run(played)
    assert result.status == "complete"
    assert not result.failures
    assert len(result.campaigns) == 8 * len(ARMS)
    lines = [line for lines in lines_of(played).values() for line in lines]
    assert len(lines) == int(result.rounds["attempts"].sum())
    for line in lines:
        answer = line["answer"]
        assert answer["model"] == "tiny-random"
        assert answer["fingerprint"].startswith("vllm-")
        assert answer["usage"]["tokens_in"] > 100
        assert answer["finish_reason"] in ("stop", "length")
        assert 0 < answer["usage"]["tokens_out"] <= 64
    # Prompts begin alike, so that the server need not read them anew.
    assert sum(line["answer"]["usage"]["tokens_cached"] for line in lines) > 0


def test_what_a_model_names_is_tested_first(played: Path) -> None:
    rounds = load_run(played).rounds
    assert (rounds["accepted"] > 0).mean() > 0.9
    assert (rounds["accepted"] + rounds["fallback"] == rounds["fresh_slots"]).all()


def test_a_guided_model_writes_candidates_only(played: Path) -> None:
    rounds = load_run(played).rounds
    guided = rounds[rounds["arm"].str.contains("guided")]
    assert set(guided["arm"]) == {"thin, guided+guided", "informed, guided+guided"}
    assert set(rounds["arm"]) == {*ARMS, *guided["arm"]} - {"thin, guided", "informed, guided"}
    # An answer that is cut may end within a name.
    whole = guided[[not usage.get("cut") for usage in guided["usage"]]]
    named = [name for names in whole["proposed"] for name in names]
    assert named
    assert set(named) <= set(words())
    untested = whole[whole["arm"].str.startswith("informed")]
    assert untested["already_tested"].sum() == 0


@pytest.mark.parametrize("concurrency", [1, 32])
def test_the_files_do_not_depend_on_how_many_campaigns_are_under_way(
    base_url: str, screen: Path, played: Path, tmp_path: Path, concurrency: int
) -> None:
    play(base_url, screen, tmp_path / "run", concurrency=concurrency)
    assert rows_of(tmp_path / "run") == rows_of(played)
    assert answers_of(tmp_path / "run") == answers_of(played)


def test_a_run_replays_byte_for_byte_without_server_and_without_langchain(
    base_url: str, screen: Path, played: Path, tmp_path: Path
) -> None:
    # Another folder and another address: what was recorded is all there is.
    moved = tmp_path / "moved"
    shutil.copytree(played, moved)
    manifest = (moved / "manifest.json").read_text(encoding="utf-8")
    gone = f"http://127.0.0.1:{free_port()}/v1"
    (moved / "manifest.json").write_text(manifest.replace(base_url, gone), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", REPLAY, str(moved), str(screen)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == f"{8 * len(ARMS)} True ()\n", done.stderr


def test_a_changed_answer_is_found_before_it_is_replayed(
    screen: Path, played: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(played, copy)
    path = next(iter(lines_of(played)))
    lines = lines_of(played)[path]
    lines[0]["answer"]["text"] = "A1BG"
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (copy / path).write_text(text, encoding="utf-8")
    with pytest.raises(RecordError, match=re.escape(path)):
        replay(copy, registry=str(screen))


def test_a_model_that_is_not_served_is_refused_before_the_first_read(
    base_url: str, screen: Path, tmp_path: Path
) -> None:
    words = ["run", "llm", "-A", "model=another", "-A", f"base_url={base_url}"]
    said = run_cads([*words, "--registry", str(screen), "--out", "run"], folder=tmp_path, code=1)
    assert "does not serve 'another'" in said
    assert "tiny-random" in said
    assert not (tmp_path / "run" / "campaigns.jsonl").exists()


def test_without_a_server_the_command_that_starts_one_is_given(
    screen: Path, tmp_path: Path
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/v1"
    words = ["run", "tiny-random", "-A", f"base_url={url}", "--registry", str(screen)]
    said = " ".join(run_cads([*words, "--out", "run"], folder=tmp_path, code=1).split())
    assert url in said
    assert f"cads serve tiny-random --port {port}" in said

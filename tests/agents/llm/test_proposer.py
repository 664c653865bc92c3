"""The LLM agent: attempts, seeds, counts, journals, options; played in campaigns with a stub."""

import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cads_env
from cads_agents.llm import LLMProposer, llm_agent, load_prompt
from cads_agents.llm.aliases import load_aliases
from cads_agents.llm.sampling import generation_seed
from cads_env.campaign import ask, open_screen
from cads_env.delivery import account, resolve
from cads_env.errors import AgentError, MissingExtraError
from cads_env.proposer import Journal, Proposal, ProposerFailed, Refusal
from cads_env.run.agents import resolve_agents
from cads_env.testing import check_agent, tiny_protocol, tiny_registry
from tests.agents.llm.stub import StubClient, some_names, tiny_view

FULL = "GENE011, GENE012, GENE013, GENE014"


class Recorder:
    """A journal that keeps requests and answers, and can give the answers back."""

    def __init__(self, answers: list[Any] | None = None):
        self.requests: list[Any] = []
        self.answers: list[Any] = []
        self.recorded = answers

    def exchange(self, request, answer):
        self.requests.append(json.loads(json.dumps(request)))
        given = answer() if self.recorded is None else self.recorded[len(self.requests) - 1]
        self.answers.append(json.loads(json.dumps(given)))
        return given


def answers_in_turn(*texts: str) -> Any:
    left = iter(texts)
    return lambda messages, seed: next(left)


def propose(*texts: str, view=None, **options: Any):
    client = StubClient(answers_in_turn(*texts))
    proposer = LLMProposer("m", client=client, **options)
    return proposer.propose(tiny_view() if view is None else view), client


def test_a_full_answer_takes_one_attempt():
    proposal, client = propose(FULL)
    assert proposal.identifiers == tuple(FULL.split(", "))
    assert (proposal.attempts, proposal.raw, len(client.asked)) == (1, FULL, 1)


def test_a_further_attempt_asks_the_same_with_another_seed():
    _, client = propose("GENE011", FULL)
    first, second = client.asked
    assert first["messages"] == second["messages"]
    assert first["seed"] != second["seed"]


def test_tested_ones_repeats_and_strangers_fill_no_slot():
    """Three of four names are good for nothing, so it is asked again."""
    text = "GENE001, GENE011, GENE011, NOVEL7"
    proposal, client = propose(text, "GENE011, GENE012")
    assert len(client.asked) == 2
    assert proposal.identifiers == (
        "GENE001", "GENE011", "NOVEL7", "GENE011",
        "GENE011", "GENE012",
    )  # fmt: skip
    assert (proposal.usage["names_1"], proposal.usage["names_2"]) == (4, 2)


def test_names_of_all_attempts_stand_in_the_order_of_generation():
    proposal, _ = propose("GENE020, GENE019", "GENE010, GENE020, GENE009, GENE008, GENE007")
    assert proposal.identifiers[:2] == ("GENE020", "GENE019")
    assert proposal.identifiers[2:] == ("GENE010", "GENE020", "GENE009", "GENE008", "GENE007")
    assert proposal.raw == (
        "GENE020, GENE019\n=== attempt 2 ===\nGENE010, GENE020, GENE009, GENE008, GENE007"
    )


def test_attempts_end_with_what_the_protocol_allows_or_the_option_says():
    assert propose("no", "no")[0].attempts == 2
    eight = tiny_view(attempts=8)
    assert propose(*["no"] * 8, view=eight)[0].attempts == 8
    assert propose(*["no"] * 3, view=eight, attempts=3)[0].attempts == 3


def test_a_round_without_slots_asks_nothing():
    proposal, client = propose(view=tiny_view(slots=0))
    assert (client.asked, proposal.identifiers, proposal.attempts) == ([], (), 1)
    assert proposal.usage["requests"] == 0


def test_empty_unparsed_and_cut_answers_are_counted_apart():
    class Cut(StubClient):
        def complete(self, messages, **more):
            return super().complete(messages, **more) | {"finish_reason": "length"}

    proposal, _ = propose("", "I cannot help with that")
    assert (proposal.usage["empty"], proposal.usage["unparsed"], proposal.usage["cut"]) == (1, 1, 0)
    proposal = LLMProposer("m", client=Cut("GENE011, GENE0")).propose(tiny_view())
    assert (proposal.usage["empty"], proposal.usage["unparsed"], proposal.usage["cut"]) == (0, 0, 2)


def test_usage_holds_counts_that_every_repeat_has():
    """No cost, no cached tokens and no time: a server decides those anew each time."""
    proposal, _ = propose(FULL)
    assert set(proposal.usage) == {
        "requests", "history_dropped", "tokens_in", "tokens_out", "empty", "unparsed", "cut",
        "aliased", "names_1",
    }  # fmt: skip


def test_the_generation_seed_comes_from_seed_round_and_attempt():
    journal = Recorder()
    client = StubClient("none")
    LLMProposer("m", client=client, seed=17, journal=journal).propose(tiny_view())
    seeds = [generation_seed(17, round=2, attempt=a) for a in (0, 1)]
    assert [one["seed"] for one in client.asked] == seeds
    assert [one["sampling"]["seed"] for one in journal.requests] == seeds


def test_a_request_holds_all_that_decides_the_answer_in_json():
    journal = Recorder()
    options: dict[str, Any] = {"temperature": 0.2, "top_p": None, "max_tokens": 50}
    proposer = LLMProposer("m", client=StubClient(FULL), journal=journal, **options)
    proposer.propose(tiny_view())
    [request] = journal.requests
    assert list(request) == ["kind", "round", "attempt", "model", "messages", "sampling"]
    assert (request["kind"], request["round"], request["attempt"]) == ("chat", 2, 0)
    assert request["model"] == "stub"
    assert [m["role"] for m in request["messages"]] == ["system", "user"]
    assert request["sampling"] == {
        "temperature": 0.2, "top_p": None, "max_tokens": 50,
        "seed": generation_seed(0, round=2, attempt=0),
    }  # fmt: skip


def test_a_model_that_takes_no_seed_is_recorded_without_one():
    journal = Recorder()
    options: dict[str, Any] = {"send_seed": False, "journal": journal}
    LLMProposer("m", client=StubClient(FULL), **options).propose(tiny_view())
    assert journal.requests[0]["sampling"]["seed"] is None


def test_recorded_answers_give_the_same_proposal_and_ask_nobody():
    live = Recorder()
    view = tiny_view(tested=tiny_view().identifiers[:40], low=tiny_view().identifiers[4:40])
    client = StubClient(context_tokens=500)
    first = LLMProposer("m", client=client, seed=4, journal=live).propose(view)
    assert first.usage["requests"] > first.attempts  # one prompt was refused as too long
    again = Recorder(live.answers)
    silent = StubClient()
    second = LLMProposer("m", client=silent, seed=4, journal=again).propose(view)
    assert silent.asked == []
    assert again.requests == live.requests
    assert second == first


@pytest.mark.parametrize("answer", [{}, {"text": None}, {"text": ["GENE001"]}, {"overflow": 1}])
def test_a_damaged_answer_fails_the_campaign(answer):
    proposer = LLMProposer("m", client=StubClient(), journal=Recorder([answer] * 9))
    with pytest.raises(ProposerFailed, match="expected text"):
        proposer.propose(tiny_view())


def test_odd_counts_of_a_server_are_no_counts():
    answer = {"text": FULL, "usage": {"tokens_in": "many", "tokens_out": -3}, "finish_reason": 5}
    proposer = LLMProposer("m", client=StubClient(), journal=Recorder([answer]))
    usage = proposer.propose(tiny_view()).usage
    assert (usage["tokens_in"], usage["tokens_out"], usage["cut"]) == (0, 0, 0)


def test_broken_infrastructure_is_no_answer():
    class Broken(StubClient):
        def complete(self, messages, **more):
            msg = "refused"
            raise ProposerFailed(msg)

    with pytest.raises(ProposerFailed, match="refused"):
        LLMProposer("m", client=Broken()).propose(tiny_view())


def test_aliases_are_off_by_default_and_counted_where_they_are_used():
    text = "CLIP11, GENE012, GENE013, GENE014"
    proposal, _ = propose(text, "none")
    assert "CLIP11" in proposal.identifiers
    assert proposal.usage["aliased"] == 0
    proposal, client = propose(text, aliases={"CLIP11": "GENE011"})
    assert "GENE011" in proposal.identifiers
    assert proposal.usage["aliased"] == 1
    assert len(client.asked) == 1


def test_alias_files_are_tables_or_yaml(tmp_path: Path):
    table = tmp_path / "a.tsv"
    table.write_text("# alias\tname\nP53\tTP53\n\nHDM2\tMDM2\n")
    assert load_aliases(table) == {"P53": "TP53", "HDM2": "MDM2"}
    listed = tmp_path / "a.yaml"
    listed.write_text("P53: TP53\n")
    assert load_aliases(str(listed)) == {"P53": "TP53"}
    assert load_aliases(None) is None


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.tsv", "P53 TP53\n", "line 1, has 1 columns"),
        ("a.tsv", "P53\tTP53\nP53\tTP63\n", "stands for 'TP53' and for 'TP63'"),
        ("a.tsv", "# nothing\n", "holds no alias"),
        ("a.yaml", "1: TP53\n", "expected text for text"),
        ("a.yaml", "- P53\n", "holds a list"),
        ("a.yaml", "a: [\n", "not valid YAML"),
    ],
)
def test_unusable_alias_files_are_refused(tmp_path: Path, name, content, words):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(AgentError, match=words):
        load_aliases(path)
    with pytest.raises(AgentError, match="cannot be read"):
        load_aliases(tmp_path / "none.tsv")


def test_the_contract_of_a_proposer_is_kept():
    client = StubClient()
    check_agent(lambda: LLMProposer("m", client=client))
    check_agent(llm_agent("m", client=client, prompt="thin"))
    assert len({one["seed"] for one in client.asked}) > 5


@pytest.mark.parametrize("mode", ["full", "none", "permuted"])
def test_the_same_answers_give_the_same_rounds_under_every_feedback(mode):
    def run():
        return cads_env.evaluate(
            {"llm": llm_agent("m", client=StubClient())},
            registry=tiny_registry(),
            protocol=tiny_protocol(),
            feedback=mode,
            seeds=range(3),
        )

    one, two = run(), run()
    assert one.failures == ()
    assert one.rounds.equals(two.rounds)
    assert one.campaigns.equals(two.campaigns)


def test_a_function_without_arguments_gets_seed_and_journal_from_the_run(tmp_path: Path):
    """`lambda: LLMProposer(...)` is recorded and seeded as any other."""
    clients = [StubClient(), StubClient()]
    factories = [
        lambda: LLMProposer("m", client=clients[0]),
        lambda **given: LLMProposer("m", client=clients[1], **given),
    ]
    for number, factory in enumerate(factories):
        cads_env.evaluate(
            {"llm": factory}, registry=tiny_registry(), protocol=tiny_protocol(),
            seeds=range(2), out=tmp_path / str(number),
        )  # fmt: skip
    assert [one["seed"] for one in clients[0].asked] == [one["seed"] for one in clients[1].asked]
    assert len({one["seed"] for one in clients[0].asked}) == len(clients[0].asked)
    traces = sorted((tmp_path / "0" / "traces").glob("*/*.jsonl"))
    lines = [json.loads(line) for path in traces for line in path.read_text().splitlines()]
    assert len(lines) == len(clients[0].asked)


def test_what_the_author_sets_stays():
    proposer = LLMProposer("m", client=StubClient(FULL), seed=3)
    journal = Recorder()
    proposer.begin(seed=99, journal=journal)
    proposer.propose(tiny_view())
    assert journal.requests[0]["sampling"]["seed"] == generation_seed(3, round=2, attempt=0)
    own = Recorder()
    other = LLMProposer("m", client=StubClient(FULL), journal=own)
    other.begin(seed=99, journal=journal)
    other.propose(tiny_view())
    assert own.requests[0]["sampling"]["seed"] == generation_seed(99, round=2, attempt=0)
    assert len(journal.requests) == 1


def test_matched_quota_allows_eight_attempts_and_five_late_names():
    protocol = cads_env.load_protocol("matched-quota")
    pair = tiny_registry(400, 40)

    def one_name(messages, seed):
        """One new name an attempt, so that every attempt is needed."""
        asked = len(client.asked)
        return f"GENE{asked:03d}, nobody"

    client = StubClient(one_name)
    screen = open_screen([pair], [20], protocol)
    proposer = LLMProposer("m", client=client)
    made = []
    while not screen.is_done:
        view = screen.views()[0]
        before = len(client.asked)
        answer = ask(proposer, view, pair[0])
        made.append((view.attempts, view.slots, len(client.asked) - before, answer.attempts))
        screen.step([answer])
    first, *late = made
    assert first[0] == 8
    assert first[2:] == (8, 8)
    assert {(attempts, slots) for attempts, slots, *_ in late} == {(8, 5)}
    # Fallback may have read some of the names already, so five or a few more are needed.
    assert all(5 <= requests <= 8 and requests == told for _, _, requests, told in late)


def test_preview_shows_the_first_request_and_asks_nothing():
    client = StubClient()
    shown = LLMProposer("m", client=client, prompt="thin").preview(tiny_view())
    assert client.asked == []
    assert shown["tokens_out_most"] == 700
    assert 100 < shown["tokens_in"] < 400
    assert "GENE002, GENE004" in shown["messages"][-1]["content"]


def test_options_become_whole_and_stay_so(tmp_path: Path):
    prompt = tmp_path / "mine.yaml"
    prompt.write_text(
        "name: mine\nversion: 1\ntested_list: false\nasks_unseen: false\nuser: Name $slots\n"
    )
    aliases = tmp_path / "a.tsv"
    aliases.write_text("P53\tTP53\n")
    options = {
        "model": "qwen",
        "base_url": "http://127.0.0.1:1/v1",
        "prompt": str(prompt),
        "aliases": str(aliases),
        "guided": True,
    }
    whole = LLMProposer.resolve_options(options)
    assert whole == LLMProposer.resolve_options(json.loads(json.dumps(whole)))
    assert whole["model"] == {
        "provider": "openai", "model": "qwen", "base_url": "http://127.0.0.1:1/v1",
    }  # fmt: skip
    assert whole["prompt"] == load_prompt(prompt).mapping()
    assert whole["aliases"] == {"P53": "TP53"}
    assert whole["guided"] == "candidates"
    prompt.unlink()
    aliases.unlink()
    assert LLMProposer(**whole).prompt.name == "mine"


def test_the_command_lines_spelling_makes_an_agent():
    [spec] = resolve_agents("llm:model=qwen,base_url=http://127.0.0.1:1/v1,prompt=thin")
    assert spec.options["prompt"]["name"] == "thin"
    assert spec.options["model"]["base_url"] == "http://127.0.0.1:1/v1"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": "m", "promt": "thin"}, "Did you mean 'prompt'"),
        ({}, "needs a model"),
        ({"model": "m", "temperature": 5}, "from 0 to 2"),
        ({"model": "m", "attempts": 0}, "from 1 to"),
        ({"model": "m", "guided": "yes"}, "guided is 'yes'"),
        ({"model": "m", "api_key": "sk-1234567"}, "API key"),
        ({"model": "m", "base_url": "localhost"}, "expected an address"),
        ({"model": "m", "overflow": "newest"}, "overflow is 'newest'"),
    ],
)
def test_unusable_options_are_refused_before_a_run_begins(options, words):
    with pytest.raises(AgentError, match=words):
        LLMProposer.resolve_options(options)


def test_a_model_object_takes_no_settings_beside_it():
    with pytest.raises(AgentError, match="base_url stand beside a model that is an object"):
        LLMProposer(object(), base_url="http://127.0.0.1:1/v1")  # type: ignore[arg-type]


def test_a_model_that_answers_asynchronously_alone_is_refused_at_once():
    class Awaited:
        async def invoke(self, messages):
            return messages

    class Named:
        async def ainvoke(self, messages):
            return messages

    for model in (Awaited(), Named()):
        with pytest.raises(AgentError, match="answers asynchronously alone"):
            LLMProposer(model)  # type: ignore[arg-type]


def test_a_setting_that_nobody_chose_is_ours_and_null_sends_none():
    def sampling(**options: Any) -> Any:
        journal = Recorder()
        proposer = LLMProposer("m", client=StubClient(FULL), journal=journal, **options)
        proposer.propose(tiny_view())
        sent = journal.requests[0]["sampling"]
        return sent["temperature"], sent["top_p"], sent["max_tokens"]

    assert sampling() == (0.7, 0.9, 700)
    assert sampling(temperature="default", max_tokens=None) == (0.7, 0.9, 700)
    assert sampling(temperature=None, top_p=None) == (None, None, 700)


def test_importing_the_agents_imports_no_client():
    code = (
        "import sys, cads_env, cads_agents.llm, cads_agents\n"
        "heavy = {'langchain', 'langchain_core', 'langchain_openai', 'openai', 'httpx'}\n"
        "found = heavy & set(sys.modules)\n"
        "assert not found, found\n"
        "assert cads_agents.LLMProposer is cads_agents.llm.LLMProposer\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_replaying_needs_no_langchain(monkeypatch):
    for name in ("langchain", "langchain_core", "langchain_openai", "openai"):
        monkeypatch.setitem(sys.modules, name, None)
    answer = {"text": FULL, "finish_reason": "stop", "usage": {}}
    proposer = LLMProposer(
        "m", base_url="http://127.0.0.1:1/v1", timeout_s=77.0, journal=Recorder([answer])
    )
    assert proposer.propose(tiny_view()).identifiers == tuple(FULL.split(", "))
    live = LLMProposer("m", base_url="http://127.0.0.1:1/v1", timeout_s=77.0)
    with pytest.raises(MissingExtraError, match="pip install"):
        live.propose(tiny_view())


def test_a_view_holds_nothing_else_than_what_the_prompt_tells():
    """A prompt made from two views that differ in a side table's values alone is the same."""
    one, other = tiny_view(), tiny_view(side_tables={}, refused=(Refusal("X", "invalid"),))
    proposer = LLMProposer("m", client=StubClient(some_names))
    assert proposer.preview(one) == proposer.preview(other)


def test_an_answer_with_lone_surrogates_is_recorded(tmp_path: Path):
    result = cads_env.evaluate(
        {"llm": lambda: LLMProposer("m", client=StubClient("GENE011, \ud800X, GENE\udc00"))},
        registry=tiny_registry(), protocol=tiny_protocol(), seeds=[0], out=tmp_path / "run",
    )  # fmt: skip
    assert result.failures == ()
    assert int(result.campaigns["invalid"].iloc[0]) > 0


@pytest.mark.parametrize("seed", range(40))
def test_it_is_asked_again_exactly_while_the_screen_would_leave_slots_open(seed):
    draw = random.Random(seed)
    view = tiny_view(slots=draw.randrange(1, 10), attempts=draw.randrange(1, 5))
    words = [*view.identifiers, "x y", "NOVEL", "gene005", "`GENE007`"]
    answers = [", ".join(draw.choices(words, k=draw.randrange(12))) for _ in range(4)]
    client = StubClient(answers_in_turn(*answers))
    proposal = LLMProposer("m", client=client).propose(view)
    index = {name: i for i, name in enumerate(view.identifiers)}
    observed = np.arange(60) < 5
    open_slots = []
    for attempts in range(proposal.attempts + 1):
        size = sum(int(proposal.usage[f"names_{k + 1}"]) for k in range(attempts))
        answer = resolve(Proposal(proposal.identifiers[:size]), index)
        accepted, _ = account(
            answer, observed, fresh_slots=view.slots, proposal_slots=view.slots, unspent=0
        )
        open_slots.append(view.slots - len(accepted))
    assert len(client.asked) == proposal.attempts
    assert all(open_slots[:-1])
    assert open_slots[-1] == 0 or proposal.attempts == view.attempts


def test_a_flood_of_names_is_read_and_counted():
    flood = ", ".join(f"NOVEL{i}" for i in range(10_000))
    proposal, _ = propose(flood, flood)
    assert proposal.usage["names_1"] == 10_000
    assert len(proposal.identifiers) == 20_000
    assert re.match("NOVEL0, ", proposal.raw)


def test_a_class_of_ones_own_that_chooses_its_model_plays_in_a_run() -> None:
    class Mine(LLMProposer):
        def __init__(self, *, seed: int | None = None, journal: Journal | None = None) -> None:
            super().__init__("fake", client=StubClient(), seed=seed, journal=journal)

    result = cads_env.evaluate(Mine, registry=tiny_registry(), seeds=range(1))
    assert not result.failures

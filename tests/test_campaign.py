"""Playing: one loop, one instance a campaign, errors that pass through, the rule of evidence."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from cads_env.campaign import ask, evidence_rule, open_screen, play
from cads_env.certificate import Certificate
from cads_env.errors import ProposalError, ProtocolError
from cads_env.proposer import Nothing, Proposal, ProposerFailed, View
from cads_env.protocol import load_protocol
from cads_env.score import play_reference, play_twin
from cads_env.testing import tiny_protocol, tiny_registry


class Spy:
    """Proposes the first untested candidates and keeps every view."""

    def __init__(self) -> None:
        self.views: list[View] = []

    def propose(self, view: View) -> Sequence[str]:
        self.views.append(view)
        return [name for name in view.identifiers if name not in view.tested][: view.slots]


def test_every_proposer_is_asked_once_a_round_with_its_own_campaign() -> None:
    pairs, protocol = [tiny_registry(seed=i) for i in range(3)], tiny_protocol()
    spies = [Spy() for _ in pairs]
    records = play(open_screen(pairs, [0, 1, 2], protocol), spies)
    for spy, record, (registry, _) in zip(spies, records, pairs, strict=True):
        assert [view.round for view in spy.views] == list(range(5))
        assert [view.slots for view in spy.views] == [6, 4, 4, 4, 4]
        # Slots that the proposer filled, in its own order.
        assert record.candidates.tolist() == list(range(22))
        assert record.origins.all()
        named = [registry.identifiers[i] for i in record.candidates.tolist()]
        assert list(spy.views[-1].tested) == named[:18]


def test_arms_beside_each_other_play_as_they_would_alone() -> None:
    pair, protocol = tiny_registry(), tiny_protocol()
    together = play(open_screen([pair] * 3, [4, 4, 4], protocol), [Spy(), None, Nothing()])
    alone = play(open_screen([pair], [4], protocol), [Spy()])[0]
    twin = play_twin(*pair, protocol, 4)
    assert [record.sha256 for record in together] == [alone.sha256, twin.sha256, twin.sha256]


def test_no_proposer_and_an_empty_answer_differ_only_in_the_attempts() -> None:
    pair, protocol = tiny_registry(), tiny_protocol()
    counts = [
        [d.counts() for d in play(open_screen([pair], [0], protocol), [p])[0].deliveries]
        for p in (None, Nothing())
    ]
    assert [d["attempts"] for d in counts[0]] == [0] * 5
    assert [d["attempts"] for d in counts[1]] == [1] * 5
    for idle, empty in zip(*counts, strict=True):
        assert idle | {"attempts": 1} == empty


def test_play_goes_on_from_where_the_screen_stands() -> None:
    pair, protocol = tiny_registry(), tiny_protocol()
    screen = open_screen([pair], [0], protocol)
    for _ in range(2):
        screen.step([None])
    assert play(screen, [None])[0].sha256 == play_twin(*pair, protocol, 0).sha256


class Broken:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def propose(self, view: View) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (ProposerFailed("server down"), ProposerFailed),
        (ZeroDivisionError("mine"), ZeroDivisionError),
        ("GENE001", ProposalError),
        (None, ProposalError),
    ],
)
def test_errors_of_a_proposer_pass_through_and_the_round_is_not_played(
    answer: Any, error: type[Exception]
) -> None:
    screen = open_screen([tiny_registry()], [0], tiny_protocol())
    with pytest.raises(error):
        play(screen, [Broken(answer)])
    assert screen.round == 0


def test_one_proposer_a_campaign_is_needed() -> None:
    screen = open_screen([tiny_registry()] * 2, [0, 1], tiny_protocol())
    with pytest.raises(ValueError, match="argument"):
        play(screen, [Nothing()])


def test_ask_resolves_names_to_indices_and_keeps_what_came_beside_them() -> None:
    registry, _ = tiny_registry()
    answer = ask(
        Broken(Proposal(("GENE003", "?"), raw="text", attempts=2, usage={"tokens": 5})),
        open_screen([tiny_registry()], [0], tiny_protocol()).views()[0],
        registry,
    )
    assert list(answer.indices) == [2, -1]
    assert list(answer.names) == ["GENE003", "?"]
    assert (answer.attempts, answer.usage, answer.text) == (2, {"tokens": 5}, "text")


@pytest.mark.parametrize(
    ("protocol", "twin", "reference"),
    [
        ("standard", "2ce0f0c87901a644", "f883ff70d150f987"),
        ("proposer", "9c33aba6af6a8a2d", "6dcd8d89462415c6"),
        ("sweep", "198d94c6b80363da", "3f5f52a72a17d520"),
        ("standard+feedback_reselection=permuted", "1fb30f5d7c1d9f0a", "cec56d5d7e545388"),
        (
            "proposer+feedback_reselection=none+fallback_priority=round",
            "de0e8592113ed7d1",
            "3bda544e1822eeb9",
        ),
    ],
)
def test_the_reads_of_the_presets_are_frozen(protocol: str, twin: str, reference: str) -> None:
    pair, rules = tiny_registry(300, 40), load_protocol(protocol)
    assert play_twin(*pair, rules, 0).sha256[:16] == twin
    assert play_reference(*pair, rules, 0).sha256[:16] == reference


def test_a_protocol_that_ranks_by_mean_and_never_graduates_needs_no_evidence() -> None:
    assert evidence_rule(load_protocol("proposer"), 100) is None
    assert evidence_rule(load_protocol("proposer", graduation=True), 100) is not None
    assert evidence_rule(load_protocol("proposer", rank_by="log_evidence"), 100) is not None


def test_the_rule_is_the_frozen_certificates_evidence_and_bar() -> None:
    protocol = load_protocol("standard", rank_epsilon_bar=0.2, rank_theta=0.6, rank_q=0.05)
    rule = evidence_rule(protocol, 18_159)
    assert rule is not None
    assert rule.graduates_at == pytest.approx(math.log(18_159 / 0.05), rel=1e-15)
    reads = np.array([-1.0, 0.3, 0.301, 5.0])
    expected = np.minimum((0.6 * reads - 0.18) / 0.25, Certificate(
        epsilon_bar=0.2, theta=0.6
    ).log_cap)  # fmt: skip
    np.testing.assert_allclose(rule.log_increments(reads), expected, rtol=1e-12)
    copy = pickle.loads(pickle.dumps(rule))
    assert copy.log_increments(reads).tobytes() == rule.log_increments(reads).tobytes()


def test_changing_the_certificate_never_changes_a_read() -> None:
    pair = tiny_registry()
    hashes = {
        play_twin(*pair, tiny_protocol(certificate={"q": q, "epsilon_bar": e}), 0).sha256
        for q, e in ((0.1, 0.1), (0.5, 0.0), (0.01, 1.0))
    }
    assert len(hashes) == 1


def test_changing_the_ranking_changes_what_is_read() -> None:
    pair = tiny_registry()
    base = play_twin(*pair, tiny_protocol(), 0)
    for changes in ({"rank_by": "mean"}, {"feedback_reselection": "none"}):
        assert play_twin(*pair, tiny_protocol(**changes), 0).sha256 != base.sha256


def test_an_unusable_law_is_refused_when_the_screen_opens() -> None:
    with pytest.raises(ProtocolError, match="Unknown contamination law"):
        open_screen([tiny_registry()], [0], tiny_protocol(law="none"))

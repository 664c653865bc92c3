"""Whether the conditional bound holds is computed from what a law says of played reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cads_env.bound import bound_check, play_watched
from cads_env.campaign import evidence_rule, open_screen, play
from cads_env.channel import Channel
from cads_env.contamination import BoundCheck, ReadBatch, Watch, make_law
from cads_env.errors import CertificateError, ProtocolError
from cads_env.screen import Screen
from cads_env.testing import tiny_protocol, tiny_registry

PAIR = tiny_registry(60, 12)
SEEDS = range(20)


def check(law: str, *, epsilon_bar: float | None = None, **options: Any) -> BoundCheck:
    protocol = tiny_protocol(law=law, law_options=options, epsilon=0.1)
    return bound_check(PAIR, protocol, SEEDS, epsilon_bar=epsilon_bar)


@pytest.mark.parametrize("law", ["uniform", "point-mass", "subthreshold", "mixed-sign"])
def test_laws_of_one_rate_keep_the_bound_at_epsilon(law: str) -> None:
    found = check(law)
    assert found.largest_conditional_rate == 0.1
    assert found.holds
    assert not check(law, epsilon_bar=0.0999).holds
    assert found.marginal_rate == pytest.approx(0.1, abs=4 * (0.09 / found.reads) ** 0.5)


def test_a_rate_that_is_kept_up_by_re_reads_alone_breaks_the_bound() -> None:
    found = check("reread")
    plan = tiny_protocol().plan(60)
    first, reads = sum(p.fresh for p in plan), sum(p.reads for p in plan)
    assert found.largest_conditional_rate == pytest.approx(0.1 * reads / (reads - first))
    assert not found.holds
    assert found.expected_rate == pytest.approx(0.1)
    assert check("reread", epsilon_bar=found.largest_conditional_rate).holds


def test_a_coin_a_campaign_is_certain_once_it_has_shown() -> None:
    found = check("campaign-coin")
    assert found.largest_conditional_rate == 1.0
    assert not found.holds
    assert check("campaign-coin", epsilon_bar=1.0).holds


def test_the_coin_of_a_campaign_is_unknown_in_its_first_round() -> None:
    protocol = tiny_protocol(law="campaign-coin", law_options={}, epsilon=0.1, rounds=1)
    assert bound_check(PAIR, protocol, SEEDS).largest_conditional_rate == 0.1


def test_a_law_that_chases_high_means_breaks_the_bound_it_concentrates_past() -> None:
    found = check("past-high", above=-10.0, rate=0.3)
    assert found.largest_conditional_rate == 0.3
    assert not found.holds


def test_watching_changes_no_read() -> None:
    protocol = tiny_protocol(law="past-high", law_options={"rate": 0.4}, epsilon=0.1)
    watched, watch = play_watched([PAIR, PAIR], [4, 5], protocol)
    plain = play(open_screen([PAIR, PAIR], [4, 5], protocol), [None, None])
    assert [r.sha256 for r in watched] == [r.sha256 for r in plain]
    assert watch.reads.tolist() == [r.read_count for r in plain]


class Silent:
    """A law that changes nothing and says nothing."""

    def contaminate(self, batch: ReadBatch) -> Any:
        return batch.clean


class OnHits(Silent):
    def rates(self, batch: ReadBatch) -> Any:
        return np.where(batch.signal > 0, 0.9, 0.05)


class Peeking(Silent):
    def rates(self, batch: ReadBatch) -> Any:
        return 1.0 / (1.0 + np.exp(batch.clean))


def watched(law: Any) -> Watch:
    """A watch over one round under a law."""
    protocol = tiny_protocol()
    channel = Channel([PAIR[1]], [0], protocol)
    watch = channel.law = Watch(law, 1)
    Screen([PAIR[0]], channel, protocol, evidence_rule(protocol, 60)).step([None])
    return watch


def test_only_nulls_count_since_only_they_can_be_declared_falsely() -> None:
    watch = watched(OnHits())
    assert watch.largest_rate.tolist() == [0.05]
    assert watch.expected[0] > 0.05 * watch.reads[0]


def test_a_law_that_does_not_say_its_rates_cannot_be_checked() -> None:
    with pytest.raises(ProtocolError, match=r"Silent has no rates\(batch\).*add the method"):
        watched(Silent())


def test_rates_that_depend_on_the_clean_read_are_no_rates_given_the_past() -> None:
    with pytest.raises(ProtocolError, match=r"not finite when batch.clean is not"):
        watched(Peeking())


def test_a_bound_outside_its_range_is_refused() -> None:
    with pytest.raises(CertificateError, match="epsilon_bar is outside its range"):
        check("uniform", epsilon_bar=1.5)


def test_the_unplanned_law_of_re_reads_has_epsilon_as_its_rate() -> None:
    assert make_law("reread", 0.2, {}).rate == 0.2  # type: ignore[attr-defined]

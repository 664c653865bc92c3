from __future__ import annotations

import dataclasses
import math
import types
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cads_env.certificate import AuditCap, Certificate, e_bh, log_cap_for, reach
from cads_env.certificate.reach import _reads_needed
from cads_env.errors import CertificateError


@dataclasses.dataclass
class Plan:
    """A protocol in which a candidate is read a fixed number of times in each later round."""

    rounds: int = 12
    a_round: int = 1
    certificate: Any = dataclasses.field(default_factory=Certificate)

    def most_reads(self, round: int, m: int) -> int:
        return 1 + self.a_round * (self.rounds - 1 - round)


def test_published_proposer_protocol_reaches_round_three_at_most() -> None:
    m = 18_159
    assert [reach(Plan(), k, m) for k in (1, 2, 15)] == [1, 2, 3]


def test_reads_needed_in_the_published_registry_are_nine_to_eleven() -> None:
    certificate = Certificate()
    needed = [_reads_needed(certificate.log_bar(18_159, k), certificate.log_cap) for k in (1, 15)]
    assert needed == [11, 9]


def test_reach_is_where_saturated_evidence_still_meets_the_bar() -> None:
    plan, certificate = Plan(rounds=20), Certificate()
    for m, k in [(60, 1), (500, 4), (18_159, 12)]:
        last = reach(plan, k, m)
        declared = []
        for first in range(plan.rounds):
            log_e = np.full(k, plan.most_reads(first, m) * certificate.log_cap)
            declared.append(len(e_bh(log_e, 0.1, m=m, indices=np.arange(k))))
        assert declared == [k] * (last + 1) + [0] * (plan.rounds - 1 - last)


def test_more_declarations_and_more_reads_reach_later() -> None:
    reached = [reach(Plan(), k, 18_159) for k in (1.0, 2.5, 15.0, 80.0, 2000.0)]
    assert reached == sorted(reached)
    assert reached[0] < reached[-1]
    assert reach(Plan(a_round=4), 1, 18_159) > reach(Plan(), 1, 18_159)


def test_uncapped_evidence_reaches_the_last_round() -> None:
    assert reach(Plan(), 1, 18_159, certificate=Certificate(epsilon_bar=0.0)) == 11


def test_nothing_is_within_reach_when_reads_cannot_suffice() -> None:
    assert reach(Plan(rounds=5), 1, 18_159) == -1
    assert reach(Plan(), 1, 18_159, certificate=Certificate(epsilon_bar=1.0)) == -1


def test_rounds_without_fresh_candidates_are_passed_over() -> None:
    class Sweep(Plan):
        def most_reads(self, round: int, m: int) -> int:
            return 0 if round >= 8 else super().most_reads(round, m)

    assert reach(Sweep(), 1, 10, certificate=Certificate(epsilon_bar=0.0)) == 7


def test_default_certificate_may_be_a_mapping_or_any_object_with_its_fields() -> None:
    fields = {"epsilon_bar": 0.3, "theta": 0.7, "s": 0.5, "q": 0.2}
    expected = reach(Plan(rounds=30), 3, 400, certificate=Certificate(**fields))
    assert reach(Plan(rounds=30, certificate=fields), 3, 400) == expected
    assert reach(Plan(rounds=30, certificate=types.SimpleNamespace(**fields)), 3, 400) == expected
    assert expected != reach(Plan(rounds=30), 3, 400)


def test_an_incomplete_default_certificate_is_refused() -> None:
    with pytest.raises(CertificateError, match=r"theta, s missing"):
        reach(Plan(certificate={"epsilon_bar": 0.1, "q": 0.1}), 1, 10)


@pytest.mark.parametrize("k", [0, 0.99, 11, math.nan, True, None, "3"])
def test_unusable_numbers_of_declarations_are_refused(k: Any) -> None:
    with pytest.raises(CertificateError, match=r"^k is"):
        reach(Plan(), k, 10)


@given(st.integers(1, 2**43), st.integers(1, 200))
def test_reads_needed_is_exact_at_the_bar(steps: int, reads: int) -> None:
    log_cap = steps / 2.0**40
    assert _reads_needed(reads * log_cap, log_cap) == reads
    assert _reads_needed(math.nextafter(reads * log_cap, math.inf), log_cap) == reads + 1


@dataclasses.dataclass
class AuditedPlan(Plan):
    """The same with controls."""

    audit_starts: tuple[int, ...] = ()


@pytest.mark.parametrize("each", [0, 2, 10, 40])
@pytest.mark.parametrize("is_front", [False, True])
@pytest.mark.parametrize("k", [1, 40])
def test_an_audited_certificate_reaches_as_far_as_without_a_flag(
    each: int, is_front: bool, k: int
) -> None:
    rounds, m = 12, 500
    starts = (rounds * each,) * rounds if is_front else tuple(range(0, rounds * each, each or 1))
    plan = AuditedPlan(a_round=4, audit_starts=starts or (0,) * rounds)
    certificate = Certificate(audit=AuditCap())
    clean = np.zeros(max(starts, default=0), bool)
    bounds = AuditCap().bounds(clean, plan.audit_starts, s=0.5)
    caps = [log_cap_for(float(bound)) for bound in bounds]
    most = [caps[first] + 4 * sum(caps[first + 1 :]) for first in range(rounds)]
    enough = [first for first in range(rounds) if most[first] >= certificate.log_bar(m, k)]
    assert reach(plan, k, m, certificate=certificate) == max(enough, default=-1)


def test_without_controls_an_audited_certificate_reaches_nothing() -> None:
    assert reach(Plan(), 1, 500, certificate=Certificate(audit=AuditCap())) == -1

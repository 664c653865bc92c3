"""The screen: the state of n campaigns of one protocol, and one step of it.

Arrays carry a leading campaign axis; one campaign and a thousand run the same code and agree in
every byte. A step costs what it reads, whatever the registry's size. Holds no oracle: reads come
from the channel that is handed in, and so does the rule of evidence. Never imports a certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cads_env.channel import Channel
from cads_env.delivery import ACCEPTED, Answer, account
from cads_env.errors import ActionError
from cads_env.fallback import FallbackOrder
from cads_env.proposer import Refusal, View
from cads_env.protocol import Protocol
from cads_env.record import FALLBACK, PROPOSER, Delivery, RecordBatch
from cads_env.registry import Registry
from cads_env.reselection import reread_positions
from cads_env.schedule import RoundPlan
from cads_env.tape import bits, candidate_words

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

UNSEEN, TESTED, LOW, HIGH = 0, 1, 2, 3
"""Status codes of a candidate: not read, read but not released, reads low, reads high."""


# glibc maps large arrays anew, at a page fault every 4 KiB, until one that large has been freed;
# then
# it keeps them. Freeing one untouched array now saves a tenth of every long campaign later.
np.empty(31 << 20, np.uint8)


class EvidenceRule(NamedTuple):
    """The protocol's own frozen evidence, for ranking and graduation.

    Attributes:
        log_increments: Log evidence of each read, elementwise.
        graduates_at: Log evidence at which a candidate's evidence suffices alone: ln(m / q).
    """

    log_increments: Callable[[Floats], Floats]
    graduates_at: float


class Summary(NamedTuple):
    """What may be shown of the observed candidates at a round's start, shape (n, k) each."""

    means: Floats
    log_evidence: Floats | None


class Screen:
    """n campaigns in step, from round 0 to the last.

    Attributes:
        protocol: The common protocol.
        registries: One a campaign, all of size m.
        round: The round that the next step plays; equals the number of rounds after the last.
    """

    def __init__(
        self,
        registries: Sequence[Registry],
        channel: Channel,
        protocol: Protocol,
        evidence: EvidenceRule | None,
    ) -> None:
        """Start n campaigns.

        Args:
            registries: One a campaign, all of the same size.
            channel: Open on the same campaigns.
            protocol: The common protocol.
            evidence: Needed when the protocol ranks by evidence or graduates; otherwise None.
        """
        self.protocol, self.registries, self.round = protocol, tuple(registries), 0
        self._channel, self._evidence = channel, evidence
        n, m = len(registries), registries[0].m
        self.plans: tuple[RoundPlan, ...] = protocol.plan(m)
        capacity = sum(plan.fresh for plan in self.plans)
        reads = sum(plan.reads for plan in self.plans)
        self._is_observed = np.zeros((n, m), np.bool_)
        self._candidates = np.zeros((n, capacity), np.int64)
        self._origins = np.empty((n, capacity), np.int8)
        self._sums, self._counts = np.zeros((n, capacity)), np.zeros((n, capacity), np.int64)
        self._log_evidence = None if evidence is None else np.zeros((n, capacity))
        self._slots, self._values = np.empty((n, reads), np.int32), np.empty((n, reads))
        self._starts = np.concatenate([[0], np.cumsum([plan.reads for plan in self.plans])])
        self._audit_values = channel.audit_reads()
        self._fallback = FallbackOrder(channel.keys("priority"), m, capacity)
        self._permuted_keys = channel.keys("permuted-feedback")
        self._blind_keys = channel.keys("blind-reselection")
        self._deliveries: list[list[Delivery]] = [[] for _ in range(n)]
        self._summary: Summary | None = None

    @property
    def n(self) -> int:
        """Number of campaigns."""
        return int(self._is_observed.shape[0])

    @property
    def m(self) -> int:
        """Registry size."""
        return int(self._is_observed.shape[1])

    @property
    def is_done(self) -> bool:
        """Whether every round was played."""
        return self.round >= len(self.plans)

    @property
    def observed_count(self) -> int:
        """Candidates read so far, the same in every campaign."""
        if self.is_done:
            return int(self._candidates.shape[1])
        return self.plans[self.round].observed

    @property
    def read_count(self) -> int:
        """Reads so far, the same in every campaign."""
        return int(self._starts[self.round])

    @property
    def fresh_slots(self) -> int:
        """Fresh slots of the coming round, 0 after the last."""
        return 0 if self.is_done else self.plans[self.round].fresh

    @property
    def proposal_slots(self) -> int:
        """Proposals that the coming round accepts, 0 after the last."""
        return self.protocol.slots_for(self.round, self.fresh_slots)

    @property
    def _shown(self) -> Summary:
        """Means and log evidence by first-read order at the round's start, as they truly are."""
        if self._summary is None:
            k = self.observed_count
            evidence = None if self._log_evidence is None else self._log_evidence[:, :k]
            self._summary = Summary(self._sums[:, :k] / self._counts[:, :k], evidence)
        return self._summary

    def _permuted(self, summary: Summary) -> Summary:
        """The summary under this round's permutation of first-read order."""
        k = summary.means.shape[1]
        words = candidate_words(self._permuted_keys[:, None], np.arange(k)[None, :])
        rounds = np.full(words.size, self.round, np.int64)
        keys = bits(words.reshape(-1), rounds, 0).reshape(words.shape)
        order = np.argsort(keys, axis=1, kind="stable")
        means = np.take_along_axis(summary.means, order, axis=1)
        if summary.log_evidence is None:
            return Summary(means, None)
        return Summary(means, np.take_along_axis(summary.log_evidence, order, axis=1))

    def _seen_under(self, feedback: str) -> Summary:
        return self._permuted(self._shown) if feedback == "permuted" else self._shown

    def _codes(self) -> NDArray[np.int8]:
        """Status code of each observed candidate, shape (n, k)."""
        shape = self._shown.means.shape
        if self.protocol.feedback_proposer == "none":
            return np.full(shape, TESTED, np.int8)
        means = self._seen_under(self.protocol.feedback_proposer).means
        return np.where(means > self.protocol.high_above, HIGH, LOW).astype(np.int8)

    def statuses(self) -> NDArray[np.int8]:
        """Status code of every candidate, shape (n, m); a new array."""
        status = np.full((self.n, self.m), UNSEEN, np.int8)
        k = self.observed_count
        np.put_along_axis(status, self._candidates[:, :k], self._codes(), axis=1)
        return status

    def views(self) -> list[View]:
        """What each campaign's proposer may know at the start of the coming round."""
        return [self._view(row, codes) for row, codes in enumerate(self._codes())]

    def _view(self, row: int, codes: NDArray[np.int8]) -> View:
        registry, k = self.registries[row], self.observed_count
        names = [registry.identifiers[i] for i in self._candidates[row, :k].tolist()]
        last = self._deliveries[row][-1] if self._deliveries[row] else None
        entries = last.entries if last is not None else ()
        # From the candidates, not from the entries: those are cut to what a record lists.
        start = self.plans[self.round - 1].observed if last is not None else 0
        accepted = names[start : start + last.accepted] if last is not None else []
        return View(
            identifiers=registry.identifiers,
            description=registry.description,
            side_tables=MappingProxyType(
                # Objects of its own, so that no agent can change what another one sees.
                {title: table.copy() for title, table in registry.side_tables.items()}
            ),
            high=tuple(name for name, code in zip(names, codes, strict=True) if code == HIGH),
            low=tuple(name for name, code in zip(names, codes, strict=True) if code == LOW),
            tested=tuple(names),
            round=self.round,
            rounds=len(self.plans),
            slots=self.proposal_slots,
            accepted=tuple(accepted),
            refused=tuple(Refusal(*entry) for entry in entries if entry[1] != ACCEPTED),
            attempts=self.protocol.attempts,
            assay=registry.assay,
            high_means=registry.high_means,
        )

    def step(self, answers: Sequence[Answer | None]) -> None:
        """Play one round.

        Args:
            answers: One a campaign; None proposes nothing.

        Raises:
            ActionError: Every round was played, or the number of answers is not n.
        """
        if self.is_done:
            msg = f"All {len(self.plans)} rounds were played; start a new campaign with reset()."
            raise ActionError(msg)
        if len(answers) != self.n:
            msg = f"Received {len(answers)} answers for {self.n} campaigns; expected one each."
            raise ActionError(msg)
        plan = self.plans[self.round]
        fresh = self._fill(answers, plan)
        again, turns = self._reselect(plan)
        k, stop = plan.observed, plan.observed + plan.fresh
        self._candidates[:, k:stop] = fresh
        self._channel.admit(fresh, k, self._candidates.shape[1])
        slots = np.empty((self.n, plan.reads), np.int64)
        slots[:, : plan.fresh], slots[:, plan.fresh :] = np.arange(k, stop), again
        self._read(plan, slots, turns)
        self.round += 1
        self._summary = None

    def _read(self, plan: RoundPlan, slots: Ints, turns: Ints | None) -> None:
        start = int(self._starts[self.round])
        stop = start + plan.reads
        positions = (slots + np.arange(self.n)[:, None] * self._candidates.shape[1]).reshape(-1)
        counts = self._counts.reshape(-1)
        visits = counts.take(positions)
        if turns is not None:
            visits.reshape(slots.shape)[:, plan.fresh :] += turns
        values = self._channel.read(
            round=self.round,
            positions=positions,
            visits=visits,
            candidates=self._candidates,
            past_reads=lambda i: self._past_reads(slots, i, start),
            past_sums=self._sums,
            past_counts=self._counts,
        )
        self._slots[:, start:stop] = slots
        self._values[:, start:stop] = values.reshape(slots.shape)
        # Of repeated positions the last is kept, and that is the latest visit.
        counts[positions] = visits + 1
        # add.at adds read after read, so sums do not depend on how a round was put together.
        np.add.at(self._sums.reshape(-1), positions, values)
        if self._evidence is not None and self._log_evidence is not None:
            increments = self._evidence.log_increments(values)
            np.add.at(self._log_evidence.reshape(-1), positions, increments)

    def _past_reads(self, slots: Ints, position: int, stop: int) -> Floats:
        row, column = divmod(position, slots.shape[1])
        past = self._slots[row, :stop] == slots[row, column]
        values: Floats = self._values[row, :stop][past]
        return values

    def _fill(self, answers: Sequence[Answer | None], plan: RoundPlan) -> Ints:
        """Fresh candidates of the round, shape (n, fresh): accepted ones, then the fallback's."""
        fresh = np.empty((self.n, plan.fresh), np.int64)
        taken = np.zeros(self.n, np.int64)
        slots = self.protocol.slots_for(self.round, plan.fresh)
        blank = Delivery(
            fresh_slots=plan.fresh,
            proposal_slots=slots,
            fallback=plan.fresh,
            unspent=plan.unspent,
        )
        for row, answer in enumerate(answers):
            if answer is None:
                self._deliveries[row].append(blank)
                continue
            accepted, delivery = account(
                answer,
                self._is_observed[row],
                fresh_slots=plan.fresh,
                proposal_slots=slots,
                unspent=plan.unspent,
            )
            self._deliveries[row].append(delivery)
            taken[row] = len(accepted)
            fresh[row, : len(accepted)] = accepted
            self._is_observed[row, accepted] = True
        by_fallback = np.arange(plan.fresh) >= taken[:, None]
        if by_fallback.any():
            if self.protocol.fallback_priority == "round":
                self._fallback.restart(self._channel.keys("priority", round=self.round))
            fresh[by_fallback] = self._fallback.take(plan.fresh - taken, self._is_observed)
        origins = np.where(by_fallback, FALLBACK, PROPOSER)
        self._origins[:, plan.observed : plan.observed + plan.fresh] = origins
        return fresh

    def _reselect(self, plan: RoundPlan) -> tuple[Ints, Ints | None]:
        """Observed position and turn of each further read of the round."""
        if plan.rereads == 0 and plan.extra == 0:
            return np.empty((self.n, 0), np.int64), None
        scores, graduated = self._scores()
        return reread_positions(
            scores,
            graduated,
            rereads=plan.rereads,
            reads_each=plan.reads_each,
            extra=plan.extra,
        )

    def _scores(self) -> tuple[Floats, NDArray[np.bool_] | None]:
        k = self.observed_count
        if self.protocol.feedback_reselection == "none":
            words = candidate_words(self._blind_keys[:, None], self._candidates[:, :k])
            rounds = np.full(words.size, self.round, np.int64)
            keys = bits(words.reshape(-1), rounds, 0).reshape(words.shape)
            # 53 bits are exact in a float; the few ties go to first-read order.
            return (keys >> np.uint64(11)).astype(np.float64), None
        seen = self._seen_under(self.protocol.feedback_reselection)
        by_evidence = self.protocol.rank_by == "log_evidence"
        scores = seen.log_evidence if by_evidence and seen.log_evidence is not None else seen.means
        if not self.protocol.graduation or self._evidence is None or seen.log_evidence is None:
            return scores, None
        return scores, seen.log_evidence >= self._evidence.graduates_at

    def records(self) -> RecordBatch:
        """The records so far, of all rounds when done.

        Returns:
            Read-only arrays: the screen's own when done (no step can change them), copies before.
        """
        k, reads = self.observed_count, int(self._starts[self.round])
        starts = np.array(self.protocol.audit_starts, np.int64)
        revealed = self._audit_values.shape[1]
        if starts.size and not self.is_done:
            # Those of rounds that are still to come are not revealed yet.
            revealed = int(starts[self.round])
        return RecordBatch(
            m=self.m,
            candidates=self._released(self._candidates[:, :k]),
            origins=self._released(self._origins[:, :k]),
            slots=self._released(self._slots[:, :reads]),
            values=self._released(self._values[:, :reads]),
            round_starts=self._released(self._starts[: self.round + 1]),
            deliveries=tuple(tuple(rounds) for rounds in self._deliveries),
            audit_values=self._released(self._audit_values[:, :revealed]),
            audit_starts=self._released(starts[: self.round]),
        )

    def _released(self, array: NDArray[Any]) -> NDArray[Any]:
        released = array.view() if self.is_done else array.copy()
        released.flags.writeable = False
        return released

    def last_deliveries(self) -> list[Delivery | None]:
        """Each campaign's delivery of the last round played, None before the first."""
        return [rounds[-1] if rounds else None for rounds in self._deliveries]

    def take(self, rows: Ints) -> Screen:
        """A screen of some of the campaigns at the same round, sharing no state with this one."""
        part = Screen.__new__(Screen)
        part.__dict__ |= self.__dict__
        part.registries = tuple(self.registries[row] for row in rows)
        part._channel = self._channel.take(rows)
        part._fallback = self._fallback.of(rows)
        part._deliveries = [list(self._deliveries[row]) for row in rows]
        for name, value in self.__dict__.items():
            if isinstance(value, np.ndarray) and name != "_starts":
                setattr(part, name, value[rows].copy())
        part._summary = None
        return part

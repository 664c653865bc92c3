"""The journal of a campaign: what its proposer asked of the world outside, kept line by line.

What is recorded is given back in order and not asked again; the rest is asked for, or refused when
a run is replayed. An agent holds a `Ticket` alone, from which neither the campaign nor a file can
be reached, and no message that it can catch names them.
"""

from __future__ import annotations

import datetime
import io
import json
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal
from weakref import WeakKeyDictionary

from cads_env.errors import AgentError, InvariantError, RecordError, ReplayError, RunError
from cads_env.proposer import ProposerFailed
from cads_env.run.differing import first_difference
from cads_env.run.exchange_json import (
    Answer,
    answer_json,
    check_length,
    failed_json,
    place_of,
    request_json,
)
from cads_env.run.executors.stopping import RunStopped, Stop
from cads_env.run.meter import NOTHING_SPENT, Meter, spent_of
from cads_env.run.traces import Exchange, RoundCounter, exchanges, sha256_text
from cads_env.values import said

Mode = Literal["live", "replay"]

_START_OVER: Final = (
    "The agent, its options or the registry changed since. Put back what the run began with, or "
    "start a new folder."
)


_OVER: Final = "The campaign of this journal is over; every campaign has a journal of its own."
_NOT_ITS_TURN: Final = (
    "Another exchange of this campaign is under way. Ask one thing at a time: what is asked at "
    "once comes in another order each time, and could not be replayed."
)
_OTHER_PROCESS: Final = (
    "A journal is of the process that plays its campaign; a process that an agent starts hands its "
    "answers back and asks nothing of the journal itself."
)
_STILL_ASKING: Final = (
    "The campaign ended while an exchange of it was under way. Wait for every answer, or end what "
    "asks for it, before the last proposal is returned."
)


class Ticket:
    """What an agent holds of its journal: it can exchange, and tells nothing of the campaign."""

    __slots__ = ("__weakref__",)

    def exchange(
        self, request: Mapping[str, Any], answer: Callable[[], Mapping[str, Any]]
    ) -> Mapping[str, Any]:
        """The answer to a request; see `cads_env.proposer.Journal`."""
        journal = _of_ticket.get(self)
        if journal is None:
            raise AgentError(_OVER)
        return journal.exchange(request, answer)


_of_ticket: WeakKeyDictionary[Ticket, CampaignJournal] = WeakKeyDictionary()


class CampaignJournal(ABC):
    """Keeps and gives back the exchanges of one campaign, one at a time.

    An agent may ask from threads of its own, but not two things at once: in which order they came
    would be another one each time, and the campaign could not be played again.

    Attributes:
        spent: What this campaign has spent in this attempt.
    """

    def __init__(
        self, *, mode: Mode = "live", meter: Meter | None = None, stop: Stop | None = None
    ) -> None:
        """Nothing is opened before the first exchange.

        Args:
            mode: "live" asks for what is not recorded; "replay" refuses it.
            meter: Counts and limits what is asked; None for neither.
            stop: Looked at before anything is asked.
        """
        self._mode, self._meter, self._stop = mode, meter, stop
        self._records: Iterator[Exchange] | None = None
        self._next: Exchange | None = None
        self._n = 0
        self._rounds = RoundCounter()
        self._broken: BaseException | None = None
        self._unanswered: tuple[str, BaseException] | None = None
        self._turn, self._keeping = threading.Lock(), threading.Lock()
        self._is_over = False
        self._process = os.getpid()
        self.spent = NOTHING_SPENT
        self.ticket = Ticket()
        _of_ticket[self.ticket] = self

    @property
    @abstractmethod
    def where(self) -> str:
        """What a message calls the record."""

    @abstractmethod
    def _recorded(self) -> Iterator[Exchange]:
        """The recorded exchanges; opens what holds them."""

    @abstractmethod
    def _put(self, line: bytes) -> None:
        """Keep a line, before its answer is used."""

    @abstractmethod
    def _let_go(self) -> None:
        """Close what was opened."""

    @property
    def broken(self) -> BaseException | None:
        """What refused an exchange for good; None where nothing did."""
        return self._broken

    def exchange(
        self, request: Mapping[str, Any], answer: Callable[[], Mapping[str, Any]]
    ) -> Mapping[str, Any]:
        """The answer to a request: as recorded, or asked for now.

        Raises:
            ProposerFailed: `answer` raised it, now or when it was recorded.
            AgentError: It is not this campaign's turn to ask, or the agent went on without an
                answer.
            ReplayError: Another request is recorded here, or none when nothing may be asked.
            RecordError: The record is damaged.
            RunStopped: The run is to end.
        """
        if os.getpid() != self._process:
            # A copy of the process would write into the same file.
            raise AgentError(_OTHER_PROCESS)
        if not self._turn.acquire(blocking=False):
            self._broken = self._broken or AgentError(_NOT_ITS_TURN)
            raise AgentError(_NOT_ITS_TURN)
        try:
            if self._broken is not None:
                raise self._broken
            return self._exchange(request, answer)
        except (ReplayError, RecordError, RunError, RunStopped) as error:
            # An agent that goes on in spite of it must not have its campaign scored.
            self._broken = self._broken or error
            raise
        finally:
            self._turn.release()

    def _exchange(
        self, request: Mapping[str, Any], answer: Callable[[], Mapping[str, Any]]
    ) -> Mapping[str, Any]:
        text = request_json(request)
        self._check_answered(text)
        self._open()
        if self._next is not None:
            self._check_same(self._next, request, text)
            known = self._take()
            if known is not None:
                self._rounds.is_new(request)
                return known
        if self._mode == "replay":
            msg = (
                f"{place_of(request)}: the record ends before this request, and a replay asks "
                f"nothing. {_START_OVER}"
            )
            raise ReplayError(msg)
        if self._stop is not None:
            self._stop.check()
        if self._meter is not None:
            self._meter.check()
        return self._ask(request, text, answer)

    def _open(self) -> None:
        if self._records is None:
            self._records = self._recorded()
            self._next = next(self._records, None)

    def _check_same(self, there: Exchange, request: Mapping[str, Any], text: str) -> None:
        if there.request_sha256 == sha256_text(text):
            return
        where = first_difference(there.request, json.loads(text)) or "the sign of a zero"
        msg = (
            f"{place_of(request)}: the record of this campaign holds another request here; they "
            f"differ first in {where}. {_START_OVER}"
        )
        raise ReplayError(msg)

    def _take(self) -> Mapping[str, Any] | None:
        """The recorded answer; None when it failed and is to be asked for again.

        Raises:
            ProposerFailed: It failed, and the campaign went on from there or is replayed.
        """
        there = self._advance()
        while there.answer is None and self._next is not None and self._next.n == there.n:
            # It failed and was asked for again by a later attempt.
            there = self._advance()
        self._n = there.n + 1
        if there.answer is not None:
            return there.answer
        if self._next is None and self._mode == "live":
            self._n = there.n
            return None
        raise ProposerFailed(there.failed)

    def _advance(self) -> Exchange:
        there, records = self._next, self._records
        if there is None or records is None:
            msg = "The record was read past its end. Please report this bug."
            raise InvariantError(msg)
        self._next = next(records, None)
        return there

    def _ask(
        self, request: Mapping[str, Any], text: str, answer: Callable[[], Mapping[str, Any]]
    ) -> Mapping[str, Any]:
        started = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        began = time.perf_counter()
        given: Answer | None = None
        failure: ProposerFailed | None = None
        # Until it is kept: whatever comes between is no answer.
        self._unanswered = (text, AgentError("it was not kept"))
        try:
            given = answer_json(answer())
        except ProposerFailed as error:
            failure = error
        except BaseException as error:
            self._unanswered = (text, error)
            raise
        seconds = round(time.perf_counter() - began, 4)
        told = failed_json(failure) if failure is not None else ""
        outcome = f'"answer":{given.text}' if given is not None else told
        check_length(len(text) + len(outcome), "An exchange")
        line = (
            f'{{"n":{self._n},"request":{text},"request_sha256":"{sha256_text(text)}",{outcome},'
            f'"started":"{started}","seconds":{seconds}}}\n'
        )
        self._keep(line.encode("ascii"))
        self._count(request, None if given is None else given.value)
        if given is None:
            # Through JSON, so that a failure now and a recorded one are the same.
            raise ProposerFailed(json.loads(f"{{{told}}}")["failed"]) from failure
        return given.value

    def _keep(self, line: bytes) -> None:
        """Keep a line, unless the campaign ended while it was waited for."""
        with self._keeping:
            if self._is_over:
                raise AgentError(_OVER)
            self._put(line)
        self._n += 1
        self._unanswered = None

    def _check_answered(self, text: str | None) -> None:
        """Raise when the last request got no answer and something else follows it.

        Args:
            text: The request that follows; None at the end of the campaign.

        Raises:
            AgentError: It did; a replay, which has no answer either, could not go that way.
        """
        if self._unanswered is None or self._unanswered[0] == text:
            return
        error = self._unanswered[1]
        msg = (
            f"A request got no answer ({type(error).__name__}: {said(error)}), and the agent went "
            "on without one, which no record tells. Ask the same again, or raise ProposerFailed "
            "in `answer` where the world outside broke."
        )
        self._broken = self._broken or AgentError(msg)
        raise self._broken

    def _count(self, request: Mapping[str, Any], answer: Mapping[str, Any] | None) -> None:
        spent = spent_of(answer, is_new_round=self._rounds.is_new(request))
        self.spent = self.spent.plus(spent)
        if self._meter is not None:
            self._meter.add(spent)

    def end(self, failure: BaseException | None = None) -> None:
        """Close; raise what the agent kept back, and when the record holds more than was asked.

        Args:
            failure: What ended the campaign; None when it was played to its end.

        Raises:
            ReplayError: The campaign asked for less than is recorded, or a request was refused.
            RecordError: The record is damaged.
            AgentError: Something else broke the rules of the journal, and the agent went on.
            RunStopped: The run is to end.
        """
        # Not given back: nothing is asked after the end.
        is_free = self._turn.acquire(blocking=False)
        try:
            # What broke a rule of ours tells less than what the agent itself broke with.
            if self._broken is not None and (
                failure is None or not isinstance(self._broken, AgentError)
            ):
                raise self._broken
            if failure is None:
                if not is_free:
                    raise AgentError(_STILL_ASKING)
                self._check_answered(None)
                self._check_all_asked()
        finally:
            _of_ticket.pop(self.ticket, None)
            with self._keeping:
                self._is_over = True
                self._let_go()

    def _check_all_asked(self) -> None:
        self._open()
        if self._next is not None:
            msg = (
                f"{place_of(self._next.request)}: the record of this campaign holds this request, "
                f"which was not asked for any more. {_START_OVER}"
            )
            raise ReplayError(msg)


class MemoryJournal(CampaignJournal):
    """A journal in memory, of a campaign whose run has no folder at hand."""

    def __init__(self, recorded: bytes = b"", **how: Any) -> None:
        """A journal that begins with recorded lines.

        Args:
            recorded: Whole lines of a trace.
            **how: As for `CampaignJournal`.
        """
        super().__init__(**how)
        self._before = recorded
        self.lines: list[bytes] = []

    @property
    def where(self) -> str:
        """Not a file."""
        return "its trace"

    def _recorded(self) -> Iterator[Exchange]:
        return exchanges(io.BytesIO(self._before))

    def _put(self, line: bytes) -> None:
        self.lines.append(line)

    def _let_go(self) -> None:
        self._before = b""

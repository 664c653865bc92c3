"""What the attempts of one round gave: names in generation order, and counts.

Reads recorded answers with `cads_env.parse_proposal`; nothing is reordered between attempts and
nothing is filtered, since the screen counts what it refuses. Never asks a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from cads_env.parsing import ParsedProposal, parse_proposal
from cads_env.proposer import Proposal, ProposerFailed, Refusal, View

ATTEMPT_LINE: Final = "=== attempt {} ==="
"""Stands between the texts of two attempts."""

_COUNTS: Final = ("tokens_in", "tokens_out", "empty", "unparsed", "cut", "aliased")


class Reply(NamedTuple):
    """What a round needs of a recorded answer.

    Attributes:
        text: As the model wrote it.
        finish_reason: As the server reports it; "length" for an answer that was cut.
        tokens_in: Tokens of the prompt; 0 where the server does not say.
        tokens_out: Tokens of the answer; 0 where the server does not say.
        is_overflow: The server refused the prompt as too long; there is no text then.
    """

    text: str
    finish_reason: str = "unknown"
    tokens_in: int = 0
    tokens_out: int = 0
    is_overflow: bool = False


def reply_of(answer: Mapping[str, Any]) -> Reply:
    """A recorded answer, checked.

    Raises:
        ProposerFailed: It holds neither a text nor an overflow.
    """
    if answer.get("overflow") is True:
        return Reply("", is_overflow=True)
    text = answer.get("text")
    if not isinstance(text, str):
        msg = (
            f"An answer of the model holds {text!r:.80} as its text; expected text. "
            "Its record was damaged or written by another program."
        )
        raise ProposerFailed(msg)
    usage = answer.get("usage")
    counted: Mapping[str, Any] = usage if isinstance(usage, Mapping) else {}
    reason = answer.get("finish_reason")
    return Reply(
        text,
        reason if isinstance(reason, str) else "unknown",
        _count(counted.get("tokens_in")),
        _count(counted.get("tokens_out")),
    )


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value < 2**53 else 0


@dataclass(slots=True, kw_only=True)
class Tally:
    """The attempts of one round so far.

    Attributes:
        view: The state of the screen.
        aliases: Other names of candidates, used for entries that are no identifier; None for none.
        names: Every entry read, attempt after attempt: of each the candidates it proposes, what is
            none, and repeats.
        texts: The text of each attempt.
        taken: Valid, untested and distinct candidates, in generation order.
        refused: The other entries, with reasons.
        requests: Requests made, those refused as too long included.
        history_dropped: Candidates left out of the lists of a prompt, the largest number.
        counts: `tokens_in`, `tokens_out`, `empty`, `unparsed`, `cut`, `aliased`, `names_1`, ...
    """

    view: View
    aliases: Mapping[str, str] | None = None
    names: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    taken: dict[str, None] = field(default_factory=dict)
    refused: list[Refusal] = field(default_factory=list)
    requests: int = 0
    history_dropped: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTS, 0))
    _named: set[str] = field(default_factory=set)
    _tested: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        """Index the tested candidates once a round."""
        self._tested = frozenset(self.view.tested)

    @property
    def open_slots(self) -> int:
        """Slots that no name fills yet."""
        return max(0, self.view.slots - len(self.taken))

    def add(self, reply: Reply) -> None:
        """Read one more attempt."""
        parsed = parse_proposal(reply.text, self.view.identifiers, aliases=self.aliases)
        self.texts.append(reply.text)
        entries = (*parsed.proposed, *parsed.invalid, *parsed.duplicate)
        self.names.extend(entries)
        self._sort(parsed)
        is_empty = not reply.text.strip()
        counts = self.counts
        counts["tokens_in"] += reply.tokens_in
        counts["tokens_out"] += reply.tokens_out
        counts["empty"] += is_empty
        counts["unparsed"] += parsed.unparsed and not is_empty
        counts["cut"] += reply.finish_reason == "length"
        counts["aliased"] += len(parsed.aliased)
        counts[f"names_{len(self.texts)}"] = len(entries)

    def _sort(self, parsed: ParsedProposal) -> None:
        """Taken or refused, and why, as the screen will find it."""
        for name in parsed.proposed:
            if name in self._named:
                self.refused.append(Refusal(name, "duplicate"))
            elif name in self._tested:
                self.refused.append(Refusal(name, "already_tested"))
            else:
                self.taken[name] = None
        self._named.update(parsed.proposed)
        self.refused.extend(Refusal(name, "invalid") for name in parsed.invalid)
        self.refused.extend(Refusal(name, "duplicate") for name in parsed.duplicate)

    def proposal(self) -> Proposal:
        """The round's answer."""
        parts = [
            text if number == 1 else f"{ATTEMPT_LINE.format(number)}\n{text}"
            for number, text in enumerate(self.texts, 1)
        ]
        usage = {
            "requests": self.requests,
            "history_dropped": self.history_dropped,
            **self.counts,
        }
        return Proposal(tuple(self.names), "\n".join(parts), max(1, len(self.texts)), usage)

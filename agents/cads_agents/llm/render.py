"""From a prompt and a view to messages.

Text from outside is put in as it is, in one pass: a `$` or a brace in a description or a name means
nothing here. Only what could not be seen or sent, such as a line break inside a name, is written
out as its escape. Never asks a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from string import Template
from typing import Final, NamedTuple

from cads_agents.llm.overflow import Shown
from cads_agents.llm.prompts import Prompt
from cads_env.proposer import Refusal, View

Message = dict[str, str]

REFUSED_LISTED: Final = 100
"""Refused entries that a prompt names; the others are counted."""

ANSWER_SHOWN: Final = 4_000
"""Characters of an answer that a further attempt is shown of it."""

_REASONS: Final = {
    "invalid": "no candidate of this screen",
    "duplicate": "named before",
    "already_tested": "tested in an earlier round",
    "over_delivered": "beyond the number asked for",
}
_NOT_RELEASED: Final = "results are not released in this screen"


class Candidates(NamedTuple):
    """Candidates that a prompt lists, as one text.

    Attributes:
        text: Their names.
        separator: What stands between two names in every list of the prompt.
    """

    text: str
    separator: str


def separator_of(identifiers: Iterable[str]) -> str:
    """A comma, or a semicolon where a name holds a comma itself."""
    return "; " if any("," in name for name in identifiers) else ", "


def visible(text: str) -> str:
    """A name with whatever takes no ink or cannot be sent written as its escape."""
    if text.isprintable():
        return text
    return "".join(x if x.isprintable() else ascii(x)[1:-1] for x in text)


def joined(names: Iterable[str], separator: str) -> str:
    """Names in one line."""
    return separator.join(map(visible, names))


def messages_of(prompt: Prompt, view: View, shown: Shown, candidates: Candidates) -> list[Message]:
    """The system message, if the prompt has one, and the user message.

    Args:
        prompt: Its templates.
        view: The state of the screen.
        shown: Its lists, as far as they fit.
        candidates: What `$candidates` stands for.
    """
    values = {name: _value(name, view, shown, candidates) for name in prompt.placeholders}
    texts = [("system", prompt.system), ("user", prompt.user)]
    if not values.get("assay", "-"):
        texts = [(role, _without_assay(text)) for role, text in texts]
        # In a line that says more.
        values["assay"] = "not described"
    return [
        {"role": role, "content": Template(text).substitute(values)} for role, text in texts if text
    ]


@lru_cache(maxsize=64)
def _without_assay(text: str) -> str:
    """A template less the lines whose only placeholder is `$assay`, and the blank one after each.

    Given back as it is where nothing would be left.
    """
    lines, kept = text.split("\n"), list[str]()
    is_after_dropped = False
    for line in lines:
        if Template(line).get_identifiers() == ["assay"]:
            is_after_dropped = True
        elif not (is_after_dropped and not line.strip() and not (kept and kept[-1].strip())):
            kept.append(line)
            is_after_dropped = False
    return text if kept == lines else "\n".join(kept).strip("\n") or text


def _value(name: str, view: View, shown: Shown, candidates: Candidates) -> str:
    between = candidates.separator
    match name:
        case "description":
            return _prose(view.description) or "not described"
        case "assay":
            return _prose(view.assay)
        case "high_means":
            return _prose(view.high_means) or "its reads so far look more like a hit than not"
        case "high":
            return _listed(shown.high, shown.high_left_out, between, _no_reading(view))
        case "low":
            return _listed(shown.low, shown.low_left_out, between, _no_reading(view))
        case "tested":
            return _listed(shown.tested, shown.tested_left_out, between, "none yet")
        case "accepted":
            return joined(view.accepted, between) or "none"
        case "refused":
            return refusals(view.refused)
        case "candidates":
            return candidates.text
        case "round":
            return str(view.round + 1)
        case _:
            return str(getattr(view, name))


def _prose(text: str) -> str:
    """Prose with what cannot be seen or sent written as its escape; its lines are kept."""
    if text.isprintable():
        return text.strip()
    return "".join(x if x.isprintable() or x in "\n\t" else ascii(x)[1:-1] for x in text).strip()


def _no_reading(view: View) -> str:
    if not view.tested:
        return "none yet"
    return "none so far" if view.high or view.low else _NOT_RELEASED


def _listed(names: Sequence[str], left_out: int, separator: str, empty: str) -> str:
    if not left_out:
        return joined(names, separator) or empty
    note = f"({left_out:,} earlier {'one' if left_out == 1 else 'ones'} left out)"
    return f"{note} {joined(names, separator)}".rstrip()


def refusals(entries: Sequence[Refusal], reasons: Mapping[str, str] = _REASONS) -> str:
    """Refused entries with the reason of each, the first `REFUSED_LISTED` of them."""
    told = [
        f"{visible(entry.identifier)} ({reasons.get(entry.reason, entry.reason)})"
        for entry in entries[:REFUSED_LISTED]
    ]
    rest = len(entries) - REFUSED_LISTED
    more = f" and {rest:,} more" if rest > 0 else ""
    return f"{'; '.join(told)}{more}" if told else "none"


def retry_messages(
    template: str,
    answer: str,
    *,
    taken: Sequence[str],
    refused: Sequence[Refusal],
    open_slots: int,
    separator: str,
) -> list[Message]:
    """The last answer, and what the model is told of it.

    Args:
        template: The prompt's text for a further attempt.
        answer: Text of the last attempt; its beginning is kept.
        taken: Candidates that fill slots so far.
        refused: Entries that do not, with reasons, of all attempts of the round.
        open_slots: Slots that are still open.
        separator: What stands between two names.
    """
    rest = len(answer) - ANSWER_SHOWN
    shown = f"{answer[:ANSWER_SHOWN]} [... {rest:,} more characters]" if rest > 0 else answer
    shown = _prose(shown)
    told = Template(template).substitute(
        accepted=joined(taken, separator) or "none",
        refused=refusals(refused),
        slots=str(open_slots),
    )
    return [
        {"role": "assistant", "content": shown or "(no answer)"},
        {"role": "user", "content": told},
    ]

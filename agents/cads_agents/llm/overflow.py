"""What leaves a prompt that is too long for the model, by a declared rule.

`oldest-low` drops the oldest candidates that read low (or whose reading is not released) first,
then the oldest that read high; `oldest` drops by first read alone; `fail` drops nothing and lets
the campaign fail. What is left out is said in the prompt and counted. Never drops anything silently
and never touches the task itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from string import ascii_lowercase, ascii_uppercase
from typing import Final, NamedTuple

from cads_env.proposer import View

OVERFLOW_RULES: Final = ("oldest-low", "oldest", "fail")

CHARACTERS_A_TOKEN: Final = 2.5
"""Prose takes about 4, which makes the estimate of a short history high."""
MARGIN: Final = 1.1
"""Times the likely tokens, which the estimate is not below: gene symbols take about 2 characters a
token. A prompt that the server refuses after all is halved."""

_SPACES: Final = " \n\t\r"

TOKENS_A_MESSAGE: Final = 8
"""What a chat template adds around one message, generously."""


def estimated_tokens(messages: Sequence[Mapping[str, str]]) -> int:
    """About how many tokens messages take at most.

    The larger of characters / 2.5 and 1.1 x the likely ones, rounded up, and 8 a message.
    """
    return sum(
        math.ceil(
            max(len(message["content"]) / CHARACTERS_A_TOKEN, MARGIN * _likely(message["content"]))
        )
        + TOKENS_A_MESSAGE
        for message in messages
    )


def likely_tokens(messages: Sequence[Mapping[str, str]]) -> int:
    """Likely tokens of messages, for a preview, where nothing need fit.

    One for each digit, mark and letter beyond English, one for two capitals, one for four small
    letters, none for white space, and 8 a message. A tokenizer with single digits (SmolLM2) took
    0 to 10 % more for prose, gene symbols, Ensembl numbers, drug names and whole prompts.
    """
    return sum(_likely(message["content"]) + TOKENS_A_MESSAGE for message in messages)


def _likely(text: str) -> int:
    # str.count of each letter is many times faster than one pattern over the text.
    small, capital, space = (
        sum(map(text.count, kind)) for kind in (ascii_lowercase, ascii_uppercase, _SPACES)
    )
    others = len(text) - small - capital - space
    return math.ceil(others + capital / 2 + small / 4)


class Shown(NamedTuple):
    """The lists of a view as a prompt shows them.

    Attributes:
        high: Read high, in first-read order.
        low: Read low, in first-read order.
        tested: Every tested one, in first-read order.
        high_left_out: Entries of `high` that were left out.
        low_left_out: Entries of `low` that were left out.
        tested_left_out: Entries of `tested` that were left out.
        left_out: Candidates that were left out of some list that the prompt shows.
    """

    high: tuple[str, ...]
    low: tuple[str, ...]
    tested: tuple[str, ...]
    high_left_out: int = 0
    low_left_out: int = 0
    tested_left_out: int = 0
    left_out: int = 0


def dropping_order(view: View, lists: Collection[str], *, rule: str) -> list[str]:
    """The candidates of the lists that a prompt shows, the first to go first.

    Args:
        view: Gives the lists.
        lists: Which of "high", "low" and "tested" the prompt shows.
        rule: One of `OVERFLOW_RULES`; "fail" drops nothing.
    """
    if rule == "fail":
        return []
    is_high = set(view.high)
    if "tested" in lists:
        shown: Sequence[str] = view.tested
    else:
        kept = is_high if "high" in lists else set()
        kept = kept | set(view.low) if "low" in lists else kept
        shown = [name for name in view.tested if name in kept]
    if rule == "oldest":
        return list(shown)
    return [x for x in shown if x not in is_high] + [x for x in shown if x in is_high]


def without(view: View, dropped: Sequence[str]) -> Shown:
    """The lists of a view less some candidates."""
    if not dropped:
        return Shown(view.high, view.low, view.tested)
    gone = set(dropped)
    high, low, tested = (
        tuple(name for name in names if name not in gone)
        for names in (view.high, view.low, view.tested)
    )
    return Shown(
        high,
        low,
        tested,
        len(view.high) - len(high),
        len(view.low) - len(low),
        len(view.tested) - len(tested),
        len(gone),
    )


def fewest_drops(tokens_after: Callable[[int], int], most: int, *, budget: int) -> int:
    """The smallest number of candidates to drop so that a prompt fits; `most` if none does.

    Args:
        tokens_after: Estimated tokens after that many drops; falls as the number grows.
        most: How many can be dropped.
        budget: Tokens that the prompt may take.
    """
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        if tokens_after(middle) <= budget:
            high = middle
        else:
            low = middle + 1
    return low

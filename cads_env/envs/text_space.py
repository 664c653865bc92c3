"""What a text environment takes as an answer: up to 20,000 characters that text may hold.

`AnswerText` is the action space; `playable_text` makes any text one of its members. Never changes a
printable character, so that the reader of answers sees what was written.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Final

from gymnasium import spaces

from cads_env.errors import ActionError, quoted

LONGEST_ANSWER: Final = 20_000
"""Characters of an answer, at most; a longer one is no list of candidates."""

USUAL_CHARACTERS: Final = frozenset(map(chr, range(32, 127))) | {"\n"}
"""Printable ASCII and the line break."""

_USUAL = re.compile(r"[ -~\n\t\r]*")
_NO_TEXT: Final = frozenset({"Cc", "Cs", "Co", "Cn"})
_WHITE_SPACE: Final = frozenset("\n\t\r")


class AnswerText(spaces.Text):
    """Texts of 0 to 20,000 characters of any script, without control characters.

    Samples, and whatever flattens the space, keep to printable ASCII and line breaks.
    """

    def __init__(self) -> None:
        """The one space of this kind."""
        super().__init__(LONGEST_ANSWER, min_length=0, charset=USUAL_CHARACTERS)

    def contains(self, x: Any) -> bool:
        """Whether it is a text that a step takes."""
        return isinstance(x, str) and len(x) <= LONGEST_ANSWER and _first_bad(x) is None


def playable_text(text: str) -> str:
    """The text without characters that an action cannot hold, cut after 20,000.

    Args:
        text: The answer of a model, of any length and content.

    Returns:
        A member of `AnswerText`; the text itself where it is one.
    """
    cut = text[:LONGEST_ANSWER]
    if _USUAL.fullmatch(cut):
        return cut
    return "".join(x for x in cut if not _is_bad(x))


def checked_answer(action: object) -> str:
    """The action, if it is a text that a step takes.

    Raises:
        ActionError: It is none; the message says what to do.
    """
    if not isinstance(action, str):
        msg = (
            f"The action is a {type(action).__name__}; expected the answer as text (str). Names go "
            "in a list of lines or commas."
        )
        raise ActionError(msg)
    mend = "Pass it through cads_env.envs.playable_text first."
    if len(action) > LONGEST_ANSWER:
        msg = (
            f"The action has {len(action):,} characters; expected at most {LONGEST_ANSWER:,}. "
            f"{mend}"
        )
        raise ActionError(msg)
    bad = _first_bad(action)
    if bad is not None:
        msg = (
            f"Character {bad} of the action is {quoted(action[bad])}, which is no printable "
            f"character; expected text. {mend}"
        )
        raise ActionError(msg)
    return str.__str__(action)


def _first_bad(text: str) -> int | None:
    if _USUAL.fullmatch(text):
        return None
    return next((at for at, x in enumerate(text) if _is_bad(x)), None)


def _is_bad(character: str) -> bool:
    # Not str.isprintable, which refuses the spaces and joiners of many scripts.
    return character not in _WHITE_SPACE and unicodedata.category(character) in _NO_TEXT

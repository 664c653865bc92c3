"""What typed arguments mean: seeds, `name=value` pairs, fields of an audit, several settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from typer.core import TyperCommand

from cads_env.errors import RunError
from cads_env.registry import RELABEL_MODES
from cads_env.run.settings import FEEDBACKS
from cads_env.values import parse_value


def parse_seeds(text: str) -> list[int]:
    """Seeds from `0-19` or `0,2,5-9`.

    Raises:
        RunError: The text is no list of numbers and ranges.
    """
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        digits = first + last
        if not first.isdecimal() or (dash and not last.isdecimal()) or len(digits) > 36:
            msg = (
                f"Cannot read seeds {text!r}; expected numbers and ranges such as 0-19 or 0,2,5-9."
            )
            raise RunError(msg)
        low, high = int(first), int(last) if dash else int(first)
        if high < low or high - low >= 1_000_000:
            msg = (
                f"Seed range {part.strip()!r} is empty or longer than a million; expected low-high."
            )
            raise RunError(msg)
        seeds.extend(range(low, high + 1))
    return seeds


def parse_pairs(entries: list[str], option: str) -> dict[str, Any]:
    """`key=value` entries as a mapping; values are read as YAML.

    Raises:
        RunError: An entry has no equals sign.
    """
    pairs: dict[str, Any] = {}
    for entry in entries:
        key, equals, value = entry.partition("=")
        if not equals or not key:
            msg = f"Cannot read {option} {entry!r}; expected {option} name=value."
            raise RunError(msg)
        if key in pairs:
            msg = f"{option} gives {key!r} more than once; expected it once."
            raise RunError(msg)
        pairs[key] = parse_value(value)
    return pairs


AUDIT: Final = "--audit"
SETTINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "--feedback": FEEDBACKS,
    "--identifiers": RELABEL_MODES,
}
"""Options that take several words, as long as each is one of these."""


class RunCommand(TyperCommand):
    """A command whose `--audit` may stand alone and whose settings take several words.

    `--feedback full permuted` means `--feedback full --feedback permuted`; typer has no word for
    either.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Write out what stands for more than one word."""
        words = list(_repeated(args))
        filled: list[str] = []
        for position, word in enumerate(words):
            filled.append(word)
            following = words[position + 1 : position + 2]
            if word == AUDIT and (not following or following[0].startswith("-")):
                filled.append("")
        return super().parse_args(ctx, filled)


def _repeated(args: list[str]) -> Iterator[str]:
    """The words with the option of a setting before each of its values."""
    option, wants_value = "", False
    for word in args:
        name, equals, _ = word.partition("=")
        if name in SETTINGS:
            option, wants_value = name, not equals
        elif wants_value:
            wants_value = False
        elif option and _is_setting(word, option):
            yield option
        else:
            option = ""
        yield word


def _is_setting(word: str, option: str) -> bool:
    """Whether a word is one value of the option, or several between commas."""
    return all(part.strip() in SETTINGS[option] for part in word.split(","))


def parse_audit(text: str | None) -> dict[str, Any] | None:
    """The fields of an audit from `tau=1,Delta=2`; of an empty text, no field.

    Args:
        text: What was typed; None when the option was not.

    Returns:
        Fields by name, or None for no audit.

    Raises:
        RunError: An entry has no equals sign.
    """
    if text is None:
        return None
    return parse_pairs([entry.strip() for entry in text.split(",") if entry.strip()], AUDIT)

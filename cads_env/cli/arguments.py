"""What typed arguments mean: lists of seeds, `name=value` pairs, and the fields of an audit."""

from __future__ import annotations

from typing import Any, Final

from typer.core import TyperCommand

from cads_env.errors import RunError
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


class AuditCommand(TyperCommand):
    """A command whose option `--audit` may stand alone, which typer has no word for."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give `--audit` an empty value where none follows."""
        filled: list[str] = []
        for position, word in enumerate(args):
            filled.append(word)
            following = args[position + 1 : position + 2]
            if word == AUDIT and (not following or following[0].startswith("-")):
                filled.append("")
        return super().parse_args(ctx, filled)


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

"""A view in words: what `TextScreenEnv` shows at the start of a round, and how long it can get.

A pure function of a view, so that it tells no more than the view does. Never holds a number that
was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cads_env.envs.text_space import USUAL_CHARACTERS
from cads_env.proposer import View
from cads_env.protocol import Protocol
from cads_env.registry import Registry

LISTED_UP_TO: Final = 500
"""Candidates of a registry whose names are all listed; a larger registry shows examples."""
NAMES_SHOWN: Final = 40
"""Names of the last round's accepted and refused entries that are shown, at most, of each."""

_EXAMPLES: Final = 3
_ENTRY_LENGTH: Final = 60
_USUAL_NAME: Final = 64
_USUAL_WORDS: Final = 4_000
_FIXED_WORDS: Final = 2_000
_REASONS: Final = {
    "invalid": "no candidate",
    "duplicate": "named twice",
    "already_tested": "already tested",
    "over_delivered": "more than asked for",
}


def text_of(view: View) -> str:
    """The view in words.

    Args:
        view: The view at the start of a round, or after the last.

    Returns:
        Lines of text; longer than `longest_text` says only for another registry.
    """
    joint = "; " if any("," in name for name in view.identifiers[:LISTED_UP_TO]) else ", "
    is_over = view.round >= view.rounds
    parts = [
        f"The screen is over after {view.rounds} rounds."
        if is_over
        else f"Round {view.round + 1} of {view.rounds}: propose up to {_counted(view.slots)} to "
        "test that were not tested before.",
        "",
        *_screen(view, joint),
        "",
        *_tested(view, joint),
    ]
    if view.round > 0:
        parts += ["", _last_answer(view, joint)]
    if not is_over:
        parts += ["", "Answer with one name a line, most promising first, spelled as above."]
    return "\n".join(parts)


def _screen(view: View, joint: str) -> list[str]:
    lines = [f"Screen: {view.description or 'not described'}"]
    if view.assay:
        lines.append(f"Assay: {view.assay}")
    lines.append(f"High means: {view.high_means or 'it looks like a hit'}")
    count = _counted(len(view.identifiers))
    if len(view.identifiers) <= LISTED_UP_TO:
        lines.append(f"All {count}: {joint.join(view.identifiers)}")
    else:
        examples = joint.join(view.identifiers[:_EXAMPLES])
        lines.append(f"There are {count}, too many to list, with names such as {examples}")
    return lines


def _tested(view: View, joint: str) -> list[str]:
    if not view.tested:
        return ["Nothing is tested yet."]
    if not view.high and not view.low:
        return [f"Tested, results not released ({len(view.tested):,}): {joint.join(view.tested)}"]
    return [
        f"Tested and high ({len(view.high):,}): {joint.join(view.high) or 'none'}",
        f"Tested and low ({len(view.low):,}): {joint.join(view.low) or 'none'}",
    ]


def _last_answer(view: View, joint: str) -> str:
    accepted = _capped([*view.accepted[:NAMES_SHOWN]], len(view.accepted), joint)
    refused = [
        f"{_safe(entry.identifier)} ({_REASONS.get(entry.reason, entry.reason)})"
        for entry in view.refused[:NAMES_SHOWN]
    ]
    return (
        f"Of your last answer {len(view.accepted):,} got a place{accepted}\n"
        f"and {len(view.refused):,} were refused{_capped(refused, len(view.refused), joint)}"
    )


def _capped(names: Sequence[str], count: int, joint: str) -> str:
    if not names:
        return "."
    more = f"{joint}and {count - len(names):,} more, not shown" if count > len(names) else ""
    return f": {joint.join(names)}{more}"


def _counted(number: int) -> str:
    return f"{number:,} candidate{'' if number == 1 else 's'}"


def _safe(entry: str) -> str:
    """What a model wrote, on one line of usual characters."""
    cut = entry if len(entry) <= _ENTRY_LENGTH else f"{entry[: _ENTRY_LENGTH - 3]}..."
    plain = " ".join(cut.split())
    return "".join(x if x in USUAL_CHARACTERS else "?" for x in plain)


def characters_of(registry: Registry) -> frozenset[str]:
    """Every character that the text of a view on this registry may hold."""
    words = (registry.description, registry.assay, registry.high_means)
    return USUAL_CHARACTERS.union(*words, *registry.identifiers)


def longest_text(registry: Registry, protocol: Protocol) -> int:
    """Characters of the longest text that a campaign can show, with room for similar registries.

    Args:
        registry: Its names and words.
        protocol: Its rounds and slots.
    """
    m = registry.m
    name = max(_USUAL_NAME, *map(len, registry.identifiers)) + 2
    words = len(registry.description) + len(registry.assay) + len(registry.high_means)
    tested = sum(plan.fresh for plan in protocol.plan(m))
    listed = m if m <= LISTED_UP_TO else _EXAMPLES
    entry = max(_ENTRY_LENGTH, name) + max(map(len, _REASONS.values())) + 5
    return (
        _FIXED_WORDS
        + max(_USUAL_WORDS, words)
        + (tested + listed + NAMES_SHOWN) * name
        + NAMES_SHOWN * entry
    )

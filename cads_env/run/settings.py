"""The settings of a grid: which feedback, which identifiers, and what each is called.

Names and checks them; plays nothing and reads no file.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final, NamedTuple

from cads_env.errors import RunError, quoted, suggest
from cads_env.protocol import FEEDBACK_MODES, Protocol
from cads_env.registry import RELABEL_MODES

PROPOSER_ONLY: Final = "proposer="
"""Prefix of a feedback that the proposer alone gets, while re-selection keeps the protocol's."""
AS_PROTOCOL: Final = "as-protocol"
"""Name of the setting whose feedback is the protocol's own."""

FEEDBACKS: Final = (*FEEDBACK_MODES, *(f"{PROPOSER_ONLY}{mode}" for mode in FEEDBACK_MODES))
"""What a setting's feedback may be."""

_LONGEST_NAME: Final = 60


class Setting(NamedTuple):
    """What one run of a grid is played with; all else is common to its runs.

    Attributes:
        name: Of its folder.
        feedback: One of `FEEDBACKS`: of proposer and re-selection, or, as `proposer=permuted`, of
            the proposer alone. None leaves the protocol's.
        identifiers: "named", "shuffled", "blinded" or another of `RELABEL_MODES`.
    """

    name: str
    feedback: str | None
    identifiers: str


def is_name(text: str) -> bool:
    """Whether a text may name a setting: a folder inside the grid's, and nothing else."""
    return (
        0 < len(text) <= _LONGEST_NAME
        and text.isprintable()
        and not text.startswith(".")
        and not set(text) & set("/\\:")
    )


def settings_of(
    feedback: Sequence[str | None] = (), identifiers: Sequence[str] = ()
) -> tuple[Setting, ...]:
    """Every feedback with every kind of identifiers.

    Args:
        feedback: Of `FEEDBACKS`, distinct, or None; empty for the protocol's own alone.
        identifiers: Of `RELABEL_MODES`, distinct; empty for "named" alone.

    Returns:
        One setting for each pair, named after what varies: `full`, `shuffled` or `full+shuffled`.

    Raises:
        RunError: A value is given twice.
    """
    modes = tuple(feedback) or (None,)
    kinds = tuple(identifiers) or ("named",)
    for what, values in (("feedback", modes), ("identifiers", kinds)):
        twice = [value for value in values if values.count(value) > 1]
        if twice:
            msg = f"{what} names {twice[0]} twice; expected each once."
            raise RunError(msg)
    return tuple(
        Setting(_name(mode, kind, len(modes), len(kinds)), mode, kind)
        for mode, kind in itertools.product(modes, kinds)
    )


def _name(feedback: str | None, identifiers: str, feedbacks: int, kinds: int) -> str:
    shown = AS_PROTOCOL if feedback is None else feedback.replace("=", "-")
    if kinds == 1:
        return shown
    return identifiers if feedbacks == 1 else f"{shown}+{identifiers}"


def protocol_of(setting: Setting, protocol: Protocol) -> Protocol:
    """The protocol with a setting's feedback.

    Raises:
        ProtocolError: There is no such feedback.
        RunError: There are no such identifiers.
    """
    if setting.identifiers not in RELABEL_MODES:
        msg = (
            f"Unknown identifiers mode {quoted(setting.identifiers)}. "
            f"{suggest(str(setting.identifiers), RELABEL_MODES)}"
        )
        raise RunError(msg)
    if setting.feedback is None:
        return protocol
    if setting.feedback.startswith(PROPOSER_ONLY):
        return protocol.override(feedback_proposer=setting.feedback.removeprefix(PROPOSER_ONLY))
    return protocol.override(feedback=setting.feedback)

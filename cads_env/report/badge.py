"""What a report and a run's table say of the self-check of their protocol.

Words for a badge; looks it up by the protocol's hash and plays nothing.
"""

from __future__ import annotations

from cads_env.protocol import Protocol
from cads_env.report.wording import visible
from cads_env.selfcheck import Badge, badge_of


def badge_line(protocol: Protocol) -> str:
    """The badge on one line, for a table's notes and a report's first lines."""
    badge = badge_of(protocol)
    if badge.applicable:
        return f"Self-check {badge.state}: {_count(badge)}."
    return "Protocol not self-checked: cads selfcheck does it."


def badge_warning(protocol: Protocol) -> str:
    """What a reader must know before the figures; empty when nothing stands against them."""
    badge = badge_of(protocol)
    if badge.state == "failed":
        return visible(badge.says, 600)
    if badge.state == "undecided":
        return f"The self-check of the protocol is undecided: {_count(badge)}."
    return ""


def badge_sentence(protocol: Protocol) -> str:
    """The sentence of the methods paragraph."""
    badge = badge_of(protocol)
    if not badge.applicable:
        return "The protocol's self-check is not recorded."
    words = {
        "passed": "passed its self-check",
        "failed": "failed its self-check, so that arms may not be ranked under it",
        "undecided": "neither passed nor failed its self-check",
    }
    return (
        f"The protocol {words[badge.state]} ({_count(badge)}, cads-env {visible(badge.version)}): "
        "that scores rise with skill and with nothing else."
    )


def _count(badge: Badge) -> str:
    return f"{badge.passed} of {badge.applicable} checks on {visible(badge.panel)}"

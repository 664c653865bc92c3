"""Contamination laws by name: ours, and a user's own by dotted path or file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from cads_env.contamination.aimed import CampaignCoin, NearBoundary, PastHigh, Reread
from cads_env.contamination.batch import ContaminationLaw
from cads_env.contamination.laws import MixedSign, PointMass, Subthreshold, Uniform
from cads_env.contamination.own import is_own, make_own
from cads_env.errors import ProtocolError, suggest
from cads_env.protocol import Protocol

LAWS: Final[Mapping[str, Callable[..., ContaminationLaw]]] = {
    "uniform": Uniform,
    "point-mass": PointMass,
    "subthreshold": Subthreshold,
    "mixed-sign": MixedSign,
    "reread": Reread,
    "past-high": PastHigh,
    "near-boundary": NearBoundary,
    "campaign-coin": CampaignCoin,
}
"""Contamination laws by the name that a protocol gives."""


def make_law(name: str, epsilon: float, options: Mapping[str, Any]) -> ContaminationLaw:
    """The law of a name, before it knows any plan.

    Args:
        name: One of `LAWS`, or `module:Class` or `path/to/file.py:Class` of a user's own.
        epsilon: Probability in [0, 1].
        options: Keyword arguments of the law.

    Raises:
        ProtocolError: Unknown law (with a suggestion), an option that it does not have, or a user's
            law that cannot be used.
    """
    if name not in LAWS:
        if is_own(name):
            return make_own(name, epsilon, options)
        msg = (
            f"Unknown contamination law {name!r}. {suggest(name, LAWS)} "
            "A law of your own is given as module:Class or path/to/file.py:Class."
        )
        raise ProtocolError(msg)
    try:
        return LAWS[name](epsilon, **options)
    except TypeError as error:
        msg = f"Contamination law {name!r} does not accept {dict(options)!r}: {error}."
        raise ProtocolError(msg) from error


def law_of(protocol: Protocol, m: int, *, epsilon: float | None = None) -> ContaminationLaw:
    """The law of a protocol's campaigns on registries of m candidates.

    Args:
        protocol: Names the law, its options and its epsilon, and has the plan.
        m: Size of the registries.
        epsilon: Another probability than the protocol's; None for that.

    Raises:
        ProtocolError: The law cannot be used.
    """
    probability = protocol.epsilon if epsilon is None else epsilon
    law = make_law(protocol.law, probability, protocol.law_options)
    return law.planned(protocol.plan(m)) if isinstance(law, Reread) else law

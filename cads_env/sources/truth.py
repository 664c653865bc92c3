"""From what a file measured and called to u, labels and a checked (registry, oracle) pair.

The one place where the sources of published screens turn a threshold, a call of hits or both into
the truth. Never reads a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cads_env.errors import HitlessError, RegistryError
from cads_env.registry import Oracle, Registry, SideTable
from cads_env.registry_checks import check_identifiers, check_truth, listed
from cads_env.sources.barrier import check_barrier
from cads_env.sources.problems import report

Float64s = NDArray[np.float64]
Labels = NDArray[np.bool_]

SIDES: Final = ("lower", "higher", "both")
"""Which effects are hits: below the threshold, above it, or beyond it in magnitude."""


class Truth(NamedTuple):
    """The private half of a screen.

    Attributes:
        signal: u, shape (m,).
        labels: True for a hit, shape (m,).
    """

    signal: Float64s
    labels: Labels


def signal_of(effects: Float64s, *, side: str, threshold: float) -> Float64s:
    """U of each candidate, shape (m,): how far its effect is beyond the threshold.

    u = threshold - effect (lower), effect - threshold (higher), |effect| - threshold (both).
    """
    if side == "lower":
        return threshold - effects + 0.0
    return (np.abs(effects) if side == "both" else effects) - threshold + 0.0


def check_declared(
    *, threshold: float | None, signal: Sequence[float] | None, side: str | None, call: str | None
) -> None:
    """Raise when the options that make the truth contradict one another.

    Args:
        threshold: As declared.
        signal: As declared.
        side: One of `SIDES`, or None while it is open.
        call: The declared option that calls hits, such as "fdr=0.05"; None without one.

    Raises:
        RegistryError: The message says which to leave out.
    """
    if signal is not None and threshold is not None:
        msg = (
            f"threshold={threshold!r} and signal={signal!r} exclude each other: u comes from the "
            "effects or is one constant for hits and one for nulls. Leave one of them out."
        )
        raise RegistryError(msg)
    if signal is not None and call is None:
        msg = (
            f"signal={signal!r} needs hits that the file calls; here the threshold alone makes "
            "them. Leave signal out and say threshold=...."
        )
        raise RegistryError(msg)
    if side == "both" and threshold is not None and threshold < 0:
        msg = (
            f"threshold={threshold!r} is for a magnitude; expected 0 or more, since hits are "
            "those with |effect| > threshold."
        )
        raise RegistryError(msg)


def judge(
    effects: Float64s | None,
    *,
    side: str,
    threshold: float | None,
    called: Labels | None = None,
    signal: Sequence[float] | None = None,
    identifiers: Sequence[str],
    what: str,
) -> Truth:
    """Signal and labels of the candidates.

    Without `called`, a candidate is a hit when u > 0. With it, the call decides and u comes from
    `signal` or from the threshold; a candidate that is not called must then have u <= 0, since a
    null's u is never positive.

    Args:
        effects: Shape (m,), finite; may be None when `signal` is given.
        side: One of `SIDES`.
        threshold: Effect beyond which u > 0, or None when `signal` is given.
        called: Shape (m,), True for a candidate that the file calls a hit, or None.
        signal: (u of a hit, u of a null), or None.
        identifiers: The candidates, for messages.
        what: The effect in words, for messages, such as "neg|lfc".

    Raises:
        RegistryError: There is no hit or no null, or a null lies beyond the threshold.
    """
    if signal is not None and called is not None:
        u = np.where(called, float(signal[0]), float(signal[1]))
    elif effects is not None and threshold is not None:
        u = signal_of(effects, side=side, threshold=float(threshold))
    else:
        msg = "Neither threshold= nor signal= was declared; u cannot be made. Say one of them."
        raise RegistryError(msg)
    labels = u > 0 if called is None else called
    if labels.all() or not labels.any():
        made = "the call of hits" if called is not None else f"threshold={threshold:g}"
        spread = ""
        if effects is not None and effects.size:
            low, high = effects.min(), effects.max()
            spread = f" The values of {what} lie between {low:.4g} and {high:.4g}."
        msg = (
            f"By {made}, {int(labels.sum())} of {labels.size} candidates are hits; expected at "
            f"least one hit and one null.{spread} Choose another limit."
        )
        raise HitlessError(msg)
    beyond = np.flatnonzero(~labels & (u > 0))
    if beyond.size and effects is not None:
        raise RegistryError(_overlap(effects, labels, beyond, side, threshold, identifiers, what))
    return Truth(u, labels)


def _overlap(
    effects: Float64s, labels: Labels, beyond: NDArray[np.intp], side: str,
    threshold: float | None, identifiers: Sequence[str], what: str,
) -> str:  # fmt: skip
    """What to do when candidates that are no hits lie beyond the threshold."""
    nulls, hits = effects[~labels], effects[labels]
    if side == "lower":
        limit = float(nulls.min())
        short = int(np.count_nonzero(hits > limit))
    else:
        magnitude = np.abs if side == "both" else np.positive
        limit = float(magnitude(nulls).max())
        short = int(np.count_nonzero(magnitude(hits) < limit))
    return (
        f"{beyond.size} candidates that are not called hits lie beyond threshold={threshold:g} on "
        f"{what}: {listed([identifiers[int(i)] for i in beyond])}. A null needs u <= 0. Say "
        f"threshold={limit!r}, which no null passes ({short} of {hits.size} hits then have "
        "u < 0 and cannot be found), or leave threshold out and say signal=(1.0, -0.5), one u for "
        "all hits and one for all nulls."
    )


def hits_text(effects: Float64s, what: str, sides: Sequence[str]) -> str:
    """How many hits some thresholds would give, for a message about a missing declaration.

    Args:
        effects: Shape (n,); NaN where missing.
        what: The effect in words.
        sides: Of `SIDES`, those that are open.
    """
    there = effects[np.isfinite(effects)]
    if not there.size:
        return f"{what} has no values."
    parts = []
    for side in sides:
        values = -there if side == "lower" else np.abs(there) if side == "both" else there
        for share in (0.05, 0.2):
            limit = float(f"{np.quantile(values, 1 - share):.2g}")
            count = int(np.count_nonzero(values > limit))
            sign = "<" if side == "lower" else ">"
            name = f"|{what}|" if side == "both" else what
            shown = -limit + 0.0 if side == "lower" else limit
            parts.append(f"{name} {sign} {shown:g} gives {count:,}")
    return f"Hits of {there.size:,}: {', '.join(parts)}."


def left_out(description: str, counts: Mapping[str, int]) -> str:
    """A description with a sentence on the candidates that were left out, if there are any.

    Args:
        description: What was screened and what a hit is.
        counts: Number left out by what they are, such as {"genes without a score": 3}.
    """
    said = [f"{what} ({count:,})" for what, count in counts.items() if count]
    return f"{description} Left out: {', '.join(said)}." if said else description


def make_pair(
    truth: Truth,
    *,
    name: str,
    salt: bytes,
    identifiers: Sequence[str],
    description: str,
    side_tables: Mapping[str, SideTable] | None = None,
    advice: str = "",
) -> tuple[Registry, Oracle]:
    """The checked pair; its random streams are keyed by the registry's name.

    Candidates are put in the order of their names: result files are often sorted by effect, and
    proposers see the order.

    Args:
        truth: Signal and labels, in the order of the identifiers.
        name: What the registry is called.
        salt: Secret of a private panel.
        identifiers: The candidates.
        description: What was screened and what a hit is.
        side_tables: Public columns, in the order of the identifiers.
        advice: How to leave side tables out, for the message when one is a copy of the truth.

    Raises:
        RegistryError: An identifier, the truth or a side table does not pass its checks.
    """
    places: Iterable[int] = range(len(identifiers))
    try:
        check_identifiers(identifiers, name)
    except RegistryError as error:
        report(str(error))
        places = {x: i for i, x in enumerate(identifiers) if x.strip()}.values()
    order = np.array(sorted(places, key=identifiers.__getitem__), np.int64)
    names = tuple(identifiers[i] for i in order.tolist())
    signal, labels = truth.signal[order], truth.labels[order]
    check_truth(signal, labels, name, names)
    registry = Registry(
        name=name,
        identifiers=names,
        description=description,
        side_tables={
            title: SideTable(table.description, table.values[order])
            for title, table in (side_tables or {}).items()
        },
    )
    try:
        check_barrier(registry, signal, labels)
    except RegistryError as error:
        msg = f"{error} {advice}".rstrip()
        raise RegistryError(msg) from error
    return registry, Oracle(signal, labels, name, 0, salt)

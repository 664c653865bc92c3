"""What an audit of a given size would buy, before any control is read.

Flags are drawn at the rate that a supposed contamination implies, on a tape of their own, and
bounded as a real audit would bound them. Never looks at a record.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cads_env.certificate.audit import AuditCap
from cads_env.certificate.cap import log_cap_for, real_number, share, working_model
from cads_env.certificate.detection import false_alarm_rate, flag_rate, sensitivity_uniform
from cads_env.certificate.ebh import check_family_size, check_level, log_bar
from cads_env.errors import CertificateError
from cads_env.tape import bits, candidate_words, derive_key, uniforms

Timing = Literal["interleaved", "front"]

TIMINGS: Final[tuple[Timing, ...]] = ("interleaved", "front")
"""Controls spread over the rounds, each batch revealed at a round's end; or all before round 0."""

PATHS: Final = 10_000
"""Simulated audits, unless they would hold more than `_LARGEST_DRAW` controls in all."""

_LARGEST_DRAW: Final = 20_000_000
_BLOCK_DRAW: Final = 2_000_000
_LARGEST_AUDIT: Final = 100_000
_MOST_ROUNDS: Final = 1_000


class PlannedTiming(NamedTuple):
    """What the controls buy under one timing, over the simulated audits."""

    timing: Timing
    """When the controls are read."""

    epsilon_hat: NDArray[np.float64]
    """Mean bound of contamination in force in each round, shape (T,)."""

    cap: NDArray[np.float64]
    """Mean cap of each round, shape (T,)."""

    final_mean: float
    """Mean bound once all controls are revealed."""

    final_low: float
    """5 % quantile of that bound."""

    final_high: float
    """95 % quantile of that bound."""

    covered: float
    """Share of audits whose final bound is at least the contamination that was supposed."""

    reads: tuple[float, ...]
    """Median number of reads at the full cap, one a round from round 0 on, after which a candidate
    meets the bar of each number of declarations. Beyond the last round the final cap goes on."""


class FixedCap(NamedTuple):
    """A cap that no audit moves, to compare with."""

    epsilon_bar: float
    """The bound that it belongs to."""

    cap: float
    """C*(epsilon_bar)."""

    reads: tuple[float, ...]
    """Reads at the full cap, as for `PlannedTiming.reads`; inf at a cap of 1."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AuditPlan:
    """What an audit of a given size would buy.

    Source: CADS, Audit-CADS, Table S4; the timing "front" is an addition.
    """

    kappa: float
    """Smallest chance that a corrupted control is flagged."""

    false_alarm: float
    """Chance that a clean control is flagged."""

    sensitivity: float
    """Chance that a control with the supposed corruption is flagged."""

    flag_rate: float
    """Chance that a control is flagged under the supposed contamination."""

    delta: float
    """Chance that the bound fails for corruptions of the declared class."""

    level: float
    """Level of e-BH, q - delta."""

    declarations: tuple[int, ...]
    """Numbers of declarations k whose bar ln(m / (level k)) is looked at."""

    timings: tuple[PlannedTiming, ...]
    """One entry a timing."""

    oracle: FixedCap
    """The cap if the contamination were known, at level q."""

    blind: FixedCap
    """The cap of a bound declared without an audit, at level q."""

    paths: int
    """Simulated audits."""


def plan_audit(
    audit: AuditCap,
    *,
    controls: int,
    epsilon: float = 0.1,
    rounds: int = 16,
    theta: float = 0.7,
    s: float = 0.5,
    q: float = 0.1,
    m: int = 6000,
    declarations: tuple[int, ...] = (1, 100),
    blind: float = 0.3,
    displacement: tuple[float, float] = (2.0, 4.0),
    timings: tuple[Timing, ...] = TIMINGS,
) -> AuditPlan:
    """What an audit of this size would buy if the contamination were as supposed.

    Args:
        audit: How flags become bounds.
        controls: Number of controls A, from 1 to 100,000.
        epsilon: Contamination that is supposed to be there, in [0, 1].
        rounds: Rounds of the campaign, from 1 to 1,000.
        theta: Working alternative, > 0.
        s: Standard deviation of a clean read, > 0.
        q: Target false discovery rate, > `audit.delta`.
        m: Number of candidates of the registry.
        declarations: Numbers of declarations that share a bar, each in [1, m].
        blind: Bound that would be declared without an audit, in [0, 1].
        displacement: Range of the uniform displacement that a corruption is supposed to add.
        timings: Which timings to compare.

    Returns:
        The plan; the same for the same arguments.

    Raises:
        CertificateError: A parameter is not a number or is outside its range.
    """
    size = check_family_size(m)
    working_model(theta, s)
    supposed, fixed = share("epsilon", epsilon), share("blind", blind)
    count = _whole("controls", controls, _LARGEST_AUDIT)
    length = _whole("rounds", rounds, _MOST_ROUNDS)
    sharers = tuple(_sharers(k, size) for k in declarations)
    level, target = audit.level(q), check_level(q)
    low, high = displacement
    rate = flag_rate(supposed, tau=audit.tau, s=s, low=low, high=high)
    paths = min(PATHS, max(200, _LARGEST_DRAW // count))
    bars = [log_bar(size, level, k) for k in sharers]
    parts = [len(part) for part in np.array_split(np.arange(count), length)]
    starts = {"interleaved": np.cumsum([0, *parts[:-1]]), "front": np.full(length, count)}
    bounds: dict[str, list[NDArray[np.float64]]] = {timing: [] for timing in timings}
    height = max(1, _BLOCK_DRAW // count)
    for first in range(0, paths, height):
        flags = _flags(np.arange(first, min(first + height, paths)), count, rate)
        for timing in timings:
            outcome = audit.outcome(flags, starts[timing], s=s)
            bounds[timing].append(np.column_stack([outcome.rounds, outcome.final]))
    return AuditPlan(
        kappa=audit.kappa(s),
        false_alarm=false_alarm_rate(tau=audit.tau, s=s),
        sensitivity=sensitivity_uniform(low, high, audit.tau, s),
        flag_rate=rate,
        delta=audit.delta,
        level=level,
        declarations=sharers,
        timings=tuple(
            _planned(timing, np.concatenate(bounds[timing]), bars, supposed, theta, s)
            for timing in timings
        ),
        oracle=_fixed(supposed, theta, s, [log_bar(size, target, k) for k in sharers]),
        blind=_fixed(fixed, theta, s, [log_bar(size, target, k) for k in sharers]),
        paths=paths,
    )


def _flags(paths: NDArray[np.int64], controls: int, rate: float) -> NDArray[np.bool_]:
    """Flags of some simulated audits, shape (n, A); a path's flags depend on its number alone."""
    keys = np.array([derive_key("audit plan")], dtype=np.uint64)
    words = candidate_words(candidate_words(keys, paths)[:, None], np.arange(controls)[None])
    drawn = uniforms(bits(words.reshape(-1), np.zeros(words.size, dtype=np.int64), 0))
    flags: NDArray[np.bool_] = drawn.reshape(words.shape) < rate
    return flags


def _planned(
    timing: Timing,
    bounds: NDArray[np.float64],
    bars: list[float],
    epsilon: float,
    theta: float,
    s: float,
) -> PlannedTiming:
    """The summary of simulated bounds, shape (n, T + 1), the last column being the final one."""
    final = bounds[:, -1]
    known, places = np.unique(bounds, return_inverse=True)
    log_caps = np.array([log_cap_for(value, theta, s) for value in known.tolist()])
    log_caps = log_caps[places.reshape(-1)].reshape(bounds.shape)
    reads = [_median_reads(log_caps, bar) for bar in bars]
    low, high = np.quantile(final, [0.05, 0.95])
    return PlannedTiming(
        timing=timing,
        epsilon_hat=bounds[:, :-1].mean(axis=0),
        cap=np.exp(log_caps[:, :-1]).mean(axis=0),
        final_mean=float(final.mean()),
        final_low=float(low),
        final_high=float(high),
        covered=float((final >= epsilon).mean()),
        reads=tuple(reads),
    )


def _median_reads(log_caps: NDArray[np.float64], bar: float) -> float:
    """Median reads to a bar at the full cap of each round, shape (n, T + 1); then at the last."""
    reached = np.cumsum(log_caps[:, :-1], axis=1)
    met = reached >= bar
    with np.errstate(divide="ignore"):
        further = np.ceil((bar - reached[:, -1]) / log_caps[:, -1])
    needed = np.where(met.any(axis=1), met.argmax(axis=1) + 1.0, reached.shape[1] + further)
    # The lower of two middle paths: a whole number of reads.
    return float(np.sort(needed)[(len(needed) - 1) // 2])


def _fixed(epsilon_bar: float, theta: float, s: float, bars: list[float]) -> FixedCap:
    """A cap that stays, and the reads that each bar takes under it."""
    log_cap = log_cap_for(epsilon_bar, theta, s)
    reads = tuple(
        max(1.0, float(math.ceil(bar / log_cap))) if log_cap > 0.0 else math.inf for bar in bars
    )
    cap = math.exp(log_cap) if log_cap < math.inf else math.inf
    return FixedCap(epsilon_bar=epsilon_bar, cap=cap, reads=reads)


def _whole(name: str, value: object, largest: int) -> int:
    """A whole number from 1 up to a limit."""
    number = real_number(name, value)
    if not 1 <= number <= largest or number != int(number):
        msg = f"{name} is {value!r}; expected a whole number from 1 to {largest:,}."
        raise CertificateError(msg)
    return int(number)


def _sharers(k: object, m: int) -> int:
    """A number of declarations in a family of m."""
    return _whole("k", k, m)

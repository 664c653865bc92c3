"""Paired contrasts of arms over shared campaigns, and the family that they are declared as.

The family is what the caller names, all of it and in one call: a contrast left out because of its
result would void the adjustment. Never compares campaigns that are not the same registry and seed.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cads_env.errors import InferenceError
from cads_env.inference.clusters import clustered
from cads_env.inference.equivalence import Equivalence, check_margin, tost
from cads_env.inference.estimate import Estimate, finite, paired_t

NOT_DECIDED = "not decided"
"""Verdict of a contrast that shows neither a difference nor equivalence."""

CANNOT_TELL = "cannot tell"
"""How the verdict of a contrast begins that could not have shown anything; why comes after it."""


class Contrast(NamedTuple):
    """One contrast of a declared family.

    Attributes:
        name: Its name in the family.
        estimate: Mean difference with interval, n, detectable difference and unadjusted p.
        holm: p adjusted by Holm over the whole family; NaN when the contrast has no p.
        equivalence: The two one-sided tests against the margin, not adjusted.
        verdict: "better" or "worse" (Holm's p at most alpha), else "equivalent within M" (TOST p at
            most alpha), else "not decided"; "cannot tell: ..." where too few units are all equal.
    """

    name: str
    estimate: Estimate
    holm: float
    equivalence: Equivalence
    verdict: str


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """P values adjusted by Holm's step-down rule over one declared family.

    With p sorted, adjusted_(i) = max over j <= i of min(1, (k - j + 1) p_(j)), k the family's size.

    Args:
        p_values: One a contrast, shape (k,), each in [0, 1].

    Returns:
        Adjusted p in the order received, shape (k,). Rejecting those at most alpha keeps the
        chance of any false rejection at alpha under any dependence.

    Raises:
        InferenceError: A p is not in [0, 1].

    Source: Holm (1979).
    """
    p = finite(p_values, name="p_values")
    bad = np.flatnonzero((p < 0) | (p > 1))
    if bad.size:
        msg = f"p_values[{bad[0]}] is {p[bad[0]]}; expected a p value in [0, 1]."
        raise InferenceError(msg)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(np.arange(p.size, 0, -1) * p[order])
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def contrast(
    a: ArrayLike,
    b: ArrayLike,
    registries: Sequence[Hashable] | None = None,
    *,
    confidence: float = 0.95,
) -> Estimate:
    """The mean of a - b over campaigns that both arms played, with its interval.

    Args:
        a: Score of the first arm, one a campaign, shape (n,), finite.
        b: Score of the second arm on the same campaigns in the same order, shape (n,), finite.
        registries: Each campaign's registry, shape (n,); None treats the seeds as one registry's.
        confidence: Two-sided coverage, in (0, 1).

    Returns:
        `clustered` over the registries, or `paired_t` when they are None.

    Raises:
        InferenceError: The arms differ in length, or a score is not finite.
    """
    first, second = finite(a, name="a"), finite(b, name="b")
    if first.size != second.size:
        msg = (
            f"the arms have {first.size} and {second.size} campaigns; expected the same registry "
            "and seed at each position. Keep the campaigns that both arms finished."
        )
        raise InferenceError(msg)
    return _estimate(first - second, registries, confidence)


def compare_family(
    differences: Mapping[str, ArrayLike],
    registries: Sequence[Hashable] | Mapping[str, Sequence[Hashable]] | None = None,
    *,
    margin: float = 1.0,
    confidence: float = 0.95,
) -> tuple[Contrast, ...]:
    """Every contrast of a declared family, with Holm's p, equivalence and a verdict.

    Args:
        differences: By name of the contrast, its paired differences, one a campaign, shape (n,).
        registries: Each campaign's registry: one list for all contrasts, or one by name where
            they do not share their campaigns. None treats the seeds as one registry's.
        margin: Largest difference that does not matter, above 0 (1 declaration).
        confidence: Coverage of the intervals, in (.5, 1); alpha = 1 - confidence is the level of
            both tests.

    Returns:
        One row a contrast, in the order received. A contrast with fewer than 2 units stays in the
        family with p = 1, and is "not decided"; so does one of fewer than `FEWEST_ALIKE` units
        that are all equal, which says that it cannot tell.

    Raises:
        InferenceError: A contrast's numbers are not usable (the message names it), or its
            registries are missing.

    Source: CADS, prompt contrasts: Holm over the declared family, TOST at one declaration.
    """
    if not 0.5 < confidence < 1.0:
        msg = f"confidence is {confidence}; expected a number between 0.5 and 1, such as 0.95."
        raise InferenceError(msg)
    check_margin(margin)
    alpha = 1 - confidence
    estimates = {}
    for name, values in differences.items():
        try:
            estimates[name] = _estimate(finite(values), _of(registries, name), confidence)
        except InferenceError as error:
            msg = f"contrast {name!r}: {error}"
            raise InferenceError(msg) from None
    raw = [math.nan if e.untold else e.p_value for e in estimates.values()]
    adjusted = holm([1.0 if math.isnan(p) else p for p in raw])
    rows = []
    for (name, estimate), unadjusted, p in zip(estimates.items(), raw, adjusted, strict=True):
        own = math.nan if math.isnan(unadjusted) else float(p)
        equivalence = tost(estimate, margin=margin, alpha=alpha)
        verdict = _verdict(estimate, p, equivalence, alpha)
        rows.append(Contrast(name, estimate, own, equivalence, verdict))
    return tuple(rows)


def _verdict(estimate: Estimate, adjusted: float, equivalence: Equivalence, alpha: float) -> str:
    if estimate.untold:
        return f"{CANNOT_TELL}: {estimate.untold}"
    if adjusted <= alpha:
        return "better" if estimate.mean > 0 else "worse"
    return equivalence.verdict if equivalence.is_equivalent else NOT_DECIDED


def _of(
    registries: Sequence[Hashable] | Mapping[str, Sequence[Hashable]] | None, name: str
) -> Sequence[Hashable] | None:
    if not isinstance(registries, Mapping):
        return registries
    if name not in registries:
        msg = "it has no registries; expected an entry for every contrast."
        raise InferenceError(msg)
    return registries[name]


def _estimate(
    values: NDArray[np.float64], registries: Sequence[Hashable] | None, confidence: float
) -> Estimate:
    if registries is None:
        return paired_t(values, confidence=confidence)
    return clustered(values, registries, confidence=confidence)

"""Measured factors of a run: prompt effects, origins, slots in reach, precision, floors.

Pure functions of results. Campaigns are paired by registry and seed; failed ones are left out of
every mean. Never reads a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from scipy import stats

from cads_env.inference import CANNOT_TELL, Contrast, Estimate, clustered, compare_family
from cads_env.report.llm.arms import FLOORS, Arm, arms_of, model_arms, prompt_pairs
from cads_env.run.result import NO_SLOT, RunResult, mean_of_means

MARGIN: Final = 1.0
"""Largest difference that does not matter, in declarations."""

LEVEL: Final = 0.05
"""Level of an interval and of a family."""

Scores = Mapping[tuple[str, int], float]
"""A number a campaign, by registry and seed."""


class Paired(NamedTuple):
    """A contrast of two arms over the campaigns that both have.

    Attributes:
        estimate: Mean of first minus second with its interval.
        first_only: Campaigns that the first has alone; left out.
        second_only: Campaigns that the second has alone; left out.
    """

    estimate: Estimate
    first_only: int
    second_only: int


class Origins(NamedTuple):
    """Who first named what an arm certifies: means a campaign, every registry weighing the same.

    net = originated - displaced = gained - lost.

    Attributes:
        arm: Its name.
        certified: Certified hits.
        originated: Of these, named by the proposer first.
        by_fallback: Of these, drawn by the fallback first.
        displaced: The twin's certified hits minus `by_fallback`; may be negative.
        net: Certified hits minus the twin's.
        gained: Certified by the arm alone.
        lost: Certified by the twin alone.
    """

    arm: str
    certified: float
    originated: float
    by_fallback: float
    displaced: float
    net: float
    gained: float
    lost: float


class Precision(NamedTuple):
    """Hits among the slots that a proposer filled.

    Attributes:
        estimate: Mean over campaigns of the share of hits among the accepted proposals; those
            without any are left out.
        hits: Hits among the accepted proposals of all campaigns.
        filled: Accepted proposals of all campaigns.
    """

    estimate: Estimate
    hits: int
    filled: int


class PromptEffect(NamedTuple):
    """What one prompt adds over another, everything else being equal.

    Attributes:
        arm: With the prompt.
        base: With the baseline prompt of the same model.
        contrast: Of the nets, with Holm's p over all prompt effects of the run and the two
            one-sided tests against one declaration.
        precision: Difference of the per-slot precisions: the mean over shared campaigns, in which
            both filled a slot, of the campaign's difference.
        first_only: Campaigns that the arm scored alone; left out.
        second_only: Campaigns that the base scored alone; left out.
    """

    arm: Arm
    base: Arm
    contrast: Contrast
    precision: Paired
    first_only: int
    second_only: int


def scores(run: RunResult, arm: str, column: str) -> Scores:
    """A column of an arm's campaigns, by registry and seed.

    Args:
        run: The run.
        arm: Name of the arm; one that the run does not have gives nothing.
        column: Of the campaign rows.
    """
    frame = run.campaigns
    mine = frame[frame["arm"] == arm][["registry", "seed", column]]
    return {(str(r), int(s)): float(v) for r, s, v in mine.itertuples(index=False)}


def twin_scores(run: RunResult, column: str = "twin_true") -> Scores:
    """A column of the twins, which all arms of a campaign share, by registry and seed."""
    frame = run.campaigns[["registry", "seed", column]]
    return {(str(r), int(s)): float(v) for r, s, v in frame.itertuples(index=False)}


def estimate_of(values: Scores) -> Estimate:
    """The mean of campaigns with its interval: t on registry means, or over one registry's seeds.

    Args:
        values: A number a campaign.
    """
    return clustered(list(values.values()), [registry for registry, _ in values])


def flat_p(values: Scores) -> float | None:
    """The p of mean 0 where registry means that are all equal leave an interval without a width.

    Such an interval never covers 0 and its t has p = 0, but two registries agree by chance. What
    is left is the exact two-sided sign test over campaigns.

    Args:
        values: A number a campaign.

    Returns:
        None where the interval has a width or the mean is 0, which says nothing against 0.
    """
    estimate = estimate_of(values)
    if estimate.units < 2 or estimate.sd > 0 or estimate.mean == 0:
        return None
    signs = [value > 0 for value in values.values() if value]
    return float(stats.binomtest(sum(signs), len(signs)).pvalue)


def paired(first: Scores, second: Scores) -> Paired:
    """The mean difference over the campaigns that both have."""
    shared = {key: value - second[key] for key, value in first.items() if key in second}
    alone = (len(first) - len(shared), len(second) - len(shared))
    return Paired(estimate_of(shared), *alone)


def origins(run: RunResult) -> tuple[Origins, ...]:
    """The origins of every arm with scored campaigns, in order."""
    columns = ("true", "originated", "by_fallback", "displaced", "net", "gained", "lost")
    found = []
    for arm, summary in run.arms.items():
        if summary.n:
            means = [_mean(scores(run, arm, column)) for column in columns]
            found.append(Origins(arm, *means))
    return tuple(found)


def _mean(values: Scores) -> float:
    return mean_of_means([(registry, value) for (registry, _), value in values.items()])


def precisions(run: RunResult, arm: str) -> Scores:
    """Share of hits among an arm's accepted proposals, of campaigns in which it filled a slot."""
    hits, filled = scores(run, arm, "proposed_hits"), scores(run, arm, "accepted")
    return {key: hits[key] / count for key, count in filled.items() if count}


def precision(run: RunResult, arm: str) -> Precision:
    """The per-slot precision of an arm."""
    hits, filled = scores(run, arm, "proposed_hits"), scores(run, arm, "accepted")
    totals = (int(sum(hits.values())), int(sum(filled.values())))
    return Precision(estimate_of(precisions(run, arm)), *totals)


def naive_fdr(run: RunResult, arm: str) -> float:
    """Mean false discovery proportion of naive BH on the arm's reads; NaN without campaigns."""
    true, false = scores(run, arm, "naive_true"), scores(run, arm, "naive_false")
    return _mean({key: false[key] / max(1.0, false[key] + true[key]) for key in true})


def prompt_effects(run: RunResult) -> tuple[PromptEffect, ...]:
    """The prompt effects of a run: its declared family, all of it.

    Args:
        run: Its arms that differ in their prompt only are paired with their baseline; see
            `prompt_pairs`.
    """
    pairs = prompt_pairs(model_arms(run))
    if not pairs:
        return ()
    names = [f"{arm.name} - {base.name}" for arm, base in pairs]
    nets = {arm.name: scores(run, arm.name, "net") for pair in pairs for arm in pair}
    shared = [[key for key in nets[arm.name] if key in nets[base.name]] for arm, base in pairs]
    family = compare_family(
        {
            name: [nets[arm.name][key] - nets[base.name][key] for key in keys]
            for name, (arm, base), keys in zip(names, pairs, shared, strict=True)
        },
        {
            name: [registry for registry, _ in keys]
            for name, keys in zip(names, shared, strict=True)
        },
        margin=MARGIN,
    )
    return tuple(
        PromptEffect(
            arm,
            base,
            _within_reach(contrast, run, arm, base),
            paired(precisions(run, arm.name), precisions(run, base.name)),
            len(nets[arm.name]) - len(keys),
            len(nets[base.name]) - len(keys),
        )
        for (arm, base), contrast, keys in zip(pairs, family, shared, strict=True)
    )


def _within_reach(contrast: Contrast, run: RunResult, *arms: Arm) -> Contrast:
    """The contrast, whose verdict says so where neither arm could have certified anything."""
    if not all(run.arms[arm.name].is_out_of_reach for arm in arms):
        return contrast
    return contrast._replace(verdict=f"{CANNOT_TELL}: {NO_SLOT}")


def floor_arms(run: RunResult) -> dict[str, str]:
    """The arms without a language model that a report compares with, by which floor they are."""
    arms = arms_of(run)
    return {floor: floor for floor in FLOORS if floor in arms and not arms[floor].prompt}


def against_floors(run: RunResult) -> tuple[tuple[str, Paired], ...]:
    """Every model arm minus `random` and `prior` minus it, as far as the run has these.

    Returns:
        What is subtracted from what, and the paired difference of the nets; not adjusted.
    """
    floors = floor_arms(run)
    found = []
    for arm in model_arms(run):
        mine = scores(run, arm.name, "net")
        if "random" in floors:
            pair = paired(mine, scores(run, "random", "net"))
            found.append((f"{arm.name} - random", pair))
        if "prior" in floors:
            pair = paired(scores(run, "prior", "net"), mine)
            found.append((f"prior - {arm.name}", pair))
    return tuple(found)

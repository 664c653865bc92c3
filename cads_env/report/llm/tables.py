"""Tables of the measured factors: origins, gate, split feedback, prompts, probes, floors.

Formats what `factors`, `feedback` and `probes` computed; decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from cads_env.inference import Estimate, t_detectable
from cads_env.report.content import Table
from cads_env.report.llm.factors import (
    PromptEffect,
    against_floors,
    origins,
    precision,
)
from cads_env.report.llm.feedback import Gate, Split
from cads_env.report.llm.probes import DETECTORS, Probe, Value
from cads_env.report.llm.published import Effects, published_effect
from cads_env.report.wording import UNDEFINED, counted, interval, number, p_cell, signed, visible
from cads_env.run.result import RunResult

THE_TWIN = "no proposer (the twin)"
"""How the loop without a proposer is called."""


def ends(estimate: Estimate) -> str:
    """The 95 % interval of an estimate; '-' where too few units are all equal."""
    return UNDEFINED if estimate.untold else interval(estimate.low, estimate.high)


def with_ends(estimate: Estimate) -> str:
    """A difference with its 95 % interval, where it has one."""
    told = ends(estimate)
    return signed(estimate.mean) if told == UNDEFINED else f"{signed(estimate.mean)} {told}"


def share_ends(estimate: Estimate) -> str:
    """The 95 % interval of a mean share; '-' where all shares are equal."""
    return interval(estimate.low, estimate.high, 3) if estimate.sd > 0 else UNDEFINED


def found_at(estimate: Estimate) -> str:
    """The true mean that as many units find with 80 % power, by the t law; '-' without a spread."""
    if estimate.units < 2 or not estimate.sd > 0:
        return UNDEFINED
    return number(t_detectable(estimate.sd, estimate.units))


def origins_table(run: RunResult) -> Table:
    """Who first named what each arm certifies, and what the names displaced."""
    return Table(
        caption="Origin against net, means a campaign",
        columns=(
            "arm", "certified", "originated", "by fallback", "displaced", "net", "gained", "lost",
        ),
        rows=tuple(
            (
                visible(o.arm),
                *(number(v) for v in (o.certified, o.originated, o.by_fallback, o.displaced)),
                signed(o.net),
                number(o.gained),
                number(o.lost),
            )
            for o in origins(run)
        ),
        note=(
            "net = originated - displaced = gained - lost. What a proposer originates is no gain "
            "by itself: the twin certifies hits too, some of them the same."
        ),
    )  # fmt: skip


def slots_table(run: RunResult) -> Table:
    """Slots filled, those within reach, and the share of hits in them."""
    rows = []
    for name, arm in run.arms.items():
        found = precision(run, name)
        pooled = number(found.hits / found.filled, 3) if found.filled else UNDEFINED
        estimate = found.estimate
        rows.append(
            (
                visible(name),
                number(arm.slots, 1),
                number(arm.filled, 1),
                number(arm.slots_in_reach, 1),
                number(arm.filled_in_reach, 1),
                number(estimate.mean, 3),
                share_ends(estimate),
                pooled,
                f"{estimate.n:,}",
            )
        )
    return Table(
        caption="Slots filled and their precision, a campaign",
        columns=(
            "arm", "slots", "filled", "slots in reach", "filled in reach", "precision",
            "95 % interval", "hits / filled", "campaigns with a filled slot",
        ),
        rows=tuple(rows),
        note=(
            "precision: share of hits among the accepted proposals of a campaign, averaged over "
            "campaigns with any; hits / filled: of all campaigns together. In reach: early enough "
            "to be certified."
        ),
    )  # fmt: skip


def gate_table(gates: Sequence[Gate]) -> Table:
    """The gate of the twin and of every arm."""
    modes = list(dict.fromkeys(mode for gate in gates for mode in gate.contrasts))
    columns = ["loop", "full"]
    for mode in modes:
        columns += [mode, f"full - {mode}", f"95 % interval ({mode})"]
    rows = []
    for gate in gates:
        cells = [visible(gate.arm) or THE_TWIN, number(gate.full.mean)]
        for mode in modes:
            estimate = gate.contrasts[mode].estimate
            cells += [number(gate.controls[mode].mean), signed(estimate.mean), ends(estimate)]
        passes = "not known" if gate.passes is None else "yes" if gate.passes else "no"
        n = min((g.estimate.n for g in gate.contrasts.values()), default=0)
        rows.append((*cells, passes, f"{n:,}"))
    return Table(
        caption="Certified hits under full feedback and without, a campaign",
        columns=(*columns, "passes", "paired"),
        rows=tuple(rows),
        words=(len(columns),),
        note="passes: the lower ends of both intervals, full minus none and minus permuted, are "
        "above 0.",
    )


def splits_table(splits: Sequence[Split]) -> Table:
    """What each arm makes of its own feedback."""
    return Table(
        caption="Certified hits with the proposer's own feedback and without, a campaign",
        columns=(
            "arm", "shown instead", "full", "without", "difference", "95 % interval", "p",
            "found at this n", "paired",
        ),
        rows=tuple(
            (
                visible(s.arm),
                s.proposer,
                number(s.full.mean),
                number(s.split.mean),
                *_difference(s.contrast.estimate),
                found_at(s.contrast.estimate),
                f"{s.contrast.estimate.n:,}",
            )
            for s in splits
        ),
        words=(1,),
        note="Re-selection sees the reads as they are in both.",
    )  # fmt: skip


def _difference(estimate: Estimate) -> tuple[str, str, str]:
    p = UNDEFINED if estimate.untold else p_cell(estimate.p_value)
    return signed(estimate.mean), ends(estimate), p


def prompts_table(effects: Sequence[PromptEffect], kind: Effects | None) -> Table | None:
    """The prompt effects, a family; None where no two arms differ in their prompt only.

    Args:
        effects: From `prompt_effects`.
        kind: Which published effects stand beside them; None for none.
    """
    if not effects:
        return None
    known = [published_effect(kind, e.arm, e.base) if kind else "" for e in effects]
    rows = []
    for effect, printed in zip(effects, known, strict=True):
        estimate = effect.contrast.estimate
        change = effect.precision.estimate
        tail = (printed or UNDEFINED,) if any(known) else ()
        rows.append(
            (
                visible(effect.contrast.name),
                *_difference(estimate),
                p_cell(effect.contrast.holm),
                UNDEFINED if estimate.untold else p_cell(effect.contrast.equivalence.p_value),
                effect.contrast.verdict,
                signed(change.mean, 3),
                share_ends(change),
                found_at(estimate),
                _paired_count(estimate, effect.first_only, effect.second_only),
                *tail,
            )
        )
    return Table(
        caption="Prompt effects on the net, paired",
        columns=(
            "arms", "difference", "95 % interval", "p", "p (Holm)", "p (within 1)", "verdict",
            "precision", "95 % interval (precision)", "found at this n", "paired",
            *(("published",) if any(known) else ()),
        ),
        rows=tuple(rows),
        words=(6,),
        note=(
            f"p (Holm): over the declared family of {counted(len(effects), 'prompt effect')}; "
            "p (within 1): two one-sided tests against one declaration. precision: mean over "
            "campaigns, in which both filled a slot, of the campaign's difference."
            + (" Published: another registry and other words." if any(known) else "")
        ),
    )  # fmt: skip


def _paired_count(estimate: Estimate, first_only: int, second_only: int) -> str:
    alone = first_only + second_only
    return f"{estimate.n:,}" + (f" ({alone:,} left out)" if alone else "")


def floors_table(run: RunResult) -> Table | None:
    """Every model arm against the floors; None without a floor or a model arm."""
    found = against_floors(run)
    if not found:
        return None
    return Table(
        caption="Against the arms without a language model, paired nets",
        columns=("arms", "difference", "95 % interval", "p", "found at this n", "paired"),
        rows=tuple(
            (
                visible(name, 160),
                *_difference(pair.estimate),
                found_at(pair.estimate),
                _paired_count(*pair),
            )
            for name, pair in found
        ),
        note=(
            "p is not adjusted. random: any candidates; prior: by the public prior of the registry."
        ),
    )


def probes_table(probes: Sequence[Probe]) -> Table:
    """The net of every arm under every identifier mode, and the verdict of the leak detectors."""
    modes = list(dict.fromkeys(p.mode for p in probes))
    by_arm: dict[str, dict[str, Probe]] = {}
    for probe in probes:
        by_arm.setdefault(probe.arm, {})[probe.mode] = probe
    rows = []
    for arm, found in by_arm.items():
        cells = [visible(arm)]
        for mode in modes:
            cells.append(_net(found[mode].net) if mode in found else UNDEFINED)
        rows.append((*cells, leak_words([p for p in found.values() if p.mode in DETECTORS])))
    return Table(
        caption="Net by identifiers, with its 95 % interval",
        columns=("arm", *modes, "leak"),
        rows=tuple(rows),
        words=(len(modes) + 1,),
        note=(
            "Under blinded and shuffled identifiers the expected net of every agent is 0; p over "
            "all arms and both by Holm."
        ),
    )


def _net(estimate: Estimate) -> str:
    return with_ends(estimate) if estimate.n else UNDEFINED


def leak_words(detectors: Sequence[Probe]) -> str:
    """The verdict of an arm's leak detectors.

    Args:
        detectors: Its probes of the modes under which its expected net is 0.
    """
    odd = [p for p in detectors if p.is_clean is False]
    if odd:
        said = [f"{p.mode} {signed(p.net.mean)}, p (Holm) {p_cell(p.holm)}" for p in odd]
        return f"LEAK or luck: {'; '.join(said)}"
    if any(p.is_clean for p in detectors):
        return "none seen"
    return UNDEFINED


def values_table(values: Sequence[Value]) -> Table:
    """What names bring to each arm."""
    return Table(
        caption="What names bring, paired nets",
        columns=(
            "arm", "difference of", "measures", "difference", "95 % interval", "p",
            "found at this n", "paired",
        ),
        rows=tuple(
            (
                visible(v.arm),
                f"named - {v.mode}",
                v.meaning,
                *_difference(v.contrast.estimate),
                found_at(v.contrast.estimate),
                _paired_count(*v.contrast),
            )
            for v in values
        ),
        words=(1, 2),
        note="p is not adjusted.",
    )  # fmt: skip

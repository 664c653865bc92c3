"""The gate, budgets, reach, and the contrast that isolates a proposer's use of feedback.

The published gate asks whether a loop with full feedback certifies more than the same loop with
none or permuted feedback. A loop without any proposer passes it, so it says nothing of one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from scipy import stats

from cads_env.certificate import Certificate, reach
from cads_env.protocol import Protocol, load_protocol
from cads_env.studies.gate_play import (
    EFFECT_RANKED,
    NOTHING,
    candidates_needed,
    play_cell,
    reads_needed,
)
from cads_env.studies.registries import registry_of
from cads_env.studies.study import Cell, Config, Moments, Study, Summary
from cads_env.studies.tables import Entry, Table, near

_CONTROLS: Final = ("none", "permuted")
_TITLES: Final = {NOTHING: "no proposer", EFFECT_RANKED: "effect-ranked (knows the truth)"}
_YES: Final = (1.0, 1.0)


def cells(config: Config, items: Collection[str]) -> list[Cell]:
    """The cells of the named items; `gate`, `budgets` and `reach` share most of theirs."""
    wanted: dict[str, Cell] = {}

    def add(kind: str, protocol: str, arm: str, modes: Sequence[str], seeds: range) -> None:
        settings = {
            "registry": config["registry"],
            "protocol": protocol,
            "arm": arm,
            "modes": list(modes),
        }
        name = _name(kind, protocol, arm)
        wanted[name] = Cell(name, settings, seeds)

    paired, seeds = ("full", *_CONTROLS), range(config["seeds"])
    for protocol in _protocols(config):
        if {"gate", "budgets"} & set(items):
            for arm in (*config["arms"], EFFECT_RANKED):
                add("gate", protocol, arm, paired, seeds)
        if "budgets" in items:
            add("budget", protocol, NOTHING, paired, range(config["budget_seeds"]))
        if "reach" in items:
            add("gate", protocol, EFFECT_RANKED, paired, seeds)
    if "split-feedback" in items:
        for protocol in config["protocols"]:
            for arm in config["split_arms"]:
                add("split", protocol, arm, ("full", "split"), range(config["split_seeds"]))
    if "matched-quota" in items:
        quota = config["matched_quota"]
        played = range(quota["first_seed"], quota["first_seed"] + quota["seeds"])
        for arm in quota["arms"]:
            add("quota", quota["protocol"], arm, ("full",), played)
    return list(wanted.values())


def _name(kind: str, protocol: str, arm: str) -> str:
    return f"{kind} {protocol} {arm}"


def _protocols(config: Config) -> dict[str, tuple[str, int]]:
    """Preset and budget by the protocol's own name."""
    named = {}
    for preset in config["protocols"]:
        for budget in config["budgets"]:
            named[load_protocol(preset).with_budget(budget).name] = (preset, budget)
    return named


def _title(arm: str) -> str:
    return _TITLES.get(arm, arm)


def interval(moments: Moments, confidence: float = 0.95) -> tuple[float, float]:
    """The t interval of a mean, from its moments; its own mean twice where nothing varies.

    Source: CADS, section on loop contrasts.
    """
    if moments.sd == 0:
        return moments.mean, moments.mean
    half = float(stats.t.ppf(0.5 + confidence / 2, moments.n - 1)) * moments.mc_se
    return moments.mean - half, moments.mean + half


def _passes(summary: Summary, cell: str, controls: Sequence[str]) -> bool:
    lows = [interval(summary.of(cell, f"full_minus_{mode}"))[0] for mode in controls]
    return all(low > 0 for low in lows)


def _mean(
    summary: Summary, cell: str, column: str, labels: tuple[str, ...], measure: str, **more: Any
) -> Entry:
    return Entry(
        row=labels,
        measure=measure,
        ours=summary.mean(cell, column),
        mc_se=summary.mc_se(cell, column),
        **more,
    )


def gate(config: Config, summary: Summary) -> Table:
    """The paper's gate for every arm, protocol and budget; no proposer passes it too."""
    entries: list[Entry] = []
    for protocol, (preset, budget) in _protocols(config).items():
        is_published = preset == config["published"]["protocol"]
        for arm in (*config["arms"], EFFECT_RANKED):
            known: dict[str, float] = {}
            control: float | None = None
            if is_published and arm == NOTHING:
                known = config["published"][NOTHING].get(str(budget), {})
                control = config["expected"]["control"]
            cell, labels = _name("gate", protocol, arm), (preset, f"{budget}x", _title(arm))
            entries += _gate_rows(summary, cell, labels, known, control)
    judge, m = _judge(config), registry_of(config["registry"])[0].m
    most = _most_reads(config, summary)
    return Table(
        title="The gate: full feedback against none and against permuted",
        label_columns=("protocol", "budget", "arm"),
        entries=entries,
        caption=(
            "A loop passes when the lower ends of both paired t intervals are above 0. The loop "
            "without a proposer passes, so passing says nothing of a proposer. In `proposer` at 1x "
            f"the controls are zero by construction: no candidate got more than {most:.0f} reads "
            f"there, one declared alone needs {reads_needed(m, 1, judge)}, and with {most:.0f} "
            f"reads each it takes {candidates_needed(m, most, judge)} candidates without a read "
            "below the cap. Proposals ranked by the true effect score no more, so full minus none "
            "is the full arm itself. In `standard`, where a candidate is read four times a round, "
            "the controls are not zero. Published intervals are of another registry."
        ),
    )


def _judge(config: Config) -> Certificate:
    return Certificate(**load_protocol(config["published"]["protocol"]).certificate._asdict())


def _most_reads(config: Config, summary: Summary) -> float:
    """The most reads that a candidate got in a control of the published protocol at 1x."""
    cells = [
        _name("gate", config["published"]["protocol"], arm)
        for arm in (*config["arms"], EFFECT_RANKED)
    ]
    return max(summary.of(cell, f"most_reads_{mode}").high for cell in cells for mode in _CONTROLS)


def _gate_rows(
    summary: Summary,
    cell: str,
    labels: tuple[str, ...],
    known: dict[str, float],
    control: float | None,
) -> list[Entry]:
    """The rows of an arm; `control` is the most that its controls may show where it is known."""
    rows = [_mean(summary, cell, "true_full", labels, "true, full", published=known.get("full"))]
    for mode in _CONTROLS:
        rows.append(
            _mean(
                summary,
                cell,
                f"true_{mode}",
                labels,
                f"true, {mode}",
                published=known.get(mode),
                expected=(0.0, control) if control is not None else None,
            )
        )
    for mode in _CONTROLS:
        ends = interval(summary.of(cell, f"full_minus_{mode}"))
        for end, value in zip(("low", "high"), ends, strict=True):
            rows.append(
                Entry(
                    row=labels,
                    measure=f"full - {mode}, {end}",
                    ours=value,
                    published=known.get(end),
                )
            )
    rows.append(
        Entry(
            row=labels,
            measure="passes",
            ours=float(_passes(summary, cell, _CONTROLS)),
            published=None if control is None else 1.0,
            expected=None if control is None else _YES,
        )
    )
    return rows


def budgets(config: Config, summary: Summary) -> Table:
    """What each arm certifies, and its net over the twin, at one, two and four times the rounds."""
    entries: list[Entry] = []
    expected, published = config["expected"], config["published"]
    for protocol, (preset, budget) in _protocols(config).items():
        is_published = preset == published["protocol"]
        known = published[NOTHING].get(str(budget), {}) if is_published else {}
        cell, labels = _name("budget", protocol, NOTHING), (preset, f"{budget}x", _title(NOTHING))
        entries.append(
            _mean(
                summary, cell, "true_full", labels, "true",
                published=known.get("full"),
                expected=_pair(expected[NOTHING].get(str(budget))) if is_published else None,
            )
        )  # fmt: skip
        for arm in (*config["arms"], EFFECT_RANKED):
            if arm == NOTHING:
                continue
            at = _name("gate", protocol, arm)
            is_table = is_published and budget == 1
            of_arm = published.get(arm, {}) if is_table else {}
            labels = (preset, f"{budget}x", _title(arm))
            low, high = interval(summary.of(at, "net"))
            entries += [
                _mean(
                    summary, at, "true_full", labels, "true",
                    published=of_arm.get("full"),
                    expected=_pair(expected.get(arm)) if is_table else None,
                ),
                _mean(
                    summary, at, "net", labels, "net",
                    published=of_arm.get("net"),
                    expected=_pair(expected.get(f"{arm}_net")) if is_table else None,
                ),
                Entry(row=labels, measure="net, low", ours=low, published=of_arm.get("low")),
                Entry(row=labels, measure="net, high", ours=high, published=of_arm.get("high")),
            ]  # fmt: skip
    return Table(
        title="Budgets: true declarations at one, two and four times the rounds",
        label_columns=("protocol", "budget", "arm"),
        entries=entries,
        caption=(
            "Net is over the proposer-removed loop on the same seeds, with its paired t interval "
            "over seeds; it holds for this registry. Published figures are of another registry, "
            "and those without a proposer of 20 seeds."
        ),
    )


def _pair(given: Sequence[float] | None) -> tuple[float, float] | None:
    return None if given is None else (given[0], given[1])


def reach_table(config: Config, summary: Summary) -> Table:
    """Reads that a declaration needs, and how late a candidate may still be read first."""
    m = registry_of(config["registry"])[0].m
    entries: list[Entry] = []
    for name, (preset, budget) in _protocols(config).items():
        protocol = load_protocol(name)
        judge = Certificate(**protocol.certificate._asdict())
        cell = _name("gate", name, EFFECT_RANKED)
        k = min(max(summary.mean(cell, "declared"), 1.0), float(m))
        last = reach(protocol, k, m)
        figures = {
            "declared by the effect-ranked": k,
            "reads needed alone": reads_needed(m, 1, judge),
            "reads needed among these": reads_needed(m, k, judge),
            "rounds": protocol.rounds,
            "last round in reach alone": reach(protocol, 1, m),
            "last round in reach": last,
            "fresh slots in reach": _slots(protocol, m, last + 1),
            "fresh slots": _slots(protocol, m, protocol.rounds),
        }
        entries += [
            Entry(
                row=(preset, f"{budget}x"),
                measure=measure,
                ours=float(value),
                mc_se=summary.mc_se(cell, "declared") if value is k else None,
            )
            for measure, value in figures.items()
        ]
        if preset == config["published"]["protocol"] and budget == 1:
            among, due = config["published"]["prior"]["full"], config["expected"]
            entries.append(
                Entry(
                    row=(preset, f"{budget}x"),
                    measure=f"last round in reach among {among:g}",
                    ours=float(reach(protocol, among, m)),
                    expected=(due["last_round_in_reach"],) * 2,
                )
            )
    return Table(
        title="Reach: how late a candidate may be read first and still be declared",
        label_columns=("protocol", "budget"),
        entries=entries,
        caption=(
            "A read adds at most the logarithm of the cap, so a declaration needs a least number "
            "of reads; the more are declared together, the fewer. Rounds count from 0. What is "
            "proposed after the last round in reach cannot be declared, however good it is."
        ),
    )


def _slots(protocol: Protocol, m: int, rounds: int) -> int:
    return sum(planned.fresh for planned in protocol.plan(m)[:rounds])


def split_feedback(config: Config, summary: Summary) -> Table:
    """What a proposer makes of its feedback: its own permuted, re-selection's full in both."""
    entries: list[Entry] = []
    for protocol in config["protocols"]:
        for arm, habit in config["split_arms"].items():
            cell, labels = _name("split", protocol, arm), (protocol, _title(arm))
            low, high = interval(summary.of(cell, "full_minus_split"))
            is_blind = habit == "ignores"
            difference = _mean(
                summary, cell, "full_minus_split", labels, "difference",
                expected=(0.0, 0.0) if is_blind else None,
            )  # fmt: skip
            entries += [
                _mean(summary, cell, "true_full", labels, "true, full"),
                _mean(summary, cell, "true_split", labels, "true, proposer's permuted"),
                difference,
                Entry(row=labels, measure="difference, low", ours=low),
                Entry(row=labels, measure="difference, high", ours=high),
            ]
            if not is_blind:
                entries.append(
                    Entry(
                        row=labels,
                        measure="lower end above 0",
                        ours=float(low > 0),
                        expected=_YES,
                    )
                )
    return Table(
        title="Split feedback: the proposer's permuted, re-selection's full",
        label_columns=("protocol", "arm"),
        entries=entries,
        caption=(
            "Re-selection sees the reads as they are in both halves, so the contrast isolates the "
            "proposer: 0 for one that never looks at its lists, above 0 for one that learns from "
            "them. Paired t interval over seeds."
        ),
    )


def matched_quota(config: Config, summary: Summary) -> Table:
    """The published rows without a language model, at equal delivery."""
    quota, expected = config["matched_quota"], config["expected"]
    entries: list[Entry] = []
    for arm in quota["arms"]:
        cell, labels = _name("quota", quota["protocol"], arm), (_title(arm),)
        known = config["published"]["matched_quota"][arm]
        ranges = {
            "true_full": _pair(expected["matched_quota"][arm]),
            "slots": near(known["slots"], 0.0),
            "precision": near(known["precision"], expected["matched_precision"][arm]),
        }
        for column, allowed in ranges.items():
            entries.append(
                _mean(
                    summary, cell, column, labels, column.removesuffix("_full"),
                    published=known[column.removeprefix("true_")], expected=allowed,
                )
            )  # fmt: skip
    return Table(
        title="Matched quota: at most 5 proposals a late round",
        label_columns=("proposer",),
        entries=entries,
        caption=(
            "True declarations, accepted proposals and the share of hits among these, a campaign. "
            "Rows of language models need their own runs."
        ),
    )


STUDY: Final = Study(
    name="gate",
    title="The gate, budgets and reach of a loop with a proposer",
    about=(
        "Arms without a language model under full, absent and permuted feedback, at one, two and "
        "four times the rounds, and the contrast that isolates a proposer's use of feedback."
    ),
    items={
        "gate": gate,
        "budgets": budgets,
        "reach": reach_table,
        "split-feedback": split_feedback,
        "matched-quota": matched_quota,
    },
    cells=cells,
    play=play_cell,
)

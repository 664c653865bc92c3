"""Tables in the shape of the published ones: prompt x model x feedback, and the matched quota.

Published figures stand beside the run's own where model, prompt and protocol are the published
ones. Formats results; decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cads_env.inference import clopper_pearson_upper
from cads_env.report.content import Block, Paragraph, Table
from cads_env.report.llm.arms import Arm, SettingRun, arms_of, model_arms
from cads_env.report.llm.factors import (
    PromptEffect,
    floor_arms,
    naive_fdr,
    precision,
    prompt_effects,
    scores,
)
from cads_env.report.llm.published import figure, published_effect, published_row
from cads_env.report.llm.tables import ends
from cads_env.report.wording import UNDEFINED, counted, interval, number, signed, visible
from cads_env.run.result import RunResult


class _Line(NamedTuple):
    """One row of such a table: its words, and each figure beside the published one."""

    words: tuple[str, ...]
    cells: tuple[str, ...]
    published: tuple[str, ...]


def settings_table(settings: Sequence[SettingRun]) -> Table | None:
    """Every model arm in every setting: slots, certified hits, naive FDR, net; None without one.

    Args:
        settings: Of a grid.
    """
    lines = []
    for setting in settings:
        for arm in model_arms(setting.run):
            summary = setting.run.arms[arm.name]
            known = published_row(
                setting.run.protocol,
                arm,
                feedback=setting.feedback,
                identifiers=setting.identifiers,
            )
            net = summary.net
            cells = (
                number(summary.filled, 1),
                number(summary.true),
                number(naive_fdr(setting.run, arm.name), 3),
                f"{signed(net.mean)} {ends(net)}" if net.n else UNDEFINED,
            )
            printed = (
                number(figure(known, "slots"), 1),
                number(figure(known, "certified")),
                number(figure(known, "naive_fdr"), 3),
                _printed_net(known),
            )
            words = (_name(arm), visible(arm.model), setting.feedback, setting.identifiers)
            lines.append(_Line((*words, f"{summary.n:,}"), cells, printed))
    if not lines:
        return None
    return Table(
        caption="Prompt, model and setting: means a campaign",
        columns=(
            "prompt", "model", "feedback", "identifiers", "n",
            *_columns(lines, ("slots", "certified", "naive FDR", "net")),
        ),
        rows=_rows(lines),
        words=(1, 2, 3),
        note=(
            "slots: filled by the proposer. naive FDR: share of nulls among what naive BH declares "
            "on the same reads. net: over the twin of the same setting." + _published_note(lines)
        ),
    )  # fmt: skip


def _name(arm: Arm) -> str:
    return f"{visible(arm.prompt)}{' (guided)' if arm.is_guided else ''}"


def _printed_net(known: Mapping[str, float]) -> str:
    if "net" not in known:
        return UNDEFINED
    return f"{signed(known['net'])} {interval(figure(known, 'low'), figure(known, 'high'))}"


def _columns(lines: Sequence[_Line], names: Sequence[str]) -> tuple[str, ...]:
    if not _any_published(lines):
        return tuple(names)
    return tuple(column for name in names for column in (name, f"{name}, published"))


def _rows(lines: Sequence[_Line]) -> tuple[tuple[str, ...], ...]:
    if not _any_published(lines):
        return tuple((*line.words, *line.cells) for line in lines)
    return tuple(
        (*line.words, *(c for pair in zip(line.cells, line.published, strict=True) for c in pair))
        for line in lines
    )


def _any_published(lines: Sequence[_Line]) -> bool:
    return any(cell != UNDEFINED for line in lines for cell in line.published)


def _published_note(lines: Sequence[_Line]) -> str:
    if not _any_published(lines):
        return ""
    return " Published figures are of another registry and of prompts in other words."


def quota_table(run: RunResult) -> Table:
    """The arms of a run with a quota: certified hits, slots, unfilled slots, precision.

    Args:
        run: Under `matched-quota` or another protocol with a quota.
    """
    lines = []
    floors = floor_arms(run)
    for arm in arms_of(run).values():
        if not arm.prompt and arm.name not in floors:
            continue
        summary = run.arms[arm.name]
        known = published_row(
            run.protocol,
            arm,
            feedback=run.protocol.feedback_proposer,
            identifiers=run.identifiers,
        )
        cells = (
            number(summary.true),
            number(summary.filled, 1),
            number(summary.slots - summary.filled, 1),
            number(precision(run, arm.name).estimate.mean, 3),
        )
        printed = (
            number(figure(known, "certified")),
            number(figure(known, "slots"), 1),
            number(figure(known, "unfilled"), 1),
            number(figure(known, "precision"), 3),
        )
        words = (visible(arm.model), _name(arm) if arm.prompt else UNDEFINED, f"{summary.n:,}")
        lines.append(_Line(words, cells, printed))
    return Table(
        caption="At equal delivery: means a campaign",
        columns=(
            "proposer", "prompt", "n",
            *_columns(lines, ("certified", "slots", "unfilled", "precision")),
        ),
        rows=_rows(lines),
        words=(1,),
        note=(
            "slots: filled by the proposer; unfilled: left to the fallback. precision: share of "
            "hits among the filled." + _published_note(lines)
        ),
    )  # fmt: skip


def effects_table(run: RunResult, natural: RunResult | None) -> Table | None:
    """Prompt effects with and without the quota, beside the published ones; None without pairs.

    Args:
        run: Under a protocol with a quota: the fixed effect.
        natural: The same arms without the quota: the natural effect; None where it was not played.
    """
    fixed = prompt_effects(run)
    if not fixed:
        return None
    free = {(e.arm.name, e.base.name): e for e in prompt_effects(natural)} if natural else {}
    rows = []
    for effect in fixed:
        other = free.get((effect.arm.name, effect.base.name))
        printed = [
            published_effect(kind, effect.arm, effect.base) or UNDEFINED
            for kind in ("natural_effects", "fixed_effects")
        ]
        shown = [_effect(other), _effect(effect)]
        rows.append((visible(effect.contrast.name), shown[0], printed[0], shown[1], printed[1]))
    columns = ("arms", "natural", "natural, published", "fixed", "fixed, published")
    keep = [0, 1, 3] if all(row[2] == row[4] == UNDEFINED for row in rows) else [0, 1, 2, 3, 4]
    return Table(
        caption="Prompt effects with delivery as it comes and at equal delivery",
        columns=tuple(columns[i] for i in keep),
        rows=tuple(tuple(row[i] for i in keep) for row in rows),
        note=(
            "natural: the protocol without the quota, so that a prompt that fills more slots gains "
            "by it; fixed: with the quota."
        ),
    )


def _effect(effect: PromptEffect | None) -> str:
    if effect is None:
        return UNDEFINED
    estimate = effect.contrast.estimate
    return f"{signed(estimate.mean)} {ends(estimate)}"


def quota_blocks(run: RunResult, natural: RunResult | None) -> tuple[Block, ...]:
    """Everything of the matched quota: the arms, both effects, and what was false.

    Args:
        run: Under a protocol with a quota.
        natural: The same arms without it, or None.
    """
    blocks: list[Block] = [quota_table(run)]
    effects = effects_table(run, natural)
    if effects is not None:
        blocks.append(effects)
        if natural is None:
            text = (
                "The natural effect is missing: it comes from the same arms and seeds under "
                "`proposer` (cads run ... --protocol proposer --out RUN, then cads report FOLDER "
                "--natural RUN)."
            )
            blocks.append(Paragraph(text))
        elif natural.manifest["config"]["seeds"] != run.manifest["config"]["seeds"]:
            blocks.append(Paragraph("The natural effect is of other seeds than the fixed one."))
    blocks.append(Paragraph(false_words(run)))
    return tuple(blocks)


def false_words(run: RunResult) -> str:
    """How many campaigns certified any null, with the exact bound that a count of 0 leaves."""
    with_false = total = 0
    worst = math.nan
    for arm in run.arms:
        false = scores(run, arm, "false")
        if not false:
            continue
        count = sum(value > 0 for value in false.values())
        bound = clopper_pearson_upper(count, len(false))
        worst = bound if math.isnan(worst) else max(worst, bound)
        with_false, total = with_false + count, total + len(false)
    if not total:
        return "No campaign was scored."
    return (
        f"{with_false:,} of {counted(total, 'campaign')} certified any null; of each arm, "
        f"P(any null) is at most {number(worst, 3)} (one-sided 95 % Clopper-Pearson bound, the "
        "largest of the arms), which bounds the FDR."
    )

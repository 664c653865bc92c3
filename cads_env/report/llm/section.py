"""The sections that a run's own report has where the run left traces.

Puts tables together; the page of a grid has the same ones and more.
"""

from __future__ import annotations

from cads_env.report.content import Block, Paragraph, Section
from cads_env.report.llm.arms import SettingRun, setting_runs
from cads_env.report.llm.asked import has_traces
from cads_env.report.llm.attempts import attempts_of, delivery_of
from cads_env.report.llm.delivery import (
    answered_by,
    by_attempt_table,
    delivery_table,
    failures_table,
    guided_note,
    spend_table,
)
from cads_env.report.llm.factors import prompt_effects
from cads_env.report.llm.grids import quota_blocks, settings_table
from cads_env.report.llm.published import Effects, preset_of
from cads_env.report.llm.tables import (
    floors_table,
    origins_table,
    prompts_table,
    slots_table,
)
from cads_env.run.result import RunResult


def model_sections(result: RunResult, *, natural: RunResult | None = None) -> tuple[Section, ...]:
    """What models delivered, cost and gained by their prompts; empty for a run without traces.

    Args:
        result: Read from its folder; one that was played in memory has no traces.
        natural: The same arms without a quota, or None.
    """
    if not has_traces(result.folder):
        return ()
    (setting,) = setting_runs({"run": result})
    found = [_delivery(setting)]
    if len(result.campaigns):
        found.append(_factors(setting))
        if result.protocol.quota is not None:
            blocks = quota_blocks(result, natural)
            found.append(Section(key="quota", title="At equal delivery", blocks=blocks))
    return tuple(found)


def _delivery(setting: SettingRun) -> Section:
    attempts = attempts_of(setting.run)
    sums = {setting.name: delivery_of(attempts)}
    blocks: list[Block] = []
    if note := guided_note([setting]):
        blocks.append(Paragraph(note))
    tables = (
        delivery_table(sums, several=False),
        by_attempt_table(attempts),
        spend_table(sums, several=False),
    )
    blocks += [table for table in tables if table is not None and table.rows]
    if (said := answered_by({setting.name: attempts})) is not None:
        blocks.append(said)
    if (failures := failures_table([setting], several=False)) is not None:
        blocks.append(failures)
    return Section(key="models", title="What the models delivered", blocks=tuple(blocks))


def effect_kind(result: RunResult) -> Effects | None:
    """Which published prompt effects stand beside those of a run; None where none do."""
    kinds: dict[str, Effects] = {"proposer": "prompt_effects", "matched-quota": "fixed_effects"}
    return kinds.get(preset_of(result.protocol))


def _factors(setting: SettingRun) -> Section:
    result = setting.run
    blocks: list[Block] = [origins_table(result), slots_table(result)]
    others = (
        settings_table([setting]),
        prompts_table(prompt_effects(result), effect_kind(result)),
        floors_table(result),
    )
    blocks += [table for table in others if table is not None]
    return Section(key="factors", title="Measured factors", blocks=tuple(blocks))

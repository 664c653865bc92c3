"""Everything that the page of a grid says, computed once from its runs.

Calls the other modules of this package; formats nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from cads_env.report.llm.arms import SettingRun, primary, setting_runs
from cads_env.report.llm.attempts import attempts_of, delivery_of
from cads_env.report.llm.factors import PromptEffect, prompt_effects
from cads_env.report.llm.feedback import Gate, Split, gates, splits
from cads_env.report.llm.probes import Probe, Value, probes, values_of_names
from cads_env.run.result import RunResult


class Found(NamedTuple):
    """Everything that a page says, computed once.

    Attributes:
        settings: The settings that have begun, in order.
        missing: Names of planned settings that have not.
        base: The one that answers for the arms.
        attempts: `attempts_of` by setting.
        sums: `delivery_of` by setting.
        total: The same of all settings together.
        gates: Of the twin and the arms.
        splits: Split-feedback contrasts.
        effects: Prompt effects of the base.
        probes: Identifier probes.
        values: What names bring.
        natural: The arms without a quota, where it is given.
    """

    settings: tuple[SettingRun, ...]
    missing: tuple[str, ...]
    base: SettingRun
    attempts: Mapping[str, pd.DataFrame]
    sums: Mapping[str, pd.DataFrame]
    total: pd.DataFrame
    gates: tuple[Gate, ...]
    splits: tuple[Split, ...]
    effects: tuple[PromptEffect, ...]
    probes: tuple[Probe, ...]
    values: tuple[Value, ...]
    natural: RunResult | None


def find_all(
    runs: Mapping[str, RunResult], planned: Sequence[str], natural: RunResult | None
) -> Found:
    """Everything that the page of a grid says.

    Args:
        runs: The runs of the settings that have begun, at least one.
        planned: Names of all settings.
        natural: The same arms without a quota, or None.

    Raises:
        RecordError: A trace is damaged.
    """
    settings = setting_runs(runs)
    base = primary(settings)
    attempts = {s.name: attempts_of(s.run) for s in settings}
    return Found(
        settings=settings,
        missing=tuple(name for name in planned if name not in runs),
        base=base,
        attempts=attempts,
        sums={name: delivery_of(frame) for name, frame in attempts.items()},
        total=delivery_of(_together(list(attempts.values()))),
        gates=gates(settings),
        splits=splits(settings),
        effects=prompt_effects(base.run),
        probes=probes(settings),
        values=values_of_names(settings),
        natural=natural,
    )


def _together(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """All rows; pandas is to leave empty frames out of a concatenation."""
    filled = [frame for frame in frames if len(frame)]
    return pd.concat(filled, ignore_index=True) if filled else frames[0]

"""What the arms and settings of runs are: model, prompt, guidance, feedback, identifiers.

Reads manifests and protocols; decides which arms differ in their prompt only and which setting is
which. Computes no score.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, Final, NamedTuple

from cads_env.run.result import RunResult

GUIDED: Final = "+guided"
"""How the name of an arm with guided decoding ends."""

BASELINE: Final = "thin"
"""The prompt that others are compared with, where an arm has it."""

FLOORS: Final = ("random", "prior")
"""Arms without a language model that a report compares with."""

PLAIN_PROPOSER: Final = "LLMProposer"
"""Class of the plain proposer; its variants ask otherwise than the published ones."""


class Arm(NamedTuple):
    """One arm of a run.

    Attributes:
        name: Its name.
        model: What the arms of one model share of their names.
        prompt: Name of its prompt; empty for an arm without one.
        is_guided: Whether a grammar forced its answers, so that delivery is not its own merit.
        is_plain: Whether it is the plain proposer and no variant of it.
        words: Texts that name the model, for a comparison with published figures.
        group: The same for arms that differ in their prompt only.
    """

    name: str
    model: str
    prompt: str
    is_guided: bool
    is_plain: bool
    words: tuple[str, ...]
    group: str


class SettingRun(NamedTuple):
    """One run of a grid.

    Attributes:
        name: Its name.
        run: What it found.
        proposer: Feedback of the proposer.
        reselection: Feedback of re-selection.
        identifiers: Mode of the identifiers.
    """

    name: str
    run: RunResult
    proposer: str
    reselection: str
    identifiers: str

    @property
    def feedback(self) -> str:
        """Both feedbacks in a word, or the proposer's as the command line takes it."""
        if self.proposer == self.reselection:
            return self.proposer
        if self.reselection == "full":
            return f"proposer={self.proposer}"
        return f"proposer={self.proposer}, re-selection={self.reselection}"


def arms_of(run: RunResult) -> dict[str, Arm]:
    """The arms of a run by name, in order."""
    agents = run.manifest.get("config", {}).get("agents", [])
    return {str(agent["arm"]): _arm(agent) for agent in agents}


def model_arms(run: RunResult) -> tuple[Arm, ...]:
    """The arms that have a prompt, in order."""
    return tuple(arm for arm in arms_of(run).values() if arm.prompt)


def _arm(agent: Mapping[str, Any]) -> Arm:
    name, source = str(agent["arm"]), str(agent.get("source"))
    options = agent.get("options")
    options = dict(options) if isinstance(options, Mapping) else {}
    # Arms that were made in Python tell of no option; their names are by the same convention.
    last = name.removesuffix(GUIDED).rpartition("/")[2] if "/" in name else ""
    prompt = _named(options.pop("prompt", last), "name")
    model = _named(options.get("model", ""), "model")
    is_guided = bool(options.get("guided")) or name.endswith(GUIDED)
    base = name.removesuffix(GUIDED)
    if prompt:
        base = base.removesuffix(f"/{prompt}")
    return Arm(
        name=name,
        model=base or name,
        prompt=prompt,
        is_guided=is_guided,
        is_plain=source.rpartition(":")[2] == PLAIN_PROPOSER,
        words=(model, base),
        group=json.dumps([source, base, options], sort_keys=True, default=str),
    )


def _named(value: object, key: str) -> str:
    """A name from an option that is a name, a path, or a mapping with the name in it."""
    if isinstance(value, Mapping):
        value = value.get(key, "")
    if not isinstance(value, str):
        return ""
    return PurePath(value).stem if key == "name" and value.endswith((".yaml", ".yml")) else value


def prompt_pairs(arms: Iterable[Arm]) -> tuple[tuple[Arm, Arm], ...]:
    """Arms that differ in their prompt only: each against the baseline of its group.

    The baseline is the prompt `thin`, or else the first one of the group.

    Args:
        arms: In the order of the run.

    Returns:
        Pairs (arm, baseline); this is the declared family of prompt effects.
    """
    groups: dict[str, list[Arm]] = {}
    for arm in arms:
        if arm.prompt:
            groups.setdefault(arm.group, []).append(arm)
    pairs = []
    for group in groups.values():
        base = next((arm for arm in group if arm.prompt == BASELINE), group[0])
        pairs += [(arm, base) for arm in group if arm.prompt != base.prompt]
    return tuple(pairs)


def setting_runs(runs: Mapping[str, RunResult]) -> tuple[SettingRun, ...]:
    """The settings of the runs of a grid, in order."""
    return tuple(
        SettingRun(
            name,
            run,
            run.protocol.feedback_proposer,
            run.protocol.feedback_reselection,
            run.identifiers,
        )
        for name, run in runs.items()
    )


def find(
    settings: Iterable[SettingRun],
    proposer: str = "full",
    reselection: str | None = None,
    identifiers: str = "named",
) -> SettingRun | None:
    """The first setting with these feedbacks and identifiers; None where there is none.

    Args:
        settings: Of a grid.
        proposer: Feedback of the proposer.
        reselection: Feedback of re-selection; None for that of the proposer.
        identifiers: Mode of the identifiers.
    """
    wanted = (proposer, reselection or proposer, identifiers)
    return next((s for s in settings if (s.proposer, s.reselection, s.identifiers) == wanted), None)


def primary(settings: tuple[SettingRun, ...]) -> SettingRun:
    """The setting that answers for the arms: full feedback, named; else the first.

    Args:
        settings: At least one.
    """
    return find(settings) or settings[0]

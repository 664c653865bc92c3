"""Figures published of language models, and the arms that they may stand beside.

Read from `cads_configs/published-llm.yaml`. A comparison, never an expectation: registry and words
of the prompts are others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any, Final, Literal

from cads_env.protocol import FEEDBACK_MODES, Protocol, load_protocol
from cads_env.report.llm.arms import FLOORS, Arm
from cads_env.report.wording import interval, signed
from cads_env.values import load_yaml

Effects = Literal["prompt_effects", "natural_effects", "fixed_effects"]

PROMPTS: Final = ("informed", "thin")
"""The published prompts, the first minus the second."""


@cache
def _figures() -> Mapping[str, Any]:
    path = resources.files("cads_configs") / "published-llm.yaml"
    found: Mapping[str, Any] = load_yaml(path.read_text("utf-8"))
    return found


def published_model(arm: Arm) -> str:
    """The published name of an arm's model; empty where it has none or its answers are guided.

    Args:
        arm: Of a run; a variant of the plain proposer has no published figure.
    """
    if arm.name in FLOORS and not arm.prompt:
        return arm.name
    if arm.is_guided or not arm.is_plain:
        return ""
    known = {name: [_plain(word) for word in words] for name, words in _figures()["models"].items()}
    texts = [_plain(text) for text in arm.words]
    return next(
        (name for name, words in known.items() if any(w in t for w in words for t in texts)), ""
    )


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def preset_of(protocol: Protocol) -> str:
    """The published preset that a protocol is but for its feedback: its name, or nothing."""
    return _preset_hashes().get(protocol.hash, "")


@cache
def _preset_hashes() -> Mapping[str, str]:
    presets = {name: load_protocol(name) for name in ("proposer", "matched-quota")}
    return {
        preset.override(feedback=mode).hash: name
        for name, preset in presets.items()
        for mode in FEEDBACK_MODES
    }


def published_row(
    protocol: Protocol, arm: Arm, *, feedback: str, identifiers: str
) -> Mapping[str, float]:
    """The figures printed for an arm, by name; empty where none is.

    Args:
        protocol: Of the run.
        arm: One of its arms.
        feedback: Of the setting.
        identifiers: Of the setting.
    """
    preset, model = preset_of(protocol), published_model(arm)
    if not preset or not model or identifiers != "named":
        return {}
    rows: Iterable[Mapping[str, Any]] = _figures()[preset.replace("-", "_")]
    wanted = (model, arm.prompt, feedback)
    for row in rows:
        if (row["model"], row["prompt"], row.get("feedback", "full")) == wanted:
            return {k: float(v) for k, v in row.items() if isinstance(v, (int, float))}
    return {}


def published_effect(kind: Effects, arm: Arm, base: Arm) -> str:
    """The printed effect of one prompt over another with its interval; empty where none is.

    Args:
        kind: Under `proposer` on seeds 0-19 or 20-69 ("natural"), or under `matched-quota`.
        arm: With the prompt.
        base: With the other prompt of the same model.
    """
    model = published_model(arm)
    found = _figures()[kind].get(model)
    if found is None or (arm.prompt, base.prompt) != PROMPTS:
        return ""
    mean, low, high = found
    return f"{signed(mean)} {interval(low, high)}"


def figure(row: Mapping[str, float], name: str) -> float:
    """A printed figure; NaN where it is not printed."""
    return row.get(name, math.nan)

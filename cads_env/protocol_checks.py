"""What a protocol's fields may be: types, ranges and choices, checked all at once.

Works on plain values by name. Never decides what is spent: that is the schedule's work.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterator, Mapping
from typing import Any


def problems_of(fields: Mapping[str, Any]) -> list[str]:
    """Everything that is wrong with a protocol's fields, one sentence each; empty when valid.

    Args:
        fields: All fields of `cads_env.protocol.Protocol` by name; `certificate` as a mapping.
    """
    return [*_count_problems(fields), *_number_problems(fields), *_choice_problems(fields)]


def _count_problems(p: Mapping[str, Any]) -> Iterator[str]:
    counts: dict[str, tuple[object, int, int]] = {
        "rounds": (p["rounds"], 1, 100_000),
        "first_fresh": (p["first_fresh"], 1, 10_000_000),
        "fresh": (p["fresh"], 0, 10_000_000),
        "reread_candidates": (p["reread_candidates"], 0, 10_000_000),
        "reads_each": (p["reads_each"], 1, 10_000),
        "attempts": (p["attempts"], 1, 1_000),
        "audit_controls": (p["audit_controls"], 0, 1_000_000),
    }
    for name, quota in (("quota", p["quota"]), ("first_quota", p["first_quota"])):
        if quota is not None:
            counts[name] = (quota, 0, 10_000_000)
    for name, (value, low, high) in counts.items():
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            shown = reprlib.repr(value)
            yield f"{name} is {shown}; expected a whole number from {low} to {high:,}."


def _number_problems(p: Mapping[str, Any]) -> Iterator[str]:
    positive, level = (0.0, math.inf), (0.0, 1.0)
    ranges: dict[str, tuple[object, tuple[float, float], bool]] = {
        "noise_sd": (p["noise_sd"], positive, False),
        "epsilon": (p["epsilon"], level, True),
        "rank_epsilon_bar": (p["rank_epsilon_bar"], level, True),
        "rank_theta": (p["rank_theta"], positive, False),
        "rank_s": (p["rank_s"], positive, False),
        "rank_q": (p["rank_q"], level, False),
        "high_above": (p["high_above"], (-math.inf, math.inf), False),
        "certificate epsilon_bar": (p["certificate"]["epsilon_bar"], level, True),
        "certificate theta": (p["certificate"]["theta"], positive, False),
        "certificate s": (p["certificate"]["s"], positive, False),
        "certificate q": (p["certificate"]["q"], level, False),
    }
    if p["reread_fraction"] is not None:
        ranges["reread_fraction"] = (p["reread_fraction"], level, True)
    if p["audit_epsilon"] is not None:
        ranges["audit_epsilon"] = (p["audit_epsilon"], level, True)
    for name, (value, (low, high), closed) in ranges.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not _inside(value, low, high, closed):
            brackets = "[]" if closed else "()"
            yield (
                f"{name} is {reprlib.repr(value)}; expected a number in "
                f"{brackets[0]}{low:g}, {high:g}{brackets[1]}."
            )


def _inside(value: Any, low: float, high: float, closed: bool) -> bool:
    try:
        if not math.isfinite(value):
            return False
    except OverflowError:  # a whole number beyond every float
        return False
    return bool(low <= value <= high if closed else low < value < high)


def _choice_problems(p: Mapping[str, Any]) -> Iterator[str]:
    feedback = ("full", "none", "permuted")
    choices: dict[str, tuple[object, tuple[object, ...]]] = {
        "on_exhausted": (p["on_exhausted"], ("reread", "stop")),
        "rank_by": (p["rank_by"], ("mean", "log_evidence")),
        "graduation": (p["graduation"], (True, False)),
        "feedback_proposer": (p["feedback_proposer"], feedback),
        "feedback_reselection": (p["feedback_reselection"], feedback),
        "fallback_priority": (p["fallback_priority"], ("campaign", "round")),
        "audit_timing": (p["audit_timing"], ("interleaved", "front")),
    }
    for name, (value, allowed) in choices.items():
        if not any(value is option or value == option for option in allowed) or (
            name == "graduation" and not isinstance(value, bool)
        ):
            yield f"{name} is {value!r}; expected one of {', '.join(map(str, allowed))}."
    for name, option in p["law_options"].items():
        plain = option is None or isinstance(option, (str, bool, int, float))
        if not isinstance(name, str) or not plain or not _is_json(option):
            yield f"law_options {name!r} is {reprlib.repr(option)}; expected a number or a text."
    for name, text in (("name", p["name"]), ("law", p["law"])):
        if not isinstance(text, str) or not text.strip():
            yield f"{name} is {text!r}; expected a non-empty text."
    if p["reread_fraction"] is not None and p["reread_candidates"]:
        yield "reread_fraction and reread_candidates are both set; expected one of them."


def _is_json(value: Any) -> bool:
    return not isinstance(value, (int, float)) or _inside(value, -math.inf, math.inf, False)

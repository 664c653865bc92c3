"""The answers of a grid in words: a line a question, for a page's first screen and a terminal.

Words for what `found` holds; computes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from cads_env.inference import Estimate
from cads_env.report.answers import WORDS
from cads_env.report.llm.arms import model_arms
from cads_env.report.llm.delivery import failed_words, spent_words
from cads_env.report.llm.factors import PromptEffect
from cads_env.report.llm.feedback import nothing_in_reach
from cads_env.report.llm.found import Found
from cads_env.report.llm.grids import false_words
from cads_env.report.llm.probes import DETECTORS, Probe
from cads_env.report.llm.tables import found_at, leak_words, with_ends
from cads_env.report.verdict import verdicts
from cads_env.report.wording import UNDEFINED, listed, number, visible
from cads_env.run.result import NO_SLOT, RunResult


def findings(found: Found) -> tuple[tuple[str, str], ...]:
    """A line a question: what the first screen of the page says below its table.

    Args:
        found: From `find_all`.
    """
    run = found.base.run
    lines = [
        ("Adds to its loop", _net_words(run)),
        ("Gate", _gate_words(found)),
        ("Own feedback", _split_words(found)),
    ]
    if found.effects:
        lines.append(("Prompts", "; ".join(_effect_words(e) for e in found.effects) + "."))
    lines += [
        ("Identifiers", _probe_words(found)),
        ("Detectable", _detectable_words([arm.net for arm in run.arms.values()])),
        ("False", false_words(run)),
        ("Failed campaigns", failed_words(found.settings)),
        ("Spent", spent_words(found.total)),
    ]
    return tuple(lines)


def _net_words(run: RunResult) -> str:
    """The answer of every arm: told from its twin over all arms, or too small to matter."""
    told: dict[str, list[str]] = {}
    for verdict in verdicts(run):
        why = f" ({verdict.untold})" if verdict.untold else ""
        word = f"{WORDS[verdict.answer]}{why}"
        told.setdefault(word, []).append(visible(verdict.arm.arm))
    return " ".join(f"{word}: {listed(names)}." for word, names in told.items())


def _gate_words(found: Found) -> str:
    if not found.gates:
        return "Not known: it needs full feedback, none and permuted."
    twin, *arms = found.gates
    if nothing_in_reach(found.base.run):
        return f"Cannot tell: {NO_SLOT}."
    if twin.passes is None:
        needs = "full feedback, none and permuted, some campaigns of each that are not all alike"
        return f"Not known: it needs {needs}."
    names = [visible(gate.arm) for gate in arms if gate.passes]
    untold = [visible(gate.arm) for gate in arms if gate.passes is None]
    said = f"Passed by {listed(names)}" if names else "Passed by no arm"
    if untold:
        said += f", not known of {listed(untold)}"
    alone = "passes too, so passing says nothing of a proposer" if twin.passes else "does not pass"
    return f"{said}; the loop without a proposer {alone}."


def _split_words(found: Found) -> str:
    parts = []
    asking = {arm.name for arm in model_arms(found.base.run)}
    for split in found.splits:
        if asking and split.arm not in asking:
            continue
        parts.append(f"{visible(split.arm)} {with_ends(split.contrast.estimate)}")
    if not parts:
        return "Not known: it needs the proposer's feedback permuted and re-selection's full."
    return f"Certified hits with it minus without: {listed(parts)}."


def _effect_words(effect: PromptEffect) -> str:
    estimate = effect.contrast.estimate
    if not estimate.n:
        return f"{visible(effect.contrast.name, 160)}: no campaign that both scored"
    return f"{visible(effect.contrast.name, 160)} {with_ends(estimate)}, {effect.contrast.verdict}"


def _probe_words(found: Found) -> str:
    by_arm: dict[str, list[Probe]] = {}
    for probe in found.probes:
        if probe.mode in DETECTORS:
            by_arm.setdefault(probe.arm, []).append(probe)
    detectors = [probe for own in by_arm.values() for probe in own]
    odd = [arm for arm, own in by_arm.items() if any(p.is_clean is False for p in own)]
    unknown = [probe for probe in detectors if probe.is_clean is None]
    words = "No leak detector was played."
    if odd:
        words = "; ".join(f"{visible(arm)}: {leak_words(by_arm[arm])}" for arm in odd) + "."
    elif unknown:
        reasons = dict.fromkeys(p.untold for p in unknown)
        rest = "" if len(unknown) == len(detectors) else " of some arms, of the others no leak seen"
        words = f"Not known{rest}: {'; '.join(reasons)}."
    elif detectors:
        words = "Every leak detector's interval covers 0."
    asking = {arm.name for arm in model_arms(found.base.run)}
    for value in found.values:
        estimate = value.contrast.estimate
        if value.arm in asking and estimate.n:
            said = with_ends(estimate)
            words += f" {visible(value.arm)}, named - {value.mode}: {said}."
    return words


def _detectable_words(nets: Sequence[Estimate]) -> str:
    known = [(found_at(net), net.n) for net in nets if found_at(net) != UNDEFINED]
    if not known:
        return "Not known: no arm has two campaigns that differ."
    values = sorted({float(text.replace(",", "")) for text, _ in known})
    low, high = number(values[0]), number(values[-1])
    spread = low if low == high else f"{low} to {high}"
    return f"A true net of {spread}, by arm, is found with 80 % power at this n; smaller ones less."

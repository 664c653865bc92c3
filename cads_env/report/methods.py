"""The methods paragraph: what was run and how it was judged, fit to paste into a paper.

Made from the manifest, the protocol and the certificate. Holds no result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cads_env.certificate import AuditCap, Certificate
from cads_env.protocol import Protocol
from cads_env.report.badge import badge_sentence
from cads_env.report.wording import counted, listed, number, plain, ranges, spread, visible
from cads_env.run.result import RunResult

NAMES_SPELLED: Final = 4
"""Registries that the paragraph names with size, hits and hash; of more it gives ranges."""


ARMS_SPELLED: Final = 8
"""Agents whose campaigns the paragraph counts one by one where they differ."""


def methods_paragraph(result: RunResult) -> str:
    """The paragraph, in full sentences, for one agent, registry or seed as for many."""
    sentences = [
        _agents(result),
        *_protocol(result.protocol, str(result.manifest.get("protocol_hash", ""))),
        badge_sentence(result.protocol),
        _campaigns(result),
        _registries(result.manifest.get("registries", ()), result),
        _certificate(result.certificate, result.protocol),
        _estimand(),
        *_inference(result),
        _failures(result),
        _software(result.manifest.get("versions", {})),
    ]
    return " ".join(s for s in sentences if s)


def _agents(result: RunResult) -> str:
    arms = [visible(name, 60) for name in result.arms]
    noun = "agent" if len(arms) == 1 else "agents"
    version = result.manifest.get("versions", {}).get("cads-env")
    tool = f"cads-env {visible(str(version))}" if version else "cads-env"
    return (
        f"We evaluated {counted(len(arms), noun, noun)} ({listed(arms)}) with {tool} under the "
        f"protocol {visible(result.protocol.name, 160)}."
    )


def _protocol(p: Protocol, digest: str) -> tuple[str, ...]:
    first = f"A campaign has {counted(p.rounds, 'round')}"
    later = p.rounds > 1
    fresh = f"{counted(p.first_fresh, 'candidate')} {'is' if p.first_fresh == 1 else 'are'}"
    schedule = f"{first}; {fresh} read for the first time in the first"
    schedule += f" and {p.fresh:,} in each later one" if later else ""
    if later:
        schedule += f"; {_rereads(p)}"
    quota = ""
    if p.quota is not None or p.first_quota is not None:
        start = "all" if p.first_quota is None else f"{p.first_quota:,}"
        rest = "all" if p.quota is None else f"{p.quota:,}"
        quota = (
            f" Proposals fill at most {start} of the fresh slots in the first round and {rest} in "
            "each later one."
        )
    law = ", ".join(f"{visible(str(k))} = {_parameter(v)}" for k, v in p.law_options.items())
    channel = (
        f"A read is the effect plus normal noise of standard deviation {plain(p.noise_sd)}; "
        f"{plain(100 * p.epsilon)} % of reads are contaminated (law {visible(p.law)}"
        f"{f', {law}' if law else ''})."
    )
    if p.epsilon == 0:
        channel = (
            f"A read is the effect plus normal noise of standard deviation {plain(p.noise_sd)}, "
            "without contamination."
        )
    feedback = (
        f"Feedback is {p.feedback_proposer} to the proposer and {p.feedback_reselection} to "
        f"re-selection; a candidate reads high when its mean read exceeds {plain(p.high_above)}"
        f"{f' (protocol hash {visible(digest[:12])})' if digest else ''}."
    )
    return (f"{schedule}.{quota}", channel, feedback)


def _parameter(value: object) -> str:
    return plain(value) if isinstance(value, int | float) else visible(str(value))


def _rereads(p: Protocol) -> str:
    times = "once more" if p.reads_each == 1 else f"{p.reads_each:,} more times"
    if p.reread_fraction is not None:
        which = f"{plain(100 * p.reread_fraction)} % of the observed candidates are"
    elif p.reread_candidates == 0:
        return "no candidate is read again by the schedule"
    elif p.reread_candidates == 1:
        which = "the best observed candidate is"
    else:
        which = f"the {p.reread_candidates:,} best observed candidates are"
    order = "their mean read" if p.rank_by == "mean" else "their log evidence"
    rest = ", and those whose evidence suffices alone are read last" if p.graduation else ""
    return f"in each later round {which} read {times}, ranked by {order}{rest}"


def _campaigns(result: RunResult) -> str:
    config = result.manifest.get("config", {})
    seeds = config.get("seeds") or sorted({int(s) for s in result.campaigns["seed"]})
    played = _played(result, seeds)
    names = {
        "named": "",
        "shuffled": ", with the identifiers shuffled among the candidates anew for each seed",
        "blinded": ", with identifiers replaced by opaque codes and side tables dropped",
        "shuffled-within-prior": ", with the identifiers shuffled among about 50 "
        "neighbours by the public prior anew for each seed",
    }
    unplaced = "; a slot that the proposer left empty was filled by a seeded, label-free draw"
    return f"{played}{names.get(result.identifiers, '')}{unplaced}."


def _played(result: RunResult, planned: Sequence[int]) -> str:
    """How many campaigns every agent played, on which seeds, and how many of them were scored."""
    seeds: dict[str, list[int]] = {name: [] for name in result.arms}
    for arm, seed in zip(result.campaigns["arm"], result.campaigns["seed"], strict=True):
        seeds[str(arm)].append(int(seed))
    for failure in result.failures:
        seeds[failure.arm].append(failure.seed)
    arms = result.arms
    is_even = all(sorted(own) == sorted(planned) for own in seeds.values())
    if is_even and not result.failures:
        return f"Each agent played {counted(len(planned), 'campaign')}, {_seeds(planned)}"
    if len(arms) > ARMS_SPELLED:
        counts = [arm.n for arm in arms.values()]
        return (
            f"The agents have {spread(min(counts), max(counts))} scored campaigns each (counts in "
            "the table of means)"
        )
    if is_even:
        scored = listed([f"{arm.n:,} of {visible(name, 60)}" for name, arm in arms.items()])
        each = f"Each agent played {counted(len(planned), 'campaign')}, {_seeds(planned)}"
        return f"{each}, of which {scored} were scored"
    told = [
        f"{visible(name, 60)} played {counted(len(own), 'campaign')}"
        + (f", {_seeds(own)}" if own else "")
        + (f" ({arm.n:,} scored, {arm.failed:,} failed)" if arm.failed else "")
        for (name, own), arm in zip(seeds.items(), arms.values(), strict=True)
    ]
    return f"Agent {'; '.join(told)}"


def _seeds(seeds: Sequence[int]) -> str:
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {visible(ranges(seeds), 120)}"


def _registries(entries: Sequence[Mapping[str, Any]], result: RunResult) -> str:
    known = [e for e in entries if isinstance(e.get("m"), int)]
    # Relabelled registries have one entry a seed under one name.
    by_name = {str(e.get("name", "?")): e for e in known}
    if not by_name:
        return f"The registries come from {visible(result.panel, 160)}."
    if len(by_name) <= NAMES_SPELLED:
        spelled = [
            f"{visible(name, 60)} (m = {e['m']:,} candidates, {counted(e['hits'], 'hit')}, "
            f"hash {visible(str(e.get('hash', ''))[:12])})"
            for name, e in by_name.items()
        ]
        noun = "registry was" if len(spelled) == 1 else "registries were"
        return f"The {noun} {listed(spelled)}."
    sizes = [e["m"] for e in by_name.values()]
    hits = [e["hits"] for e in by_name.values()]
    return (
        f"The {len(by_name):,} registries of {visible(result.panel, 160)} have m = "
        f"{spread(min(sizes), max(sizes))} candidates and {spread(min(hits), max(hits))} hits each "
        "(names and hashes in the table of registries)."
    )


def _audited(c: Certificate, audit: AuditCap, p: Protocol) -> str:
    when = (
        "all read before the first round"
        if p.audit_timing == "front"
        else "split over the rounds and revealed at the end of each"
    )
    told = [f"tau = {plain(audit.tau)}", f"Delta = {plain(audit.Delta)}"]
    told += [f"rho = {plain(audit.rho)}", f"delta = {plain(audit.delta)}"]
    share = ""
    if p.audit_epsilon is not None:
        share = f", {plain(100 * p.audit_epsilon)} % of them contaminated"
    looks = "each control" if audit.looks == "per_read" else "each batch of controls"
    false_alarms = f", clean flag rate at least {plain(audit.alpha_lo)}" if audit.alpha_lo else ""
    return (
        "Discoveries were declared by e-BH over the complete registry at level "
        f"q - delta = {plain(c.level)} (FDR level q = {plain(c.q)}) from products of likelihood "
        "ratios of the reads, capped in each round by the bound of contamination from the controls "
        f"revealed before it: {counted(p.audit_controls, 'blinded control')} a campaign{share}, "
        f"{when}, on top of the test reads ({', '.join(told)}{false_alarms}; Krichevsky-Trofimov "
        f"bound, running minimum over {looks}), with working alternative theta = {plain(c.theta)} "
        f"and noise s = {plain(c.s)}."
    )


def _certificate(c: Certificate, p: Protocol) -> str:
    if c.audit is not None:
        return _audited(c, c.audit, p)
    cap = "without a cap" if math.isinf(c.cap) else f"capped at C* = {number(c.cap)}"
    return (
        "Discoveries were declared by e-BH over the complete registry at FDR level "
        f"q = {plain(c.q)} from products of likelihood ratios of the reads, {cap}, with "
        f"declared contamination epsilon_bar = {plain(c.epsilon_bar)}, working alternative "
        f"theta = {plain(c.theta)} and noise s = {plain(c.s)}."
    )


def _estimand() -> str:
    return (
        "The estimand is the paired net: the certified hits of an agent's campaign minus those of "
        "its twin, the same loop with the proposer removed, on the same registry, seed and noise; "
        "above 0 the proposer adds to the loop."
    )


def _inference(result: RunResult) -> tuple[str, ...]:
    arms = list(result.arms.values())
    methods = sorted({arm.net.method for arm in arms if arm.n})
    clusters = any(arm.net.registries > 1 for arm in arms)
    unit = "registries" if clusters else "campaigns"
    reach = ""
    if result.campaigns["registry"].nunique() == 1:
        reach = "; with one registry, they hold for this registry alone"
    intervals = (
        f"Intervals have 95 % coverage ({listed(methods) or 'paired t'}), with {unit} as units"
        f"{reach}."
    )
    if len(arms) == 1:
        family = "The one contrast, of the agent with its twin, was not adjusted."
    else:
        family = (
            f"The {len(arms)} contrasts, of each agent with its twin, form one family: p-values "
            "are given raw and adjusted by Holm's method, intervals are not adjusted, and "
            "contrasts between agents were not tested."
        )
    return (
        intervals,
        family,
        "The e-value that an agent wins more campaigns than it loses is a mixture of betting "
        "martingales over the seeds.",
    )


def _failures(result: RunResult) -> str:
    failed = len(result.failures)
    if result.status != "complete":
        scored = counted(len(result.campaigns), "campaign")
        return f"The run is not complete: {scored} of {result.planned:,} scored, {failed:,} failed."
    if not failed:
        return "No campaign failed."
    verb = "was" if failed == 1 else "were"
    return f"{counted(failed, 'campaign')} failed and {verb} left out."


def _software(versions: Mapping[str, Any]) -> str:
    others = [f"{visible(k)} {visible(str(v))}" for k, v in versions.items() if k != "cads-env"]
    return f"Software: {listed(others)}." if others else ""

"""The commands that repeat a run: what the manifest holds, as words of `cads run`.

Copies and quotes; where a command line cannot say something, a file or a sentence says it. Never
leaves out a registry, seed or option in silence.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from cads_env.certificate import Certificate
from cads_env.errors import ProtocolError
from cads_env.protocol import load_protocol
from cads_env.report.content import Block, Code, Listing, Paragraph
from cads_env.report.repeat_agents import agent_words
from cads_env.report.repeat_panel import PANEL_FILE, panel_words
from cads_env.report.wording import counted, listed, ranges, visible
from cads_env.run.result import RunResult

LONGEST: Final = 30_000
"""Characters of the longest command that a shell is sure to take."""

PROTOCOL_FILE: Final = "protocol.yaml"


class Repeat(NamedTuple):
    """How a run is repeated.

    Attributes:
        whole: Words of the command that plays all that was planned.
        parts: Words of commands that play what is there of a run that is not complete, one for each
            set of seeds; empty for a complete run.
        files: Text of each file that the commands name, by its name.
        notes: What no command says.
    """

    whole: tuple[str, ...]
    parts: tuple[tuple[str, ...], ...]
    files: Mapping[str, str]
    notes: tuple[str, ...]


def repeat(result: RunResult) -> Repeat:
    """The commands that repeat a run."""
    config = result.manifest.get("config", {})
    panel = panel_words(result.manifest.get("registries", []), config, result.panel)
    protocol, files = _protocol_words(result)
    agents = agent_words(config.get("agents", []))
    head = ("cads", "run", *panel.words, *protocol)
    rules, rule_notes = _rules(result, config)

    def words(arms: Sequence[str], seeds: Sequence[int]) -> tuple[str, ...]:
        own = [word for arm in arms for word in ("--agent", agents.words[arm])]
        return (*head, "--seeds", ranges(seeds), *own, *rules)

    arms = list(agents.words)
    whole = words(arms, config.get("seeds", []))
    parts = tuple(words(own, seeds) for seeds, own in _groups(result, arms))
    files |= agents.files
    if panel.file:
        files = {PANEL_FILE: panel.file, **files}
    return Repeat(whole, parts, files, (*panel.notes, *agents.notes, *rule_notes))


def command(words: Sequence[str]) -> str:
    """Words as one line, quoted for a shell."""
    return " ".join(shlex.quote(visible(word, LONGEST + 1)) for word in words)


def repeat_blocks(result: RunResult) -> tuple[Block, ...]:
    """The commands with what has to be known of them."""
    found = repeat(result)
    blocks: list[Block] = [
        Paragraph(
            "To repeat the run (files stand here without their folders, and secret salts not at "
            "all):"
        ),
        *_typed(found.whole),
    ]
    if found.parts:
        there = len(result.campaigns) + len(result.failures)
        several = len(found.parts) > 1
        text = (
            f"That plays all {counted(result.planned, 'campaign')} that were planned; with --out "
            f"and this run's folder, those that are missing. What is there, {there:,}, is played "
            + ("by no single command, since the arms differ in their seeds:" if several else "by:")
        )
        blocks.append(Paragraph(text))
        blocks += [block for words in found.parts for block in _typed(words)]
    for name, text in found.files.items():
        blocks += _held(name, text)
    if found.notes:
        blocks.append(Listing(found.notes))
    return tuple(blocks)


def language_of(name: str) -> str:
    """The language of a file's text by its ending; empty where it is not YAML."""
    return "yaml" if name.endswith((".yaml", ".yml")) else ""


def _held(name: str, text: str) -> list[Block]:
    if len(text) <= LONGEST or name in (PANEL_FILE, PROTOCOL_FILE):
        return [Paragraph(f"{name} holds:"), Code(text, language=language_of(name))]
    return [
        Paragraph(
            f"{name} has {len(text):,} characters, too many to show: agent, arm and options as "
            "under config.agents in manifest.json."
        )
    ]


def _typed(words: Sequence[str]) -> list[Block]:
    text = command(words)
    if len(text) <= LONGEST:
        return [Code(text)]
    return [
        Paragraph(
            f"The command would have {len(text):,} characters, too many to type: its words follow "
            "from config and registries in manifest.json."
        )
    ]


def _groups(result: RunResult, arms: Sequence[str]) -> list[tuple[tuple[int, ...], list[str]]]:
    """Arms of a run that is not complete, by the seeds that they have played."""
    seeds: dict[str, set[int]] = {arm: set() for arm in arms}
    for arm, seed in zip(result.campaigns["arm"], result.campaigns["seed"], strict=True):
        seeds[str(arm)].add(int(seed))
    for failure in result.failures:
        seeds[failure.arm].add(failure.seed)
    planned = set(result.manifest.get("config", {}).get("seeds", []))
    if all(own == planned for own in seeds.values()):
        return []
    groups: dict[tuple[int, ...], list[str]] = {}
    for arm, own in seeds.items():
        if own:
            groups.setdefault(tuple(sorted(own)), []).append(arm)
    return list(groups.items())


def _protocol_words(result: RunResult) -> tuple[tuple[str, ...], dict[str, str]]:
    """The protocol by its name, where that is enough, else as a file of its own."""
    name = result.protocol.name
    try:
        is_known = load_protocol(name).hash == result.protocol.hash
    except ProtocolError:
        is_known = False
    if is_known:
        return ("--protocol", name), {}
    return ("--protocol", PROTOCOL_FILE), {PROTOCOL_FILE: result.protocol.to_yaml()}


def _audit_word(certificate: Certificate) -> str:
    """The audit as the option takes it."""
    fields = certificate.to_dict()["audit"]
    return ",".join(f"{name}={value}" for name, value in fields.items())


def _rules(result: RunResult, config: Mapping[str, Any]) -> tuple[tuple[str, ...], list[str]]:
    """Certificate, identifiers and reads, as far as they differ from what a command does alone."""
    words: list[str] = []
    notes: list[str] = []
    others = []
    for field, usual in result.protocol.certificate._asdict().items():
        value = getattr(result.certificate, field)
        if value == usual:
            continue
        if field in ("q", "epsilon_bar"):
            words += [f"--{field.replace('_', '-')}", repr(value)]
        else:
            others.append(f"{field} = {value!r}")
    if others:
        notes.append(
            f"The certificate had {listed(others)}, which only Python sets: "
            "evaluate(certificate=...)."
        )
    if result.certificate.audit is not None:
        words += ["--audit", _audit_word(result.certificate)]
    if result.identifiers != "named":
        words += ["--identifiers", result.identifiers]
    if config.get("keep_reads"):
        words.append("--keep-reads")
    if result.manifest.get("traces"):
        notes.append(
            "That asks the model again, which may answer otherwise; `cads replay` with this run's "
            "folder repeats it from what was answered."
        )
    return tuple(words), notes

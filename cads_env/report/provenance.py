"""Where a report's numbers come from: versions, hashes, and the command that repeats the run.

Copies what the manifest holds; what it does not hold is "not recorded".
"""

from __future__ import annotations

import importlib.metadata
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cads_env.errors import ProtocolError, RecordError
from cads_env.protocol import load_protocol
from cads_env.report.content import Code, Paragraph, Section, Table, Terms
from cads_env.report.wording import UNDEFINED, ranges, visible
from cads_env.run.agents import ENTRY_POINT_GROUP
from cads_env.run.result import RunResult
from cads_env.sources import SOURCES

NOT_RECORDED: Final = "not recorded"
_LONGEST: Final = 2_000
"""Characters of the longest command that a report spells out."""


def check_manifest(manifest: Mapping[str, Any]) -> None:
    """Raise unless the parts of a manifest that a report copies are of their kinds.

    Raises:
        RecordError: Names the first part that is not.
    """
    config = manifest.get("config")
    agents = config.get("agents") if isinstance(config, Mapping) else None
    seeds = config.get("seeds") if isinstance(config, Mapping) else None
    kinds = {
        "config": isinstance(config, Mapping),
        "config.agents": _are_mappings(agents),
        "config.agents.options": _are_mappings(agents)
        and all(isinstance(a.get("options", {}), Mapping) for a in agents or ()),
        "config.seeds": isinstance(seeds, list) and all(isinstance(s, int) for s in seeds),
        "registries": _are_registries(manifest.get("registries", [])),
        "versions": isinstance(manifest.get("versions", {}), Mapping),
        "files": isinstance(manifest.get("files", {}), Mapping),
    }
    wrong = [name for name, is_right in kinds.items() if not is_right]
    if wrong:
        msg = (
            f"The manifest's {wrong[0]} is not what a run writes. The file was changed after it "
            "was written: put back a copy, or run again."
        )
        raise RecordError(msg)


def _are_mappings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value)


def _are_registries(value: object) -> bool:
    """Whether a value is a list of registries with their size, hits and side tables."""
    if not isinstance(value, list) or not _are_mappings(value):
        return False
    return all(
        all(isinstance(entry.get(name), int) for name in ("m", "hits", "contrary_hits"))
        and isinstance(entry.get("side_tables", {}), Mapping)
        for entry in value
    )


def provenance_section(result: RunResult) -> Section:
    """Versions, hashes, files and the command."""
    manifest = result.manifest
    git = manifest.get("git")
    source = NOT_RECORDED
    if isinstance(git, Mapping):
        state = "with uncommitted changes" if git.get("dirty") else "without uncommitted changes"
        source = f"{visible(str(git.get('commit')))}, {state}"
    versions = manifest.get("versions", {})
    entries = [
        ("status", visible(str(manifest.get("status", NOT_RECORDED)))),
        ("schema version", visible(str(manifest.get("schema_version", NOT_RECORDED)))),
        ("protocol hash", visible(str(manifest.get("protocol_hash", NOT_RECORDED)), 100)),
        ("source, git commit", source),
        *((f"version of {visible(k)}", visible(str(v))) for k, v in versions.items()),
    ]
    agents = Table(
        caption="Agents",
        columns=("arm", "source", "options", "SHA-256 of its code"),
        rows=tuple(
            (
                visible(str(a.get("arm"))),
                visible(str(a.get("source"))),
                visible(", ".join(f"{k} = {v}" for k, v in a.get("options", {}).items()), 200)
                or "none",
                visible(str(a.get("code_sha256") or UNDEFINED)),
            )
            for a in _agents(manifest)
        ),
        words=(1, 2, 3),
        folded=len(_agents(manifest)) > 12,
    )
    files = Table(
        caption="Files of the run",
        columns=("file", "SHA-256"),
        rows=tuple(
            (visible(str(k)), visible(str(v), 100)) for k, v in manifest.get("files", {}).items()
        ),
        words=(1,),
    )
    return Section(
        key="provenance",
        title="Provenance",
        blocks=(
            Terms(tuple(entries)),
            agents,
            files,
            Paragraph(
                "To repeat the run (files stand here without their folders, and secret salts "
                "not at all):"
            ),
            Code(command(result)),
        ),
    )


def _agents(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(manifest.get("config", {}).get("agents", []))


def command(result: RunResult) -> str:
    """The `cads run` line with the manifest's settings, quoted for a shell.

    Where a name alone does not say it, the line holds what the manifest has, such as the file or
    module of an agent.
    """
    config = result.manifest.get("config", {})
    words = ["cads", "run", *_panel_words(result, config)]
    words += _protocol_words(result)
    words += ["--seeds", ranges(config.get("seeds", []))]
    for agent in config.get("agents", []):
        words += ["--agent", _agent_word(agent)]
    for field in ("q", "epsilon_bar"):
        value = getattr(result.certificate, field)
        if value != getattr(result.protocol.certificate, field):
            words += [f"--{field.replace('_', '-')}", repr(value)]
    if result.identifiers != "named":
        words += ["--identifiers", result.identifiers]
    if config.get("keep_reads"):
        words.append("--keep-reads")
    text = " ".join(shlex.quote(visible(word, 500)) for word in words)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."


def _panel_words(result: RunResult, config: Mapping[str, Any]) -> list[str]:
    names = [str(n) for n in config.get("registries", [])]
    file_words = _file_words(result.manifest.get("registries", []), names)
    if file_words:
        return file_words
    # A split has a colon; other panels are the list of their registries.
    if ":" in result.panel and ", " not in result.panel:
        return ["--panel", result.panel]
    return [word for name in names or [result.panel] for word in ("--registry", name)]


def _file_words(entries: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """The registries of one file as a source with its options; empty where that is not known."""
    sources = {str(entry.get("source")) for entry in entries}
    info = SOURCES.get(min(sources, default=""))
    if len(sources) != 1 or info is None or info.has_instances or not info.needs_path:
        return []
    if {str(entry.get("name")) for entry in entries} != set(names):
        return []
    options = [dict(entry.get("options") or {}) for entry in entries]
    members = [own.pop(info.member, None) for own in options] if info.member else [None]
    if any(own != options[0] for own in options) or (len(entries) > 1 and None in members):
        return []
    shared = options[0]
    if info.member and members[0] is not None:
        several = len(members) > 1
        shared[f"{info.member}s" if several else info.member] = members if several else members[0]
    first = shared.pop("path", "FILE") if info.name == "table" else info.name
    pairs = [f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in shared.items()]
    return ["--registry", str(first), *(word for pair in pairs for word in ("-O", pair))]


def _protocol_words(result: RunResult) -> list[str]:
    """The protocol by its name, where that is enough, else as a file of its own."""
    name = result.protocol.name
    try:
        is_known = load_protocol(name).hash == result.protocol.hash
    except ProtocolError:
        is_known = False
    return ["--protocol", name if is_known else f"{name.partition('+')[0]}.yaml"]


def _agent_word(agent: Mapping[str, Any]) -> str:
    source = str(agent.get("source"))
    points = importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)
    name = next((p.name for p in points if p.value == source), source)
    options = agent.get("options") or {}
    listed = ",".join(f"{k}={v}" for k, v in options.items())
    return f"{name}:{listed}" if listed else name

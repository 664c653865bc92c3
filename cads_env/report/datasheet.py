"""A short datasheet of the registries used and of the run, as Markdown.

Says only what the manifest and the catalogue of sources know; the rest is "not recorded".
Source: the questions follow Gebru et al., Datasheets for Datasets (2021).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cads_env.report.content import Block, Listing, Paragraph, Section, Table, capped
from cads_env.report.provenance import NOT_RECORDED
from cads_env.report.wording import counted, listed, spread, visible
from cads_env.run.result import RunResult
from cads_env.sources import SOURCES, SourceInfo

REGISTRIES_LISTED: Final = 100


def datasheet_sections(result: RunResult) -> tuple[Section, ...]:
    """The sections of the datasheet."""
    entries = list(result.manifest.get("registries", ()))
    sources = _sources(entries)
    return (
        Section(key="motivation", title="Motivation", blocks=_motivation(result)),
        Section(key="composition", title="Composition", blocks=_composition(entries)),
        Section(key="collection", title="Collection and source", blocks=_collection(sources)),
        Section(key="preprocessing", title="Preprocessing", blocks=_preprocessing(result, entries)),
        Section(key="uses", title="Uses and limits", blocks=_uses(result, entries)),
        Section(key="distribution", title="Distribution", blocks=_distribution(result)),
        Section(key="maintenance", title="Maintenance", blocks=_maintenance(result)),
    )


def _motivation(result: RunResult) -> tuple[Block, ...]:
    return (
        Paragraph(
            "The registries are used to measure what a proposer adds to a discovery loop: "
            f"{counted(len(result.arms), 'arm')} played "
            f"{counted(len(result.campaigns) + len(result.failures), 'campaign')} "
            f"under {visible(result.protocol.name, 160)}. Who made the registries, for what "
            f"purpose and with whose funds: {NOT_RECORDED}, except that those named synthetic-... "
            "are made by cads-env to test its plumbing and calibration."
        ),
    )


def _composition(entries: list[Mapping[str, Any]]) -> tuple[Block, ...]:
    names = {str(e.get("name", "?")): e for e in entries}
    rows = [
        (
            visible(name),
            _count(e.get("m")),
            _count(e.get("hits")),
            _count(e.get("contrary_hits")),
            visible(", ".join(e.get("side_tables", {})), 120) or "none",
            visible(str(e.get("hash", NOT_RECORDED))[:16]),
        )
        for name, e in names.items()
    ]
    shown, note = capped(rows, REGISTRIES_LISTED, "manifest.json")
    table = Table(
        caption="Registries",
        columns=("registry", "m", "hits", "contrary hits", "side tables", "hash"),
        rows=shown,
        words=(4, 5),
        note=note or "contrary hits: hits by a declared label whose signal says null.",
    )
    described = {
        visible(str(e.get("description", "")), 1_000): name
        for name, e in reversed(names.items())
        if e.get("description")
    }
    words = [f"{visible(name)}: {text}" for text, name in reversed(described.items())]
    tables = {
        f"{visible(str(k))}: {visible(str(v), 400)}"
        for e in entries
        for k, v in e.get("side_tables", {}).items()
    }
    blocks: list[Block] = [
        Paragraph(
            f"{counted(len(names), 'registry', 'registries')}. Each is a fixed list of candidates "
            "with public identifiers and side tables, and a private oracle (the effects and "
            "labels), which only the channel and the scorer read."
        ),
        table,
    ]
    if words:
        blocks += [Paragraph("What a candidate and a hit are:"), Listing(tuple(words[:12]))]
    if tables:
        blocks += [Paragraph("Side tables:"), Listing(tuple(sorted(tables)[:12]))]
    return tuple(blocks)


def _count(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else NOT_RECORDED


def _sources(entries: list[Mapping[str, Any]]) -> dict[str, SourceInfo | None]:
    """The catalogue's entry behind each name, None for a table or a file of somebody's own."""
    found: dict[str, SourceInfo | None] = {}
    for entry in entries:
        base = str(entry.get("name", "?")).partition("/")[0].partition("+")[0]
        found.setdefault(base, SOURCES.get(str(entry.get("source", base))))
    return found


def _collection(sources: Mapping[str, SourceInfo | None]) -> tuple[Block, ...]:
    lines = [
        f"{visible(name)}: {info.summary}"
        if info is not None
        else f"{visible(name)}: a file of the user's; how it was collected is {NOT_RECORDED}."
        for name, info in sources.items()
    ]
    return (Listing(tuple(lines[:REGISTRIES_LISTED])) if lines else Paragraph(NOT_RECORDED),)


def _preprocessing(result: RunResult, entries: list[Mapping[str, Any]]) -> tuple[Block, ...]:
    lines = []
    for entry in entries[:REGISTRIES_LISTED]:
        dropped = entry.get("dropped")
        if dropped is not None:
            lines.append(f"{visible(str(entry.get('name')))}: dropped {visible(str(dropped))}.")
    if not lines:
        lines.append(f"Candidates dropped while reading: {NOT_RECORDED}.")
    lines.append(
        "Threshold between hit and null: as the description of each registry says; the signal is "
        "the distance from it, above 0 for a hit."
    )
    labels = {
        "named": "Identifiers are as in the source.",
        "shuffled": "Names and side tables were moved together among the effects, anew a seed.",
        "blinded": "Identifiers were replaced by opaque codes and side tables dropped.",
        "shuffled-within-prior": "Names and side tables were moved together among the effects of "
        "about 50 neighbours by the prior, anew a seed.",
    }
    lines.append(labels.get(result.identifiers, f"Identifiers: {visible(result.identifiers)}."))
    return (Listing(tuple(lines)),)


def _uses(result: RunResult, entries: list[Mapping[str, Any]]) -> tuple[Block, ...]:
    lines = ["Fit for: the paired comparison of proposers with their twins under this protocol."]
    names = [visible(str(e.get("name", ""))) for e in entries]
    synthetic = [n for n in dict.fromkeys(names) if n.startswith("synthetic-")]
    if synthetic:
        lines.append(
            f"{listed(synthetic, limit=4)}: synthetic: plumbing and calibration, not biology."
        )
    if result.registry_count == 1:
        lines.append(
            "One registry: its hits are the same for every seed, so an agent that has memorised "
            "them is not caught by new seeds, and nothing is said about other registries."
        )
    if result.identifiers == "named":
        lines.append("Named identifiers: what an agent knows of them from elsewhere counts too.")
    lines.append("Not for: effects of single candidates, or decisions about patients.")
    return (Listing(tuple(lines)),)


def _distribution(result: RunResult) -> tuple[Block, ...]:
    reads = "reads.jsonl" in result.manifest.get("files", {})
    kept = (
        "the reads of campaigns that are small enough (reads.jsonl)"
        if reads
        else "no reads: they follow from registry, protocol and seed"
    )
    return (
        Paragraph(
            "The run's folder holds campaigns, rounds and declarations with the identifiers of "
            f"declared and proposed candidates and whether the declared are hits, and {kept}. It "
            f"holds no effects. Licence and terms of the registries: {NOT_RECORDED}."
        ),
    )


def _maintenance(result: RunResult) -> tuple[Block, ...]:
    version = result.manifest.get("versions", {}).get("cads-env", NOT_RECORDED)
    sizes = [e["m"] for e in result.manifest.get("registries", ()) if isinstance(e.get("m"), int)]
    size = f" (m = {spread(min(sizes), max(sizes))})" if sizes else ""
    return (
        Paragraph(
            f"Made with cads-env {visible(str(version))}. A registry{size} is fixed by its hash: "
            "another hash is another registry. A run's files are not changed after it; their "
            f"SHA-256 stand in manifest.json. Who maintains the registries: {NOT_RECORDED}."
        ),
    )

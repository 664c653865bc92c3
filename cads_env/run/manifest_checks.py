"""The kinds of all parts of a run's manifest, checked before anybody takes one apart.

Looks at types, at names that are there twice and at nothing else: whether two manifests are of one
run is said elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cads_env.errors import RecordError

STATUSES: Final = ("running", "complete", "interrupted", "failed")
"""What a manifest may say of its run."""


def check_manifest(manifest: Mapping[str, Any]) -> None:
    """Raise unless the parts of a manifest are of their kinds.

    Args:
        manifest: As read from a file, or of a result in memory.

    Raises:
        RecordError: Names the first part that is not.
    """
    config = manifest.get("config")
    inner: Mapping[str, Any] = config if isinstance(config, Mapping) else {}
    agents, seeds = inner.get("agents"), inner.get("seeds")
    kinds = {
        "config": isinstance(config, Mapping),
        "config.agents": _are_agents(agents),
        "config.seeds": isinstance(seeds, list)
        and all(map(_is_count, seeds))
        and 0 < len(set(seeds)) == len(seeds),
        "config.registries": _are_names(inner.get("registries")),
        "config.panel": isinstance(inner.get("panel"), str),
        "config.identifiers": isinstance(inner.get("identifiers"), str),
        "config.keep_reads": isinstance(inner.get("keep_reads"), bool),
        "config.protocol": isinstance(inner.get("protocol"), Mapping),
        "config.certificate": isinstance(inner.get("certificate"), Mapping),
        "status": manifest.get("status") in STATUSES,
        "registries": _are_registries(manifest.get("registries", []), inner),
        "versions": isinstance(manifest.get("versions", {}), Mapping),
        "git": isinstance(manifest.get("git"), Mapping | None),
        "files": isinstance(manifest.get("files", {}), Mapping),
        "traces": "traces" not in manifest or _are_traces(manifest["traces"]),
    }
    wrong = [name for name, is_right in kinds.items() if not is_right]
    if wrong:
        msg = (
            f"The manifest's {wrong[0]} is not what a run writes. The file was changed after it "
            "was written: put back a copy, or run again."
        )
        raise RecordError(msg)


def _are_traces(value: object) -> bool:
    """Whether a value tells of traces: how many, their lines, and a digest of all."""
    return (
        isinstance(value, Mapping)
        and all(_is_count(value.get(name)) for name in ("files", "exchanges"))
        and isinstance(value.get("sha256"), str)
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _are_names(value: object) -> bool:
    """Whether a value is a list of texts, at least one, none twice."""
    if not isinstance(value, list) or not all(isinstance(x, str) for x in value):
        return False
    return 0 < len(set(value)) == len(value)


def _are_agents(value: object) -> bool:
    """Whether a value is a list of agents, each an arm with its options."""
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        return False
    return _are_names([entry.get("arm") for entry in value]) and all(
        isinstance(entry.get("options", {}), Mapping) for entry in value
    )


def _are_registries(value: object, config: Mapping[str, Any]) -> bool:
    """Whether a value is a list of the run's registries: hashes, size, hits and side tables."""
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        return False
    known = config.get("registries")
    names = [entry.get("name") for entry in value]
    return (
        all(isinstance(known, list) and name in known for name in names)
        and len({str(name) for name in names}) == len(names)
        and all(
            all(isinstance(entry.get(part), str) for part in ("hash", "oracle_hash"))
            and all(_is_count(entry.get(part)) for part in ("m", "hits", "contrary_hits"))
            and isinstance(entry.get("description", ""), str)
            and isinstance(entry.get("side_tables", {}), Mapping)
            for entry in value
        )
    )

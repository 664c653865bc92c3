"""Where a report's numbers come from: versions, hashes, and the commands that repeat the run.

Copies what the manifest holds; what it does not hold is "not recorded".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cads_env.report.content import Section, Table, Terms
from cads_env.report.repeat import repeat_blocks
from cads_env.report.wording import UNDEFINED, visible
from cads_env.run.result import RunResult

NOT_RECORDED: Final = "not recorded"


def provenance_section(result: RunResult) -> Section:
    """Versions, hashes, files and the commands."""
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
            *repeat_blocks(result),
        ),
    )


def _agents(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(manifest.get("config", {}).get("agents", []))

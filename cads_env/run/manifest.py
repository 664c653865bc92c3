"""The manifest of a run: resolved configuration, hashes and versions, and whether two are one run.

What decides the rows stands under `config`; an interrupted run goes on only under the same one.
Holds no timestamp, no effect, no salt and no path of the machine.
"""

from __future__ import annotations

import importlib.metadata
import json
import math
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from cads_env.contamination import code_sha256
from cads_env.errors import RecordError, RunError, error_text
from cads_env.run.manifest_checks import check_manifest
from cads_env.run.mend import refuse_constant
from cads_env.run.plan import Plan

MANIFEST_FILE: Final = "manifest.json"
GRID_FILE: Final = "grid.json"
"""What a folder has that holds the runs of several settings, and no manifest of its own."""
RUN_SCHEMA: Final = 2
"""Version of a run's files."""

_PACKAGES: Final = ("cads-env", "gymnasium", "numpy", "scipy", "pandas")
_FIELDS: Final = ("schema_version", "status", "config", "protocol_hash", "registries", "versions")


def new_manifest(plan: Plan, seeds: Sequence[int]) -> dict[str, Any]:
    """The manifest of a run that starts.

    Args:
        plan: What it plays.
        seeds: On which seeds, in order.
    """
    law = code_sha256(plan.protocol.law)
    return {
        "schema_version": RUN_SCHEMA,
        "status": "running",
        "config": {
            "panel": plan.panel.name,
            "registries": list(plan.panel.names),
            "identifiers": plan.identifiers,
            "seeds": list(seeds),
            "agents": [
                {
                    "arm": spec.name,
                    "source": spec.source,
                    "options": _plain(spec.options),
                    "code_sha256": spec.code_sha256,
                    "data_sha256": spec.data_sha256,
                }
                for spec in plan.specs
            ],
            "protocol": plan.protocol.to_dict(),
            "certificate": plan.certificate.to_dict(),
            "keep_reads": plan.keep_reads,
            **({} if law is None else {"law_code_sha256": law}),
        },
        "protocol_hash": plan.protocol.hash,
        "registries": [],
        **environment(),
    }


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a run's folder.

    Args:
        folder: The folder.

    Raises:
        RunError: There is no run in it, or it is of another schema version.
        RecordError: The manifest is damaged.
    """
    path = folder / MANIFEST_FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        what = "does not exist" if not folder.exists() else f"holds no {MANIFEST_FILE}"
        msg = f"{folder} {what}; expected the folder of a run, as `cads run --out` makes it."
        if (folder / GRID_FILE).exists():
            msg = f"{folder} is a grid of settings; name the folder of one, {folder}/SETTING."
        raise RunError(msg) from error
    except (OSError, ValueError) as error:
        msg = f"{path} cannot be read: {error_text(error)}."
        raise RunError(msg) from error
    try:
        manifest = json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        msg = f"{path} is no JSON ({error}); put back a copy, or start a new folder."
        raise RecordError(msg) from error
    version = manifest.get("schema_version") if isinstance(manifest, dict) else None
    if version is None:
        msg = f"{path} is no manifest of a run: it has no schema_version. Name a run's folder."
        raise RecordError(msg)
    if version != RUN_SCHEMA:
        msg = (
            f"{path} is of schema version {version!r}; this cads-env reads version {RUN_SCHEMA}. "
            "Use the cads-env that wrote it (its version stands under `versions`), or run again."
        )
        raise RunError(msg)
    missing = [name for name in _FIELDS if name not in manifest]
    if missing or not isinstance(manifest["config"], dict):
        msg = (
            f"{path} is incomplete: {', '.join(missing) or 'config'} missing. The file was changed "
            "after it was written: put back a copy, or start a new folder."
        )
        raise RecordError(msg)
    try:
        check_manifest(manifest)
    except RecordError as error:
        msg = f"{path}: {error}"
        raise RecordError(msg) from error
    checked: dict[str, Any] = manifest
    return checked


def check_same_run(stored: Mapping[str, Any], asked: Mapping[str, Any], folder: Path) -> None:
    """Raise unless a stored run is the one that is asked for.

    Raises:
        RunError: Names what differs.
    """
    differing = differences(stored["config"], asked["config"])
    versions = [m["versions"].get("cads-env") for m in (stored, asked)]
    if versions[0] != versions[1]:
        differing.append(f"cads-env (there {versions[0]}, now {versions[1]})")
    if differing:
        msg = (
            f"Output folder {str(folder)!r} holds another run; it differs in: "
            f"{'; '.join(differing)}. Repeat the command that began it to go on with it, or name a "
            "new folder with --out (`cads merge` puts runs together)."
        )
        raise RunError(msg)


def differences(there: Any, here: Any, name: str = "") -> list[str]:
    """Where two JSON values differ, as `seeds (there [0], now [1])`, at most a few."""
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        found: list[str] = []
        for key in dict.fromkeys([*there, *here]):
            inner = f"{name}.{key}" if name else str(key)
            found += differences(there.get(key), here.get(key), inner)
        return found
    if there == here and type(there) is type(here):
        return []
    lists = isinstance(there, list) and isinstance(here, list) and len(there) == len(here)
    if lists and all(isinstance(entry, dict) for entry in [*there, *here]):
        pairs = enumerate(zip(there, here, strict=True))
        return [text for i, pair in pairs for text in differences(*pair, f"{name}[{i}]")]
    return [f"{name} (there {_shown(there)}, now {_shown(here)})"]


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= 60 else f"{text[:57]}..."


def environment() -> dict[str, Any]:
    """Versions of Python and the packages that matter, and the git state of the source, if any."""
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return {"versions": versions, "git": _git_state(Path(__file__).resolve().parent)}


def _git_state(folder: Path) -> dict[str, Any] | None:
    """Commit and dirtiness of the checkout that holds the source; None outside a checkout."""
    commands = (["git", "rev-parse", "HEAD"], ["git", "status", "--porcelain", "--", str(folder)])
    answers: list[str] = []
    for command in commands:
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=10, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return None
        answers.append(done.stdout.strip())
    return {"commit": answers[0], "dirty": bool(answers[1])}


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as JSON values; what JSON does not have is shown as text."""
    return {str(name): _json_value(value) for name, value in options.items()}


def _json_value(value: object) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _json_value(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(entry) for entry in value]
    exact = value is None or isinstance(value, (str, int, bool))
    if exact or (isinstance(value, float) and math.isfinite(value)):
        return value
    # Without its address, an object's repr is the same in the next process.
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))

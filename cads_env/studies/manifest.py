"""What identifies a played study: config, cells, versions, and hashes of what was played on.

Holds no time and no machine, so that the same study gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from cads_env import __version__
from cads_env.protocol import load_protocol
from cads_env.studies.play import StudyRows
from cads_env.studies.registries import registry_of
from cads_env.studies.shapes import plain
from cads_env.studies.study import Cell

KIND: Final = "cads-study"
VERSION: Final = 1


def study_manifest(plan: StudyRows) -> dict[str, Any]:
    """The manifest of a study that is about to be played.

    Raises:
        RegistryError: A registry of a cell cannot be loaded.
        ProtocolError: A protocol of a cell is invalid.
    """
    return {
        "kind": KIND,
        "version": VERSION,
        "cads_env": __version__,
        "study": plan.study.name,
        "items": list(plan.items),
        "seeds": plan.seeds,
        "config": dict(plan.config),
        "config_sha256": sha256_of_json(plan.config),
        "cells": [cell_json(cell) for cell in plan.cells],
        "registries": registry_hashes(plan),
        "protocols": protocol_hashes(plan),
    }


def cell_json(cell: Cell) -> dict[str, Any]:
    """A cell as JSON values."""
    return {
        "name": cell.name,
        "settings": plain(cell.settings),
        "seeds": [cell.seeds.start, cell.seeds.stop],
        "absent": cell.absent,
    }


def sha256_of_json(value: Any) -> str:
    """SHA-256 of a JSON value in canonical form."""
    text = json.dumps(plain(value), sort_keys=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def registry_hashes(plan: StudyRows) -> dict[str, dict[str, str]]:
    """Name and both hashes of every registry that the cells name, by how they name it."""
    hashes: dict[str, dict[str, str]] = {}
    for named in _named(plan, "registry"):
        registry, oracle = registry_of(named)
        hashes[key_of(named)] = {
            "name": registry.name,
            "hash": registry.hash,
            "oracle_hash": oracle.hash,
        }
    return hashes


def protocol_hashes(plan: StudyRows) -> dict[str, str]:
    """Hash of every protocol that the cells name."""
    return {str(name): load_protocol(name).hash for name in _named(plan, "protocol")}


def key_of(named: object) -> str:
    """How a registry that a cell names is called in a manifest."""
    return named if isinstance(named, str) else json.dumps(named, sort_keys=True)


def _named(plan: StudyRows, setting: str) -> list[Any]:
    """The distinct values of a setting over the cells that are played, in order."""
    found: dict[str, Any] = {}
    for cell in plan.cells:
        settings: Mapping[str, Any] = cell.settings
        if not cell.absent and setting in settings:
            found.setdefault(key_of(settings[setting]), settings[setting])
    return list(found.values())

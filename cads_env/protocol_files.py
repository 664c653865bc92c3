"""The YAML files of protocols: the presets that come with the package, and a user's own.

Finds and parses them; what the fields mean and which values they may have is said elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from cads_env.errors import ProtocolError, error_text, suggest
from cads_env.values import load_yaml


def preset_names() -> tuple[str, ...]:
    """Names of the protocols that come with the package, sorted."""
    folder = resources.files("cads_configs") / "protocols"
    return tuple(
        sorted(p.name[: -len(".yaml")] for p in folder.iterdir() if p.name.endswith(".yaml"))
    )


def read_fields(name: str) -> Mapping[str, Any]:
    """The fields that a preset or a file gives.

    Args:
        name: Of a preset, or a path that ends in .yaml or .yml.

    Raises:
        ProtocolError: Unknown name, unreadable file, or no YAML mapping.
    """
    text = _text(name)
    try:
        data = load_yaml(text)
    except ValueError as error:
        msg = f"Protocol {name!r} is not valid YAML: {error}"
        raise ProtocolError(msg) from error
    if not isinstance(data, Mapping):
        msg = f"Protocol {name!r} holds a {type(data).__name__}; expected a mapping of fields."
        raise ProtocolError(msg)
    return data


def _text(name: str) -> str:
    path = Path(name)
    if path.suffix in {".yaml", ".yml"}:
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            msg = f"Protocol file {name!r} cannot be read: {error_text(error)}."
            raise ProtocolError(msg) from error
    if name not in preset_names():
        msg = (
            f"Unknown protocol {name!r}. {suggest(name, preset_names())} "
            "A file is named by a path that ends in .yaml."
        )
        raise ProtocolError(msg)
    return (resources.files("cads_configs") / "protocols" / f"{name}.yaml").read_text("utf-8")

"""Configs of studies: sizes, settings, published figures and tolerances, as YAML.

Never checks what a study makes of its settings; that is the study's own work.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any

from cads_env.errors import StudyError, suggest
from cads_env.studies.study import Config
from cads_env.values import load_yaml


def load_config(study: str, changes: Mapping[str, Any] | None = None) -> Config:
    """The config of a study, with some of its top-level settings changed.

    Args:
        study: Name of the study.
        changes: New values by name.

    Raises:
        StudyError: There is no such config, or it has no such setting.
    """
    path = resources.files("cads_configs") / "studies" / f"{study}.yaml"
    try:
        config: dict[str, Any] = load_yaml(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        msg = f"The config of study {study!r} cannot be read: {error}."
        raise StudyError(msg) from error
    for name, value in (changes or {}).items():
        if name not in config:
            msg = f"Study {study!r} has no setting {name!r}. {suggest(name, config)}"
            raise StudyError(msg)
        config[name] = value
    return config

"""Configs of studies: sizes, settings, published figures and tolerances, as YAML.

Never checks what a study makes of its settings; that is the study's own work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from typing import Any

from cads_env.errors import CadsError, StudyError, suggest
from cads_env.studies.shapes import fitted, plain
from cads_env.studies.study import Config
from cads_env.values import load_yaml


def load_config(study: str, changes: Mapping[str, Any] | None = None) -> Config:
    """The config of a study, with some of its top-level settings changed.

    Args:
        study: Name of the study.
        changes: New values by name; a mapping changes the entries that it names.

    Raises:
        StudyError: There is no such config, it has no such setting, or a value has another shape
            than the one that ships.
    """
    path = resources.files("cads_configs") / "studies" / f"{study}.yaml"
    try:
        # As JSON gives it back, so that a config read from a manifest equals the one that was used.
        config: dict[str, Any] = plain(load_yaml(path.read_text("utf-8")))
    except (OSError, ValueError) as error:
        msg = f"The config of study {study!r} cannot be read: {error}."
        raise StudyError(msg) from error
    for name, value in (changes or {}).items():
        if name not in config:
            msg = f"Study {study!r} has no setting {name!r}. {suggest(name, config)}"
            raise StudyError(msg)
        config[name] = plain(fitted(name, value, config[name]))
    return config


@contextmanager
def settings_in_use(study: str, config: Config) -> Iterator[None]:
    """Turn what changed settings break into an error that says so; other faults pass.

    Args:
        study: Name of the study.
        config: Its config.

    Raises:
        StudyError: Settings that differ from the shipped ones cannot be used.
    """
    try:
        yield
    except CadsError:
        raise
    except Exception as error:
        shipped = load_config(study)
        changed = [name for name in config if config[name] != shipped.get(name)]
        if not changed:
            raise
        msg = (
            f"The changed settings of study {study!r} ({', '.join(changed)}) cannot be used: "
            f"{type(error).__name__}: {error}. cads_configs/studies/{study}.yaml shows what they "
            "look like."
        )
        raise StudyError(msg) from error

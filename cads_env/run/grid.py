"""A grid: the same agents, registries and seeds under several settings, one run folder for each.

The folder of a grid holds `grid.json`, which names the settings, and the ordinary folder of a run
for each. Plays nothing; see `evaluate_grid`.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout

from cads_env.errors import RecordError, RunError, error_text
from cads_env.files import is_partial, write_whole
from cads_env.protocol import load_protocol
from cads_env.registry import RELABEL_MODES
from cads_env.run.folder import LOCK_FILE, UNCOUNTED
from cads_env.run.load import load_run
from cads_env.run.manifest import GRID_FILE, MANIFEST_FILE
from cads_env.run.result import Failure, RunResult
from cads_env.run.settings import FEEDBACKS, Setting, is_name, protocol_of

GRID_SCHEMA: Final = 1
"""Version of `grid.json`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The runs of a grid.

    Attributes:
        folder: Where it is; None for one without files.
        settings: All that were planned, in order.
        runs: The run of each setting that has begun, by the setting's name.
    """

    folder: Path | None
    settings: tuple[Setting, ...]
    runs: Mapping[str, RunResult]

    @property
    def status(self) -> str:
        """Complete when every setting's run is, else interrupted; as of a run."""
        statuses = [run.status for run in self.runs.values()]
        is_whole = len(statuses) == len(self.settings) and set(statuses) == {"complete"}
        return "complete" if is_whole else "interrupted"

    @property
    def failures(self) -> tuple[tuple[str, Failure], ...]:
        """Campaigns that failed, each with the name of its setting."""
        return tuple((name, failure) for name, run in self.runs.items() for failure in run.failures)


def is_grid(folder: str | Path) -> bool:
    """True for the folder of a grid."""
    return (Path(folder) / GRID_FILE).is_file()


def load_grid(folder: str | Path) -> Grid:
    """The runs of the grid in a folder, as far as they have got.

    Raises:
        RunError: There is no grid in the folder.
        RecordError: `grid.json` or a file of a run is damaged, or a run is of another setting than
            its folder's name says.
    """
    place = Path(folder)
    settings = read_settings(place)
    runs = {
        setting.name: load_run(place / setting.name)
        for setting in settings
        if (place / setting.name / MANIFEST_FILE).exists()
    }
    for setting in settings:
        if setting.name in runs:
            _check_setting(setting, runs[setting.name])
    return Grid(folder=place, settings=settings, runs=runs)


def _check_setting(setting: Setting, run: RunResult) -> None:
    """Raise when a run was played with other feedback or identifiers than its setting says."""
    config = run.manifest["config"]
    rules = load_protocol(config["protocol"])
    if config["identifiers"] == setting.identifiers and protocol_of(setting, rules) == rules:
        return
    msg = (
        f"{run.folder} is no run of the setting {setting.name!r} (feedback {setting.feedback}, "
        f"identifiers {setting.identifiers}): it was put there from elsewhere. Put back a copy of "
        "the folder, or start a new one."
    )
    raise RecordError(msg)


def read_settings(folder: Path) -> tuple[Setting, ...]:
    """The settings that `grid.json` names.

    Raises:
        RunError: There is none, or it is of another schema version.
        RecordError: It is damaged.
    """
    path = folder / GRID_FILE
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        msg = f"{folder} holds no {GRID_FILE}; expected the folder of a grid of settings."
        raise RunError(msg) from error
    except OSError as error:
        msg = f"{path} cannot be read: {error_text(error)}."
        raise RunError(msg) from error
    except (ValueError, RecursionError) as error:
        msg = f"{path} is no JSON ({error}); put back a copy, or start a new folder."
        raise RecordError(msg) from error
    version = data.get("schema_version") if isinstance(data, dict) else None
    if isinstance(version, int) and version != GRID_SCHEMA:
        msg = f"{path} is of schema version {version}; this cads-env reads {GRID_SCHEMA}."
        raise RunError(msg)
    entries = data.get("settings") if isinstance(data, dict) else None
    settings = _settings(entries)
    if version != GRID_SCHEMA or not settings:
        msg = (
            f"{path} does not name the settings of a grid, each once, with name, feedback and "
            "identifiers. The file was changed after it was written: put back a copy, or start a "
            "new folder."
        )
        raise RecordError(msg)
    return settings


def _settings(entries: Any) -> tuple[Setting, ...]:
    """Settings from JSON values; empty when one is not as it was written."""
    if not isinstance(entries, list):
        return ()
    found = []
    for entry in entries:
        if not isinstance(entry, dict) or set(entry) != set(Setting._fields):
            return ()
        name, feedback, identifiers = (entry[key] for key in Setting._fields)
        if not isinstance(name, str) or not is_name(name) or identifiers not in RELABEL_MODES:
            return ()
        if feedback is not None and feedback not in FEEDBACKS:
            return ()
        found.append(Setting(name, feedback, identifiers))
    names = [setting.name for setting in found]
    return tuple(found) if len(set(names)) == len(names) else ()


@contextlib.contextmanager
def writing_grid(folder: Path) -> Iterator[None]:
    """Keep other processes from playing a grid, or a run, in the folder itself.

    Args:
        folder: Is there.

    Raises:
        RunError: Another process plays there, or the folder cannot be written.
    """
    # Absolute: an agent may change the working directory.
    path = folder.absolute() / LOCK_FILE
    lock = FileLock(path, blocking=False)
    try:
        lock.acquire()
    except Timeout as error:
        msg = (
            f"Another process is writing into {str(folder)!r}. Wait for it, or name another folder "
            "with --out."
        )
        raise RunError(msg) from error
    except OSError as error:
        msg = f"Output folder {str(folder)!r} cannot be written: {error_text(error)}."
        raise RunError(msg) from error
    try:
        yield
    finally:
        if not is_grid(folder) and not (folder / MANIFEST_FILE).exists():
            # Leave nothing in a folder that is not ours.
            with contextlib.suppress(OSError):
                path.unlink()
        lock.release()


def begin_grid(folder: Path, settings: Sequence[Setting]) -> None:
    """Write `grid.json` into a folder, or check that it holds the same grid.

    Args:
        folder: Is there.
        settings: Of the grid.

    Raises:
        RunError: The folder holds something else, or another grid, or cannot be written.
        RecordError: The `grid.json` that is there is damaged.
    """
    if is_grid(folder):
        stored = read_settings(folder)
        if stored != tuple(settings):
            there = ", ".join(setting.name for setting in stored)
            now = ", ".join(setting.name for setting in settings)
            msg = (
                f"Output folder {str(folder)!r} holds another grid: its settings are {there}, now "
                f"{now}. Repeat the command that began it to go on with it, or name a new folder "
                "with --out."
            )
            raise RunError(msg)
        return
    used = [p.name for p in folder.iterdir() if p.name not in UNCOUNTED and not is_partial(p)]
    if used:
        what = "holds a run" if MANIFEST_FILE in used else "is not empty and holds no grid"
        msg = f"Output folder {str(folder)!r} {what}; name a new one with --out."
        raise RunError(msg)
    value = {
        "schema_version": GRID_SCHEMA,
        "settings": [setting._asdict() for setting in settings],
    }
    try:
        write_whole(folder / GRID_FILE, [f"{json.dumps(value, indent=2)}\n".encode()])
    except OSError as error:
        msg = f"Output folder {str(folder)!r} cannot be written: {error_text(error)}."
        raise RunError(msg) from error

"""The folder of a run: append-only JSON lines beside a manifest.

Each campaign's lines are on disk before the next campaign starts; the manifest says whether the run
is complete. Timestamps stand in `log.jsonl` alone, so that the same run gives the same bytes.
"""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final

from cads_env.errors import RunError, error_text
from cads_env.record import SCHEMA_VERSION

ROW_FILES: Final = ("campaigns", "rounds", "declarations", "reads")
LOG_FILE: Final = "log.jsonl"
MANIFEST_FILE: Final = "manifest.json"
DEFAULT_ROOT: Final = "runs"

_PACKAGES: Final = ("cads-env", "gymnasium", "numpy", "scipy", "pandas")


def json_line(row: Mapping[str, Any]) -> str:
    """A row as one line of strict JSON, ASCII only."""
    return json.dumps(row, ensure_ascii=True, allow_nan=False, separators=(",", ":")) + "\n"


def new_folder(out: str | Path | None) -> Path:
    """Create the run's folder.

    Args:
        out: A path that does not exist or is an empty folder; None for the next free number under
            `runs`.

    Returns:
        The folder, empty.

    Raises:
        RunError: The folder holds something, or cannot be made.
    """
    try:
        if out is None:
            return _numbered(Path(DEFAULT_ROOT))
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            msg = f"Output folder {str(folder)!r} is not empty; name a new one with --out."
            raise RunError(msg)
    except OSError as error:
        msg = f"Output folder {str(out or DEFAULT_ROOT)!r} cannot be made: {error_text(error)}."
        raise RunError(msg) from error
    return folder


def _numbered(root: Path) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    taken = [int(p.name) for p in root.iterdir() if p.name.isdecimal()]
    number = max(taken, default=0) + 1
    while True:
        folder = root / f"{number:04d}"
        try:
            # mkdir is atomic, so two runs that start together get two numbers.
            folder.mkdir()
        except FileExistsError:
            number += 1
        else:
            return folder


class RunFolder:
    """Writer of one run's files; use as a context manager."""

    def __init__(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        """Open the files and write the manifest with status "running".

        Args:
            folder: An empty folder.
            manifest: Resolved configuration and hashes, JSON values.
        """
        self.folder = folder
        self._manifest = {"schema_version": SCHEMA_VERSION, "status": "running", **manifest}
        self._files: dict[str, IO[str]] = {}
        self._write_manifest()
        self.log("start")

    def __enter__(self) -> RunFolder:
        """The folder itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the files; the manifest's status becomes "complete" or says what ended the run."""
        for handle in self._files.values():
            handle.close()
        if error is None:
            status = "complete"
        else:
            status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            self._manifest["reason"] = f"{type(error).__name__}: {error}"
        self._manifest["status"] = status
        self._manifest["files"] = {
            f"{name}.jsonl": _sha256(self.folder / f"{name}.jsonl")
            for name in ROW_FILES
            if name in self._files
        }
        self._write_manifest()
        self.log("end", status=status)

    def append(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows to `<name>.jsonl` and put them on disk.

        Args:
            name: One of `ROW_FILES`.
            rows: JSON values.
        """
        if name not in self._files:
            path = self.folder / f"{name}.jsonl"
            self._files[name] = path.open("a", encoding="ascii", newline="\n")
        handle = self._files[name]
        handle.write("".join(json_line(row) for row in rows))
        handle.flush()
        os.fsync(handle.fileno())

    def note(self, name: str, value: Any) -> None:
        """Set a field of the manifest; it is written when the run ends."""
        self._manifest[name] = value

    def log(self, event: str, **details: Any) -> None:
        """Add a timestamped event to the log."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        with (self.folder / LOG_FILE).open("a", encoding="ascii", newline="\n") as handle:
            handle.write(json_line({"time": now, "event": event, **details}))

    def _write_manifest(self) -> None:
        target = self.folder / MANIFEST_FILE
        partial = target.with_suffix(".json.partial")
        text = json.dumps(self._manifest, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
        partial.write_text(text, encoding="ascii", newline="\n")
        partial.replace(target)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


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

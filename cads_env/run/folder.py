"""The folder of a run: append-only JSON lines beside a manifest.

Each campaign's lines are on disk before the next campaign starts; the manifest says whether the run
is complete. Timestamps stand in `log.jsonl` alone, so that the same run gives the same bytes.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final

from cads_env.errors import RunError, error_text
from cads_env.record import SCHEMA_VERSION
from cads_env.values import plain_text

ROW_FILES: Final = ("campaigns", "rounds", "declarations", "reads")
LOG_FILE: Final = "log.jsonl"
MANIFEST_FILE: Final = "manifest.json"
DEFAULT_ROOT: Final = "runs"

_PACKAGES: Final = ("cads-env", "gymnasium", "numpy", "scipy", "pandas")


def json_line(row: Mapping[str, Any]) -> str:
    """A row as one line of strict JSON, ASCII only."""
    return json.dumps(row, ensure_ascii=True, allow_nan=False, separators=(",", ":")) + "\n"


def new_folder(out: str | Path | None) -> Path:
    """Create the run's folder and claim it.

    Args:
        out: A path that does not exist or is an empty folder; None for the next free number under
            `runs`.

    Returns:
        The folder, with nothing but an empty manifest in it.

    Raises:
        RunError: The folder holds something, or cannot be made.
    """
    if out is not None and not isinstance(out, (str, Path)):
        msg = f"out is {out!r}; expected a path, True for the next number, or None for no files."
        raise RunError(msg)
    try:
        if out is None:
            folder = _numbered(Path(DEFAULT_ROOT))
        else:
            folder = Path(out)
            folder.mkdir(parents=True, exist_ok=True)
        used = any(folder.iterdir())
        if not used:
            # "x" is atomic: of two runs that start together on one folder, one is refused.
            (folder / MANIFEST_FILE).open("x").close()
    except FileExistsError:
        used = True
    except (OSError, ValueError) as error:
        where = str(out or DEFAULT_ROOT)
        msg = f"Output folder {where!r} cannot be made: {error_text(error)}."
        raise RunError(msg) from error
    if used:
        what = "not empty" if Path(str(out)).is_dir() else "no folder"
        msg = f"Output folder {str(out)!r} is {what}; name a new one with --out."
        raise RunError(msg)
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
        """Write the manifest with status "running".

        Args:
            folder: From `new_folder`.
            manifest: Resolved configuration and hashes, JSON values.

        Raises:
            RunError: It cannot be written.
        """
        self.folder = folder
        # Absolute: an agent may change the working directory.
        self._place = folder.absolute()
        self._manifest = {"schema_version": SCHEMA_VERSION, "status": "running", **manifest}
        self._files: dict[str, IO[str]] = {}
        with self._writing():
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
        """Close the files; the manifest's status becomes "complete" or says what ended the run.

        Raises:
            RunError: A file cannot be written, unless something else ended the run already.
        """
        try:
            with self._writing():
                self._close(error)
        except RunError:
            if error is None:
                raise

    def _close(self, error: BaseException | None) -> None:
        unwritten: list[OSError] = []
        for handle in self._files.values():
            try:
                handle.close()
            except OSError as failure:
                unwritten.append(failure)
        if error is None and unwritten:
            error = unwritten[0]
        if error is None:
            status = "complete"
        else:
            status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            self._manifest["reason"] = plain_text(f"{type(error).__name__}: {error}")
        self._manifest["status"] = status
        self._manifest["files"] = {
            f"{name}.jsonl": _sha256(self._place / f"{name}.jsonl")
            for name in ROW_FILES
            if name in self._files and (self._place / f"{name}.jsonl").is_file()
        }
        self._write_manifest()
        self.log("end", status=status)
        if unwritten:
            raise unwritten[0]

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            msg = (
                f"Cannot write into {str(self.folder)!r}: {error_text(error)}. What was complete "
                "before is still there."
            )
            raise RunError(msg) from error

    def append(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows to `<name>.jsonl` and put them on disk.

        Args:
            name: One of `ROW_FILES`.
            rows: JSON values.

        Raises:
            RunError: They cannot be written.
        """
        text = "".join(json_line(row) for row in rows)
        with self._writing():
            if name not in self._files:
                path = self._place / f"{name}.jsonl"
                self._files[name] = path.open("a", encoding="ascii", newline="\n")
            handle = self._files[name]
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())

    def note(self, name: str, value: Any) -> None:
        """Set a field of the manifest; it is written when the run ends."""
        self._manifest[name] = value

    def log(self, event: str, **details: Any) -> None:
        """Add a timestamped event to the log."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        with (self._place / LOG_FILE).open("a", encoding="ascii", newline="\n") as handle:
            handle.write(json_line({"time": now, "event": event, **details}))

    def _write_manifest(self) -> None:
        target = self._place / MANIFEST_FILE
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

"""Where data live, and the machine: package data, remembered registries, runs, disk, memory.

Reads names, sizes and manifests; writes nothing, not even to find out whether it could.
"""

from __future__ import annotations

import json
import locale
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from cads_env.report.doctor.finding import Finding, Status, guarded, said, shown

RUNS: Final = "runs"
LOW_DISK: Final = 1 << 30
"""Free bytes below which a long run may not find room for its files."""
SERVER_VARIABLE: Final = "CADS_VLLM_PYTHON"
SERVER_FOLDER: Final = ".vllm"
"""Where `cads serve` looks for a Python with vLLM, by itself."""

_AGAIN: Final = "Install cads-env again."


def places() -> list[Finding]:
    """Findings on data, runs and the machine."""
    found = guarded("data", _package_data)
    found += _as_notes(guarded("data", _home))
    found += _as_notes(guarded("runs", _runs))
    found += _as_notes(guarded("machine", _machine))
    return found


def _as_notes(found: list[Finding]) -> list[Finding]:
    """None of these is needed by the core."""
    return [f._replace(status="note") if f.status == "problem" else f for f in found]


def _package_data() -> Iterator[Finding]:
    import cads_configs
    import cads_env

    presets = Path(str(cads_configs.__file__)).parent / "protocols"
    names = sorted(path.stem for path in presets.glob("*.yaml"))
    if names:
        yield Finding("data", "protocols", "ok", f"{', '.join(names)} in {shown(presets)}")
    else:
        yield Finding("data", "protocols", "problem", f"none in {shown(presets)}. {_AGAIN}")
    agents = sorted(path.stem for path in presets.with_name("agents").glob("*.yaml"))
    if agents:
        yield Finding("data", "agent files", "ok", ", ".join(agents))
    folder = Path(str(cads_env.__file__)).parent / "sources" / "data"
    sizes = [path.stat().st_size for path in folder.iterdir() if path.is_file()]
    if sizes:
        text = f"{len(sizes)} files, {_bytes(sum(sizes))}, in {shown(folder)}"
        yield Finding("data", "package data", "ok", text)
    else:
        yield Finding("data", "package data", "problem", f"none in {shown(folder)}. {_AGAIN}")


def _home() -> Iterator[Finding]:
    """The folder of remembered registries, and whether the variable moved it there."""
    from cads_env.sources import remembered

    home, variable = remembered.data_folder(), remembered.HOME_VARIABLE
    is_named = bool(os.environ.get(variable, "").strip())
    where = f"{shown(home)}{f' (set by {variable})' if is_named else ''}"
    existing = home
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    state = "" if home.exists() else "; made when it is first used"
    if not existing.is_dir():
        text = f"{where} is no folder. Set {variable} to one."
        yield Finding("data", "home", "note", text)
    elif os.access(existing, os.W_OK | os.X_OK):
        yield Finding("data", "home", "ok", f"{where}, writable{state}")
    else:
        text = f"{where} is not writable. Set {variable} to a folder that is."
        yield Finding("data", "home", "note", text)
    names = remembered.remembered_names()
    for name in names:
        status, text = _remembered(remembered.registries_folder() / f"{name}{remembered.SUFFIX}")
        yield Finding("data", f"registry {name}", status, text)
    if not names:
        yield Finding("data", "remembered registries", "ok", "none")


def _remembered(path: Path) -> tuple[Status, str]:
    """Whether the files that a remembered registry is read from are still there."""
    from cads_env.values import load_yaml

    mend = f"`cads registry remove {path.stem}`, or add it again with --replace."
    try:
        entry = load_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return "note", f"cannot be read: {said(error)}. {mend}"
    named = sorted(set(_absolute_paths(entry)))
    if not named:
        return "ok", "needs no file"
    gone = [place for place in named if not place.exists()]
    if gone:
        return "note", f"{', '.join(map(shown, gone))} is gone. Put it back, {mend}"
    return "ok", f"{', '.join(map(shown, named))} is there"


def _absolute_paths(value: Any) -> Iterator[Path]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for entry in value:
            yield from _absolute_paths(entry)
    elif isinstance(value, str) and Path(value).is_absolute():
        yield Path(value)


def _runs() -> Iterator[Finding]:
    root = Path(RUNS)
    # What has no manifest is no run: an export beside one, say. A grid has one for each setting.
    found = [*root.glob("*/manifest.json"), *root.glob("*/*/manifest.json")]
    folders = [
        path.parent
        for path in sorted(found)
        if path.parent.parent == root or (path.parent.parent / "grid.json").exists()
    ]
    states = Counter(map(_run_state, folders))
    text = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    yield Finding("runs", "runs", "ok", f"{text} in ./{RUNS}" if text else "none in this folder")


def _run_state(folder: Path) -> str:
    try:
        status = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["status"]
    except (OSError, ValueError, KeyError, TypeError):
        return "with a damaged manifest"
    known = ("complete", "interrupted", "failed")
    return status if status in known else "running or killed"


def _machine() -> Iterator[Finding]:
    free = shutil.disk_usage(Path()).free
    text = f"{_bytes(free)} free in this folder"
    if free < LOW_DISK:
        yield Finding("machine", "disk", "note", f"{text}. Make room before a long run.")
    else:
        yield Finding("machine", "disk", "ok", text)
    if not os.access(Path(), os.W_OK | os.X_OK):
        text = "not writable. Change to another, or name one with --out."
        yield Finding("machine", "this folder", "note", text)
    count = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else count
    yield Finding("machine", "CPUs", "ok", f"{usable} usable of {count}")
    memory = _memory()
    yield Finding("machine", "memory", "ok", _bytes(memory) if memory else "not known")
    yield _terminal()
    yield _server()


def _server() -> Finding:
    """Where `cads serve` would find the server's own Python; starts nothing."""
    named = os.environ.get(SERVER_VARIABLE, "").strip()
    if named:
        is_there = Path(named).exists() or shutil.which(named) is not None
        text = f"named by {SERVER_VARIABLE}"
        if not is_there:
            text += ", but not there. Name a Python or a virtual environment with vLLM"
        return Finding("machine", "server", "ok" if is_there else "note", text)
    if Path(SERVER_FOLDER).is_dir():
        return Finding("machine", "server", "ok", f"{SERVER_FOLDER} in this folder")
    text = f"no {SERVER_FOLDER} in this folder and no {SERVER_VARIABLE}; cads serve needs vLLM"
    return Finding("machine", "server", "ok", text)


def _memory() -> int | None:
    """Bytes of memory, where the system says."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _terminal() -> Finding:
    encoding = getattr(sys.stdout, "encoding", None) or locale.getpreferredencoding(False)
    try:
        "─ε≤".encode(encoding)
    except (LookupError, UnicodeEncodeError):
        text = f"{encoding}: tables may look odd. Set PYTHONUTF8=1, or use a UTF-8 terminal."
        return Finding("machine", "terminal", "note", text)
    return Finding("machine", "terminal", "ok", encoding)


def _bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}"
        count /= 1024
    return f"{count:,.1f} GiB"

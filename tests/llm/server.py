"""A real vLLM server for a test session, started by `cads serve` and ended by its process id."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from cads_agents.serving.interpreter import PYTHON_VARIABLE, USUAL_FOLDER

ROOT = Path(__file__).parents[2]
BASE_URL_VARIABLE = "CADS_LLM_BASE_URL"
LONGEST_START_S = 300.0
LONGEST_END_S = 30.0


class CannotServe(Exception):
    """There is no server, and why."""


def free_port() -> int:
    """A port of loopback that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def server_python() -> str:
    """The Python that has vLLM.

    Raises:
        CannotServe: None is named and there is none where one usually is.
    """
    named = os.environ.get(PYTHON_VARIABLE)
    usual = ROOT / USUAL_FOLDER
    if named is None and not usual.is_dir():
        msg = f"no vLLM: neither {PYTHON_VARIABLE} nor {usual} is there"
        raise CannotServe(msg)
    return named or str(usual)


class Server:
    """A served model; a context manager, and startable again on the same port."""

    def __init__(self, model: str, *flags: str) -> None:
        """Choose the model.

        Args:
            model: As `cads serve` takes it.
            *flags: Further flags of vLLM.
        """
        self.model, self._flags = model, flags
        self.port = free_port()
        self.base_url = f"http://127.0.0.1:{self.port}/v1"
        # Short: sockets in it have long names, and paths of sockets an end.
        self._folder = Path(tempfile.mkdtemp(prefix="cads-"))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and wait until it answers.

        Raises:
            CannotServe: It ended or did not answer in time; with the end of what it said.
        """
        words = [sys.executable, "-m", "cads_env", "serve", self.model]
        words += ["--python", server_python(), "--port", str(self.port), "--", *self._flags]
        own = {"TMPDIR": str(self._folder), "VLLM_CACHE_ROOT": str(self._folder / "cache")}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                words, stdout=log, stderr=log, env={**os.environ, **own}, start_new_session=True
            )
        end = time.monotonic() + LONGEST_START_S
        while not is_healthy(self.port):
            if self._process.poll() is not None or time.monotonic() > end:
                said = self._log.read_text(encoding="utf-8", errors="replace")[-3_000:]
                self.kill()
                msg = f"the server of {self.model} did not start:\n{said}"
                raise CannotServe(msg)
            time.sleep(0.3)

    def kill(self) -> None:
        """End the server and its parts at once, as a machine that goes down does."""
        if self._process is None:
            return
        # Its own group: the engine is a process of its own.
        _signal_group(self._process.pid, 9)
        self._process.wait(LONGEST_END_S)
        self._process = None

    def close(self) -> None:
        """End the server in good order and remove what it left."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(LONGEST_END_S)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _log(self) -> Path:
        return self._folder / "log"


def is_healthy(port: int) -> bool:
    """Whether a server on a port of loopback says that it is ready."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


def run_cads(words: Sequence[str], *, folder: Path, code: int = 0) -> str:
    """What `cads` prints; fails unless it ends with the exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "cads_env", *words],
        cwd=folder, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == code, said
    return said

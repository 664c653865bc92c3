"""Tape, cap and one whole run give the same bytes with the CPU's vector features disabled."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = """
import hashlib, pathlib, sys, tempfile, warnings
import numpy as np
import cads_env
from cads_env.certificate import Certificate, audit_bounds, log_cap_for
from cads_env.tape import bits, candidate_words, normals, priority
words = candidate_words(np.array([7], np.uint64), np.arange(50_000))
visits = np.arange(50_000) % 40
parts = [normals(bits(words, visits, 0)), priority(np.array([7], np.uint64), np.arange(5000), 6000)]
for array in parts:
    print(hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest())
print([Certificate(epsilon_bar=e).log_cap.hex() for e in (1e-9, 0.05, 0.1, 0.2, 0.3, 0.5)])
bounds = audit_bounds(np.arange(300), 1000)
print([log_cap_for(bound).hex() for bound in bounds], bounds.tobytes().hex())
with tempfile.TemporaryDirectory() as folder:
    names = {"standard": "synthetic-depmap:dev", "proposer": "synthetic-depmap/0"}
    for protocol, registry in names.items():
        out = pathlib.Path(folder) / protocol
        cads_env.evaluate(
            ["random", "prior", "module-learner"], protocol=protocol, registry=registry,
            seeds=range(3), out=out,
        )
        for path in sorted(out.glob("*.jsonl")):
            if path.name != "log.jsonl":
                print(path.name, hashlib.sha256(path.read_bytes()).hexdigest())
    sweep = cads_env.evaluate(
        "nothing", protocol="sweep", registry="synthetic-depmap-6000/0", seeds=[0]
    )
    print(sweep.campaigns.to_json(), sweep.declarations.to_json())
    audited = cads_env.evaluate(
        "nothing", protocol="sweep+audit_controls=500", registry="synthetic-depmap-6000/0",
        seeds=[0], certificate={"audit": {"looks": "per_read"}},
    )
    print(audited.campaigns.to_json(), audited.declarations.to_json())
"""


def _output(environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_bytes_do_not_depend_on_cpu_features() -> None:
    core = getattr(np, "_core", None) or np.core
    umath = core._multiarray_umath
    supported = [f for f in umath.__cpu_dispatch__ if umath.__cpu_features__.get(f)]
    if not supported:
        pytest.skip("this numpy dispatches no CPU feature that this machine has")
    plain = _output({"NPY_DISABLE_CPU_FEATURES": " ".join(supported)})
    assert len(plain.splitlines()) > 10
    assert _output({}) == plain
    # The C library picks its own variants of exp and log by CPU.
    tunables = "glibc.cpu.hwcaps=-AVX2,-AVX512F,-FMA,-FMA4,-AVX2_Usable,-FMA_Usable"
    assert _output({"GLIBC_TUNABLES": tunables}) == plain

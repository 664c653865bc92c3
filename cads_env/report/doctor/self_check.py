"""Whether this machine gives the numbers that every machine must give.

Two known answers, frozen with the tape's version: a block of the tape's normals, and the reads of
one small campaign from registry to record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

from cads_env.report.doctor.finding import Finding

TAPE_SHA256: Final = "b69f7afcee007f57582cc1e8fd03b89d6c3d63a737f2b798661c24a134f8ee85"
"""SHA-256 of 1,000 standard normals of the tape of seed 0, as little-endian float64."""
READS_SHA256: Final = "edf36d9fdaadc61a62916db670102b410c513f2eeec296702cf493b283d9861c"
"""SHA-256 of the record of seed 0 without a proposer: synthetic-scale, m = 500, three rounds."""

_ADVICE: Final = "Numbers of this machine cannot be compared with others'; install cads-env again."


def self_check() -> Iterator[Finding]:
    """Findings on the tape and on one campaign."""
    for name, expected, found in (
        ("tape", TAPE_SHA256, tape_sha256()),
        ("campaign", READS_SHA256, reads_sha256()),
    ):
        if found == expected:
            yield Finding("self-check", name, "ok", "gives its known answer")
        else:
            text = f"gives {found[:16]}..., expected {expected[:16]}... {_ADVICE}"
            yield Finding("self-check", name, "problem", text)


def tape_sha256() -> str:
    """SHA-256 of 1,000 normals of the tape of seed 0."""
    # Imported late, here and below: where numpy is broken, the other findings still come.
    import numpy as np

    from cads_env.tape import bits, candidate_words, derive_key, normals

    keys = np.array([derive_key("tape", seed=0)], np.uint64)
    candidates = np.arange(1000)
    values = normals(bits(candidate_words(keys, candidates), candidates % 7, 0))
    return hashlib.sha256(np.ascontiguousarray(values, dtype="<f8").tobytes()).hexdigest()


def reads_sha256() -> str:
    """SHA-256 of the reads of a small campaign that nobody proposes to."""
    from cads_env.campaign import open_screen, play
    from cads_env.panel import load_registry
    from cads_env.proposer import Nothing
    from cads_env.protocol import load_protocol

    pair = load_registry("synthetic-scale", m=500)
    screen = open_screen([pair], [0], load_protocol("standard", rounds=3))
    return play(screen, [Nothing()])[0].sha256

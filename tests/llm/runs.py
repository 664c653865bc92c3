"""What a run left, in forms that two runs can be compared in."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.llm.proxy import fingerprint

ROWS = ("campaigns", "rounds", "declarations", "reads", "failures")
ROUNDS = 3
PROTOCOL = {"name": "proposer", "rounds": ROUNDS}


def rows_of(folder: Path) -> dict[str, bytes]:
    """The bytes of every file of rows."""
    paths = {name: folder / f"{name}.jsonl" for name in ROWS}
    return {name: path.read_bytes() for name, path in paths.items() if path.is_file()}


def lines_of(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Every whole line of every trace, by path; of a run that may have been killed."""
    found = {}
    for path in sorted((folder / "traces").glob("*/*.jsonl")):
        whole = [x for x in path.read_bytes().splitlines(keepends=True) if x.endswith(b"\n")]
        found[str(path.relative_to(folder))] = [json.loads(line) for line in whole]
    return found


def answers_of(folder: Path) -> dict[str, list[tuple[str, Any]]]:
    """What was asked and what was said, less all that depends on the hour."""
    return {
        path: [(line["request_sha256"], line["answer"]["text"]) for line in lines]
        for path, lines in lines_of(folder).items()
    }


def recorded(*folders: Path) -> Counter[str]:
    """How often each request was answered according to the traces."""
    return Counter(
        fingerprint(line["request"]["messages"], line["request"]["sampling"]["seed"])
        for folder in folders
        for lines in lines_of(folder).values()
        for line in lines
        if "answer" in line
    )


def totals(*folders: Path) -> Counter[str]:
    """Tokens in and out over all traces."""
    sums: Counter[str] = Counter()
    for folder in folders:
        for lines in lines_of(folder).values():
            for line in lines:
                usage = line["answer"]["usage"]
                sums.update({name: usage[name] for name in ("tokens_in", "tokens_out")})
                sums["requests"] += 1
    return sums

"""The process that reads damaged run folders: `python -W error -m tests.slow.fuzzed_runs COUNT`.

Run in a process of its own, so that a hang ends this process and not the tests. Prints one JSON
object: how often each operation gave a result or refused, and every fault.
"""

from __future__ import annotations

import faulthandler
import json
import random
import shutil
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from cads_env.errors import CadsError
from cads_env.proposer import Nothing, ProposerFailed, View
from cads_env.report.export import export_run
from cads_env.report.terminal import run_table
from cads_env.report.write import write_report
from cads_env.run import RunResult, compare, evaluate, load_run, merge
from cads_env.testing import tiny_protocol, tiny_registry
from tests.slow.mutations import mutate

SECONDS = 20
FILES = (
    "manifest.json", "campaigns.jsonl", "rounds.jsonl", "declarations.jsonl", "failures.jsonl",
    "reads.jsonl",
)  # fmt: skip
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 1e308, 10**30, "", "x", "\u202e\x00", "0" * 64, [], [1], {}, {"a": 1},
    [[]], float("nan"), 3,
)  # fmt: skip


class Fails(Nothing):
    """Fails in every other campaign."""

    def __init__(self, seed: int) -> None:
        self._fails = seed % 2 == 0

    def propose(self, view: View) -> Sequence[str]:
        if self._fails:
            msg = "no server"
            raise ProposerFailed(msg)
        return view.identifiers[: view.slots]


def play(out: Path, seeds: range = range(4)) -> RunResult:
    """The run, or what is left to play of it."""
    return evaluate(
        {"learner": "module-learner", "fails": Fails}, registry=tiny_registry(),
        protocol=tiny_protocol(reads_each=4, certificate={"q": 0.3}), seeds=seeds, out=out,
    )  # fmt: skip


def interrupt(whole: Path, folder: Path) -> None:
    """The run as a kill in its middle leaves it."""
    shutil.copytree(whole, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["arms"], manifest["files"]
    manifest["status"] = "running"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    path = folder / "campaigns.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]) + b'{"arm":"le')


def change_value(value: Any, rng: random.Random) -> Any:
    """A JSON value with one value somewhere in it replaced, missing or added."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        if rng.random() < 0.12:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: change_value(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.7:
        i = rng.randrange(len(value))
        return [*value[:i], change_value(value[i], rng), *value[i + 1 :]]
    return rng.choice(ODD)


def change_json(raw: bytes, rng: random.Random) -> bytes:
    """One row, or the manifest, with a value of a wrong type."""
    lines = [raw] if raw.startswith(b"{\n") else raw.splitlines()
    i = rng.randrange(len(lines))
    try:
        changed = change_value(json.loads(lines[i]), rng)
    except ValueError:
        return raw
    lines[i] = json.dumps(changed).encode()
    return b"\n".join(lines) + b"\n"


def damage(folder: Path, other: Path, number: int) -> str:
    """Damage number `number` of a folder; says what was done."""
    rng = random.Random(number)
    name = rng.choice(FILES)
    path = folder / name
    raw = path.read_bytes()
    kind = rng.choice(("bytes", "bytes", "json", "json", "json", "json", "json", "missing",
                       "swapped", "empty", "folder"))  # fmt: skip
    match kind:
        case "bytes":
            path.write_bytes(mutate(raw, number))
        case "json":
            path.write_bytes(change_json(raw, rng))
        case "missing":
            path.unlink()
        case "swapped":
            shutil.copy(other / name, path)
        case "empty":
            path.write_bytes(b"")
        case _:
            path.unlink()
            path.mkdir()
    is_signed = rng.random() < 0.7 and sign(folder)
    return f"{kind} of {name}{' with its hash' if is_signed else ''}"


def sign(folder: Path) -> bool:
    """Make the manifest tell of the files as they are now, where it can be read."""
    path = folder / "manifest.json"
    try:
        manifest = json.loads(path.read_bytes())
        for name in FILES[1:]:
            if (folder / name).is_file() and name in manifest["files"]:
                manifest["files"][name] = sha256((folder / name).read_bytes()).hexdigest()
        path.write_text(json.dumps(manifest, indent=2) + "\n")
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return False
    return True


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a folder but the lock."""
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in folder.rglob("*")
        if p.is_file() and p.name != ".lock"
    }


def operations(
    folder: Path, whole: Path, intact: Path, out: Path
) -> dict[str, Callable[[], object]]:
    """What is tried on a damaged folder; the last one may write into it."""

    def show() -> None:
        result = load_run(folder)
        str(result)
        run_table(result)

    return {
        "load": show,
        "report": lambda: write_report(load_run(folder), out / "report"),
        "compare": lambda: compare([folder, whole]),
        "merge": lambda: merge([folder, intact], out / "merged"),
        "export": lambda: export_run(folder, out / "export", parquet=False, csv=True),
        "resume": lambda: play(folder),
    }


def main(start: int, stop: int) -> None:
    """Damage copies of a finished and of an interrupted run, in the working folder."""
    whole, intact, broken, other = (Path(x) for x in ("whole", "intact", "broken", "other"))
    play(whole)
    play(intact, range(4, 8))
    interrupt(whole, broken)
    evaluate("random", registry=tiny_registry(40, 6, name="else"), protocol=tiny_protocol(),
             seeds=range(3), out=other)  # fmt: skip
    for name in FILES:
        (other / name).touch()
    counts: Counter[str] = Counter()
    faults: list[str] = []
    for number in range(start, stop):
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        folder, out = Path("case"), Path("out")
        for place in (folder, out):
            shutil.rmtree(place, ignore_errors=True)
        out.mkdir()
        shutil.copytree(whole if number % 2 else broken, folder)
        what = damage(folder, other, number)
        for name, operation in operations(folder, whole, intact, out).items():
            before = content(folder)
            here = f"case {number}, {name} after {what}"
            try:
                operation()
                counts[f"{name} done"] += 1
                continue
            except CadsError as error:
                counts[f"{name} refused"] += 1
                said = str(error)
                if (
                    not said.strip()
                    or len(said) > 2_000
                    or not said.replace("\n", "").isprintable()
                ):
                    faults.append(f"{here}: message {said[:300]!r}")
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-4:]
                at = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(where))
                faults.append(f"{here}: {type(error).__name__} at {at}: {str(error)[:150]}")
            after = content(folder)
            if after != before:
                changed = {k for k in {*before, *after} if before.get(k) != after.get(k)}
                faults.append(f"{here}: changed {sorted(changed)}")
        faulthandler.cancel_dump_traceback_later()
    print(json.dumps({**counts, "faults": faults}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

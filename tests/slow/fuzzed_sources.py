"""The process that loads damaged files: `python -W error -m tests.slow.fuzzed_sources NAME COUNT`.

Run in a process of its own, so that a hang, a crash of a C library or a file that asks for all
memory ends this process and not the tests. Prints one JSON object: how many files were accepted and
refused, and every fault; the number of the case at hand stands in the file `case`.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cads_env.errors import CadsError
from cads_env.panel import load_panel, load_registry
from cads_env.protocol import load_protocol
from cads_env.registry import Oracle, Registry
from cads_env.sources.adding import add_registry
from cads_env.sources.checking import check_file
from tests.slow.miniatures import LAYOUTS, MINIATURES, REAL_LAYOUTS, write_h5ad, write_parquet
from tests.slow.mutations import mutate

SECONDS = 5
MEMORY = 1 << 30
LONGEST = 2_000

UNUSABLE = (
    "mageck-sgrna", "CRISPRInferredCommonEssentials.csv", "Model.csv", "bagel_reads.txt",
    "mageck.sgrna_summary.txt", "CRISPRGeneDependency.csv",
    "Repurposing_Public_24Q2_Extended_Primary_Compound_List.csv",
    "BIOGRID-ORCS-SCREEN_INDEX-1.1.17.index.tab.txt",
)  # fmt: skip
"""Files that no source reads even undamaged."""

Pair = tuple[Registry, Oracle]


def faults_of_pair(pair: Pair) -> Iterator[str]:
    """What is wrong with a pair that a loader returned."""
    public, private = pair
    if public.m < 2 or public.m != private.m or len(set(public.identifiers)) != public.m:
        yield "sizes or identifiers"
    if not all(isinstance(x, str) and x.strip() for x in public.identifiers):
        yield "an empty identifier"
    if not np.isfinite(private.signal).all() or (private.signal[~private.labels] > 0).any():
        yield "signal"
    if not 0 < private.hit_count < private.m:
        yield "no hit or no null"
    if not public.name.strip() or not public.description.strip():
        yield "no name or description"
    for table in public.side_tables.values():
        if table.values.shape != (public.m,):
            yield "side table not aligned"
        if table.values.dtype.kind == "f" and not np.isfinite(table.values).all():
            yield "side table not finite"
        if table.values.dtype.kind not in "fU":
            yield f"side table of type {table.values.dtype}"
    for text in (public.description, public.name):
        if not text.isprintable() or len(text) > LONGEST:
            yield f"text of {len(text)}: {text[:80]!r}"
    if not public.hash or not private.hash:
        yield "hash"


def faults_of_message(said: str, *files: str) -> Iterator[str]:
    """What is wrong with what an error says."""
    if not said.strip():
        yield "an empty message"
    if len(said) > LONGEST:
        yield f"a message of {len(said):,} characters: {said[:150]!r}"
    if not said.replace("\n", "").isprintable():
        yield f"a message that cannot be printed: {ascii(said)[:300]}"
    if not any(file.partition(".")[0] in said for file in files):
        yield f"a message that does not name the file: {said[:300]}"


def prepare(name: str, folder: Path) -> tuple[bytes, str, str, dict[str, Any], bool]:
    """Writes what is beside; returns content, file name, source, options and whether it is text."""
    if name in REAL_LAYOUTS:
        source, options = REAL_LAYOUTS[name]
        is_text = not name.endswith(".parquet")
        return (LAYOUTS / name).read_bytes(), name, source, {**options, "path": name}, is_text
    mini = MINIATURES[name]
    for other, text in mini.beside.items():
        (folder / other).write_text(text)
    options = dict(mini.options)
    for option in dict.fromkeys(("path", mini.damaged)):
        options[option] = mini.file if option == mini.damaged else next(iter(mini.beside))
    if mini.content is not None:
        return mini.content.encode(), mini.file, mini.source, options, True
    if mini.file.endswith(".h5ad"):
        write_h5ad(folder / mini.file, is_sparse=name.endswith("sparse"))
    else:
        write_parquet(folder / mini.file)
    return (folder / mini.file).read_bytes(), mini.file, mini.source, options, False


class Fuzz:
    """The damaged files of one layout, and what became of them."""

    def __init__(self, name: str, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.raw, self.file, self.source, self.options, self.is_text = prepare(name, folder)
        self.files = (self.file, Path(str(self.options.get("path", self.file))).name)
        self.counts = {"accepted": 0, "refused": 0}
        self.faults: list[str] = []
        self.case = -1

    def fault(self, what: str) -> None:
        self.faults.append(f"case {self.case}: {what}")

    def load(self) -> Pair | None:
        """The first registry of the file, or None for a protocol."""
        if self.source == "protocol":
            load_protocol(self.file)
            return None
        if not self.source:
            panel = load_panel(self.file)
            for pair in panel:
                for what in faults_of_pair(pair):
                    self.fault(what)
            return panel[0]
        return load_registry(self.source, **self.options)

    def try_load(self) -> bool:
        try:
            pair = self.load()
        except CadsError as error:
            for what in faults_of_message(str(error), *self.files):
                self.fault(what)
            return False
        for what in faults_of_pair(pair) if pair is not None else ():
            self.fault(what)
        return True

    def try_check(self, is_usable: bool) -> None:
        options = dict(self.options)
        path = options.pop("path")
        try:
            found = check_file(path, source=self.source, options=options)
        except CadsError as error:
            self.fault(f"check_file raised {error}")
            return
        if (found.pair is not None) != is_usable or bool(found.problems) == is_usable:
            self.fault(f"check_file disagrees: {found.problems}")
        for problem in found.problems:
            for what in faults_of_message(problem, *self.files):
                self.fault(f"check_file: {what}")

    def try_guess(self) -> None:
        try:
            check_file(self.options["path"])
        except CadsError as error:
            self.fault(f"check_file without a source raised {error}")

    def try_add(self, is_usable: bool) -> None:
        options = dict(self.options)
        path = options.pop("path")
        try:
            add_registry(path, name="mine", source=self.source, options=options)
        except CadsError as error:
            if is_usable:
                self.fault(f"add_registry refuses what load_registry takes: {error}")
            if [x for x in self.home.rglob("*") if x.is_file()]:
                self.fault("add_registry left something behind")
            return
        if not is_usable:
            self.fault("add_registry takes what load_registry refuses")
        try:
            load_registry("mine")
        except CadsError as error:
            self.fault(f"what was added cannot be loaded: {error}")
        for left in self.home.rglob("*"):
            if left.is_file():
                left.unlink()

    def run(self, number: int) -> None:
        """Case `number`; -1 is the file as it is."""
        self.case = number
        damaged = self.raw if number < 0 else mutate(self.raw, number, is_text=self.is_text)
        (self.folder / self.file).write_bytes(damaged)
        try:
            is_usable = self.try_load()
            self.counts["accepted" if is_usable else "refused"] += 1
            if self.source not in ("", "protocol"):
                self.try_check(is_usable)
                self.try_add(is_usable)
                if number % 8 == 0:
                    self.try_guess()
        except Exception as error:
            import traceback

            where = traceback.extract_tb(error.__traceback__)[-3:]
            at = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(where))
            self.fault(f"{type(error).__name__} at {at}: {str(error)[:200]}")


def limit_memory() -> None:
    """At most so much more than the libraries hold already."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))


def main(name: str, start: int, stop: int) -> None:
    """Load the cases from `start` to `stop` of one layout, in the working folder."""
    folder = Path.cwd()
    os.environ["CADS_HOME"] = str(folder / "home")
    fuzz = Fuzz(name, folder)
    fuzz.run(-1)  # imports what is imported late
    limit_memory()
    if fuzz.counts["accepted"] == 0 and name not in UNUSABLE:
        fuzz.fault("is refused undamaged")
    for number in range(start, stop):
        Path("case").write_text(str(number))
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        fuzz.run(number)
        faulthandler.cancel_dump_traceback_later()
    print(json.dumps({**fuzz.counts, "faults": fuzz.faults}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))

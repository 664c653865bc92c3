"""How long a genome-scale DepMap matrix takes to load, and how much memory.

Writes a made-up file of CRISPRGeneEffect.csv's size (1,180 lines by 18,400 genes, about 450 MB)
into a folder of the user's or a temporary one, loads one line and a panel in fresh processes, and
prints seconds and peak memory. Uses no data of DepMap's; never a test.

Usage: python benchmarks/depmap_file.py [folder] [--by-gene] [--lines 1180] [--genes 18400]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import numpy as np

SEED: Final = 20
PANEL: Final = 44
MISSING: Final = 0.0002

_MEASURE: Final = """
import resource, sys, time
import cads_env
from cads_env.panel import load_panel, load_registry
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
path, prior, *lines = sys.argv[1:]
start = time.perf_counter()
if len(lines) == 1:
    load_registry("depmap", path=path, line=lines[0], prior=prior)
else:
    load_panel("depmap", path=path, lines=lines, prior=prior)
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(f"{seconds:7.1f} s   peak {peak / 1024:5.0f} MB, of which {before / 1024:.0f} at the start")
"""


def line_name(i: int) -> str:
    """The made-up identifier of line i."""
    return f"ACH-{i + 1:06d}"


def write_matrix(path: Path, *, line_count: int, gene_count: int, is_by_gene: bool) -> None:
    """A seeded matrix with effects of 15 to 18 digits and a few missing values.

    Args:
        path: The file.
        line_count: Cell lines.
        gene_count: Genes.
        is_by_gene: Whether a row is a gene, rather than a line.
    """
    rng = np.random.Generator(np.random.PCG64(SEED))
    genes = [f"GENE{i + 1} ({i + 1})" for i in range(gene_count)]
    lines = [line_name(i) for i in range(line_count)]
    rows, columns = (genes, lines) if is_by_gene else (lines, genes)
    means = rng.standard_normal(gene_count) * 0.4 - 0.15
    with path.open("w", encoding="utf-8") as file:
        file.write(",".join(["", *columns]) + "\n")
        for i, row in enumerate(rows):
            centre = means[i] if is_by_gene else means
            values = centre + rng.standard_normal(len(columns)) * 0.2
            missing = rng.random(len(columns)) < MISSING
            cells = [
                "" if gone else repr(x)
                for x, gone in zip(values.tolist(), missing.tolist(), strict=True)
            ]
            file.write(",".join([row, *cells]) + "\n")


def main() -> None:
    """Write the file where there is none yet, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="default: a temporary one")
    parser.add_argument("--by-gene", action="store_true", help="genes in rows")
    parser.add_argument("--lines", type=int, default=1180)
    parser.add_argument("--genes", type=int, default=18400)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        path = folder / ("made_up_by_gene.csv" if asked.by_gene else "made_up_by_line.csv")
        if not path.exists():
            start = time.perf_counter()
            write_matrix(
                path, line_count=asked.lines, gene_count=asked.genes, is_by_gene=asked.by_gene
            )
            print(f"written in {time.perf_counter() - start:.0f} s")
        print(f"{path.name}: {path.stat().st_size / 1e6:.0f} MB")
        names = [line_name(i) for i in range(min(PANEL, asked.lines))]
        for what, prior, chosen in (
            ("one line, no prior", "none", names[:1]),
            ("one line", "other-lines", names[:1]),
            (f"panel of {len(names)} lines", "other-lines", names),
        ):
            print(f"{what:22s}", end="", flush=True)
            command = [sys.executable, "-c", _MEASURE, str(path), prior, *chosen]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()

"""What a downloaded file looks like, told from its first lines alone.

One row a known layout: the source that reads it, and a predicate on the head of the file. A guess
made here is offered to the user and never decides what a loader reads; no file is read whole.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cads_env.sources.delimited import SEPARATORS

HEAD_BYTES: Final = 4_000_000
"""Bytes that are looked at: the header of 20,000 genes is about 300,000."""

LINE_ID: Final = re.compile(r"ACH-\d{6}")
"""A DepMap cell line."""

GENE_COLUMN: Final = re.compile(r"\S.* \(\d+\)")
"""A gene as DepMap names it, `SYMBOL (ENTREZ)`."""

_ROWS: Final = 20
_MOST: Final = 0.9


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a file.

    Attributes:
        path: The file.
        start: Its first bytes.
        header: Cells of the first line that is not empty; empty for a binary file.
        rows: Cells of the lines that follow, 20 at most.
    """

    path: Path
    start: bytes
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def has(self, *columns: str) -> bool:
        """True when the header holds all these columns."""
        return set(columns) <= set(self.header)

    @property
    def first_column(self) -> tuple[str, ...]:
        """The first cell of each row."""
        return tuple(row[0] for row in self.rows if row)


@dataclass(frozen=True, slots=True)
class Layout:
    """One known kind of file.

    Attributes:
        title: What it is, for a message.
        source: The source that reads it, or None when no source does.
        fits: Whether a head is of this kind.
        advice: What to declare, or which file is meant instead.
        asks: Options that want declaring, as groups of which one is enough.
    """

    title: str
    source: str | None
    fits: Callable[[Head], bool]
    advice: str = ""
    asks: tuple[tuple[str, ...], ...] = ()

    def missing(self, given: Collection[str]) -> tuple[tuple[str, ...], ...]:
        """The groups of `asks` of which no option is given."""
        return tuple(group for group in self.asks if not set(group) & set(given))


def mostly(pattern: re.Pattern[str], cells: Iterable[str]) -> bool:
    """True when nine in ten cells, and at least one, are wholly of the pattern."""
    found = [pattern.fullmatch(cell.strip()) is not None for cell in cells]
    return bool(found) and sum(found) >= _MOST * len(found)


def _is_effects_by_line(head: Head) -> bool:
    return mostly(GENE_COLUMN, head.header[1:]) and mostly(LINE_ID, head.first_column)


def _is_effects_by_gene(head: Head) -> bool:
    has_compounds = any(name.startswith("BRD") for name in head.first_column)
    return mostly(LINE_ID, head.header[1:]) and bool(head.rows) and not has_compounds


def _is_compounds_by_line(head: Head) -> bool:
    compounds = [name for name in head.first_column if name.startswith("BRD")]
    return bool(compounds) and mostly(LINE_ID, head.header[1:])


def _is_lines_by_compound(head: Head) -> bool:
    compounds = [name for name in head.header[1:] if name.startswith("BRD")]
    return bool(compounds) and mostly(LINE_ID, head.first_column)


def _is_guide_counts(head: Head) -> bool:
    first = [name.lower() for name in head.header[:2]]
    return len(head.header) > 2 and first in (["sgrna", "gene"], ["sequence", "gene"])


LAYOUTS: Final[tuple[Layout, ...]] = (
    Layout(
        "the gene summary of `mageck test`",
        "mageck",
        lambda head: head.has("id", "neg|fdr", "pos|fdr"),
        "Say direction=neg or pos, and threshold=... or fdr=....",
        (("direction",), ("threshold", "fdr")),
    ),
    Layout(
        "the gene summary of `mageck mle`",
        "mageck",
        lambda head: head.has("Gene") and any(x.endswith("|beta") for x in head.header),
        "Say condition=..., direction=neg or pos, and threshold=... or fdr=....",
        (("condition", "conditions"), ("direction",), ("threshold", "fdr")),
    ),
    Layout(
        "the guide summary of MAGeCK or a table of read counts, one row a guide",
        None,
        _is_guide_counts,
        "Candidates are genes: run the analysis first (`mageck test`, or BAGEL for its own "
        "counts) and give the gene_summary.txt or .bf file that it writes.",
    ),
    Layout(
        "a table of Bayes factors from BAGEL",
        "table",
        lambda head: head.has("GENE", "BF"),
        "Say identifier=GENE effect=BF direction=higher threshold=... (higher is more essential).",
        (("identifier",), ("effect",), ("direction",), ("threshold",)),
    ),
    Layout(
        "a BioGRID ORCS screen",
        "orcs",
        lambda head: head.has("#SCREEN_ID", "OFFICIAL_SYMBOL", "HIT"),
        "Say signal=(1.0, -0.5), or score=..., direction=... and threshold=....",
        (("signal", "score"),),
    ),
    Layout(
        "the BioGRID ORCS index, one row a screen",
        None,
        lambda head: head.has("#SCREEN_ID", "SCORE.1_TYPE"),
        "It describes screens and holds none: give it as index=... beside path=... of a "
        ".screen.tab.txt file.",
    ),
    Layout(
        "a PRISM primary screen, one row a compound",
        "prism",
        _is_compounds_by_line,
        "Say line=ACH-... and threshold=....",
        (("line", "lines"), ("threshold",)),
    ),
    Layout(
        "a PRISM primary screen, one row a cell line",
        "prism",
        _is_lines_by_compound,
        "Say line=ACH-... and threshold=....",
        (("line", "lines"), ("threshold",)),
    ),
    Layout(
        "the dose-response table of a PRISM secondary screen",
        "prism",
        lambda head: head.has("broad_id", "depmap_id", "screen_id", "auc"),
        "Say line=ACH-..., measure=auc and threshold=....",
        (("line", "lines"), ("measure",), ("threshold",)),
    ),
    Layout(
        "a PRISM compound list",
        None,
        lambda head: head.has("IDs", "Drug.Name"),
        "It describes compounds and holds no effects: give it as compounds=... beside path=... "
        "of a PRISM matrix.",
    ),
    Layout(
        "a long table of Perturb-seq differential expression",
        "perturbseq",
        lambda head: head.has("target_contrast_gene_name", "culture_condition", "gene_name"),
        "Say target=..., condition=..., effect=log_fc or zscore, and threshold=....",
        (("target", "targets"), ("condition",), ("effect",), ("threshold", "adj_p")),
    ),
    Layout(
        "an HDF5 file such as h5ad",
        "perturbseq",
        lambda head: head.start.startswith(b"\x89HDF"),
        "Say target=..., condition=..., effect=log_fc or zscore, and threshold=....",
        (("target", "targets"), ("condition",), ("effect",), ("threshold", "adj_p")),
    ),
    Layout(
        "a DepMap matrix of gene effects, one row a cell line",
        "depmap",
        _is_effects_by_line,
        "Say which cell line: line=ACH-....",
        (("line", "lines"),),
    ),
    Layout(
        "a matrix of gene effects, one row a gene and one column a DepMap cell line",
        "depmap",
        _is_effects_by_gene,
        "Say which cell line: line=ACH-....",
        (("line", "lines"),),
    ),
    Layout(
        "DepMap's table of cell lines (Model.csv)",
        None,
        lambda head: head.has("ModelID", "OncotreeLineage"),
        "It describes lines and holds no effects: give it as model=... beside path=... of "
        "CRISPRGeneEffect.csv.",
    ),
    Layout(
        "a DepMap list of genes",
        None,
        lambda head: len(head.header) == 1 and mostly(GENE_COLUMN, head.first_column),
        "It names genes and holds no effects.",
    ),
)
"""Every known layout. One file may fit several; the first row that fits is not the only one."""


def read_head(path: Path) -> Head:
    """The beginning of a file, its cells parted by the tab or the comma, whichever is commoner.

    Args:
        path: The file.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        start = file.read(HEAD_BYTES)
    text = start.decode("utf-8-sig", errors="replace")
    if "\0" in text:
        return Head(path, start, (), ())
    lines = [line for line in text.splitlines()[: _ROWS + 10] if line.strip()][: _ROWS + 1]
    if len(start) == HEAD_BYTES and len(lines) > 1:
        lines = lines[:-1]  # perhaps cut in two
    if not lines:
        return Head(path, start, (), ())
    by_name = SEPARATORS.get(path.suffix.lower(), ",")
    separator = max("\t,;", key=lambda sep: (lines[0].count(sep), sep == by_name))
    try:
        cells = [tuple(map(str.strip, row)) for row in csv.reader(lines, delimiter=separator)]
    except csv.Error:
        cells = [tuple(map(str.strip, line.split(separator))) for line in lines]
    return Head(path, start, cells[0], tuple(cells[1:]))


def recognise(path: Path) -> tuple[Layout, ...]:
    """The known layouts that a file fits.

    Args:
        path: The file.

    Returns:
        None, one or several; empty also for a file that cannot be read, which a loader says better.
    """
    try:
        head = read_head(path)
    except OSError:
        return ()
    return tuple(layout for layout in LAYOUTS if layout.fits(head))


def layout_of_another_source(path: Path) -> Layout | None:
    """The layout of a file that another source than `table` reads; None where it may be a table."""
    found = [layout for layout in recognise(path) if layout.source is not None]
    others = {layout.source for layout in found}
    return found[0] if len(others) == 1 and "table" not in others else None


def source_of(path: Path) -> str | None:
    """The one source that the file's layout belongs to, or None where none or several fit."""
    sources = {layout.source for layout in recognise(path)}
    return sources.pop() if len(sources) == 1 else None

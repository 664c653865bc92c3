"""A large text matrix of genes by cell lines, read one row at a time.

A first pass keeps names and the place of every row, a second, only when asked for, sums and counts
by gene; then one line is one seek. The file is never held whole, and what was found is kept in the
process until the file changes. Knows no threshold and no option.
"""

from __future__ import annotations

import csv
import math
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cads_env.errors import RegistryError, quoted
from cads_env.registry_checks import listed
from cads_env.sources.byte_rows import numbered_rows, open_file, unreadable
from cads_env.sources.decimals import LARGEST, Wholes, wholes_of
from cads_env.sources.delimited import number
from cads_env.sources.layouts import LINE_ID, mostly, recognise

Float64s = NDArray[np.float64]
Int64s = NDArray[np.int64]

_MOST_LINES: Final = 1 << 16
_COLUMNS: Final = 64
_BATCH: Final = 1 << 18
_HELD: Final = 4


class Totals(NamedTuple):
    """What the lines of a matrix add up to.

    Attributes:
        sums: Sum of each gene's values as multiples of 2**-32, shape (genes,).
        counts: Number of lines that have a value, shape (genes,).
    """

    sums: Int64s
    counts: Int64s


class Matrix:
    """Names and places of one file.

    Attributes:
        path: The file.
        genes: Names of the genes as the file spells them, in its order.
        lines: Names of the cell lines, in the file's order.
        is_by_gene: True when a row is a gene, False when it is a line.
    """

    def __init__(self, path: Path) -> None:
        """Find the rows of a file.

        Args:
            path: UTF-8 text; any line ending; comma, tab or semicolon.

        Raises:
            RegistryError: The file cannot be read, is no matrix of genes by lines, has ragged rows,
                or has empty or repeated names.
        """
        self.path = path
        self._places: list[tuple[int, int]] = []
        rows: list[str] = []
        ragged: list[str] = []
        with open_file(path) as file:
            numbered = numbered_rows(file, path)
            columns = self._read_header(next(numbered, (0, b""))[1])
            for start, row in numbered:
                name, count = self._measure(row)
                if count != len(columns) + 1:
                    ragged.append(f"row {quoted(name)} has {count}")
                rows.append(name)
                self._places.append((start, len(row)))
        if ragged:
            msg = (
                f"{path}: {len(ragged)} rows have another number of fields than the header, which "
                f"has {len(columns) + 1}: {', '.join(ragged[:5])}. Is the file cut off? "
                "Download it again."
            )
            raise RegistryError(msg)
        if not rows:
            msg = f"{path} has a header and no data rows; expected one row a cell line or a gene."
            raise RegistryError(msg)
        self.is_by_gene = _is_by_gene(path, columns, rows)
        self.genes, self.lines = (
            (tuple(rows), tuple(columns)) if self.is_by_gene else (tuple(columns), tuple(rows))
        )
        for kind, names in (("gene", self.genes), ("cell line", self.lines)):
            _check_names(path, kind, names)
        self._position = {name: i for i, name in enumerate(self.lines)}
        self._totals: Totals | None = None
        self._block: tuple[int, list[bytes]] | None = None
        self._last: tuple[frozenset[str], Totals] | None = None
        self._lock = threading.Lock()

    def values(self, line: str) -> Float64s:
        """The effects of one line in the order of `genes`, NaN where missing.

        Args:
            line: One of `lines`.

        Raises:
            RegistryError: A value is no number, or is infinite.
        """
        at = self._position[line]
        if self.is_by_gene:
            cells = [cell.decode("utf-8", "replace") for cell in self._column(at)]
        else:
            with open_file(self.path) as file:
                cells = self._cells(self._row(file, at))[1:]
        return self._numbers(cells, line, self.genes)

    def totals(self) -> Totals:
        """Sums and counts by gene over every line; the whole file is read once, row by row.

        Raises:
            RegistryError: A value of any line is not usable.
        """
        with self._lock:
            if self._totals is None:
                self._totals = self._add_up()
            return self._totals

    def totals_of(self, lines: Collection[str]) -> Totals:
        """What some of the lines add to `totals`; kept for the last lines asked for.

        Args:
            lines: Some of `lines`, each once.

        Raises:
            RegistryError: A value is not usable.
        """
        key = frozenset(lines)
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        positions = sorted(self._position[line] for line in key)
        sums = np.zeros(len(self.genes), np.int64)
        counts = np.zeros(len(self.genes), np.int64)
        if not key:
            return Totals(sums, counts)
        for at in positions:
            found = self._wholes([self._line_body(at)], [self.lines[at]], self.genes)
            sums += found.multiples
            counts += found.there
        if len(key) > 1:  # one line is quick to read again
            self._last = (key, Totals(sums, counts))
        return Totals(sums, counts)

    def _line_body(self, at: int) -> bytes:
        """The cells of line `at`, parted by the separator."""
        if self.is_by_gene:
            return self._separator.join(self._column(at))
        with open_file(self.path) as file:
            return self._body(self._row(file, at))

    def _column(self, at: int) -> list[bytes]:
        """The cells of column `at`, with which its neighbours are read and kept for a while."""
        first = at - at % _COLUMNS
        block = self._block  # another thread may put its own in place
        if block is None or block[0] != first:
            part = slice(first + 1, first + 1 + _COLUMNS)
            with open_file(self.path) as file:
                rows = [
                    self._separator.join(row.split(self._separator, part.stop)[part])
                    if b'"' not in row
                    else self._separator.join(cell.encode() for cell in self._cells(row)[part])
                    for row in self._each_row(file)
                ]
            self._block = block = (first, rows)
        return [row.split(self._separator)[at - first].strip() for row in block[1]]

    def _add_up(self) -> Totals:
        if len(self.lines) > _MOST_LINES:
            msg = f"{self.path} has {len(self.lines):,} cell lines; at most {_MOST_LINES:,} fit."
            raise RegistryError(msg)
        sums = np.zeros(len(self.genes), np.int64)
        counts = np.zeros(len(self.genes), np.int64)
        rows, columns = (self.genes, self.lines) if self.is_by_gene else (self.lines, self.genes)
        with open_file(self.path) as file:
            done = 0
            for batch in self._batches(file):
                found = self._wholes(batch, rows[done : done + len(batch)], columns)
                multiples = found.multiples.reshape(len(batch), -1)
                there = found.there.reshape(len(batch), -1)
                if self.is_by_gene:
                    part = slice(done, done + len(batch))
                    sums[part], counts[part] = multiples.sum(axis=1), there.sum(axis=1)
                else:
                    sums += multiples.sum(axis=0)
                    counts += there.sum(axis=0)
                done += len(batch)
        return Totals(sums, counts)

    def _batches(self, file: BinaryIO) -> Iterator[list[bytes]]:
        """The cells of a few rows at a time: arrays pay off from some thousand numbers on."""
        batch: list[bytes] = []
        size = 0
        for row in self._each_row(file):
            batch.append(self._body(row))
            size += len(row)
            if size > _BATCH:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def _body(self, row: bytes) -> bytes:
        """The cells of a row without its name and without quotation marks."""
        if b'"' in row:
            return self._separator.join(cell.encode() for cell in self._cells(row)[1:])
        return row.partition(self._separator)[2]

    def _wholes(
        self, bodies: Sequence[bytes], names: Sequence[str], columns: Sequence[str]
    ) -> Wholes:
        """The numbers of one or several rows, whose names and columns are for the message."""
        found = wholes_of(self._separator.join(bodies), self._separator)
        if found.faulty or found.there.size != len(bodies) * len(columns):
            # The slower reading knows what to say.
            for body, row in zip(bodies, names, strict=True):
                cells = body.decode("utf-8", "replace").split(self._separator.decode())
                self._numbers(cells, row, columns)
            msg = f"{self.path} changed while it was read (row {names[0]!r}). Load it again."
            raise RegistryError(msg)
        return found

    def _read_header(self, raw: bytes) -> list[str]:
        """The names of the columns but the first; also settles the separator."""
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            msg = f"{self.path} is no UTF-8 text; expected a table as DepMap publishes it (.csv)."
            raise RegistryError(msg)
        if not text.strip():
            msg = f"{self.path} is empty; expected a matrix of gene effects."
            raise RegistryError(msg)
        self._separator = max(b",", b"\t", b";", key=raw.count)
        names = [name.strip() for name in self._split(text)]
        if len(names) < 2:
            msg = (
                f"{self.path} has one column, {names[0]!r}; expected a matrix of genes by cell "
                "lines such as CRISPRGeneEffect.csv."
            )
            raise RegistryError(msg)
        return names[1:]

    def _split(self, text: str) -> list[str]:
        try:
            return next(csv.reader([text], delimiter=self._separator.decode(), strict=True))
        except (csv.Error, StopIteration) as error:
            msg = f"{self.path} has a row with an unpaired quotation mark: {text[:60]!r}."
            raise RegistryError(msg) from error

    def _cells(self, row: bytes, count: int | None = None) -> list[str]:
        """The cells of a row; with `count`, the first so many and the rest in one."""
        try:
            text = row.decode()
        except UnicodeDecodeError as error:
            msg = f"{self.path} is not UTF-8 text in the row that begins with {row[:40]!r}."
            raise RegistryError(msg) from error
        if '"' in text:
            return self._split(text)
        return text.split(self._separator.decode(), -1 if count is None else count)

    def _measure(self, row: bytes) -> tuple[str, int]:
        """The name of a row and its number of cells."""
        if b'"' in row:
            cells = self._cells(row)
            return cells[0].strip(), len(cells)
        return self._cells(row, 1)[0].strip(), row.count(self._separator) + 1

    def _each_row(self, file: BinaryIO) -> Iterator[bytes]:
        return (self._row(file, i) for i in range(len(self._places)))

    def _row(self, file: BinaryIO, i: int) -> bytes:
        start, length = self._places[i]
        if file.tell() != start:
            file.seek(start)
        return file.read(length)

    def _numbers(self, cells: Sequence[str], row: str, columns: Sequence[str]) -> Float64s:
        try:
            values = [float(cell) if cell else math.nan for cell in cells]
            # float() also reads Python's 1_000.
            is_plain = "_" not in "".join(cells)
        except ValueError:
            is_plain = False
        if not is_plain:
            parsed = [number(cell.strip()) for cell in cells]
            bad = [
                f"{quoted(columns[i])}: {quoted(cells[i])}"
                for i, x in enumerate(parsed) if x is None
            ]  # fmt: skip
            if bad:
                msg = (
                    f"{self.path}: {len(bad)} entries of {quoted(row)} are no numbers: "
                    f"{', '.join(bad[:5])}. Mend them, or remove columns that hold no effects."
                )
                raise RegistryError(msg)
            values = [x for x in parsed if x is not None]
        array = np.array(values, np.float64)
        at = np.flatnonzero(np.abs(array) >= LARGEST)  # false for NaN
        if at.size:
            names = listed([f"{columns[int(i)]}: {cells[int(i)]}" for i in at])
            msg = (
                f"{self.path}: {at.size} entries of {row!r} are infinite or beyond {LARGEST:,.0f}: "
                f"{names}. These are no gene effects; mend the file."
            )
            raise RegistryError(msg)
        return array


_held: OrderedDict[tuple[str, int, int], Matrix] = OrderedDict()
_lock = threading.Lock()


def open_matrix(path: Path) -> Matrix:
    """The matrix of a file; the same object while the file stays as it is.

    Args:
        path: The file.

    Raises:
        RegistryError: As for `Matrix`.
    """
    try:
        state = path.stat()
    except OSError as error:
        raise unreadable(path, error) from error
    key = (str(path), state.st_size, state.st_mtime_ns)
    # One pass at a time: two threads that want one file should not both read it.
    with _lock:
        if key not in _held:
            _held[key] = Matrix(path)
            if len(_held) > _HELD:
                _held.popitem(last=False)
        _held.move_to_end(key)
        return _held[key]


def _is_by_gene(path: Path, columns: Sequence[str], rows: Sequence[str]) -> bool:
    found = recognise(path)
    if found and all(layout.source != "depmap" for layout in found):
        reader = found[0].source
        advice = found[0].advice if reader is None else f"Read it with the source {reader!r}."
        msg = f"{path} looks like {found[0].title}. {advice}"
        raise RegistryError(msg)
    compounds = [name for name in (rows[0], columns[0]) if name.startswith("BRD")]
    if compounds:
        msg = f"{path} holds compounds ({compounds[0]!r}), not genes; the source 'prism' reads it."
        raise RegistryError(msg)
    has_lines = mostly(LINE_ID, rows), mostly(LINE_ID, columns)
    if has_lines[0] == has_lines[1]:
        where = "both its rows and its columns" if has_lines[0] else "neither rows nor columns"
        msg = (
            f"{path}: {where} are named like DepMap cell lines (ACH-000446). First columns: "
            f"{listed(columns[:3])}; first rows: {listed(rows[:3])}. Expected genes by lines; a "
            "table with one row a gene is read by the source 'table'."
        )
        raise RegistryError(msg)
    return has_lines[1]


def _check_names(path: Path, kind: str, names: Sequence[str]) -> None:
    empty = [i + 1 for i, name in enumerate(names) if not name]
    if empty:
        msg = f"{path}: {len(empty)} {kind}s have no name, at position {listed(empty)}. Name them."
        raise RegistryError(msg)
    if len(set(names)) != len(names):
        seen: set[str] = set()
        again = [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
        msg = (
            f"{path} has {len(again)} {kind}s more than once: {listed(again)}. Which one is meant "
            "cannot be told; remove the doubles."
        )
        raise RegistryError(msg)

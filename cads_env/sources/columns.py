"""Chosen columns and rows of a delimited file of any size, read row by row in bounded memory.

Strict as `cads_env.sources.delimited` is: no row is dropped unasked, no separator guessed. Never
holds more of a file than one row and what is kept of it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cads_env.errors import RegistryError, error_text
from cads_env.sources.delimited import TextTable, number
from cads_env.sources.problems import report

Float64s = NDArray[np.float64]
Row = tuple[int, list[str]]


@dataclass(frozen=True, slots=True)
class RowStream:
    """An open file: its header and the rows that are still to be read.

    Attributes:
        path: The file.
        header: Names of the columns, without surrounding white space.
        rows: Number (the header is row 1) and fields of each row; as many fields as the header.
    """

    path: Path
    header: list[str]
    rows: Iterator[Row]


@contextmanager
def open_rows(path: Path, *, sep: str, is_quoted: bool = True) -> Iterator[RowStream]:
    """Open a UTF-8 text file with a header row, to be read row by row.

    Args:
        path: The file. A byte-order mark and any line ending are understood.
        sep: The separator, one character.
        is_quoted: Whether fields may stand in quotation marks; if not, these are plain characters.

    Raises:
        RegistryError: Then or while reading: the file cannot be read, is not text, is empty, has
            ragged rows or repeats a column name.
    """
    if path.is_dir():
        msg = f"{path} is a folder; expected a file."
        raise RegistryError(msg)
    line = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(
                file,
                delimiter=sep,
                quoting=csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE,
                strict=True,
            )

            def rows() -> Iterator[list[str]]:
                nonlocal line
                for fields in reader:
                    line = reader.line_num
                    yield fields

            yield _stream(path, rows())
    except UnicodeDecodeError as error:
        msg = f"{path} is not UTF-8 text, near line {line + 1}. Save it as UTF-8 text."
        raise RegistryError(msg) from error
    except OSError as error:
        msg = f"{path} cannot be read: {error_text(error)}."
        raise RegistryError(msg) from error
    except csv.Error as error:
        msg = (
            f"{path} is not a well-formed table: {error}, near line {line + 1}. Look for an "
            "unpaired quotation mark or a binary file."
        )
        raise RegistryError(msg) from error


def _stream(path: Path, lines: Iterator[list[str]]) -> RowStream:
    header = [name.strip() for name in next(lines, [])]
    if not any(header):
        msg = f"{path} has no header in its first line; expected the names of its columns there."
        raise RegistryError(msg)
    if "\0" in "".join(header):
        msg = f"{path} is a binary file; expected a text table in UTF-8."
        raise RegistryError(msg)
    if len(set(header)) != len(header):
        repeated = sorted({name for name in header if name and header.count(name) > 1})
        if repeated:
            msg = f"{path} repeats column names: {', '.join(map(repr, repeated[:5]))}. Rename them."
            raise RegistryError(msg)

    def rows() -> Iterator[Row]:
        for i, fields in enumerate(lines, start=2):
            if len(fields) != len(header):
                if not any(map(str.strip, fields)):
                    continue
                msg = (
                    f"{path}: row {i} has {len(fields)} fields, but the header has {len(header)}. "
                    "Mend that row; a file that was cut short needs to be fetched again."
                )
                raise RegistryError(msg)
            yield i, fields

    return RowStream(path, header, rows())


def collect(
    stream: RowStream,
    columns: Sequence[str],
    keep: Callable[[list[str]], bool] = lambda _: True,
) -> TextTable:
    """The rest of a stream as a table of some of its columns and rows.

    Args:
        stream: The open file.
        columns: Names of the columns to keep; those that the file lacks are left out.
        keep: True for the fields of a row that is to be kept.
    """
    there = [(name, stream.header.index(name)) for name in columns if name in stream.header]
    values: dict[str, list[str]] = {name: [] for name, _ in there}
    numbers: list[int] = []
    for i, fields in stream.rows:
        if keep(fields):
            numbers.append(i)
            for name, j in there:
                values[name].append(fields[j].strip())
    return TextTable(stream.path, values, numbers, tuple(stream.header))


def measured(table: TextTable, column: str, option: str) -> Float64s:
    """A column of numbers, NaN where one is missing, or where a reported one is no number.

    Args:
        table: Holds the column.
        column: Its name.
        option: What asks for it, for the message.

    Raises:
        RegistryError: The column is absent, or an entry is no number or infinite.
    """
    texts = table.column(column, option)
    values = [number(text) for text in texts]
    bad = [i for i, x in enumerate(values) if x is None or abs(x) == float("inf")]
    if bad:
        report(
            f"{table.path}: {len(bad)} entries of the column {column!r} are no finite numbers: "
            f"{table.offenders(bad, texts)}. Mend or remove those rows."
        )
    numbers = np.array([np.nan if x is None else x for x in values], dtype=np.float64)
    numbers[bad] = np.nan
    return numbers

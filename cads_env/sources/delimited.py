"""Strict reading of a delimited text file into columns of text.

Every row must have as many fields as the header, and every value stays the text that it was in
the file: "01.Mar", "NA" and "1e5" are legal names. Never guesses a separator, an encoding or a
type, and never drops a row.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Final

from cads_env.errors import RegistryError, printable, quoted, suggest

SEPARATORS: Final = {".csv": ",", ".tsv": "\t", ".txt": "\t", ".bf": "\t"}
"""Separator by the file name's ending; .bf is what BAGEL writes."""

MISSING: Final = frozenset({"", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "<na>"})
"""What stands for no number in a column of numbers, in lower case."""

_LISTED: Final = 5
_COLUMNS: Final = 40
_FACT: Final = 200
_NAMES: Final = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar", " ": "space"}


@dataclass(frozen=True, slots=True)
class TextTable:
    """The columns of one file as text.

    Attributes:
        path: The file.
        columns: Values by column name, without surrounding white space; all of one length.
        rows: Number of each data row as a spreadsheet counts it: the header is row 1.
        names: Every column of the file, where only some were read; else empty.
    """

    path: Path
    columns: dict[str, list[str]]
    rows: list[int]
    names: tuple[str, ...] = ()

    def column(self, name: str, option: str) -> list[str]:
        """The values of a column.

        Args:
            name: The column.
            option: The option that names it, for the message.

        Raises:
            RegistryError: There is no such column.
        """
        if name not in self.columns:
            msg = (
                f"{self.path} has no column {name!r}, which {option}= asks for. "
                f"{suggest(name, self.names or self.columns)} {self.listing} "
                f"Say {option}=... with the column that is meant."
            )
            raise RegistryError(msg)
        return self.columns[name]

    @property
    def listing(self) -> str:
        """The sentence that lists the columns of the file."""
        return describe_columns(self.names or tuple(self.columns))

    def keep(self, kept: Sequence[bool]) -> TextTable:
        """The table with only the rows for which `kept` is true."""
        columns = {name: list(compress(values, kept)) for name, values in self.columns.items()}
        return TextTable(self.path, columns, list(compress(self.rows, kept)), self.names)

    def offenders(self, positions: Sequence[int], values: Sequence[str]) -> str:
        """Offending values with their rows, for a message: `row 3: 'x', row 9: '' and 2 more`.

        Args:
            positions: Positions of the offenders, counting data rows from 0.
            values: What to show, one entry a data row.
        """
        shown = ", ".join(f"row {self.rows[i]}: {quoted(values[i])}" for i in positions[:_LISTED])
        rest = len(positions) - _LISTED
        return f"{shown} and {rest} more" if rest > 0 else shown


def describe_columns(columns: Sequence[str]) -> str:
    """The sentence that lists the columns of a file, of which it names 40 at most."""
    shown = ", ".join(quoted(name) for name in columns[:_COLUMNS])
    rest = len(columns) - _COLUMNS
    return f"Columns: {shown} and {rest} more." if rest > 0 else f"Columns: {shown}."


def read_delimited(path: Path, *, sep: str | None = None) -> TextTable:
    """The columns of a UTF-8 text file with a header row.

    A byte-order mark, any line ending, quoted fields and wholly empty lines are understood.

    Args:
        path: The file.
        sep: The separator, one character, or None for that of the file name's ending.

    Raises:
        RegistryError: The file cannot be read, is not text, is empty, has ragged rows, a repeated
            column name, or one column only.
    """
    separator = _separator(path, sep)
    reader = csv.reader(io.StringIO(_text(path), newline=""), delimiter=separator, strict=True)
    try:
        lines = list(reader)
    except csv.Error as error:
        msg = (
            f"{path} is not a well-formed table: {error}, near line {reader.line_num}. "
            "Look for an unpaired quotation mark there."
        )
        raise RegistryError(msg) from error
    numbered = [
        (i, fields) for i, fields in enumerate(lines, start=1) if any(map(str.strip, fields))
    ]
    if len(numbered) < 2:
        has = "a header and no data rows" if numbered else "no rows"
        msg = f"{path} has {has}; expected a header and at least two data rows."
        raise RegistryError(msg)
    header = [name.strip() for name in numbered[0][1]]
    _check_header(path, header, separator)
    ragged = [(i, len(fields)) for i, fields in numbered[1:] if len(fields) != len(header)]
    if ragged:
        shown = ", ".join(f"row {i} has {count}" for i, count in ragged[:_LISTED])
        msg = (
            f"{path}: {len(ragged)} rows have another number of fields than the header, which has "
            f"{len(header)}: {shown}. Mend those rows; a field that contains the separator needs "
            "quotation marks."
        )
        raise RegistryError(msg)
    columns = {
        name: [fields[j].strip() for _, fields in numbered[1:]] for j, name in enumerate(header)
    }
    return TextTable(path, columns, [i for i, _ in numbered[1:]])


def number(text: str) -> float | None:
    """The number that a text spells, correctly rounded; NaN if missing, None if it is no number."""
    if text.lower() in MISSING:
        return float("nan")
    try:
        # float() also reads Python's 1_000, which no spreadsheet writes.
        return None if "_" in text else float(text)
    except ValueError:
        return None


def fact(text: str) -> str:
    """A text of a file as a description says it: on one printable line, cut after 200 characters.

    Args:
        text: One cell.
    """
    shown = printable(text)
    return shown if len(shown) <= _FACT else f"{shown[: _FACT - 3]}..."


def _separator(path: Path, sep: str | None) -> str:
    if sep is None:
        return SEPARATORS.get(path.suffix.lower(), ",")
    separator = {"tab": "\t", "\\t": "\t"}.get(sep, sep) if isinstance(sep, str) else ""
    if len(separator) != 1 or separator in '"\r\n':
        msg = f"sep={sep!r} is not usable; expected one character, such as ',' or ';' or '\\t'."
        raise RegistryError(msg)
    return separator


def _text(path: Path) -> str:
    if path.is_dir():
        msg = f"{path} is a folder; expected a file."
        raise RegistryError(msg)
    try:
        raw = path.read_bytes()
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror or error}."
        raise RegistryError(msg) from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        msg = (
            f"{path} is not UTF-8 text: byte {error.start} is 0x{raw[error.start]:02x}. Save the "
            "table as UTF-8 text (an Excel workbook is no text file: export it)."
        )
        raise RegistryError(msg) from error
    if "\0" in text:
        msg = f"{path} is a binary file; expected a text table in UTF-8."
        raise RegistryError(msg)
    return text


def _check_header(path: Path, header: Sequence[str], separator: str) -> None:
    used = _NAMES.get(separator, repr(separator))
    if len(header) == 1:
        others = [sep for sep in (",", "\t", ";", "|") if sep != separator and sep in header[0]]
        hint = f"Its header looks as if sep={others[0]!r} were meant." if others else (
            "Say sep=... if another character parts the columns."
        )  # fmt: skip
        only = quoted(header[0])
        msg = f"{path} has one column when read with the separator {used}: {only}. {hint}"
        raise RegistryError(msg)
    repeated = sorted(name for name, count in Counter(header).items() if name and count > 1)
    if repeated:
        shown = ", ".join(map(quoted, repeated[:_LISTED]))
        more = f" and {len(repeated) - _LISTED:,} more" if len(repeated) > _LISTED else ""
        msg = f"{path} repeats column names: {shown}{more}. Rename them."
        raise RegistryError(msg)

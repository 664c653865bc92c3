"""Writing one table as Parquet or CSV, batch by batch.

Values are written exactly as they are: Parquet and CSV read back equal what the run wrote. Knows
columns and batches, no run.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cads_env.errors import MissingExtraError, RunError
from cads_env.report.export.columns import Column, Kind, TableColumns
from cads_env.report.export.source import Batch

if TYPE_CHECKING:
    import pyarrow as pa

INSTALL_PARQUET: Final = "pip install 'cads-env[parquet]'"

_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
"""A cell that begins with one of these may be run by a spreadsheet as a formula."""


def need_pyarrow() -> None:
    """Raise unless Parquet can be written.

    Raises:
        MissingExtraError: pyarrow is missing or broken; the message gives the line that installs
            it.
    """
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        msg = f"Writing Parquet needs the package pyarrow, which is missing: {INSTALL_PARQUET}"
        raise MissingExtraError(msg) from error


def parquet_schema(table: TableColumns) -> pa.Schema:
    """The declared schema of a table: no column holds nulls, and each says what it means.

    Raises:
        MissingExtraError: pyarrow is missing.
    """
    need_pyarrow()
    import pyarrow as pa

    text = pa.string()
    texts = pa.list_(pa.field("element", text, nullable=False))
    types: dict[Kind, pa.DataType] = {
        "text": text,
        "free text": text,
        "json": text,
        "integer": pa.int64(),
        "real": pa.float64(),
        "flag": pa.bool_(),
        "texts": texts,
        "text pairs": pa.list_(pa.field("element", texts, nullable=False)),
    }
    return pa.schema(
        [
            pa.field(c.name, types[c.kind], nullable=False, metadata={"description": c.meaning})
            for c in table.columns
        ],
        metadata={"description": table.meaning},
    )


def write_parquet(path: Path, table: TableColumns, batches: Iterable[Batch]) -> int:
    """Write a Parquet file, one row group a batch.

    Args:
        path: New file.
        table: Its columns.
        batches: Rows; one batch is in memory at a time.

    Returns:
        The number of rows.

    Raises:
        MissingExtraError: pyarrow is missing.
    """
    schema = parquet_schema(table)
    import pyarrow as pa
    import pyarrow.parquet as pq

    count = 0
    with pq.ParquetWriter(path, schema) as writer:
        for batch in batches:
            part = pa.table([pa.array(batch[f.name], f.type) for f in schema], schema=schema)
            writer.write_table(part)
            count += part.num_rows
    return count


def write_csv(path: Path, table: TableColumns, batches: Iterable[Batch]) -> int:
    """Write a CSV file: UTF-8, a header, lists, mappings and free text as JSON text.

    A spreadsheet runs a cell that begins with = + - @ as a formula. What an agent or a server said
    is JSON text here and begins with a quotation mark, bracket or brace. Names that a registry or
    the user gave must stay exact, so a name that begins so is refused instead of changed. Numbers
    are exact, but pandas reads them so only with `float_precision="round_trip"`.

    Args:
        path: New file.
        table: Its columns.
        batches: Rows; one batch is in memory at a time.

    Returns:
        The number of rows.

    Raises:
        RunError: A name begins like a formula.
    """
    count = 0
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow([column.name for column in table.columns])
        for batch in batches:
            cells = [_cells(column, batch[column.name]) for column in table.columns]
            writer.writerows(zip(*cells, strict=True))
            count += len(cells[0])
    return count


def _cells(column: Column, values: Sequence[Any]) -> list[str]:
    return [_cell(column, value) for value in values]


def _cell(column: Column, value: Any) -> str:
    if column.kind == "text":
        return _name(column, value)
    if column.kind == "flag":
        return "true" if value else "false"
    if column.kind == "real":
        # The shortest text that reads back as the same number.
        return repr(float(value))
    if column.kind in ("integer", "json"):
        return str(value)
    return _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _name(column: Column, value: str) -> str:
    if value.startswith(_FORMULA_STARTS):
        msg = (
            f"The {column.name} {value!r} begins like a spreadsheet formula, and a name is not "
            "changed to make it harmless. Export with --parquet, where text stays text."
        )
        raise RunError(msg)
    return value

"""Reading of some columns of a Parquet file into the same columns of text that a CSV gives.

A float becomes the shortest text that reads back as the same double, null becomes an empty cell
and a bool `true` or `false`, so that every check of a table means the same for both. Never reads a
column that was not asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from cads_env.errors import MissingExtraError, RegistryError, error_text
from cads_env.sources.delimited import TextTable

SUFFIX: Final = ".parquet"
"""Ending of a Parquet file's name."""

_INSTALL: Final = "pip install 'cads-env[parquet]'"


def read_parquet(path: Path, *, columns: Sequence[str]) -> TextTable:
    """Columns of a Parquet file as text.

    Args:
        path: The file.
        columns: Names of the columns to read; those that the file lacks are left out.

    Returns:
        The columns. Rows are counted from 1: there is no header row.

    Raises:
        MissingExtraError: The package pyarrow is missing.
        RegistryError: The file is not Parquet, has fewer than two rows or repeats a column name, or
            a column holds lists or bytes.
    """
    if find_spec("pyarrow") is None:
        msg = f"Reading {path} needs the package pyarrow, which is missing: {_INSTALL}"
        raise MissingExtraError(msg)
    if path.is_dir():
        msg = f"{path} is a folder; expected one Parquet file."
        raise RegistryError(msg)
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            schema, count = file.schema_arrow, file.metadata.num_rows
            names = tuple(schema.names)
            _check_shape(path, names, count)
            there = [name for name in columns if name in names]
            _check_types(path, {name: schema.field(name).type for name in there})
            data = file.read(columns=there, use_pandas_metadata=False)
            values = {name: [_text(x) for x in data.column(name).to_pylist()] for name in there}
    except RegistryError:
        raise
    # Damaged text raises UnicodeDecodeError, a ValueError.
    except (OSError, ValueError, pa.ArrowException) as error:
        why = " ".join(error_text(error).split())[:200]
        msg = f"{path} is not a readable Parquet file: {why}. Export or fetch it again."
        raise RegistryError(msg) from error
    return TextTable(path, values, list(range(1, count + 1)), names)


def _check_shape(path: Path, names: Sequence[str], count: int) -> None:
    if count < 2:
        msg = f"{path} has {count} rows; expected at least two."
        raise RegistryError(msg)
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        msg = f"{path} repeats column names: {', '.join(map(repr, repeated))}. Rename them."
        raise RegistryError(msg)


def _check_types(path: Path, types: dict[str, Any]) -> None:
    import pyarrow as pa

    for name, kind in types.items():
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        if pa.types.is_nested(plain) or any(
            check(plain)
            for check in (
                pa.types.is_binary,
                pa.types.is_large_binary,
                pa.types.is_fixed_size_binary,
            )
        ):
            msg = (
                f"{path}: the column {name!r} holds values of type {kind}; expected numbers, "
                "texts or true/false. Export it as one of these."
            )
            raise RegistryError(msg)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    # repr of a float is the shortest text that reads back as the same double.
    return repr(value) if isinstance(value, float) else str(value).strip()

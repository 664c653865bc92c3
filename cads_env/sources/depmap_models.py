"""DepMap's table of cell lines (Model.csv): which line has which name, disease and lineage.

Columns are found by name, since releases differ in which they have; what is absent is left unsaid.
Holds no effects and decides nothing about a registry but its description.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cads_env.errors import RegistryError
from cads_env.sources.delimited import TextTable, fact, read_delimited

_ID_COLUMNS: Final = ("ModelID", "DepMap_ID")
_NAME_COLUMNS: Final = ("CellLineName", "cell_line_name", "StrippedCellLineName",
                        "stripped_cell_line_name", "CCLEName", "CCLE_Name")  # fmt: skip
_DISEASE_COLUMNS: Final = ("OncotreePrimaryDisease", "primary_disease")
_LINEAGE_COLUMNS: Final = ("OncotreeLineage", "lineage")


@dataclass(frozen=True, slots=True)
class Models:
    """The models of one file.

    Attributes:
        table: Its columns.
        identifiers: Identifier of each row, such as ACH-000446.
    """

    table: TextTable
    identifiers: tuple[str, ...]

    def called(self, word: str) -> str | None:
        """The identifier of the line that has this identifier or name, or None.

        Args:
            word: As a user types it; case, spaces and signs do not matter.
        """
        columns = (self.table.columns.get(column, []) for column in _NAME_COLUMNS)
        for values in (self.identifiers, *columns):
            for identifier, value in zip(self.identifiers, values, strict=False):
                # A CCLE name ends in the tissue: KPNSI9S_AUTONOMIC_GANGLIA.
                forms = (_folded(value), _folded(value.partition("_")[0]))
                if _folded(word) in filter(None, forms):
                    return identifier
        return None

    def words(self, line: str) -> str:
        """The line as a description says it: `KP-N-SI9s (ACH-000446; Neuroblastoma; ...)`.

        Args:
            line: Its identifier.

        Raises:
            RegistryError: The file does not describe the line, or does so twice.
        """
        at = [i for i, identifier in enumerate(self.identifiers) if identifier == line]
        if len(at) != 1:
            how = "does not describe" if not at else f"has {len(at)} rows for"
            msg = (
                f"{self.table.path} (model=) {how} the screened line {line}. Give the Model.csv of "
                "the same release, or leave model= out."
            )
            raise RegistryError(msg)

        def first(columns: Sequence[str]) -> str:
            there = (self.table.columns[c][at[0]] for c in columns if c in self.table.columns)
            return fact(next(filter(None, there), ""))

        name, disease, lineage = map(first, (_NAME_COLUMNS, _DISEASE_COLUMNS, _LINEAGE_COLUMNS))
        parts = [line] if name else []
        parts += [disease] if disease else []
        parts += [f"lineage {lineage}"] if lineage else []
        return f"{name or line} ({'; '.join(parts)})" if parts else line


def read_models(path: Path) -> Models:
    """The models of a file.

    Args:
        path: Model.csv, or the sample_info.csv of older releases.

    Raises:
        RegistryError: It cannot be read, or has no column of identifiers.
    """
    table = read_delimited(path)
    column = next((column for column in _ID_COLUMNS if column in table.columns), None)
    if column is None:
        msg = (
            f"{path} (model=) has no column ModelID; expected DepMap's Model.csv of the same "
            "release. Give that file, or leave model= out."
        )
        raise RegistryError(msg)
    return Models(table, tuple(table.columns[column]))


def _folded(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()

"""What a study is: cells that are played, rows of numbers, and tables built from their summary.

A summary keeps moments, never rows, so its size does not grow with the number of seeds. Rows are
added in their planned order, so equal rows give equal bytes. Never plays or writes anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from cads_env.errors import StudyError, suggest
from cads_env.studies.tables import Chart, Table

Config = Mapping[str, Any]
"""A study's settings, as `load_config` gives them."""

CHUNK: Final = 16
"""Seeds that are played together: a screen of sixteen campaigns stays in a core's cache."""

Row = Mapping[str, float]
"""The columns of one seed of a cell: numbers by name."""


class Cell(NamedTuple):
    """One setting of a study and the seeds that are played under it.

    Attributes:
        name: What the cell is called, unique in its study; stands in every row.
        settings: What is played, JSON values. By custom `registry` holds a name or a mapping for
            `registry_of`, and `protocol` a protocol's name; their hashes then enter the manifest.
        seeds: Seeds, in order. A cell that is computed exactly has the one seed 0.
        absent: Why the cell cannot be played here (a missing extra, say); "" when it can.
    """

    name: str
    settings: Mapping[str, Any]
    seeds: range
    absent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A set of published tables and figures that share their campaigns.

    Attributes:
        name: Its name, that of its module and config with hyphens.
        title: One line.
        about: What it shows and what is played, a sentence or two.
        items: Tables and figures by name, in the order in which they are shown; each built from
            the config and the summary of the cells it needs.
        cells: The cells that the named items need, given the config.
        play: The rows of some seeds under a cell's settings, one a seed and in their order. A pure
            function: a seed's row does not depend on the other seeds of the call.
        chunk: Seeds of one call, at most.
    """

    name: str
    title: str
    about: str
    items: Mapping[str, Callable[[Config, Summary], Table | Chart]]
    cells: Callable[[Config, Collection[str]], Sequence[Cell]]
    play: Callable[[Mapping[str, Any], Sequence[int]], Sequence[Row]]
    chunk: int = CHUNK


class Moments:
    """Count, mean, sum of squares and range of a column, updated a value at a time."""

    __slots__ = ("high", "low", "mean", "n", "squares", "total")

    def __init__(self) -> None:
        """Start empty."""
        self.n = 0
        self.mean = self.squares = self.total = 0.0
        self.low, self.high = math.inf, -math.inf

    def add(self, value: float) -> None:
        """Count a value in (Welford's update, stable however many there are)."""
        self.n += 1
        self.total += value
        step = value - self.mean
        self.mean += step / self.n
        self.squares += step * (value - self.mean)
        self.low, self.high = min(self.low, value), max(self.high, value)

    @property
    def sd(self) -> float:
        """Sample standard deviation (ddof 1); NaN of fewer than two values."""
        return math.sqrt(self.squares / (self.n - 1)) if self.n > 1 else math.nan

    @property
    def mc_se(self) -> float:
        """Monte Carlo standard error of the mean, sd / sqrt(n); NaN of fewer than two values."""
        return self.sd / math.sqrt(self.n) if self.n > 1 else math.nan


class Summary:
    """Moments of every column of every cell."""

    def __init__(self) -> None:
        """Start empty."""
        self._cells: dict[str, dict[str, Moments]] = {}
        self.absent: dict[str, str] = {}
        """Why a cell was not played, by its name."""

    def add(self, cell: str, row: Row) -> None:
        """Count a row in.

        Args:
            cell: Name of its cell.
            row: Its columns.
        """
        columns = self._cells.setdefault(cell, {})
        for column, value in row.items():
            columns.setdefault(column, Moments()).add(value)

    def __contains__(self, cell: str) -> bool:
        """Whether the cell has rows."""
        return cell in self._cells

    @property
    def cells(self) -> tuple[str, ...]:
        """Names of the cells that have rows, in the order in which they came."""
        return tuple(self._cells)

    def columns(self, cell: str) -> tuple[str, ...]:
        """Names of a cell's columns."""
        return tuple(self._of_cell(cell))

    def of(self, cell: str, column: str) -> Moments:
        """The moments of a column.

        Raises:
            StudyError: There is no such cell or column.
        """
        columns = self._of_cell(cell)
        if column not in columns:
            msg = f"Cell {cell!r} has no column {column!r}. {suggest(column, columns)}"
            raise StudyError(msg)
        return columns[column]

    def mean(self, cell: str, column: str) -> float:
        """The mean of a column; see `of`."""
        return self.of(cell, column).mean

    def mc_se(self, cell: str, column: str) -> float | None:
        """The Monte Carlo standard error of a mean; None of a single, exact value."""
        moments = self.of(cell, column)
        return moments.mc_se if moments.n > 1 else None

    def _of_cell(self, cell: str) -> dict[str, Moments]:
        if cell not in self._cells:
            msg = f"The study has no rows of cell {cell!r}. {suggest(cell, self._cells)}"
            raise StudyError(msg)
        return self._cells[cell]

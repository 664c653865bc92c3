"""Playing a study: units of work go to an executor, rows come back in their planned order.

The same rows come out whatever the executor and the number of processes. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

from cads_env.errors import StudyError
from cads_env.run.executors import Executor, in_order
from cads_env.studies.catalogue import load_study
from cads_env.studies.config import settings_in_use
from cads_env.studies.study import Cell, Config, Row, Study, Summary

MOST_ROWS: Final = 10_000_000
"""A study with more rows is refused as a mistake."""


class Unit(NamedTuple):
    """Some seeds of a cell.

    Attributes:
        cell: Name of the cell.
        settings: Its settings.
        seeds: What is played.
    """

    cell: str
    settings: Any
    seeds: tuple[int, ...]


class StudyWork:
    """Plays units of one study; travels to other processes by the study's name."""

    def __init__(self, study: str) -> None:
        """Nothing is imported before the first unit."""
        self._study = study

    def play(self, unit: Unit) -> tuple[Unit, list[dict[str, float]]]:
        """The rows of a unit."""
        rows = load_study(self._study).play(unit.settings, unit.seeds)
        return unit, [dict(row) for row in rows]


class StudyRows(NamedTuple):
    """What is about to be played.

    Attributes:
        study: The study.
        config: Its config.
        items: Names of the items that are asked for.
        cells: Their cells.
        seeds: The number of seeds that was asked for instead of the config's; None for that.
    """

    study: Study
    config: Config
    items: tuple[str, ...]
    cells: tuple[Cell, ...]
    seeds: int | None = None

    @classmethod
    def plan(
        cls, study: Study, config: Config, items: Collection[str], *, seeds: int | None = None
    ) -> StudyRows:
        """The cells that items need.

        Args:
            study: The study.
            config: Its config.
            items: Names of its items.
            seeds: Play this many seeds of every cell instead of the config's number; cells that
                are exact keep their one.

        Raises:
            StudyError: The settings cannot be used, or ask for too much.
        """
        with settings_in_use(study.name, config):
            cells = [
                cell
                if seeds is None or len(cell.seeds) <= 1
                else cell._replace(seeds=range(cell.seeds.start, cell.seeds.start + seeds))
                for cell in study.cells(config, items)
            ]
        plan = cls(study, config, tuple(items), tuple(cells), seeds)
        if plan.campaigns > MOST_ROWS:
            msg = (
                f"Study {study.name!r} would play {plan.campaigns:,} campaigns; expected at most "
                f"{MOST_ROWS:,}. Give fewer --seeds."
            )
            raise StudyError(msg)
        return plan

    @property
    def campaigns(self) -> int:
        """Number of rows that will come."""
        return sum(len(cell.seeds) for cell in self.cells if not cell.absent)

    def units(self) -> Iterator[Unit]:
        """The work, cell by cell."""
        for cell in self.cells:
            if cell.absent:
                continue
            for start in range(0, len(cell.seeds), self.study.chunk):
                seeds = tuple(cell.seeds[start : start + self.study.chunk])
                yield Unit(cell.name, cell.settings, seeds)


def play_study(
    plan: StudyRows,
    *,
    executor: Executor | None = None,
    keep: Callable[[str, int, Row], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Summary:
    """Play a study and sum it up.

    Args:
        plan: From `StudyRows.plan`.
        executor: Where it is played; None for this process.
        keep: Called with cell, seed and row of every seed, in their planned order.
        progress: Called with the number of rows after every unit.

    Returns:
        The summary of all rows.

    Raises:
        CadsError: A cell cannot be played.
    """
    summary = summary_of(plan.cells)
    units: Sequence[Unit] = list(plan.units())
    work = StudyWork(plan.study.name)
    with settings_in_use(plan.study.name, plan.config):
        for unit, rows in in_order(work, units, executor=executor or Executor()):
            for seed, row in zip(unit.seeds, rows, strict=True):
                summary.add(unit.cell, row)
                if keep is not None:
                    keep(unit.cell, seed, row)
            if progress is not None:
                progress(len(rows))
    return summary


def summary_of(cells: Collection[Cell]) -> Summary:
    """A summary without rows that knows which cells are absent."""
    summary = Summary()
    summary.absent |= {cell.name: cell.absent for cell in cells if cell.absent}
    return summary

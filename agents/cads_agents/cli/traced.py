"""What a run kept of its campaigns' exchanges, beside what became of each name.

Reads the files of runs and grids; renders nothing. The names of a scored round come from its row,
those of an answer that was never scored are not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from cads_env.errors import RunError, quoted, suggest
from cads_env.report.llm.attempts import outcomes_of, sizes_of
from cads_env.run.grid import is_grid, load_grid
from cads_env.run.load import load_run
from cads_env.run.result import RunResult
from cads_env.run.rows import Key
from cads_env.run.traces import Exchange, read_trace, trace_path


class Entry(NamedTuple):
    """A name of an answer.

    Attributes:
        name: As the answer has it.
        outcome: "accepted", or why it was refused.
    """

    name: str
    outcome: str


class Traced(NamedTuple):
    """One exchange with what it led to.

    Attributes:
        round: Its round, counting from 0; -1 where the request names none.
        attempt: Which try of the round it belongs to, counting from 1.
        exchange: As it was recorded.
        entries: Names read from its answer; None where that is not known.
    """

    round: int
    attempt: int
    exchange: Exchange
    entries: tuple[Entry, ...] | None


class Place(NamedTuple):
    """A run, by itself or as a setting of a grid.

    Attributes:
        setting: Name of the setting; empty for a run by itself.
        run: What it holds.
        folder: Where.
    """

    setting: str
    run: RunResult
    folder: Path


def places_of(folder: Path, setting: str | None = None) -> list[Place]:
    """The runs of a folder.

    Args:
        folder: Of a run or a grid.
        setting: Which run of a grid; None takes all.

    Raises:
        RunError: There is none, or none of that name.
        RecordError: A file is damaged.
    """
    if not is_grid(folder):
        if setting is not None:
            msg = f"{folder} is a run by itself; --setting names a run of a grid. Leave it out."
            raise RunError(msg)
        return [Place("", load_run(folder), folder)]
    runs = load_grid(folder).runs
    if setting is not None and setting not in runs:
        msg = f"{folder} has no setting {quoted(setting)}. {suggest(setting, runs)}"
        raise RunError(msg)
    return [
        Place(name, run, folder / name)
        for name, run in runs.items()
        if setting is None or name == setting
    ]


def arm_of(place: Place, word: str) -> str:
    """The arm that a word names: its whole name, or the last part of one arm's only.

    Raises:
        RunError: No arm has that name, or several end in it.
    """
    arms = [entry["arm"] for entry in place.run.manifest["config"]["agents"]]
    if word in arms:
        return word
    found = [arm for arm in arms if arm.rpartition("/")[2] == word]
    if len(found) != 1:
        what = f"Several arms end in it: {', '.join(found)}." if found else suggest(word, arms)
        msg = f"{place.folder} has no arm {quoted(word)}. {what}"
        raise RunError(msg)
    return str(found[0])


def traced_of(place: Place, key: Key) -> Iterator[Traced]:
    """The exchanges of a campaign, in order.

    Args:
        place: Its run.
        key: The campaign.

    Raises:
        RunError: The trace cannot be read.
        RecordError: A line of it is damaged.
    """
    exchanges = list(read_trace(trace_path(place.folder, key)))
    rounds: dict[int, list[Exchange]] = {}
    for exchange in exchanges:
        rounds.setdefault(_whole(exchange.request.get("round")), []).append(exchange)
    rows = {int(row["round"]): row for row in rows_of(place, key)}
    for round, mine in rounds.items():
        yield from _of_round(round, mine, rows.get(round))


def rows_of(place: Place, key: Key) -> list[dict[str, Any]]:
    """The rows of a campaign's rounds; none where it was not scored."""
    rows = of_campaign(place.run.rounds, key).to_dict("records")
    return [{str(k): v for k, v in row.items()} for row in rows]


def of_campaign(table: pd.DataFrame, key: Key) -> pd.DataFrame:
    """The rows of one campaign of any frame of a run."""
    is_mine = table["arm"] == key.arm
    return table[is_mine & (table["registry"] == key.registry) & (table["seed"] == key.seed)]


def _of_round(
    round: int, exchanges: Sequence[Exchange], row: Mapping[str, Any] | None
) -> Iterator[Traced]:
    numbers = sorted({_whole(e.request.get("attempt")) for e in exchanges})
    answered = {
        _whole(e.request.get("attempt")): i for i, e in enumerate(exchanges) if e.failed is None
    }
    parts = _by_attempt(row, len(numbers))
    for i, exchange in enumerate(exchanges):
        number = _whole(exchange.request.get("attempt"))
        # An answer that was too long or failed was asked again: names come from the last.
        is_last = answered.get(number) == i
        attempt = numbers.index(number) + 1
        entries = parts[attempt - 1] if parts is not None and is_last else None
        yield Traced(round, attempt, exchange, entries)


def _by_attempt(row: Mapping[str, Any] | None, count: int) -> list[tuple[Entry, ...]] | None:
    """A round's names by try; None where the row does not tell them apart."""
    if row is None:
        return None
    entries = list(map(Entry, row["proposed"], outcomes_of(row)))
    if count == 1:
        return [tuple(entries)]
    sizes = sizes_of(row)
    if len(sizes) != count:
        return None
    parts, start = [], 0
    for size in sizes:
        parts.append(tuple(entries[start : start + size]))
        start += size
    return parts


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else -1

"""The e-value ladder of one campaign an arm: all its evidence, or that of the declared alone.

Judges stored reads again with the run's certificate; never looks at an effect or a label.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from cads_env.errors import CadsError
from cads_env.record import Record
from cads_env.report.content import Block, Figure, Paragraph, Section, Table
from cads_env.report.figures.ladder import LOWEST, draw_ladder
from cads_env.report.wording import number, visible
from cads_env.run.folder import json_line
from cads_env.run.result import RunResult
from cads_env.run.rows import Key

ARMS_DRAWN: Final = 12
RANKS_LISTED: Final = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """The evidence of one campaign in order of size.

    Attributes:
        key: Which campaign.
        m: Registry size.
        log_e: Natural-log evidence, largest first.
        declared: How many were declared.
        is_whole: Whether it holds all candidates read, or the declared ones alone.
    """

    key: Key
    m: int
    log_e: tuple[float, ...]
    declared: int
    is_whole: bool


def representative(result: RunResult, arm: str) -> Key | None:
    """The campaign whose net is the lower median of its arm's; of several the first one played."""
    rows = result.campaigns[result.campaigns["arm"] == arm]
    if not len(rows):
        return None
    nets = sorted(rows["net"].tolist())
    row = rows[rows["net"] == nets[(len(nets) - 1) // 2]].iloc[0]
    return Key(arm, str(row["registry"]), int(row["seed"]))


def ladders(result: RunResult) -> tuple[Ladder, ...]:
    """The ladders of the first arms' representative campaigns."""
    keys = [k for arm in list(result.arms)[:ARMS_DRAWN] if (k := representative(result, arm))]
    records = _stored_records(result.folder, keys)
    return tuple(_ladder(result, key, records.get(key)) for key in keys)


def _ladder(result: RunResult, key: Key, record: Record | None) -> Ladder:
    frame = result.declarations
    mine = frame[
        (frame["arm"] == key.arm)
        & (frame["registry"] == key.registry)
        & (frame["seed"] == key.seed)
    ]
    if record is not None:
        log_e = result.certificate.log_evidence(record)
        m = record.m
    else:
        log_e = mine["log_e"].to_numpy(dtype=float)
        row = result.campaigns[
            (result.campaigns["arm"] == key.arm) & (result.campaigns["seed"] == key.seed)
        ]
        m = int(row["m"].iloc[0])
    ordered = tuple(float(v) for v in np.sort(log_e)[::-1])
    return Ladder(key=key, m=m, log_e=ordered, declared=len(mine), is_whole=record is not None)


def _stored_records(folder: str | None, keys: Collection[Key]) -> dict[Key, Record]:
    """The records of some campaigns, as far as the run's folder holds their reads."""
    path = Path(folder, "reads.jsonl") if folder is not None else None
    if path is None or not path.is_file():
        return {}
    # A line starts with its key, so that long files are searched without being parsed.
    starts = {json_line(key._asdict()).encode()[:-2] + b",": key for key in keys}
    found: dict[Key, Record] = {}
    with path.open("rb") as lines:
        for line in lines:
            key = next((k for start, k in starts.items() if line.startswith(start)), None)
            if key is None:
                continue
            try:
                found[key] = Record.from_json(json.loads(line))
            except (ValueError, CadsError):
                # A torn line of a run that is still being written: its campaign is not complete.
                continue
            if len(found) == len(starts):
                break
    return found


def ladder_section(result: RunResult) -> Section:
    """The ladders with the line of e-BH, and their first rungs as a table."""
    found = ladders(result)
    drawn = [ladder for ladder in found if ladder.log_e]
    q = result.certificate.level
    drawings = tuple(
        draw_ladder(
            ladder.key.arm,
            ladder.log_e,
            declared=ladder.declared,
            m=ladder.m,
            q=q,
            registry=ladder.key.registry,
            seed=ladder.key.seed,
        )
        for ladder in drawn
    )
    caption = f"One campaign an arm. Log evidence below {number(LOWEST, 0)} is not drawn."
    blocks: list[Block] = [
        Paragraph(
            "Evidence of one campaign an arm, largest first, against the line ln(m / (q k)) of "
            "e-BH: declared are all candidates from the last rank that reaches the line upwards. "
            "Shown is the campaign whose net is the lower median of its arm (of several, the "
            "first one played)."
        )
    ]
    if not all(ladder.is_whole for ladder in found):
        blocks.append(
            Paragraph(
                "Reads are not stored for every campaign shown: without them the ladder holds the "
                "declared candidates alone. Run with --keep-reads to have it whole."
            )
        )
    key = (
        ("declared", "declared"),
        ("not-declared", "not declared"),
        ("bar-line", "the e-BH line ln(m / (q k))"),
    )
    table = _rungs(drawn, q)
    blocks.append(Figure(caption=caption, drawings=drawings, data=table, key=key))
    return Section(key="ladder", title="Evidence against the e-BH line", blocks=tuple(blocks))


def _rungs(found: list[Ladder], q: float) -> Table:
    rows = []
    for ladder in found:
        ranks = {*range(1, RANKS_LISTED + 1), ladder.declared, ladder.declared + 1}
        for k in sorted(r for r in ranks if 1 <= r <= len(ladder.log_e)):
            bar = math.log(ladder.m / (q * k))
            rows.append(
                (
                    visible(ladder.key.arm),
                    f"{k:,}",
                    number(ladder.log_e[k - 1]),
                    number(bar),
                    "yes" if k <= ladder.declared else "no",
                )
            )
    return Table(
        caption=f"First {RANKS_LISTED} ranks, and the last declared and the one after it",
        columns=("arm", "rank k", "log evidence", "ln(m / (q k))", "declared"),
        rows=tuple(rows),
        words=(4,),
        folded=True,
    )

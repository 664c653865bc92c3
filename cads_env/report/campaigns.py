"""Net by campaign and by registry: the spread behind each mean.

Draws every campaign's difference to its twin; computes means a registry and quartiles alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pandas as pd

from cads_env.inference import paired_t
from cads_env.report.content import Block, Figure, Paragraph, Section, Table, capped
from cads_env.report.figures.strip import Row, draw_strip
from cads_env.report.wording import UNDEFINED, counted, interval, number, signed, visible
from cads_env.run.result import RunResult

ARMS_DRAWN: Final = 12
REGISTRIES_DRAWN: Final = 12
CAMPAIGNS_LISTED: Final = 200
REGISTRIES_LISTED: Final = 60
ARMS_ACROSS: Final = 8
"""Arms with a column in the table of registries."""


def campaigns_section(result: RunResult) -> Section:
    """Every campaign's net, by arm, and by registry where several were played more than once."""
    groups = _groups(result)
    shown = {name: rows for name, rows in groups.items() if len(rows)}
    rows = [
        Row(name=name, values=_nets(frame), estimate=result.arms[name].net)
        for name, frame in list(shown.items())[:ARMS_DRAWN]
    ]
    drawings = []
    if rows:
        drawings.append(draw_strip(rows, title="Net by campaign"))
    blocks: list[Block] = [
        Figure(
            caption=(
                "One dot a campaign: certified hits minus the twin's on the same registry, seed "
                "and noise (bars of counts where there are many). Below, the mean with its 95 % "
                "interval."
            ),
            drawings=tuple(drawings),
            data=_spread_table(groups),
            is_wide=True,
        )
    ]
    by_registry = _by_registry(shown)
    if by_registry is not None:
        blocks.append(by_registry)
    blocks.append(_campaign_table(result))
    return Section(key="campaigns", title="Net by campaign", blocks=tuple(blocks))


def _groups(result: RunResult) -> dict[str, pd.DataFrame]:
    found = dict(tuple(result.campaigns.groupby("arm", sort=False)))
    return {name: found.get(name, result.campaigns.iloc[:0]) for name in result.arms}


def _nets(rows: pd.DataFrame) -> list[float]:
    return [float(v) for v in rows["net"]]


def _spread_table(groups: Mapping[str, pd.DataFrame]) -> Table:
    rows = []
    for name, frame in groups.items():
        nets = frame["net"].astype(float)
        if not len(nets):
            rows.append((visible(name), "0", *[UNDEFINED] * 9))
            continue
        estimate = paired_t(nets.to_numpy())
        quartiles = [float(nets.quantile(p)) for p in (0.0, 0.25, 0.5, 0.75, 1.0)]
        rows.append(
            (
                visible(name),
                f"{len(nets):,}",
                signed(estimate.mean),
                number(estimate.sd),
                *(signed(v, 1) for v in quartiles),
                f"{int((nets > 0).sum()):,}",
                f"{int((nets < 0).sum()):,}",
            )
        )
    return Table(
        caption="Net of the campaigns of each arm",
        columns=(
            "arm", "n", "mean", "sd", "least", "25 %", "median", "75 %", "most", "won", "lost",
        ),
        rows=tuple(rows),
    )  # fmt: skip


def _by_registry(groups: Mapping[str, pd.DataFrame]) -> Figure | None:
    """One picture an arm; None unless some registry was played more than once."""
    drawings, rows = [], []
    for arm, frame in list(groups.items())[:ARMS_DRAWN]:
        parts = [(str(name), _nets(part)) for name, part in frame.groupby("registry", sort=False)]
        if not 1 < len(parts) < len(frame):
            continue
        estimated = [Row(name=n, values=v, estimate=paired_t(v)) for n, v in parts]
        if len(parts) <= REGISTRIES_DRAWN:
            name = visible(arm, 40)
            drawings.append(draw_strip(estimated, title=f"Net by registry: {name}", heading=name))
        for row in estimated:
            e = row.estimate
            ends = UNDEFINED if e.untold else interval(e.low, e.high)
            cells = (visible(row.name), f"{e.n:,}", signed(e.mean), ends)
            rows.append((visible(arm), *cells))
    if not rows:
        return None
    listed, note = capped(rows, CAMPAIGNS_LISTED, "campaigns.jsonl")
    table = Table(
        caption="Net by arm and registry",
        columns=("arm", "registry", "n", "mean", "95 % interval over seeds"),
        rows=listed,
        words=(1,),
        note=note,
        folded=True,
    )
    return Figure(
        caption="The same by registry. Intervals are over the seeds of that registry.",
        drawings=tuple(drawings),
        data=table,
        is_wide=True,
    )


def _campaign_table(result: RunResult) -> Table:
    frame = result.campaigns
    columns = ["true", "false", "twin_true", "net", "gained", "lost", "tested_hits"]
    head = frame.head(CAMPAIGNS_LISTED)
    keys = zip(head["arm"], head["registry"], head["seed"], strict=True)
    rows = [
        (
            visible(str(arm)),
            visible(str(registry)),
            str(seed),
            *(
                signed(v, 0) if c == "net" else number(v, 0)
                for c, v in zip(columns, values, strict=True)
            ),
        )
        for (arm, registry, seed), values in zip(keys, head[columns].to_numpy(), strict=True)
    ]
    note = ""
    if len(frame) > len(rows):
        note = f"The first {len(rows):,} of {len(frame):,} campaigns; all are in campaigns.jsonl."
    return Table(
        caption="Campaigns",
        columns=(
            "arm", "registry", "seed", "certified hits", "nulls", "twin", "net", "gained", "lost",
            "hits read",
        ),
        rows=tuple(rows),
        words=(1,),
        note=note,
        folded=True,
    )  # fmt: skip


def registries_section(result: RunResult) -> Section:
    """The registries that were played: size, hits, campaigns and net of each arm."""
    frame = result.campaigns
    sizes = _sizes(result)
    arms = [name for name in result.arms][:ARMS_ACROSS]
    nets: dict[tuple[str, str], list[float]] = {}
    for registry, arm, net in zip(frame["registry"], frame["arm"], frame["net"], strict=True):
        nets.setdefault((str(registry), str(arm)), []).append(float(net))
    counts = Counter(str(name) for name in frame["registry"])
    rows = [
        (
            visible(name),
            size["m"],
            size["hits"],
            size["share"],
            size["contrary"],
            f"{counts[name]:,}",
            *(signed(_mean(nets.get((name, arm), []))) for arm in arms),
            size["hash"],
        )
        for name, size in sizes.items()
    ]
    shown, note = capped(rows, REGISTRIES_LISTED, "manifest.json")
    if len(result.arms) > len(arms):
        note += f" Columns show the first {len(arms)} of {len(result.arms):,} arms."
    table = Table(
        caption="Registries and mean net of each arm",
        columns=(
            "registry", "m", "hits", "hits, %", "contrary hits", "campaigns",
            *(f"net: {visible(arm, 24)}" for arm in arms), "hash",
        ),
        rows=shown,
        words=(6 + len(arms),),
        note=note.strip(),
        folded=len(rows) > 12,
    )  # fmt: skip
    lead = (
        "A result on one registry holds for this registry: its hits are the same for every seed."
        if len(sizes) == 1
        else f"The run played {counted(len(sizes), 'registry', 'registries')}."
    )
    return Section(key="registries", title="Registries", blocks=(Paragraph(lead), table))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _sizes(result: RunResult) -> dict[str, dict[str, str]]:
    """What the manifest says of each registry; names that were relabelled by seed come once."""
    grouped: dict[str, list[Mapping[str, Any]]] = {}
    for entry in result.manifest.get("registries", ()):
        grouped.setdefault(str(entry.get("name", "?")), []).append(entry)
    found = {}
    for name, entries in grouped.items():
        first = entries[0]
        m, hits = first.get("m"), first.get("hits")
        known = isinstance(m, int) and isinstance(hits, int) and m > 0
        hashes = {str(e.get("hash", "")) for e in entries}
        found[name] = {
            "m": f"{m:,}" if isinstance(m, int) else UNDEFINED,
            "hits": f"{hits:,}" if isinstance(hits, int) else UNDEFINED,
            "share": f"{100 * hits / m:.1f}" if known else UNDEFINED,  # type: ignore[operator]
            "contrary": f"{first['contrary_hits']:,}" if "contrary_hits" in first else UNDEFINED,
            "hash": (
                visible(hashes.pop()[:12])
                if len(hashes) == 1
                else f"{len(hashes):,} (relabelled by seed)"
            ),
        }
    return found

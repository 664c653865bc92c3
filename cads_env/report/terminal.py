"""The terminal table of a run. Formats numbers that a result already holds; computes none."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Final

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from cads_env.errors import printable
from cads_env.inference import DETECTABLE_FACTOR, Estimate, t_detectable
from cads_env.report.badge import badge_line, badge_warning
from cads_env.report.verdict import (
    early_graduation,
    exhausted_registries,
    scored_scope,
    undeclared_contamination,
    why_untold,
)
from cads_env.report.wording import counted, listed, visible
from cads_env.run.result import SMALLEST_RANGE, ArmResult, RunResult, bound_words, show_ratio

SYNTHETIC_NOTE: Final = "synthetic: plumbing and calibration, not biology"
FEW_UNITS: Final = 30
"""Below as many units, 2.80 standard errors fall short of 80 % power by more than 4 %."""
REASON_SHOWN: Final = 300
"""Characters of a failure's reason that are shown."""


def facts(rows: Sequence[tuple[str, str]]) -> Table:
    """A table of names and what there is to say of them.

    Args:
        rows: Name and text, which may have several lines; shown as they are, without markup.
    """
    several = any("\n" in text for _, text in rows)
    table = Table(show_header=False, show_lines=several, box=box.SIMPLE, padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(Text(name), Text(text))
    return table


class Name:
    """A name in a cell that is broken at spaces first, then after slashes and colons."""

    def __init__(self, text: str) -> None:
        """Keep the text, which is on one line."""
        self.text = text
        self.parts = _parts(text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """As few lines as the width of the column allows."""
        width, lines = options.max_width, [""]
        for word in re.findall(r"[^ ]* *", self.text):
            is_whole = cell_len(word.rstrip()) <= width
            for part in [word] if is_whole else _parts(word):
                if lines[-1] and cell_len(lines[-1]) + cell_len(part.rstrip()) > width:
                    lines.append("")
                lines[-1] += part
        yield Text("\n".join(line.rstrip() for line in lines), overflow="fold")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """From its longest part to the whole."""
        whole = min(cell_len(self.text), options.max_width)
        return Measurement(min(longest_part([self]), whole), whole)


def _parts(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[^/: ]*[/: ]+|[^/: ]+", text))


def longest_part(names: Iterable[Name], *, least: int = 1, most: int = 18) -> int:
    """Width at which no part of the names is broken, in cells, as far as the limits allow.

    Args:
        names: Those of a column.
        least: Smallest width.
        most: Largest width; longer parts are broken.
    """
    widths = [cell_len(part.rstrip()) for name in names for part in name.parts]
    return min(max([least, *widths]), most)


def number(value: float, digits: int = 2) -> str:
    """A number with fixed digits, '-' when it is not defined."""
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def difference(value: float) -> str:
    """A difference with its sign, '-' when it is not defined."""
    return "-" if math.isnan(value) else f"{value:+.2f}"


def detectable(estimate: Estimate) -> str:
    """What the column `det.` says of an estimate: '-' when it has no spread."""
    return number(estimate.detectable) if estimate.detectable > 0 else "-"


def run_table(result: RunResult) -> RenderableType:
    """The table of a run: one row an arm, then the reference, with what the columns mean.

    Args:
        result: A run with at least one arm.
    """
    certificate = result.certificate
    title = (
        f"{result.protocol.name} on {result.panel}, q = {certificate.q:g}, "
        f"{bound_words(certificate)}"
    )
    table = Table(
        title=Text(printable(title)),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 0),
        pad_edge=False,
    )
    names = [Name(visible(arm.arm)) for arm in result.arms.values()]
    table.add_column("arm", min_width=longest_part(names, least=10))
    for column in ("true", "false", "FDR<", "twin", "net", "95 %", "norm", "reach", "det."):
        table.add_column(column, justify="right", no_wrap=True)
    for name, arm in zip(names, result.arms.values(), strict=True):
        table.add_row(name, *map(Text, _cells(arm)))
    spread = result.reference - result.twin
    whole = "1.00" if spread >= SMALLEST_RANGE else "-"
    cells = [number(result.reference), "", "", number(result.twin), difference(spread)]
    table.add_section()
    table.add_row("reference*", *cells, "", whole, "", "", style="dim")
    return Group(table, *(Text(printable(line)) for line in _notes(result)))


def _cells(arm: ArmResult) -> list[str]:
    net = arm.net
    return [
        number(arm.true),
        number(arm.false),
        number(arm.fdr_bound, 3) if arm.n else "-",
        number(arm.twin),
        difference(net.mean),
        "-" if why_untold(arm) else f"{net.low:.2f}, {net.high:.2f}",
        show_ratio(arm.normalised_net),
        f"{number(arm.slots_in_reach, 0)}/{number(arm.slots, 0)}",
        detectable(net),
    ]


def _notes(result: RunResult) -> list[str]:
    methods = " / ".join(sorted({arm.net.method for arm in result.arms.values() if arm.n}))
    notes = []
    if result.status != "complete":
        played = len(result.campaigns) + len(result.failures)
        notes.append(
            f"NOT COMPLETE ({result.status}): {played:,} of {result.planned:,} campaigns are "
            "played."
        )
    notes += [
        f"{_counts(result)}, {scored_scope(result)}, {result.identifiers} identifiers.",
        *_untold_notes(result),
        "true, false: mean certified hits and nulls; FDR<: 95 % upper bound of P(any false).",
        "twin: the same loop with the proposer removed. net = true - twin, with its interval"
        f"{f' ({methods})' if methods else ''}.",
        "norm = net / (reference - twin). reach: proposal slots early enough to be certified, of "
        f"all. {detectable_words([arm.net for arm in result.arms.values()])}",
        "* proposes by the true effects: no agent, the yardstick of norm.",
    ]
    if (told := undeclared_contamination(result)) is not None:
        notes.append(
            f"WARNING: {told} is below the channel's "
            f"contamination {result.protocol.epsilon:g}: FDR <= q is not guaranteed."
        )
    if "audit_bound" in result.campaigns and len(result.campaigns):
        notes.append(
            f"Audited with {result.protocol.audit_controls:,} controls ("
            f"{result.protocol.audit_timing}): mean final bound of contamination "
            f"{result.campaigns['audit_bound'].mean():.3f}; e-BH at "
            f"{result.certificate.level:g}."
        )
    if (early := early_graduation(result)) is not None:
        notes.append(f"WARNING: {early}")
    if result.certificate.s < result.protocol.noise_sd:
        notes.append(
            f"WARNING: s = {result.certificate.s:g} is below the channel's noise "
            f"{result.protocol.noise_sd:g}: FDR <= q is not guaranteed."
        )
    if told := badge_warning(result.protocol):
        notes.append(f"WARNING: {told}")
    else:
        notes.append(badge_line(result.protocol))
    if result.panel.startswith("synthetic-"):
        notes.append(f"{result.panel} is {SYNTHETIC_NOTE}.")
    whole = len(exhausted_registries(result))
    if whole:
        is_all = whole == result.campaigns["registry"].nunique()
        where = "" if is_all else f" of {whole:,} of the registries"
        notes.append(
            f"Every campaign{where} read every candidate: a proposer only changes the order."
        )
    if result.failures:
        notes.append("Failed campaigns are left out of their arm; reference* covers all.")
    notes += [
        f"failed: {visible(f.arm)} on {visible(f.registry)}, seed {f.seed}: "
        f"{visible(f.reason, REASON_SHOWN)}"
        for f in result.failures
    ]
    if result.folder is not None:
        notes.append(f"Files: {result.folder}")
    return notes


def _counts(result: RunResult) -> str:
    """How many campaigns the arms have that have any, and which have none."""
    counts = {visible(name): arm.n for name, arm in result.arms.items() if arm.n}
    if not counts:
        return "No campaign is scored"
    empty = [visible(name) for name, arm in result.arms.items() if not arm.n]
    but = f" (none of {listed(empty)})" if empty else ""
    if len(set(counts.values())) == 1:
        return f"n = {counted(next(iter(counts.values())), 'campaign')}{but}"
    return f"n = {', '.join(f'{n} ({name})' for name, n in counts.items())} campaigns{but}"


def _untold_notes(result: RunResult) -> list[str]:
    """Why some of the arms tell nothing, one line a reason."""
    told: dict[str, list[str]] = {}
    for name, arm in result.arms.items():
        if arm.n and (why := why_untold(arm)):
            told.setdefault(why, []).append(visible(name))
    return [f"Cannot tell, {why}: {listed(names)}." for why, names in told.items()]


def detectable_words(estimates: Sequence[Estimate]) -> str:
    """What the column `det.` means for these estimates, which few units make more than it says.

    Args:
        estimates: Those of the table; ones without a spread say nothing.
    """
    estimates = [e for e in estimates if e.detectable > 0]
    units = sorted({e.units for e in estimates})
    few = [n for n in units if n < FEW_UNITS]
    if not few:
        return "det.: 2.80 standard errors, found with about 80 % power."
    times = ", ".join(
        f"{t_detectable(1.0, n) * math.sqrt(n) / DETECTABLE_FACTOR:.2f} times that at {n}"
        for n in few[:3]
    )
    more = f" and more at {len(few) - 3} other counts" if len(few) > 3 else ""
    what = "registries or seeds" if len(units) > 1 else "registries"
    if all(e.registries == 1 for e in estimates):
        what = "seeds"
    return (
        f"det.: 2.80 standard errors; with so few {what}, 80 % power takes {times}{more}, by the "
        "t law."
    )

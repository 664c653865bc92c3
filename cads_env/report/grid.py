"""The report of a grid, as files and as lines for a terminal.

Reads the runs of the grid and writes report.html and report.md; never plays anything.
"""

from __future__ import annotations

from pathlib import Path

from cads_env.errors import RunError, error_text
from cads_env.files import write_whole
from cads_env.report.html import html_page
from cads_env.report.llm.findings import findings
from cads_env.report.llm.found import find_all
from cads_env.report.llm.page import build_grid_report
from cads_env.report.markdown import markdown
from cads_env.report.verdict import why_untold
from cads_env.report.wording import interval, signed, visible
from cads_env.run.grid import Grid
from cads_env.run.manifest_checks import check_manifest
from cads_env.run.result import RunResult


def write_grid_report(
    grid: Grid, out: str | Path | None = None, *, natural: RunResult | None = None
) -> tuple[Path, ...]:
    """Write the report of a grid.

    Args:
        grid: From `load_grid` or `evaluate_grid`, with at least one setting begun.
        out: Folder of the files; None for the grid's own. Files of an earlier report in it are
            replaced.
        natural: The arms of a grid under a quota, played without it: gives the natural prompt
            effects. None leaves them out.

    Returns:
        report.html and report.md.

    Raises:
        RunError: No setting has begun, there is no folder, or a file cannot be written.
        RecordError: A manifest or a trace is damaged.
    """
    place = Path(out) if out is not None else grid.folder
    if place is None:
        msg = "The grid has no folder; expected out= to say where its report goes."
        raise RunError(msg)
    _check(grid)
    report = build_grid_report(find_all(grid.runs, _planned(grid), natural))
    run = next(iter(grid.runs.values()))
    title = visible(f"{report.title} {run.protocol.name} on {run.panel}", 160)
    pages = {"report.html": html_page(report, title=title), "report.md": markdown(report)}
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            write_whole(place / name, [text.encode("utf-8")])
    except (OSError, ValueError) as error:
        msg = f"The report cannot be written into {str(place)!r}: {error_text(error)}."
        raise RunError(msg) from error
    return tuple(place / name for name in pages)


def summary_lines(grid: Grid) -> tuple[str, ...]:
    """What a terminal says of a grid: a line an arm, then a line a question.

    Args:
        grid: With at least one setting begun.

    Raises:
        RunError: No setting has begun.
        RecordError: A trace is damaged.
    """
    _check(grid)
    found = find_all(grid.runs, _planned(grid), None)
    lines = [f"Setting {visible(found.base.name)}:"]
    for name, arm in found.base.run.arms.items():
        net = arm.net
        why = why_untold(arm)
        told = f"(cannot tell, {why})" if why else interval(net.low, net.high)
        said = f"net {signed(net.mean)} {told}, n = {net.n:,}"
        lines.append(f"  {visible(name)}: {said if net.n else 'no campaign was scored'}")
    lines += [f"{word}: {text}" for word, text in findings(found)]
    return tuple(lines)


def _planned(grid: Grid) -> list[str]:
    return [setting.name for setting in grid.settings]


def _check(grid: Grid) -> None:
    if not grid.runs:
        msg = (
            f"No setting of the grid in {str(grid.folder)!r} has begun: there is nothing to "
            "report. Repeat the command that began it."
        )
        raise RunError(msg)
    for run in grid.runs.values():
        check_manifest(run.manifest)

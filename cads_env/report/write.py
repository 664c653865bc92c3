"""Writing a report: files appear whole or not at all."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from cads_env.errors import RunError, error_text, suggest
from cads_env.files import write_whole
from cads_env.report.assemble import build_report
from cads_env.report.datasheet import datasheet_sections
from cads_env.report.html import html_page
from cads_env.report.markdown import markdown, markdown_sections
from cads_env.report.wording import visible
from cads_env.run.manifest_checks import check_manifest
from cads_env.run.result import RunResult

FORMATS: Final = ("html", "md", "datasheet")
"""What can be written: report.html, report.md, datasheet.md."""


def write_report(
    result: RunResult,
    folder: str | Path,
    *,
    formats: Sequence[str] = FORMATS,
    natural: RunResult | None = None,
) -> tuple[Path, ...]:
    """Write the report of a run.

    Args:
        result: From `evaluate` or `load_run`.
        folder: Where the files go; made if it does not exist. Files of an earlier report in it are
            replaced.
        formats: Which of "html", "md" and "datasheet".
        natural: Of a run of models under a quota: the same arms without it, whose prompt effects
            stand beside. None leaves them out.

    Returns:
        The files written, in the order of `FORMATS`.

    Raises:
        RunError: A format is unknown or a file cannot be written.
        RecordError: The manifest is not one that a run writes.
    """
    check_formats(formats)
    check_manifest(result.manifest)
    place = Path(folder)
    pages: dict[str, str] = {}
    if "html" in formats or "md" in formats:
        report = build_report(result, natural=natural)
        if "html" in formats:
            title = f"{report.title} {result.protocol.name} on {result.panel}"
            pages["report.html"] = html_page(report, title=visible(title, 160))
        if "md" in formats:
            pages["report.md"] = markdown(report)
    if "datasheet" in formats:
        lead = f"Of the registries of {visible(result.panel, 160)} and of the run on them."
        pages["datasheet.md"] = markdown_sections("Datasheet", lead, datasheet_sections(result))
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            write_whole(place / name, [text.encode("utf-8")])
    except (OSError, ValueError) as error:
        msg = f"The report cannot be written into {str(folder)!r}: {error_text(error)}."
        raise RunError(msg) from error
    return tuple(place / name for name in pages)


def check_formats(formats: Collection[str]) -> None:
    """Refuse formats that do not exist.

    Raises:
        RunError: One is unknown, or there is none.
    """
    for name in formats:
        if name not in FORMATS:
            msg = f"Unknown format {name!r}. {suggest(name, FORMATS)}"
            raise RunError(msg)
    if not formats:
        msg = f"No format was named; expected some of {', '.join(FORMATS)}."
        raise RunError(msg)

"""The folder of a self-check: JSON, page, figures and badge. Each file is there whole or not."""

from __future__ import annotations

import json
from pathlib import Path

from cads_env.errors import RunError, error_text
from cads_env.files import write_whole
from cads_env.report.figures.chart import draw_chart
from cads_env.report.html import standalone_svg
from cads_env.report.instrument.badge import badge_svg
from cads_env.report.instrument.content import charts, lead, sections
from cads_env.report.markdown import markdown_sections
from cads_env.report.wording import visible
from cads_env.selfcheck import SelfCheck
from cads_env.selfcheck.badge import as_text, badge_from

JSON_FILE = "selfcheck.json"
PAGE = "SELFCHECK.md"


def write_selfcheck(outcome: SelfCheck, folder: str | Path) -> tuple[Path, ...]:
    """Write everything that there is to keep of a self-check.

    Args:
        outcome: What it found.
        folder: Made if it does not exist; files of an earlier one in it are replaced.

    Returns:
        The files, `selfcheck.json` last, so that with it all others are there.

    Raises:
        RunError: A file cannot be written.
    """
    texts = selfcheck_texts(outcome)
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_whole(place / name, [text.encode("utf-8")])
    except (OSError, ValueError) as error:
        msg = f"The self-check cannot be written into {str(folder)!r}: {error_text(error)}."
        raise RunError(msg) from error
    return tuple(place / name for name in texts)


def selfcheck_texts(outcome: SelfCheck) -> dict[str, str]:
    """The files by name, in the order in which they are written.

    Args:
        outcome: What a self-check found.
    """
    pictures = {name: draw_chart(chart) for name, chart in charts(outcome).items()}
    badge = badge_from(outcome)
    title = f"Self-check of {visible(outcome.protocol, 160)}"
    page = markdown_sections(title, lead(outcome), sections(outcome))
    shown = "\n".join(
        f"![{figure.drawings[0].title}]({name}.svg)\n" for name, figure in pictures.items()
    )
    texts = {f"{name}.svg": standalone_svg(figure) for name, figure in pictures.items()}
    texts["badge.svg"] = badge_svg(badge)
    texts["badge.json"] = json.dumps(badge.to_json(), indent=1) + "\n"
    texts[PAGE] = f"{page}\n## Figures\n\n{shown}"
    texts[JSON_FILE] = as_text(outcome)
    return texts

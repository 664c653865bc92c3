"""A badge as a picture: its words say all, its colours repeat them."""

from __future__ import annotations

import html
from typing import Final

from cads_env.report.wording import visible
from cads_env.selfcheck import Badge

# Dark enough for white words at a contrast of 4.5 to 1.
_COLOURS: Final = {
    "passed": "#2a6f3c",
    "failed": "#a3263a",
    "undecided": "#8c5200",
    "not self-checked": "#565a60",
}
_SIGNS: Final = {"passed": "✓", "failed": "✗", "undecided": "?", "not self-checked": "–"}
_CHARACTER: Final = 6.6
"""Width of a character of 11 pixels, in pixels, on the wide side."""


def badge_svg(badge: Badge) -> str:
    """The badge as an SVG document.

    Args:
        badge: What is known of a protocol.
    """
    left = "self-check"
    count = f" {badge.passed}/{badge.applicable}" if badge.applicable else ""
    right = f"{_SIGNS[badge.state]} {badge.state}{count} | {visible(badge.protocol, 60)}"
    widths = [round(_CHARACTER * len(text) + 14) for text in (left, right)]
    whole = sum(widths)
    title = html.escape(visible(badge.text, 200))
    said = html.escape(visible(badge.says, 600))
    words = "".join(
        f'<text x="{at:.0f}" y="14" textLength="{width - 14}">{html.escape(text)}</text>'
        for at, width, text in (
            (7, widths[0], left),
            (widths[0] + 7, widths[1], right),
        )
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{whole}" height="20" '
        f'viewBox="0 0 {whole} 20" aria-label="{title}"><title>{title}</title><desc>{said}</desc>'
        f'<rect width="{whole}" height="20" rx="3" fill="{_COLOURS[badge.state]}"></rect>'
        f'<path d="M3 0h{widths[0] - 3}v20H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z" fill="#3a3d42"></path>'
        '<g fill="#ffffff" font-family="Verdana, DejaVu Sans, system-ui, sans-serif" '
        f'font-size="11">{words}</g></svg>\n'
    )

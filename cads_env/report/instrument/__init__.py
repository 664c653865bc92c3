"""A self-check on paper: its table, its page with figures, and its badge.

Renders what `cads_env.selfcheck` found; decides nothing.
"""

from cads_env.report.instrument.badge import badge_svg
from cads_env.report.instrument.folder import write_selfcheck
from cads_env.report.instrument.terminal import selfcheck_table

__all__ = ["badge_svg", "selfcheck_table", "write_selfcheck"]

"""Reports: what people read of a run. Every number comes from the run's frames and summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cads_env.report.write import write_report

__all__ = ["write_report"]


def __getattr__(name: str) -> Any:
    """Import `write_report` when it is first used: the terminal's table needs none of the rest."""
    if name == "write_report":
        from cads_env.report.write import write_report

        return write_report
    msg = f"module 'cads_env.report' has no attribute {name!r}"
    raise AttributeError(msg)

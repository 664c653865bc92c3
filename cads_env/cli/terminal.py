"""Where the commands print, and the exit codes that they end with."""

from __future__ import annotations

from typing import Final

from rich.console import Console

USER_ERROR: Final = 1
"""What was asked cannot be done; one paragraph on stderr says why. Nothing was lost."""
FAILED_CAMPAIGNS: Final = 3
"""The run is complete, but some campaigns failed and are left out of its table."""
NOT_AGREED: Final = 3
"""All was done, but a figure is off, a check failed, or a folder does not hold together."""
STOPPED: Final = 3
"""A limit of cost or tokens ended the run; the same command with a higher one goes on."""
INTERRUPTED: Final = 130
"""Ended by Ctrl-C; the same command goes on."""

# Tables are set for 80 columns; a narrower terminal wraps lines rather than losing figures.
OUT: Final = Console(width=max(80, Console().width))
ERR: Final = Console(stderr=True)

"""Where these commands print."""

from __future__ import annotations

from typing import Final

from rich.console import Console

# Tables are set for 80 columns; a narrower terminal wraps lines rather than losing figures.
OUT: Final = Console(width=max(80, Console().width))
ERR: Final = Console(stderr=True)


def say(text: str, *, to: Console = OUT) -> None:
    """Print text as it is, without markup or colours."""
    to.print(text, markup=False, highlight=False, soft_wrap=True)

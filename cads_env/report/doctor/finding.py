"""One thing that the doctor looked at, and how looking is kept from ever failing.

Whatever a check raises becomes a finding. Imports nothing but the standard library, like all of
this package until a check begins: it must work where something else does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Literal, NamedTuple

Status = Literal["ok", "note", "problem"]

LONGEST: Final = 500
"""Characters of an exception's text that a finding keeps."""


class Finding(NamedTuple):
    """One thing that was looked at.

    Attributes:
        section: What it belongs to.
        name: What it is.
        status: "problem" when the core does not work because of it, "note" when something else
            might not, else "ok".
        text: What was seen, and what to do unless it is "ok".
    """

    section: str
    name: str
    status: Status
    text: str


def guarded(section: str, check: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """The findings of a check; what it raises is the last of them.

    Args:
        section: Named in that last finding, which is a problem.
        check: Gives findings.
    """
    found: list[Finding] = []
    try:
        found.extend(check())
    # Other people's code is imported on the way, and may call sys.exit().
    except (Exception, SystemExit) as error:
        found.append(Finding(section, "check", "problem", f"could not be made: {said(error)}"))
    return found


def said(error: BaseException) -> str:
    """An exception as one line, with `~` for the user's own folder."""
    # Without lone surrogates, which a terminal cannot show.
    text = " ".join(str(error)[:LONGEST].encode("utf-8", "replace").decode("utf-8").split())
    return without_home(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def shown(path: Path) -> str:
    """A path with `~` in place of the user's own folder."""
    return without_home(str(path))


def without_home(text: str) -> str:
    """Text with `~` in place of the user's own folder."""
    try:
        home = str(Path.home())
    except (OSError, RuntimeError):
        return text
    return text if home in ("", "/", ".") else text.replace(home, "~")

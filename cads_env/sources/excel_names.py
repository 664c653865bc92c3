"""Names that a spreadsheet has put in the place of gene symbols.

`MARCH1` typed into a spreadsheet becomes a date, a clone such as `2310009E13` a number. Such a name
fits no other file and means nothing to a proposer, so it is refused unless the user keeps it. Never
repairs a name: what stood there is a guess.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from cads_env.errors import RegistryError

KEEP: Final = "keep"
"""Value of the option `excel_names` that takes such names as they stand."""

_LISTED: Final = 5
_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        ("jan", "feb", "mar mrz mär", "apr", "may mai", "jun", "jul", "aug", "sep sept", "oct okt",
         "nov", "dec dez"),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_MONTH: Final = "|".join(sorted(_MONTHS, key=len, reverse=True))
# Two digits after a capitalised month: `sep-1` is a gene of the worm, `Sep-01` of a spreadsheet.
_DAY_MONTH: Final = re.compile(
    rf"(\d{{1,2}})(?:\.? |[-./])({_MONTH})(?:[-./ ]\d{{2,4}})?", re.IGNORECASE
)
_MONTH_DAY: Final = re.compile(rf"({_MONTH.title()})[-./ ](\d{{2}})")
_ISO: Final = re.compile(r"\d{4}-(\d{2})-(\d{2})(?:[ T]00:00:00)?")
_SLASHES: Final = re.compile(r"\d{1,2}/\d{1,2}/\d{2,4}")
_SCIENTIFIC: Final = re.compile(r"\d(?:[.,]\d+)?E\+\d{2,}")
_SUSPECT: Final = re.compile(r"#|\d{1,4}(?:\.? |[-./,E])|[A-Z]\w\w\w?[-./ ]\d\d$")
_ERROR: Final = re.compile(r"#(?:NAME\?|REF!|VALUE!|DIV/0!|NUM!|NULL!)")


def check_excel_names(identifiers: Sequence[str], name: str) -> None:
    """Raise when identifiers look like what a spreadsheet makes of gene symbols.

    Args:
        identifiers: Every candidate.
        name: The registry, for the message.

    Raises:
        RegistryError: The message lists the first of them with what they probably were.
    """
    bad = _changed(tuple(identifiers))
    if not bad:
        return
    shown = ", ".join(f"{x!r} ({meant})" for x, meant in bad[:_LISTED])
    more = f" and {len(bad) - _LISTED} more" if len(bad) > _LISTED else ""
    msg = (
        f"{name!r} has {len(bad)} identifiers that a spreadsheet seems to have changed: "
        f"{shown}{more}. Put the names back in the file (import its column as text), or say "
        f"excel_names={KEEP} to take them as they stand."
    )
    raise RegistryError(msg)


@lru_cache(maxsize=4)  # lines of one file share their genes
def _changed(identifiers: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The changed names, each with what it probably was."""
    return tuple((x, meant) for x in identifiers if (meant := meant_by(x)) is not None)


def meant_by(identifier: str) -> str | None:
    """What a changed name probably was, in words; None for a name that nothing has changed.

    Args:
        identifier: One candidate's name.
    """
    if not _SUSPECT.match(identifier):
        return None  # nearly every name
    if _ERROR.fullmatch(identifier):
        return "an error in place of a name"
    if _SCIENTIFIC.fullmatch(identifier):
        return "probably a clone or a number with an E in it, such as 2310009E13"
    if found := _DAY_MONTH.fullmatch(identifier):
        return _gene(_MONTHS[found[2].lower()], int(found[1]))
    if found := _MONTH_DAY.fullmatch(identifier):
        return _gene(_MONTHS[found[1].lower()], int(found[2]))
    if found := _ISO.fullmatch(identifier):
        return _gene(int(found[1]), int(found[2]))
    if _SLASHES.fullmatch(identifier):
        return "probably a gene named like a month, such as MARCHF1 or SEPTIN2"
    return None


def _gene(month: int, number: int) -> str:
    """The human gene that a month and a day were made of."""
    if month == 3:
        other = f" or MTARC{number}, once MARC{number}" if number in (1, 2) else ""
        return f"probably MARCHF{number}, once MARCH{number}{other}"
    if month == 9 and number == 15:
        return "probably SELENOF, once SEP15"
    if month == 9:
        return f"probably SEPTIN{number}, once SEPT{number}"
    if month == 12 and number == 1:
        return "probably DELEC1, once DEC1"
    if month == 10 and number == 4:
        return "probably POU5F1, once OCT4"
    return "probably a gene named like a month"

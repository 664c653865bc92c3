"""Walking a fixed ranking: the part that several agents share."""

from __future__ import annotations

from collections.abc import Iterable

from cads_env.proposer import View


def first_untested(ranking: Iterable[str], view: View) -> list[str]:
    """The first untested names of a ranking, as many as the view has slots.

    Args:
        ranking: Identifiers, best first.
        view: Gives the tested ones and the number of slots.
    """
    return untested_names(ranking, view, most=view.slots)


def untested_names(ranking: Iterable[str], view: View, *, most: int) -> list[str]:
    """The first untested names of a ranking.

    Args:
        ranking: Identifiers, best first.
        view: Gives the tested ones.
        most: How many names, at most.
    """
    tested = set(view.tested)
    names: list[str] = []
    for name in ranking:
        if len(names) >= most:
            break
        if name not in tested:
            names.append(name)
    return names

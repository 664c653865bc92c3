"""`prior`: proposes by a public side table of scores, never looking at the screen's own reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cads_agents.ranking import first_untested
from cads_env.proposer import View


class PriorRanking:
    """Ranks candidates by one numeric side table, highest first; ties in index order."""

    requires: tuple[str, ...] = ("prior",)

    def __init__(self, table: str = "prior") -> None:
        """Name the side table.

        Args:
            table: A numeric side table of the registry, higher = more promising.
        """
        self.requires = (table,)
        self._order: list[str] = []

    def propose(self, view: View) -> Sequence[str]:
        """The best untested candidates."""
        if not self._order:
            scores = np.asarray(view.side_tables[self.requires[0]].values, np.float64)
            order = np.argsort(-scores, kind="stable")
            self._order = [view.identifiers[i] for i in order.tolist()]
        return first_untested(self._order, view)

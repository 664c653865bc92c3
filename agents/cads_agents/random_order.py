"""`random`: proposes untested candidates in a seeded random order. Its expected net is 0."""

from __future__ import annotations

import random
from collections.abc import Sequence

from cads_agents.ranking import first_untested
from cads_env.proposer import View


class RandomOrder:
    """A proposer that knows nothing: the delivery of a good agent, the choices of the fallback."""

    def __init__(self, seed: int = 0) -> None:
        """Choose the order.

        Args:
            seed: Which order.
        """
        self._random = random.Random(seed)
        self._order: list[str] = []

    def propose(self, view: View) -> Sequence[str]:
        """The next untested candidates of the order."""
        if not self._order:
            self._order = self._random.sample(view.identifiers, len(view.identifiers))
        return first_untested(self._order, view)

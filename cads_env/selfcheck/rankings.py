"""Proposers that know the truth, by which the instrument itself is measured.

The one place of the self-check that looks into an oracle. None of them is an agent: nobody can
name them on a command line, and no run lists them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cads_env.proposer import View
from cads_env.registry import Oracle, Registry
from cads_env.tape import bits, candidate_words, normals


class FixedOrder:
    """Proposes untested candidates in a fixed order, from a given round on."""

    def __init__(self, order: Sequence[str], *, first_round: int = 0) -> None:
        """Keep the order.

        Args:
            order: Identifiers, best first.
            first_round: In earlier rounds it proposes nothing.
        """
        self._order = order
        self._first_round = first_round

    def propose(self, view: View) -> Sequence[str]:
        """The first untested names, as many as the view has slots."""
        if view.round < self._first_round:
            return ()
        tested = set(view.tested)
        names: list[str] = []
        for name in self._order:
            if len(names) >= view.slots:
                break
            if name not in tested:
                names.append(name)
        return names


def noisy_order(registry: Registry, oracle: Oracle, *, sd: float, seed: int) -> list[str]:
    """Every candidate by u + sd z, largest first, with z standard normal.

    Args:
        registry: The public half.
        oracle: The private half; the noise is keyed by it.
        sd: Noise in units of the effect, at least 0. 0 is the perfect ranking, infinity a random
            one.
        seed: Campaign seed. The z are the same whatever the sd, so that rankings are paired.
    """
    if sd == 0:
        return _names(registry, oracle.signal)
    key = np.array([oracle.key("selfcheck-noise", seed)], np.uint64)
    words = candidate_words(key, np.arange(registry.m, dtype=np.int64))
    noise = normals(bits(words, np.zeros(registry.m, np.int64), 0))
    return _names(registry, noise if math.isinf(sd) else oracle.signal + sd * noise)


def reverse_order(registry: Registry, oracle: Oracle) -> list[str]:
    """Every candidate by u, smallest first: the surest nulls before all others."""
    return _names(registry, -oracle.signal)


def _names(registry: Registry, scores: NDArray[np.float64]) -> list[str]:
    order = np.argsort(-scores, kind="stable")
    return [registry.identifiers[i] for i in order.tolist()]

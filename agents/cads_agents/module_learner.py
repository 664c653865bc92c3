"""`module-learner`: learns from the screen which public modules hold hits. The positive control.

A Beta-Bernoulli posterior of "reads high" for each module, from the high and low lists alone. Where
modules say nothing about hits it must net 0, where they do it must net more.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cads_env.proposer import View


class ModuleLearner:
    """Proposes untested candidates from the modules most likely to read high."""

    requires = ("module",)

    def __init__(self, seed: int = 0, base_rate: float = 0.15, strength: float = 2.0) -> None:
        """Set the prior, Beta(strength * base_rate, strength * (1 - base_rate)).

        Args:
            seed: Which order untested candidates of equal modules are taken in.
            base_rate: Prior probability that a candidate reads high, in (0, 1).
            strength: Weight of the prior in reads, above 0.
        """
        self._random = random.Random(seed)
        self._base_rate, self._strength = base_rate, strength
        self._names: list[str] = []
        self._place: dict[str, int] = {}
        self._codes: NDArray[np.intp] = np.empty(0, np.intp)
        self._count = 0

    def propose(self, view: View) -> Sequence[str]:
        """The untested candidates of the best modules."""
        if not self._names:
            self._start(view)
        high, low = self._by_module(view.high), self._by_module(view.low)
        weight, prior = self._strength, self._strength * self._base_rate
        posterior_mean = (high + prior) / (high + low + weight)
        is_untested = np.ones(len(self._names), np.bool_)
        is_untested[[self._place[name] for name in view.tested]] = False
        untested = np.flatnonzero(is_untested)
        best_first = np.argsort(-posterior_mean[self._codes[untested]], kind="stable")
        return [self._names[i] for i in untested[best_first[: view.slots]].tolist()]

    def _start(self, view: View) -> None:
        """Shuffle the candidates, so that those of equal modules are taken in a random order."""
        m = len(view.identifiers)
        order = self._random.sample(range(m), m)
        self._names = [view.identifiers[i] for i in order]
        self._place = {name: place for place, name in enumerate(self._names)}
        modules = view.side_tables["module"].values[order]
        labels, codes = np.unique(modules, return_inverse=True)
        self._codes, self._count = codes, labels.size

    def _by_module(self, names: Sequence[str]) -> NDArray[np.intp]:
        """How many of these candidates each module holds."""
        places = np.array([self._place[name] for name in names], np.intp)
        return np.bincount(self._codes[places], minlength=self._count)

"""`module-learner`: learns from the screen which public modules hold hits. The positive control.

A Beta-Bernoulli posterior of "reads high" for each module, from the high and low lists alone. Where
modules say nothing about hits it must net 0, where they do it must net more.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

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
        self._order: list[tuple[str, str]] = []
        self._module: dict[str, str] = {}

    def propose(self, view: View) -> Sequence[str]:
        """The untested candidates of the best modules."""
        if not self._order:
            modules = [str(label) for label in view.side_tables["module"].values]
            self._module = dict(zip(view.identifiers, modules, strict=True))
            pairs = list(self._module.items())
            self._order = self._random.sample(pairs, len(pairs))
        high = Counter(self._module[name] for name in view.high)
        low = Counter(self._module[name] for name in view.low)
        weight, prior = self._strength, self._strength * self._base_rate

        def posterior_mean(module: str) -> float:
            return (high[module] + prior) / (high[module] + low[module] + weight)

        score = {module: posterior_mean(module) for module in set(self._module.values())}
        tested = set(view.tested)
        untested = [(name, module) for name, module in self._order if name not in tested]
        untested.sort(key=lambda pair: -score[pair[1]])
        return [name for name, _ in untested[: view.slots]]

"""What biology would expect of a gene's name: one fixed score a symbol, for synthetic screens.

The strong end is a list of core-essential families written down from general knowledge; all other
names fall in a fixed keyed order. The same for every instance, seed and salt, because the meaning
of a name is no secret. Never looks at an effect, a measurement or anyone's annotation.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from cads_env.sources.modules import symbol_subset
from cads_env.tape import bits, candidate_words, derive_key, normal_quantile, normals

Float64s = NDArray[np.float64]


@cache
def expected_scores(panel: str, m: int) -> Float64s:
    """B: the standard normal score that each symbol of a panel's registries leads one to expect.

    Symbols are ranked by (normal number keyed by panel and symbol) - (strength of the name), and
    the r-th lowest of them, r from 0, gets the normal quantile of (r + 1/2) / m, so that the
    scores are standard normal whatever the strengths are.

    Args:
        panel: Name of the panel, part of every key; instance, seed and salt are not.
        m: Number of candidates.

    Returns:
        Shape (m,), in the order of the symbols, read-only; low = expected to be essential.
    """
    symbols = symbol_subset(m)
    keys = [derive_key("registry-name", panel=panel, symbol=symbol) for symbol in symbols]
    words = candidate_words(np.array(keys, np.uint64), np.zeros(m, np.int64))
    noise = normals(bits(words, np.zeros(m, np.int64), 0))
    order = np.argsort(noise - name_strengths(symbols), kind="stable")
    scores = np.empty(m)
    scores[order] = normal_quantile((np.arange(m, dtype=np.float64) + 0.5) / m)
    scores.setflags(write=False)
    return scores


def name_strengths(symbols: tuple[str, ...]) -> Float64s:
    """How strongly each name says that cells need the gene, shape (n,), in standard deviations.

    That of the first pattern of `data/expected_essential.txt` that the whole symbol fits; 0 for a
    symbol that fits none.
    """
    patterns = _patterns()
    return np.array(
        [next((s for s, fits in patterns if fits.fullmatch(symbol)), 0.0) for symbol in symbols]
    )


@cache
def _patterns() -> tuple[tuple[float, re.Pattern[str]], ...]:
    path = files("cads_env.sources") / "data" / "expected_essential.txt"
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return tuple((float(strength), re.compile(pattern)) for strength, _, pattern in rows)

"""What a contaminated read becomes: the amounts that laws add, or put in a read's place.

Amounts are drawn from a read's own tape slots 2 and 3. They never decide which reads they befall.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from cads_env.contamination.batch import Floats, Ints, ReadBatch
from cads_env.errors import ProtocolError, quoted

MODES: Final = ("add", "replace")
"""Whether an amount is added to the clean read or takes its place."""


class Amount(Protocol):
    """The amounts of some contaminated reads."""

    def __call__(self, batch: ReadBatch, at: Ints) -> float | Floats:
        """One for all, or one for each read in `at`."""
        ...


@dataclass(frozen=True, slots=True)
class Between:
    """U(low, high)."""

    low: float
    high: float

    def __call__(self, batch: ReadBatch, at: Ints) -> Floats:
        """Drawn from slot 2."""
        return self.low + (self.high - self.low) * batch.uniform(at)


@dataclass(frozen=True, slots=True)
class EitherSign:
    """U(low, high) with a sign of equal odds."""

    low: float
    high: float

    def __call__(self, batch: ReadBatch, at: Ints) -> Floats:
        """The size drawn from slot 2, the sign from slot 3."""
        size = self.low + (self.high - self.low) * batch.uniform(at)
        return np.where(batch.uniform(at, 3) < 0.5, -size, size)


@dataclass(frozen=True, slots=True)
class Always:
    """The same number for all."""

    value: float

    def __call__(self, batch: ReadBatch, at: Ints) -> float:
        """Draws nothing."""
        return self.value


def finite(name: str, value: object) -> float:
    """An option as a finite number.

    Raises:
        ProtocolError: It is none.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    msg = f"law_options {name} is {quoted(value)}; expected a finite number."
    raise ProtocolError(msg)


def share(name: str, value: object) -> float:
    """An option as a probability.

    Raises:
        ProtocolError: It is not in [0, 1].
    """
    number = finite(name, value)
    if not 0.0 <= number <= 1.0:
        msg = f"law_options {name} is {number:g}; expected a probability in [0, 1]."
        raise ProtocolError(msg)
    return number


def positive(name: str, value: object) -> float:
    """An option as a number above 0.

    Raises:
        ProtocolError: It is none.
    """
    number = finite(name, value)
    if number <= 0.0:
        msg = f"law_options {name} is {number:g}; expected a number above 0."
        raise ProtocolError(msg)
    return number


def ends(low: object, high: object) -> tuple[float, float]:
    """The options `low` and `high` as the ends of a range.

    Raises:
        ProtocolError: Not finite, or in the wrong order.
    """
    bottom, top = finite("low", low), finite("high", high)
    if bottom > top:
        msg = f"law_options low = {bottom:g} is above high = {top:g}; expected low <= high."
        raise ProtocolError(msg)
    return bottom, top


def mode_of(value: object) -> str:
    """The option `mode`.

    Raises:
        ProtocolError: Neither "add" nor "replace".
    """
    if value not in MODES:
        msg = f"law_options mode is {quoted(value)}; expected add or replace."
        raise ProtocolError(msg)
    return str(value)

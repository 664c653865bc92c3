"""Rows of decimal numbers as whole multiples of 2**-32, many at a time.

Sums of such multiples are exact, so one term can be taken out of a sum and leave no trace. Plain
decimals are read by array arithmetic, anything else one by one. Never used for an effect itself,
which keeps every digit.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cads_env.sources.delimited import number

SCALE: Final = 2.0**32
"""Multiples a unit."""

LARGEST: Final = 2.0**14
"""Magnitude from which a number is refused: 65,536 smaller ones still sum within 64 bits."""

_DIGITS: Final = 15
"""Significant digits that are read; a whole number of so many is exact in a float, and what is cut
off is below one multiple."""

_LONGEST: Final = 28
_POWERS: Final = 10.0 ** np.arange(_LONGEST + 1)
_ZERO, _DOT, _MINUS = b"0.-"


class Wholes(NamedTuple):
    """The numbers of one row.

    Attributes:
        multiples: Whole multiples of 1 / SCALE, shape (cells,); 0 where missing.
        there: Where there is a number, shape (cells,).
        faulty: Positions of cells that are no numbers, infinite or too large.
    """

    multiples: NDArray[np.int64]
    there: NDArray[np.bool_]
    faulty: tuple[int, ...]


def wholes_of(row: bytes, separator: bytes) -> Wholes:
    """The numbers of a row of unquoted cells.

    Args:
        row: The cells, parted by the separator.
        separator: One byte.
    """
    text = np.frombuffer(row, np.uint8)
    ends = np.append(np.flatnonzero(text == separator[0]), text.size)
    starts = np.append(0, ends[:-1] + 1)
    lengths = ends - starts
    values, is_plain = _plain_decimals(text, starts, lengths)
    there = lengths > 0
    odd = np.flatnonzero(there & ~(is_plain & (np.abs(values) < LARGEST)))
    faulty: list[int] = []
    for i in odd.tolist():
        cell = row[starts[i] : ends[i]].decode("utf-8", "replace").strip()
        value = number(cell)
        values[i] = 0.0
        if value is None or abs(value) >= LARGEST:  # false for NaN
            faulty.append(i)
        elif math.isnan(value):
            there[i] = False
        else:
            values[i] = value
    return Wholes(np.rint(values * SCALE).astype(np.int64), there, tuple(faulty))


def _plain_decimals(
    text: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Cells read as `-12.345`, and which of them are of that form; 0 for the others."""
    count = starts.size
    mantissa = np.zeros(count, np.int64)
    decimals = np.zeros(count, np.int8)
    digits = np.zeros(count, np.int8)
    has_dot = np.zeros(count, np.bool_)
    is_negative = np.zeros(count, np.bool_)
    is_plain = lengths <= _LONGEST
    has_digit = np.zeros(count, np.bool_)
    last = max(text.size - 1, 0)
    for k in range(min(int(lengths.max()), _LONGEST)):
        there = lengths > k
        character = text[np.minimum(starts + k, last)]
        digit = character - np.uint8(_ZERO)  # wraps to above 9 for what is no digit
        is_digit = (digit < 10) & there
        taken = is_digit & (digits < _DIGITS)
        mantissa = np.where(taken, mantissa * 10 + digit, mantissa)
        decimals += taken & has_dot
        digits += taken & (mantissa > 0)
        has_digit |= is_digit
        # A digit that is not taken may only be one behind the dot.
        is_plain &= ~(is_digit & ~taken & ~has_dot)
        is_dot = (character == _DOT) & there & ~has_dot
        is_sign = (character == _MINUS) & there if k == 0 else np.zeros(count, np.bool_)
        is_plain &= is_digit | is_dot | is_sign | ~there
        has_dot |= is_dot
        is_negative |= is_sign
    is_plain &= has_digit
    values = np.where(is_plain, mantissa / _POWERS[decimals], 0.0)
    return np.where(is_negative, -values, values), is_plain
